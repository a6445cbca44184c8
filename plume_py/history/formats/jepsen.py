"""Turn the operations of Jepsen histories into transactions, for EDN, history.txt and Elle JSON.

A completion ``ok`` is a committed transaction, ``fail`` an aborted one, and ``info`` one of unknown outcome; so is an
invocation that never completes. The session is the process. A transaction without a process has its own session.

A transaction begins with its invocation and ends with its completion, by ``time``. If no client operation has a
``time``, or all have the same one, as in handwritten examples, the order of the lines gives the times.

Most values are lists of micro-operations, which one typed decoder reads. ``JepsenValues`` examines other values: keys
and values of other types, reads without a value, and operations that read, write or compare-and-set one register.
"""

from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.json_names import given
from plume_py.base.text import display
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.edn_atoms import EXACT, MARK, SET, text_of
from plume_py.history.model import Int64s
from plume_py.history.times import NO_TIME, Times

# --- values of operations

Key = int | str
Value = int | str | None | list[int | str]
Ops = list[tuple[Any, Key, Value]]

ABSENT = msgspec.Raw(b"null")

# The key of a register whose operations name no key.
REGISTER = "register"
_REGISTER_OPS = ("read", "write", "cas")
_KINDS = ("r", "w", "append")

_WORKLOADS = "isocheck reads list-append and rw-register histories, and registers with :read, :write and :cas"


class JepsenOperation(Protocol):
    """One line of a history; the process of a client is an integer."""

    type: str
    process: Any
    f: Any
    value: msgspec.Raw
    index: Any
    time: Any


class Dialect(NamedTuple):
    """How a format spells operations: ``mark`` is the prefix of EDN keywords.

    ``suspect`` returns whether bytes may have strings that look like other atoms (see ``edn_atoms``).
    """

    operation: "msgspec.json.Decoder[Any]"
    ops: "msgspec.json.Decoder[Any]"
    mark: str
    example: str
    suspect: Callable[[bytes], object]


