"""Symbolic values of programs written in Python: arguments, columns of rows, and what is computed from them."""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from plume_py.base.errors import InputError
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Const, Expr, Field, Operation

# The files between the application and an error in it.
OURS = (__file__, str(Path(__file__).parent.with_name("embed.py")))


def wrong(problem: str, hint: str = "") -> InputError:
    """An error at the line of the application that is being executed."""
    return InputError(problem, where=f"line {line_now()}", hint=hint)


def caller() -> FrameType:
    """The innermost caller outside this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (*OURS, contextmanager.__code__.co_filename):
        frame = frame.f_back
    return frame


def line_now() -> int:
    """Its line."""
    return caller().f_lineno


class E:
    """A symbolic value."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Expr) -> None:
        self.node = node

    def _op(self, op: str, *others: object) -> "E":
        return E(Operation(op, (self.node, *(lift(other) for other in others))))

    def __add__(self, other: object) -> "E":
        return self._op("+", other)

    def __radd__(self, other: object) -> "E":
        return E(lift(other))._op("+", self)

    def __sub__(self, other: object) -> "E":
        return self._op("-", other)

    def __rsub__(self, other: object) -> "E":
        return E(lift(other))._op("-", self)

    def __mul__(self, other: object) -> "E":
        return self._op("*", other)

    __rmul__ = __mul__

    def __neg__(self) -> "E":
        return self._op("neg")

    def __eq__(self, other: object) -> "E":  # type: ignore[override]
        return self._op("=", other)

    def __ne__(self, other: object) -> "E":  # type: ignore[override]
        return self._op("<>", other)

    def __lt__(self, other: object) -> "E":
        return self._op("<", other)

    def __le__(self, other: object) -> "E":
        return self._op("<=", other)

    def __gt__(self, other: object) -> "E":
        return E(lift(other))._op("<", self)

    def __ge__(self, other: object) -> "E":
        return E(lift(other))._op("<=", self)

    def __and__(self, other: object) -> "E":
        return self._op("and", other)

    def __or__(self, other: object) -> "E":
        return self._op("or", other)

    def __invert__(self) -> "E":
        return self._op("not")

    def implies(self, other: object) -> "E":
        """If this, then that."""
        return (~self) | other

    def __bool__(self) -> bool:
        raise wrong(
            "a symbolic value is neither true nor false yet", "use if_, require, & | ~ instead of if, and, or, not"
        )


def lift(value: object) -> Expr:
    """The expression of a value of the application."""
    if isinstance(value, E):
        return value.node
    if isinstance(value, bool | int | str):
        return Const(value)
    raise wrong(f"{type(value).__name__} cannot be used in an expression", "use numbers, texts, arguments and columns")


def ite(condition: object, then: object, otherwise: object) -> E:
    """``then`` where the condition holds, else ``otherwise``."""
    return E(Operation("ite", (lift(condition), lift(then), lift(otherwise))))


class Row:
    """A row variable; its columns are attributes."""

    def __init__(self, name: str, columns: tuple[str, ...], what: str) -> None:
        self._name, self._columns, self._what = name, columns, what

    def __getattr__(self, column: str) -> E:
        if column.startswith("__"):
            raise AttributeError(column)
        if column not in self._columns:
            raise wrong(f"{self._what} has no column {column}", f"it has {', '.join(self._columns)}")
        return E(Field(self._name, column))

    def is_(self, other: "Row") -> E:
        """Is it the very same row?"""
        return E(ir.Same(self._name, other._name))


Where = Callable[[Row], object]


def by(**equal: object) -> Where:
    """The condition that these columns have these values."""

    def where(row: Row) -> E:
        return E(
            ir.conjunction([Operation("=", (getattr(row, name).node, lift(value))) for name, value in equal.items()])
        )

    return where
