"""Write native JSON and JSON Lines. Native JSON can express every history that a file can hold."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np

from plume_py.base.errors import ConversionError
from plume_py.history.formats.render import Rendered, Spelling, lost_names, render, require_decision
from plume_py.history.init_txn import find_init_txn
from plume_py.history.model import NOBODY, STATUS_NAMES, History
from plume_py.history.times import NO_TIME
from plume_py.levels import NAMES

_encode = msgspec.json.encode


def write_json(history: History) -> Rendered:
    """Return the history as native JSON."""
    _require_initial(history, "native JSON")
    before = b"{" + _initial(history) + _ticks(history) + b'"sessions":['
    chunks = render(history, _spelling(history, _heads(history), _tails(history)), before, _end(history))
    return Rendered(chunks, lost_names(history, ids=True, sessions=False))


def write_lines(history: History) -> Rendered:
    """Return the history as native JSON Lines, one transaction per line."""
    _require_initial(history, "JSON Lines")
    if np.any(np.diff(history.session_start) == 0):
        raise ConversionError("JSON Lines has no empty sessions, and this history has one")
    head = _initial(history) + _ticks(history)
    before = b"{" + head.rstrip(b",") + b"}\n" if head else b""
    names, owners = _session_names(history), history.txn_session.tolist()
    heads = (b'{"session":%b,%b"ops":[' % (names[owners[t]], _fields(history, t)) for t in range(history.transactions))
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


def _require_initial(history: History, target: str) -> None:
    """Raise ConversionError if the file would be read with another initial state."""
    null = history.values.code_of(None)
    if history.initial is None and np.any(history.version_value == null):
        raise ConversionError(f"in {target} null may be the initial value; this history has null and no initial state")
    if history.init_txn == NOBODY:
        require_decision(history, find_init_txn(history, "auto", True), target)
        return
    for undeclared in (history, replace(history, initial=null)):
        require_decision(history, find_init_txn(undeclared, "auto", False), target)


def _initial(history: History) -> bytes:
    """Return the field of the initial value; empty if an explicit transaction sets it."""
    if history.init_txn != NOBODY:
        return b""
    return b'"initial":' + _encode(history.initial_value) + b","


def _ticks(history: History) -> bytes:
    """Return the field of the clock's ticks per second, if known."""
    per_second = None if history.times is None else history.times.per_second
    return b"" if per_second is None else b'"ticks_per_second":%d,' % per_second


def _fields(history: History, t: int) -> bytes:
    """Return the optional fields of a transaction that differ from their defaults."""
    fields = b""
    names = history.txn_label.names
    if names is not None and names[t] is not None and not (history.txn_status[t] == 1 and names[t] == -1):
        fields += b'"id":' + _encode(history.txn_label[t]) + b","
    if history.txn_status[t]:
        fields += b'"status":' + _encode(STATUS_NAMES[history.txn_status[t]]) + b","
    if history.txn_level is not None and history.txn_level[t]:
        fields += b'"level":' + _encode(NAMES[history.txn_level[t] - 1]) + b","
    if history.times is not None:
        given = (b'"start":', history.times.begin[t]), (b'"end":', history.times.end[t])
        fields += b"".join(name + b"%d," % time for name, time in given if time > NO_TIME)
    if history.txn_node is not None and history.txn_node[t]:
        fields += b'"node":' + _encode(history.txn_node[t]) + b","
    return fields


def _session_names(history: History) -> list[bytes]:
    """Return the names of the sessions, or their numbers if two names are equal."""
    names = [_encode(history.session_label[s]) for s in range(history.sessions)]
    return names if len(set(names)) == len(names) else [b"%d" % s for s in range(history.sessions)]


def _heads(history: History) -> Iterator[bytes]:
    """Yield the text before the operations of each transaction, with the brackets of sessions that open there."""
    previous = -1
    for t in range(history.transactions):
        s = int(history.txn_session[t])
        opening = b"," if s == previous else b"".join(_between(previous, s))
        previous = s
        yield opening + b"{" + _fields(history, t) + b'"ops":['


def _between(previous: int, s: int) -> Iterator[bytes]:
    """Yield the text from the end of session ``previous`` to the start of session ``s``."""
    for skipped in range(previous + 1, s):
        yield b"\n[]" if skipped == 0 else b",\n[]"
    yield b"\n[" if s == 0 else b",\n["


def _tails(history: History) -> Iterator[bytes]:
    for t in range(history.transactions):
        last = t + 1 == history.transactions or history.txn_session[t + 1] != history.txn_session[t]
        yield b"]}]" if last else b"]}\n "


def _end(history: History) -> bytes:
    """Return the text after the last transaction: empty sessions and the closing brackets."""
    last = int(history.txn_session[-1]) if history.transactions else -1
    rest = b"".join(b"\n[]" if s == 0 else b",\n[]" for s in range(last + 1, history.sessions))
    return rest + b"\n]}\n"