class NotTransactionalError(Exception):
    """An operation that is neither a transaction nor an operation of a register."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


class _BadMicroOpError(Exception):
    """A micro-operation that isocheck does not support; its argument says why."""


class JepsenValues:
    """Turns the values of one history's operations into operations of transactions."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._nil = "nil" if dialect.mark else "null"
        self._names_keys: bool | None = None  # do operations on registers say on which?

    def ops(self, line: int, operation: JepsenOperation) -> Ops | None:
        """Return the operations in the value of an operation, or None if the value is nil."""
        value = bytes(operation.value)
        try:
            ops: Ops | None = self._dialect.ops.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self._decode_untyped(line, operation)
        if ops and (_writes_lists(ops, value) or self._dialect.suspect(value)):
            return self._decode_untyped(line, operation)
        return ops

    def is_register(self, operation: JepsenOperation) -> bool:
        """Return whether it reads, writes or compare-and-sets a single register."""
        return self._register_op(operation) is not None

    def of_nil(self, operation: JepsenOperation) -> Ops | None:
        """Return the operations of an operation without a value: only a register's read has any."""
        return [("r", REGISTER, None)] if self._register_op(operation) == "read" else None

    def known(self, operation: JepsenOperation, ops: Ops) -> Ops:
        """Return ``ops`` of an uncommitted operation without its reads of unknown result.

        These are reads of nil, and the read of a compare-and-set.
        """
        compared = self._register_op(operation) == "cas"
        return [op for op in ops if op[0] != "r" or (op[2] is not None and not compared)]

    def _register_op(self, operation: JepsenOperation) -> str | None:
        name = operation.f
        if not isinstance(name, str) or not name.startswith(self._dialect.mark):
            return None
        name = name[len(self._dialect.mark) :]
        return name if name in _REGISTER_OPS else None

    def _decode_untyped(self, line: int, operation: JepsenOperation) -> Ops:
        try:
            value = msgspec.json.decode(operation.value)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise InputError("a value that is not valid text, or a number out of range", where=f"line {line}") from None
        if _is_list_of_micro_ops(value):
            return [self._micro_op(line, op) for op in value]
        if isinstance(value, list) and len(value) == 2 and value[1] and _is_list_of_micro_ops(value[1]):
            return [self._micro_op(line, [op[0], [value[0], op[1]], *op[2:]]) for op in value[1]]
        ops = self._on_register(line, operation, value)
        if ops is None:
            raise NotTransactionalError(line)
        return ops

    # --- transactions

    def _micro_op(self, line: int, op: list[Any]) -> tuple[str, Key, Value]:
        try:
            return self._read_micro_op(op)
        except _BadMicroOpError as error:
            mark = self._dialect.mark
            raise InputError(
                f"{error}: {display(spell(op, mark), 80)}",
                where=f"line {line}",
                hint=f"isocheck knows [{mark}r k v], [{mark}w k v] and [{mark}append k v], and reads of lists, "
                f"[{mark}r k [v v]]",
            ) from None

    def _read_micro_op(self, op: list[Any]) -> tuple[str, Key, Value]:
        kind = str(op[0])[len(self._dialect.mark) :]
        if kind not in _KINDS or not str(op[0]).startswith(self._dialect.mark):
            raise _BadMicroOpError("not a read, write or append")
        if len(op) == 2:
            if kind != "r":
                raise _BadMicroOpError("nothing to write" if kind == "w" else "nothing to append")
            op = [*op, None]  # a missing value is nil, as in Clojure's destructuring
        return kind, self._key(op[1]), self._value(kind, op[2])

    def _key(self, key: object) -> Key:
        try:
            atom = text_of(key, marked=bool(self._dialect.mark))
        except TypeError:
            raise _BadMicroOpError("a map or a set as a key") from None
        if atom is None:
            raise _BadMicroOpError(f"{self._nil} as a key")
        return atom

    def _value(self, kind: str, value: object) -> Value:
        if not isinstance(value, list):
            return self._scalar(value)
        if kind != "r":
            raise _BadMicroOpError("a list can only be read" if kind == "w" else "a list appended at once")
        return [self._element(element) for element in value]

    def _element(self, element: object) -> int | str:
        if isinstance(element, list):
            raise _BadMicroOpError("a list inside a list")
        atom = self._scalar(element)
        if atom is None:
            raise _BadMicroOpError(f"{self._nil} inside a list")
        return atom

    def _scalar(self, value: object) -> int | str | None:
        if isinstance(value, dict):
            raise _BadMicroOpError("a set is no list: it has no order" if SET in value else "a map as a value")
        return text_of(value, marked=bool(self._dialect.mark))

    # --- registers

    def _on_register(self, line: int, operation: JepsenOperation, value: object) -> Ops | None:
        """Return the operations of ``:read v``, ``:write v`` or ``:cas [v v']``, with key k as ``[k …]``; else None."""
        name = self._register_op(operation)
        if name is None:
            return None
        names_key = isinstance(value, list) and len(value) == 2 and (name != "cas" or isinstance(value[1], list))
        self._require_same_shape(line, names_key)
        key, inner = value if isinstance(value, list) and names_key else (None, value)
        try:
            register = self._key(key) if names_key else REGISTER
            if name != "cas":
                return None if isinstance(inner, list) else [(name[0], register, self._scalar(inner))]
            if not isinstance(inner, list) or len(inner) != 2 or any(isinstance(v, list) for v in inner):
                return None
            return [("r", register, self._scalar(inner[0])), ("w", register, self._scalar(inner[1]))]
        except _BadMicroOpError:
            return None

    def _require_same_shape(self, line: int, names_key: bool) -> None:
        if self._names_keys is None:
            self._names_keys = names_key
        if self._names_keys != names_key:
            raise InputError(
                "some operations on registers name a key, as [k v], and some do not",
                where=f"line {line}",
                hint="is [k v] the content of a register? isocheck takes k for a key (jepsen.independent)",
            )

    def not_transactional(self, names: list[str], line: int) -> InputError:
        """Return the error for a history of other operations, whose names are ``names``."""
        about = f" (its operations are {', '.join(names[:5])}{', ...' if len(names) > 5 else ''})" if names else ""
        return InputError(f"not a transactional read/write history{about}", where=f"line {line}", hint=_WORKLOADS)


