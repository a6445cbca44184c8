"""Writer of Plume text. Aborted transactions lose their boundaries (the format gives them all the id -1)."""

import numpy as np

from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    are_numbered,
    integer,
    lost_names,
    lost_nodes,
    lost_times,
    render,
    require,
    require_initial,
    session_numbers,
)
from plume_py.history.model import ABORTED, History
from plume_py.history.value_codes import Atom

TARGET = "Plume text"


def write(history: History) -> Rendered:
    """Plume text, one operation per line."""
    require(history, TARGET, lists=False, unknown=False, empty=False, levels=False)
    require_initial(history, TARGET, (0,), hollow=False)
    sessions = session_numbers(history)
    numbers, notes = _numbers(history)
    aborted = history.txn_status == ABORTED
    if np.any(np.bincount(history.txn_session[aborted], minlength=1) > 1):
        notes.append("the aborted transactions of a session are one in this format")
    owners = zip(history.txn_session.tolist(), numbers, strict=True)
    spelling = Spelling(
        opens=(b"r(", b"w(", b"", b""),
        key=_key,
        middle=b",",
        value=_value,
        initial=b"0",
        closes=[b",%d,%d)\n" % (sessions[s], number) for s, number in owners],
        heads=[b""] * history.transactions,
        tails=[b""] * history.transactions,
    )
    notes += lost_names(history, ids=True, sessions=are_numbered(history)) + lost_times(history) + lost_nodes(history)
    return Rendered(render(history, spelling), notes)


def _numbers(history: History) -> tuple[list[int], list[str]]:
    """Transaction ids: the file's own where they are distinct non-negative integers, -1 for aborted ones."""
    aborted = (history.txn_status == ABORTED).tolist()
    labels = [history.txn_label[t] for t in range(history.transactions)]
    own = [label for label, gone in zip(labels, aborted, strict=True) if not gone]
    if all(isinstance(label, int) and 0 <= label < 2**63 for label in own):
        return [-1 if gone else int(label) for label, gone in zip(labels, aborted, strict=True)], []
    renumbered = [-1 if gone else t for t, gone in enumerate(aborted)]
    return renumbered, ["transactions are numbered from 0, as this format has no other ids"]


def _key(atom: Atom) -> bytes:
    return b"%d" % integer(atom, "key", TARGET)


def _value(atom: Atom) -> bytes:
    return b"%d" % integer(atom, "value", TARGET)
