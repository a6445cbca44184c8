"""What Jepsen histories mean, however they are spelled: invocations and completions become transactions.

A completion ``ok`` is a committed transaction, ``fail`` an aborted one, and ``info`` one of unknown outcome; so is an
invocation that never completes. The session is the process; a transaction without a process has its own session.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

import msgspec

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.jepsen_values import Dialect, JepsenOperation, JepsenValues, NotTransactionalError, Ops

# Operations of a history have indices of 64 bits.
_MAX_INDEX = 2**63

_STATUS = {"ok": "committed", "fail": "aborted", "info": "unknown"}

# An operation that has begun, and its line.
Invocation = tuple[int, JepsenOperation]


class Pairing:
    """Pairs invocations with completions, process by process, and fills a history."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._values = JepsenValues(dialect)
        self._builder = HistoryBuilder(None, fixed=True)
        self._invoke = dialect.mark + "invoke"
        self._status = {dialect.mark + name: status for name, status in _STATUS.items()}
        self._running: dict[int, Invocation] = {}
        # invocations without a process, by what they do; ordered, as its first is asked for while others are taken out
        self._homeless: OrderedDict[str, deque[Invocation]] = OrderedDict()
        self._sessions = 0
        self._clients = 0
        self._count = 0
        self._others = 0

    def add_lines(self, text: bytes, lines: Sequence[int]) -> None:
        """Add the operations of ``text``, one JSON object per line, which stand on ``lines`` of the file."""
        try:
            operations = self._dialect.operation.decode_lines(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise self._bad_line(text, lines) from None
        if len(operations) != len(lines):
            raise InputError("an operation that goes on after its line", hint="write each operation on one line")
        self.add(operations, lines)

    def add(self, operations: Sequence[JepsenOperation], lines: Sequence[int]) -> None:
        """Add operations, which stand on ``lines`` of the file."""
        invoke, running = self._invoke, self._running
        try:
            for line, operation in zip(lines, operations, strict=True):
                process, index = operation.process, operation.index
                if type(index) is not int or not 0 <= index < _MAX_INDEX:
                    operation.index = self._count  # as Jepsen itself numbers them
                self._count += 1
                if type(process) is int:
                    before = running.pop(process, None)
                    if operation.type != invoke:
                        self._complete(process, line, operation, before)
                        continue
                    if before is not None:
                        self._give_up(process, before)
                    running[process] = (line, operation)
                elif process is None:
                    self._add_homeless(line, operation)
                else:
                    self._others += 1
        except NotTransactionalError as error:
            raise self._not_transactional(operations, error.line) from None
        self._let_go(lines[0] if lines else 0)

    def _let_go(self, first_line: int) -> None:
        """A value is a view of the whole block: of what still runs, keep only its own bytes."""
        for process in reversed(self._running):
            line, operation = self._running[process]
            if line < first_line:
                break
            operation.value = operation.value.copy()

    def columns(self, *, enclosed: bool) -> RawColumns:
        """The raw columns; ``enclosed``: the file is one vector, and so may be empty."""
        left: list[tuple[int | str, Invocation]] = [*self._running.items()]
        left += [(self._new_session(), one) for same in self._homeless.values() for one in same]
        try:
            for session, invocation in sorted(left, key=lambda item: item[1][0]):
                self._give_up(session, invocation)
        except NotTransactionalError as error:
            raise self._not_transactional([one[1] for _, one in left], error.line) from None
        if not self._clients and (self._others or not enclosed):
            raise self._no_clients()
        return self._builder.columns()

    def _add_homeless(self, line: int, operation: JepsenOperation) -> None:
        """Without processes, a completion belongs to the first open invocation that does the same."""
        if operation.type == self._invoke:
            self._homeless.setdefault(self._shape(line, operation), deque()).append((line, operation))
            operation.value = operation.value.copy()
            return
        shape = self._shape(line, operation)
        if shape == "null" and self._homeless:
            shape = next(iter(self._homeless))
        same = self._homeless.get(shape)
        invocation = same.popleft() if same else None
        if not same:
            self._homeless.pop(shape, None)
        self._complete(self._new_session(), line, operation, invocation)

    def _shape(self, line: int, operation: JepsenOperation) -> str:
        ops = self._done(line, operation, None, "unknown")
        return "null" if ops is None else repr([(str(op[0]), *op[1 : 2 if op[0] == "r" else 3]) for op in ops])

    def _new_session(self) -> str:
        self._sessions += 1
        return f"T{self._sessions}"

    def _complete(
        self, session: int | str, line: int, operation: JepsenOperation, invocation: Invocation | None
    ) -> None:
        status = self._status.get(operation.type)
        if status is None:
            raise self._bad_type(line, operation.type)
        ops = self._done(line, operation, invocation, status)
        if ops is None:
            raise NotTransactionalError(line)
        self._clients += 1
        if status != "committed":
            ops = self._values.known(operation, ops)
        self._builder.add(session, ops, status=status, line=line, index=operation.index)

    def _done(self, line: int, operation: JepsenOperation, invocation: Invocation | None, status: str) -> Ops | None:
        """What a completed operation did; where it does not say so itself, what it was asked to do."""
        ops = self._values.ops(line, operation)
        if ops is None and invocation is not None and (status != "committed" or self._values.is_register(operation)):
            ops = self._values.ops(*invocation)
        return self._values.of_nil(operation) if ops is None else ops

    def _give_up(self, session: int | str, invocation: Invocation) -> None:
        line, operation = invocation
        ops = self._done(line, operation, None, "unknown")
        if ops is None:
            raise NotTransactionalError(line)
        self._clients += 1
        ops = self._values.known(operation, ops)
        self._builder.add(session, ops, status="unknown", line=line, index=operation.index)

    def _bad_type(self, line: int, kind: str) -> InputError:
        mark = self._dialect.mark
        problem = f"unknown type {kind!r:.40}" if kind else "an operation without a type"
        return InputError(problem, where=f"line {line}", hint=f"use {mark}invoke, {mark}ok, {mark}fail or {mark}info")

    def _bad_line(self, text: bytes, lines: Sequence[int]) -> InputError:
        """The first of several lines that cannot be decoded."""
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
        names = list(dict.fromkeys(str(op.f) for op in clients if op.f is not None))
        return self._values.not_transactional(names, line)

    def _no_clients(self) -> InputError:
        if not self._others:
            return InputError("there is no operation in it", hint=f"an operation looks like {self._dialect.example}")
        return InputError(
            f"no client operations: the process of all {self._others} operations is not an integer",
            hint=f"an operation looks like {self._dialect.example}",
        )