def _writes_lists(ops: Ops, value: bytes) -> bool:
    if value.count(b"[") == len(ops) + 1:  # then no value is a list
        return False
    return any(type(op[2]) is list and op[0] != "r" for op in ops)


def _is_list_of_micro_ops(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(op, list) and len(op) in (2, 3) and isinstance(op[0], str) for op in value
    )


def spell(value: object, mark: str) -> str:
    """Return a decoded value as its format spells it."""
    if not mark:
        return msgspec.json.encode(value).decode()
    if isinstance(value, list):
        return f"[{' '.join(spell(item, mark) for item in value)}]"
    if isinstance(value, dict):
        if SET in value:
            return f"#{{{' '.join(spell(item, mark) for item in value[SET])}}}"
        return f"{{{', '.join(f'{spell(k, mark)} {spell(v, mark)}' for k, v in value.items())}}}"
    if isinstance(value, bool) or value is None:
        return {None: "nil", True: "true", False: "false"}[value]
    return str(value).removeprefix(MARK).removeprefix(EXACT)


# --- invocations and completions

# The limit of indices and times, which begin at 0 (-1 means no time in Jepsen).
_END = 2**63

# Jepsen's times are nanoseconds.
PER_SECOND = 10**9

_STATUS = {"ok": "committed", "fail": "aborted", "info": "unknown"}


class Event(NamedTuple):
    """An operation that begins or completes, its line, and its position among the operations of the file."""

    line: int
    operation: JepsenOperation
    position: int


