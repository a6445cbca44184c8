"""Writers of dbcop's formats: JSON (compact triples) and the older bincode."""

from collections.abc import Iterator

import numpy as np

from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    integer,
    lost_names,
    lost_nodes,
    lost_times,
    render,
    require,
    require_initial,
)
from plume_py.history.model import COMMITTED, History
from plume_py.history.value_codes import Atom

JSON, BINCODE = "dbcop JSON", "dbcop bincode"
_WHEN = "1970-01-01T00:00:00+00:00"  # the header wants dates, and a history has none, even where it has times


def write_json(history: History) -> Rendered:
    """dbcop JSON, with its wrapper object."""
    _require(history, JSON, (0, None))
    spelling = Spelling(
        opens=(b'["r",', b'["w",', b"", b""),
        key=lambda atom: b"%d" % integer(atom, "key", JSON),
        middle=b",",
        value=lambda atom: b"%d" % integer(atom, "value", JSON),
        initial=b"null",
        heads=_json_heads(history),
        tails=_json_tails(history),
        closes=b"]",
        comma=b",",
    )
    params = b'{"id":0,"n_node":%d,"n_variable":%d,"n_transaction":%d,"n_event":%d}' % _sizes(history)
    before = b'{"params":%b,"info":"isocheck","start":"%b","end":"%b","data":[' % (params, *[_WHEN.encode()] * 2)
    last = int(history.txn_session[-1]) if history.transactions else -1
    rest = b",".join([b"[]"] * (history.sessions - 1 - last))
    glue = b"," if rest and last >= 0 else b""
    return Rendered(render(history, spelling, before, glue + rest + b"]}\n"), _notes(history))


def write_bincode(history: History) -> Rendered:
    """dbcop bincode, as PolySI and others read it."""
    _require(history, BINCODE, (0,))
    success = [b"\1" if status == COMMITTED else b"\0" for status in history.txn_status.tolist()]
    spelling = Spelling(
        opens=(b"\0", b"\1", b"", b""),
        key=lambda atom: _u64(integer(atom, "key", BINCODE)),
        middle=b"",
        value=lambda atom: _u64(integer(atom, "value", BINCODE)),
        initial=_u64(0),
        heads=_bincode_heads(history),
        tails=success,
        closes=b"\1",  # the event was done, even if its transaction then aborted; a failed read would say nothing
    )
    header = b"".join(map(_u64, (0, *_sizes(history))))
    header += b"".join(_u64(len(text)) + text.encode() for text in ("isocheck", _WHEN, _WHEN))
    last = int(history.txn_session[-1]) if history.transactions else -1
    after = _u64(0) * (history.sessions - 1 - last)
    return Rendered(render(history, spelling, header + _u64(history.sessions), after), _notes(history))


def _require(history: History, target: str, initials: tuple[Atom, ...]) -> None:
    require(history, target, lists=False, unknown=False, empty=True, levels=False)
    require_initial(history, target, initials)


def _notes(history: History) -> list[str]:
    return lost_names(history, ids=False, sessions=False) + lost_times(history) + lost_nodes(history)


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _sizes(history: History) -> tuple[int, int, int, int]:
    """Sessions, keys, and the largest counts of transactions per session and of operations per transaction."""
    most_txns = int(np.max(np.diff(history.session_start), initial=0))
    most_ops = int(np.max(np.diff(history.txn_start), initial=0))
    return history.sessions, len(history.key_code), most_txns, most_ops


def _opened_sessions(history: History) -> Iterator[tuple[int, list[int]]]:
    """For each transaction, the sessions that open before it: empty ones, and its own if it is the first."""
    previous = -1
    for t, s in enumerate(history.txn_session.tolist()):
        yield t, list(range(previous + 1, s + 1))
        previous = s


def _json_heads(history: History) -> Iterator[bytes]:
    for t, opened in _opened_sessions(history):
        opening = b",".join([b""] * (t > 0) + [b"[]"] * (len(opened) - 1) + [b"["]) if opened else b","
        yield opening + b'{"events":['


def _json_tails(history: History) -> Iterator[bytes]:
    for t in range(history.transactions):
        last = t + 1 == history.transactions or history.txn_session[t + 1] != history.txn_session[t]
        committed = b"true" if history.txn_status[t] == COMMITTED else b"false"
        yield b'],"committed":' + committed + (b"}]" if last else b"}")


def _bincode_heads(history: History) -> Iterator[bytes]:
    counts = np.diff(history.session_start).tolist()
    lengths = np.diff(history.txn_start).tolist()
    for t, opened in _opened_sessions(history):
        yield b"".join(_u64(counts[s]) for s in opened) + _u64(lengths[t])
