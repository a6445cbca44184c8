"""Writer of Jepsen EDN: one operation per line."""

import numpy as np

from plume_py.base.errors import ConversionError
from plume_py.history.formats.edn_atoms import written
from plume_py.history.formats.edn_events import in_time, rows
from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    are_numbered,
    lost_names,
    lost_nodes,
    render,
    require,
    require_initial,
    session_numbers,
)
from plume_py.history.model import COMMITTED, READ, Bools, History
from plume_py.history.value_codes import Atom

TARGET = "Jepsen EDN"
_TYPES = (b":ok", b":fail", b":info")


def write(history: History) -> Rendered:
    """Jepsen EDN, list-append or rw-register or both; with times, also invocations, and all in the order of time."""
    require(history, TARGET, lists=True, unknown=True, empty=True, levels=False)
    if np.any(np.diff(history.session_start) == 0):
        raise ConversionError(f"{TARGET} has no empty sessions, and this history has one")
    if not history.transactions:
        raise ConversionError(f"{TARGET} has no empty histories")
    lost = _lost(history)
    require_initial(history, TARGET, (None,), lost, fixed=True)
    events, notes = in_time(history)
    sessions, owners, status = session_numbers(history), history.txn_session.tolist(), history.txn_status.tolist()
    spelling = Spelling(
        opens=(b"[:r ", b"[:w ", b"[:r ", b"[:append "),
        key=spell,
        middle=b" ",
        value=spell,
        initial=b"nil",
        heads=[
            b"{:index %d, :type %b, :process %d, :f :txn, :value ["
            % (index, b":invoke" if event.invokes else _TYPES[status[event.txn]], sessions[owners[event.txn]])
            for index, event in enumerate(events)
        ],
        tails=[b"]}\n" if event.time is None else b"], :time %d}\n" % event.time for event in events],
        closes=b"]",
        comma=b" ",
        lists=(b"[", b" ", b"]"),
    )
    if np.any(lost):
        notes.append("reads of null by transactions that did not commit mean nothing in this format")
    notes += lost_names(history, ids=False, sessions=are_numbered(history)) + lost_nodes(history)
    return Rendered(render(history, spelling, rows=rows(history, events)), notes)


def spell(atom: Atom) -> bytes:
    """An EDN integer or nil, or the keyword, string, number, … that is read as ``atom``."""
    if atom is None:
        return b"nil"
    if isinstance(atom, int):
        return b"%d" % atom if -(2**63) <= atom < 2**63 else b"%dN" % atom
    return written(atom).encode()


def _lost(history: History) -> Bools:
    """The operations that cannot be told from reads that saw nothing: nil, in transactions that did not commit."""
    nil = history.initial_versions | (history.version_value == history.values.code_of(None))
    failed = np.repeat(history.txn_status != COMMITTED, np.diff(history.txn_start))
    lost: Bools = failed & (history.op_kind == READ) & nil[history.op_version]
    return lost
