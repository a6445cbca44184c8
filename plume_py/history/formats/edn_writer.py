"""Writer of Jepsen EDN: one completed operation per line."""

import re

import msgspec
import numpy as np

from plume_py.errors import ConversionError
from plume_py.history.atoms import Atom
from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    initial_versions,
    render,
    require,
    require_initial,
    session_numbers,
)
from plume_py.history.model import UNKNOWN, History

TARGET = "Jepsen EDN"
_TYPES = (b":ok", b":fail", b":info")
_KEYWORD = re.compile(r":[A-Za-z*!_?<>=+.][\w*!?<>=+.\-']*\Z", re.ASCII)


def write(history: History) -> Rendered:
    """Jepsen EDN, list-append or rw-register or both."""
    require(history, TARGET, lists=True, unknown=True, empty=True, levels=False)
    if np.any(np.diff(history.session_start) == 0):
        raise ConversionError(f"{TARGET} has no empty sessions, and this history has one")
    require_initial(history, TARGET, (None,))
    sessions = session_numbers(history)
    owners = enumerate(zip(history.txn_session.tolist(), history.txn_status.tolist(), strict=True))
    heads = [
        b"{:index %d, :type %b, :process %d, :f :txn, :value [" % (t, _TYPES[status], sessions[s])
        for t, (s, status) in owners
    ]
    spelling = Spelling(
        opens=(b"[:r ", b"[:w ", b"[:r ", b"[:append "),
        key=spell,
        middle=b" ",
        value=spell,
        initial=b"nil",
        heads=heads,
        tails=[b"]}\n"] * history.transactions,
        closes=b"]",
        comma=b" ",
        lists=(b"[", b" ", b"]"),
    )
    return Rendered(render(history, spelling), _notes(history))


def spell(atom: Atom) -> bytes:
    """An EDN integer, nil, keyword or string."""
    if atom is None:
        return b"nil"
    if isinstance(atom, int):
        return b"%d" % atom if -(2**63) <= atom < 2**63 else b"%dN" % atom
    return atom.encode() if _KEYWORD.match(atom) else msgspec.json.encode(atom)


def _notes(history: History) -> list[str]:
    unknown = np.repeat(history.txn_status == UNKNOWN, np.diff(history.txn_start))
    if np.any(unknown & (history.op_kind == 0) & initial_versions(history)[history.op_version]):
        return ["reads of the initial state by transactions of unknown outcome mean nothing in this format"]
    return []
