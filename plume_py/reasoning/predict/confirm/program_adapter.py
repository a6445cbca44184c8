"""Transactions of a program on a real database, whose table has integers: each stands for what was written."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from plume_py.collect.adapter import Value
from plume_py.reasoning.predict.confirm.script import Script
from plume_py.reasoning.predict.confirm.session import Body, Statements
from plume_py.reasoning.predict.store.program import SeededProgram, assertions, step_id
from plume_py.reasoning.predict.store.store import Rollback


class ProgramTransactions:
    """The transactions of a program, for one run."""

    def __init__(self, workload: SeededProgram, script: Script) -> None:
        self._workload, self._names = workload, script.names
        steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
        self.values = _Values(workload.program.initial)
        self.missing: list[str] = []  # keys that it came to and that are not in the table
        self.bodies: dict[int, Body] = {  # transaction of the script -> what the program does in it
            number: _ProgramBody(steps[txn.id].body, self)
            for number, txn in enumerate(script.transactions)
            if txn.id in steps
        }

    def name(self, key: str) -> str | None:
        """Of a key in the table; None if it is not there, which is remembered."""
        if key not in self._names:
            self.missing.append(key)
        return self._names.get(key)

    def failures(self, contents: Mapping[str, Value], committed: Sequence[str]) -> list[str]:
        """Of the program's assertions about the end, with what the table has then."""

        def final(key: str) -> Any:
            number = contents.get(self._names.get(key, ""), 0)
            assert isinstance(number, int)
            return self.values.value(key, number)

        return assertions(self._workload, committed, final)


class _Values:
    """What the integers stand for."""

    def __init__(self, initial: Callable[[str], Any]) -> None:
        self.initial = initial
        self._written: dict[int, Any] = {}
        self._numbers = count(1)

    def number(self, value: Any) -> int:
        number = next(self._numbers)
        self._written[number] = value
        return number

    def value(self, key: str, number: int) -> Any:
        return self.initial(key) if number == 0 else self._written[number]


class _ProgramBody(Body):
    """One transaction of the program."""

    def __init__(self, body: Callable[[Any], None], cast: ProgramTransactions) -> None:
        self._body, self._cast = body, cast

    def __call__(self, statements: Statements) -> None:
        txn = _Transaction(statements, self._cast)
        self._body(txn)
        txn.reject_absent()


class _Transaction:
    """As the store's, for the bodies of programs.

    A program may come to keys that nobody had come to before. To know all of them it goes on as if they were there, and
    is rolled back; then it is tried again with them.
    """

    def __init__(self, statements: Statements, cast: ProgramTransactions) -> None:
        self._statements, self._cast = statements, cast
        self._absent: dict[str, Any] = {}  # keys that are not in the table, and what they would hold

    def read(self, key: str) -> Any:
        """What the database shows."""
        name = self._cast.name(key)
        if name is None:
            return self._absent.setdefault(key, self._cast.values.initial(key))
        number = self._statements.read(name)
        assert isinstance(number, int)
        return self._cast.values.value(key, number)

    def write(self, key: str, value: Any) -> None:
        """Seen by others after the commit."""
        name = self._cast.name(key)
        if name is None:
            self._absent[key] = value
        else:
            self._statements.change(name, self._cast.values.number(value))

    def reject_absent(self) -> None:
        """Nothing of it may count if it came to keys that are not there."""
        if self._absent:
            raise Rollback(f"{next(iter(self._absent))} is not in the table")