class Pairing:
    """Pairs invocations with completions, process by process, and fills a history."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._values = JepsenValues(dialect)
        self._builder = HistoryBuilder(None, fixed=True)
        self._invoke = dialect.mark + "invoke"
        self._status = {dialect.mark + name: status for name, status in _STATUS.items()}
        self._running: dict[int, Event] = {}
        self._sessionless = _SessionlessInvocations()
        self._time, self._index = array("q"), array("q")  # one entry per operation
        self._sessions = 0
        self._clients = 0
        self._others = 0

    def add_lines(self, text: bytes, lines: Sequence[int], fields: dict[str, object] | None = None) -> int:
        """Add the operations of ``text``, one JSON object per line, whose lines in the file are ``lines``.

        Return how many of ``fields`` they have (see ``json_names.given``).
        """
        try:
            operations = self._dialect.operation.decode_lines(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise self._bad_line(text, lines) from None
        if len(operations) != len(lines):
            raise InputError("an operation that goes on after its line", hint="write each operation on one line")
        names = 0 if fields is None else given(operations, fields)
        self.add(operations, lines)
        return names

    def add(self, operations: Sequence[JepsenOperation], lines: Sequence[int]) -> None:
        """Add operations, whose lines in the file are ``lines``."""
        invoke, running = self._invoke, self._running
        first = len(self._index)
        self._note_clocks(operations)
        try:
            for position, (line, operation) in enumerate(zip(lines, operations, strict=True), first):
                process, event = operation.process, Event(line, operation, position)
                if type(process) is int:
                    before = running.pop(process, None)
                    if operation.type != invoke:
                        self._complete(process, event, before, before and before.position)
                        continue
                    if before is not None:
                        self._add_unknown(process, before, before.position)
                    running[process] = event
                elif process is None:
                    self._add_sessionless(event)
                else:
                    self._others += 1
        except NotTransactionalError as error:
            raise self._not_transactional(operations, error.line) from None
        self._copy_open_values(lines[0] if lines else 0)

    def _note_clocks(self, operations: Sequence[JepsenOperation]) -> None:
        """Append the index and time of each operation; an operation without an index gets its position."""
        for position, operation in enumerate(operations, len(self._index)):
            if type(operation.index) is not int or not 0 <= operation.index < _END:
                operation.index = position  # as Jepsen numbers operations
        self._index.extend([operation.index for operation in operations])
        times = [operation.time for operation in operations]
        if set(map(type, times)) != {int} or not 0 <= min(times) <= max(times) < _END:
            times = [time if type(time) is int and 0 <= time < _END else NO_TIME for time in times]
        self._time.extend(times)

    def _copy_open_values(self, first_line: int) -> None:
        """Copy the values of open invocations, because a value is a view that keeps its whole block alive."""
        for process in reversed(self._running):
            line, operation, _ = self._running[process]
            if line < first_line:
                break
            operation.value = operation.value.copy()

    def columns(self, *, enclosed: bool) -> RawColumns:
        """Return the raw columns; ``enclosed``: the file is one vector, and so may be empty."""
        left: list[tuple[int | str, Event, int | None]]
        left = [(process, event, event.position) for process, event in self._running.items()]
        left += [(self._new_session(), event, begin) for event, begin in self._sessionless.rest()]
        try:
            for session, invocation, begin in sorted(left, key=lambda item: item[1].line):
                self._add_unknown(session, invocation, begin)
        except NotTransactionalError as error:
            raise self._not_transactional([event.operation for _, event, _ in left], error.line) from None
        if not self._clients and (self._others or not enclosed):
            raise self._no_clients()
        columns = self._builder.columns()
        if columns.times is not None:
            time, index = np.array(self._time, np.int64), np.array(self._index, np.int64)
            columns.times = by_clock(columns.times, time, index)
        return columns

    def _add_sessionless(self, event: Event) -> None:
        shape = self._shape(event)
        if event.operation.type == self._invoke:
            self._sessionless.add(shape, event)
            event.operation.value = event.operation.value.copy()
        else:
            self._complete(self._new_session(), event, *self._sessionless.pop(shape))

    def _shape(self, event: Event) -> str:
        """Return the operations of an operation without a process as text, without the results of reads."""
        ops = self._done(event, None, "unknown")
        return _NIL if ops is None else repr([(str(op[0]), *op[1 : 2 if op[0] == "r" else 3]) for op in ops])

    def _new_session(self) -> str:
        self._sessions += 1
        return f"T{self._sessions}"

    def _complete(self, session: int | str, event: Event, invocation: Event | None, begin: int | None) -> None:
        line, operation, position = event
        status = self._status.get(operation.type)
        if status is None:
            raise self._bad_type(line, operation.type)
        ops = self._done(event, invocation, status)
        if ops is None:
            raise NotTransactionalError(line)
        self._clients += 1
        if status != "committed":
            ops = self._values.known(operation, ops)
        self._builder.add(session, ops, status=status, line=line, index=operation.index, begin=begin, end=position)

    def _done(self, event: Event, invocation: Event | None, status: str) -> Ops | None:
        """Return the operations of a completed operation, from its invocation if its own value does not have them."""
        line, operation, _ = event
        ops = self._values.ops(line, operation)
        if ops is None and invocation is not None and (status != "committed" or self._values.is_register(operation)):
            ops = self._values.ops(invocation.line, invocation.operation)
        return self._values.of_nil(operation) if ops is None else ops

    def _add_unknown(self, session: int | str, invocation: Event, begin: int | None) -> None:
        line, operation, _ = invocation
        ops = self._done(invocation, None, "unknown")
        if ops is None:
            raise NotTransactionalError(line)
        self._clients += 1
        ops = self._values.known(operation, ops)
        self._builder.add(session, ops, status="unknown", line=line, index=operation.index, begin=begin)

    def _bad_type(self, line: int, kind: str) -> InputError:
        mark = self._dialect.mark
        problem = f"unknown type {kind!r:.40}" if kind else "an operation without a type"
        return InputError(problem, where=f"line {line}", hint=f"use {mark}invoke, {mark}ok, {mark}fail or {mark}info")

    def _bad_line(self, text: bytes, lines: Sequence[int]) -> InputError:
        """Return the error for the first line that cannot be decoded."""
        for line, record in zip(lines, text.split(b"\n"), strict=False):
            try:
                self._dialect.operation.decode(record)
            except UnicodeDecodeError:
                return InputError("not valid UTF-8", where=f"line {line}")
            except (msgspec.DecodeError, RecursionError) as error:
                reason = str(error).removeprefix("JSON is malformed: ").split(" - at ")[0].replace("`", "")
                hint = f"an operation looks like {self._dialect.example}"
                return InputError(
                    f"not an operation: {reason[:1].lower()}{reason[1:]}", where=f"line {line}", hint=hint
                )
        return InputError("not a list of operations", hint=f"an operation looks like {self._dialect.example}")

    def _not_transactional(self, operations: Iterable[JepsenOperation], line: int) -> InputError:
        clients = (op for op in operations if op.process is None or type(op.process) is int)
        names = list(dict.fromkeys(str(op.f).removeprefix(EXACT) for op in clients if op.f is not None))
        return self._values.not_transactional(names, line)

    def _no_clients(self) -> InputError:
        if not self._others:
            return InputError("there is no operation in it", hint=f"an operation looks like {self._dialect.example}")
        return InputError(
            f"no client operations: the process of all {self._others} operations is not an integer",
            hint=f"an operation looks like {self._dialect.example}",
        )


def by_clock(positions: Times, time: Int64s, index: Int64s) -> Times:
    """Return times for positions of operations in the file, given the time and the index of each operation."""
    begun, ended = positions.begin > NO_TIME, positions.end > NO_TIME
    is_used = np.zeros(len(index), np.bool_)
    is_used[positions.begin[begun]] = is_used[positions.end[ended]] = True
    used = np.flatnonzero(is_used)
    clock, per_second = _clock(used, time, index)
    begin, end = positions.begin.copy(), positions.end.copy()
    begin[begun], end[ended] = clock[begin[begun]], clock[end[ended]]
    return Times(begin, end, per_second)


def _clock(used: Int64s, time: Int64s, index: Int64s) -> tuple[Int64s, int | None]:
    """Return the clock's value at each position and its ticks per second, given the positions of transactions."""
    times = time[used]
    if np.any(times > NO_TIME) and np.any(times != times[0]):
        return time, PER_SECOND
    if np.all(np.diff(index[used]) > 0):
        return index, None
    return np.arange(len(index)), None


