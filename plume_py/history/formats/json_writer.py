"""Writers of the native formats, JSON and JSON Lines. They can express every history."""

from collections.abc import Iterator

import msgspec

from plume_py.history.formats.render import Rendered, Spelling, render
from plume_py.history.model import NOBODY, STATUS_NAMES, History
from plume_py.levels import NAMES

_encode = msgspec.json.encode


def write_json(history: History) -> Rendered:
    """Native JSON: one document."""
    before = b"{" + _initial(history) + b'"sessions":['
    return Rendered(render(history, _spelling(history, _heads(history), _tails(history)), before, _end(history)))


def write_lines(history: History) -> Rendered:
    """Native JSON Lines: one transaction per line."""
    initial = _initial(history)
    before = b"{" + initial.rstrip(b",") + b"}\n" if initial else b""
    heads = (b'{"session":%b,%b"ops":[' % (_session(history, t), _fields(history, t)) for t in _txns(history))
    return Rendered(render(history, _spelling(history, heads, [b"]}\n"] * history.transactions), before))


def _spelling(history: History, heads: Iterator[bytes], tails: "list[bytes] | Iterator[bytes]") -> Spelling:
    return Spelling(
        opens=(b'["r",', b'["w",', b'["r",', b'["append",'),
        key=_encode,
        middle=b",",
        value=_encode,
        initial=_encode(history.initial_value),
        heads=heads,
        tails=tails,
        closes=b"]",
        comma=b",",
    )


def _txns(history: History) -> range:
    return range(history.transactions)


def _initial(history: History) -> bytes:
    """The declaration of the initial value; none if an explicit transaction sets it, or if there is no such state."""
    if history.init_txn != NOBODY or history.initial is None:
        return b""
    return b'"initial":' + _encode(history.initial_value) + b","


def _fields(history: History, t: int) -> bytes:
    """The optional fields of a transaction that differ from the default."""
    fields = b""
    names = history.txn_label.names
    if names is not None and names[t] is not None and not (history.txn_status[t] == 1 and names[t] == -1):
        fields += b'"id":' + _encode(history.txn_label[t]) + b","
    if history.txn_status[t]:
        fields += b'"status":' + _encode(STATUS_NAMES[history.txn_status[t]]) + b","
    if history.txn_level is not None and history.txn_level[t]:
        fields += b'"level":' + _encode(NAMES[history.txn_level[t] - 1]) + b","
    return fields


def _session(history: History, t: int) -> bytes:
    return _encode(history.session_label[int(history.txn_session[t])])


def _heads(history: History) -> Iterator[bytes]:
    """What stands before each transaction, the brackets of its session and of empty ones before it included."""
    previous = -1
    for t in _txns(history):
        s = int(history.txn_session[t])
        opening = b"," if s == previous else b"".join(_between(previous, s))
        previous = s
        yield opening + b"{" + _fields(history, t) + b'"ops":['


def _between(previous: int, s: int) -> Iterator[bytes]:
    """From the end of session ``previous`` (closed by its last tail) to the inside of session ``s``."""
    for skipped in range(previous + 1, s):
        yield b"\n[]" if skipped == 0 else b",\n[]"
    yield b"\n[" if s == 0 else b",\n["


def _tails(history: History) -> Iterator[bytes]:
    for t in _txns(history):
        last = t + 1 == history.transactions or history.txn_session[t + 1] != history.txn_session[t]
        yield b"]}]" if last else b"]}\n "


def _end(history: History) -> bytes:
    """Empty sessions after the last transaction, and the closing brackets."""
    last = int(history.txn_session[-1]) if history.transactions else -1
    rest = b"".join(b"\n[]" if s == 0 else b",\n[]" for s in range(last + 1, history.sessions))
    return rest + b"\n]}\n"
