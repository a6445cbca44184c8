"""Transactions of a program on a real database, whose table has integers: each stands for what was written."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from plume_py.collect.adapter import Value
from plume_py.predict.confirm.script import Script
from plume_py.predict.confirm.session import Body, Statements
from plume_py.predict.store.program import SeededProgram, assertions, step_id
from plume_py.predict.store.store import Rollback


class Cast:
    """The transactions of a program, for one run."""

    def __init__(self, workload: SeededProgram, script: Script) -> None:
        self._workload, self._names = workload, script.names
        steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
        self._values = _Values(workload.program.initial)
        self.bodies: dict[int, Body] = {  # transaction of the script -> what the program does in it
            number: _ProgramBody(steps[txn.id].body, self._values, script.names)
            for number, txn in enumerate(script.transactions)
            if txn.id in steps
        }

    def failures(self, contents: Mapping[str, Value], committed: Sequence[str]) -> list[str]:
        """Of the program's assertions about the end, with what the table has then."""

        def final(key: str) -> Any:
            number = contents.get(self._names.get(key, ""), 0)
            assert isinstance(number, int)
            return self._values.value(key, number)

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

    def __init__(self, body: Callable[[Any], None], values: _Values, names: Mapping[Any, str]) -> None:
        self._body, self._values, self._names = body, values, names

    def __call__(self, statements: Statements) -> None:
        self._body(_Transaction(statements, self._values, self._names))


class _Transaction:
    """As the store's, for the bodies of programs."""

    def __init__(self, statements: Statements, values: _Values, names: Mapping[Any, str]) -> None:
        self._statements, self._values, self._names = statements, values, names

    def read(self, key: str) -> Any:
        """What the database shows."""
        number = self._statements.read(self._name(key))
        assert isinstance(number, int)
        return self._values.value(key, number)

    def write(self, key: str, value: Any) -> None:
        """Seen by others after the commit."""
        self._statements.change(self._name(key), self._values.number(value))

    def _name(self, key: str) -> str:
        if key not in self._names:
            raise Rollback(f"{key} is not in the table, as nobody had come to it before")
        return self._names[key]