# The shape of an operation without operations in its value.
_NIL = "null"


class _SessionlessInvocations:
    """Open invocations without a process, by their shape.

    A completion belongs to the first open invocation of its shape. Equal invocations cannot be distinguished, so the
    transaction begins when the first of them did, the earliest possible begin.
    """

    def __init__(self) -> None:
        # ordered: ``pop`` uses its first entry while others are removed
        self._open: OrderedDict[str, deque[Event]] = OrderedDict()
        self._since: dict[str, int] = {}  # position of the first invocation that is open together with others
        self._guessed = False  # a completion without operations took an invocation that may be another's

    def add(self, shape: str, invocation: Event) -> None:
        same = self._open.setdefault(shape, deque())
        if not same:
            self._since[shape] = invocation.position
        same.append(invocation)

    def pop(self, shape: str) -> tuple[Event | None, int | None]:
        """Return the invocation of a completion, and the position where it began, if known."""
        if shape == _NIL and self._open:
            shape, self._guessed = next(iter(self._open)), True
        same = self._open.get(shape)
        if not same:
            return None, None
        invocation, begin = same.popleft(), self._begin(shape)
        if not same:
            del self._open[shape]
        return invocation, begin

    def rest(self) -> Iterable[tuple[Event, int | None]]:
        """Return the invocations that never completed."""
        return [(event, self._begin(shape)) for shape, same in self._open.items() for event in same]

    def _begin(self, shape: str) -> int | None:
        return None if self._guessed else self._since[shape]
