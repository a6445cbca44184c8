"""z3 terms with constant folding: constants stay Python values, so that simple programs give small formulas."""

from collections.abc import Callable
from typing import Any

import z3

from plume_py.base.limits import Limits

Term = Any  # a z3 term, or a Python constant


def and_(*parts: Term) -> Term:
    left = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            left.append(part)
    return True if not left else left[0] if len(left) == 1 else z3.And(*left)


def or_(*parts: Term) -> Term:
    left = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            left.append(part)
    return False if not left else left[0] if len(left) == 1 else z3.Or(*left)


def not_(part: Term) -> Term:
    if isinstance(part, bool):
        return not part
    return part.arg(0) if z3.is_not(part) else z3.Not(part)


def ite(test: Term, then: Term, other: Term) -> Term:
    if isinstance(test, bool):
        return then if test else other
    if isinstance(then, bool) and isinstance(other, bool):
        return then if then == other else test if then else not_(test)
    if isinstance(then, bool):
        return or_(test, other) if then else and_(not_(test), other)
    if isinstance(other, bool):
        return or_(not_(test), then) if other else and_(test, then)
    if then is other or (isinstance(then, int) and isinstance(other, int) and then == other):
        return then
    return z3.If(test, then, other)


def equal(left: Term, right: Term) -> Term:
    if left is right or (not z3.is_expr(left) and not z3.is_expr(right)):
        return left is right or left == right
    return left == right


def sum_(parts: list[Term]) -> Term:
    left = [part for part in parts if not (isinstance(part, int) and part == 0)]
    return 0 if not left else left[0] if len(left) == 1 else z3.Sum(*left)


BINARY: dict[str, Callable[[Term, Term], Term]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": equal,
    "<>": lambda a, b: not_(equal(a, b)),
}


def operator(op: str, args: list[Term]) -> Term:
    if op == "and":
        return and_(*args)
    if op == "or":
        return or_(*args)
    if op == "not":
        return not_(args[0])
    if op == "ite":
        return ite(*args)
    return -args[0] if op == "neg" else BINARY[op](*args)


class Texts:
    """Numbers for texts. Programs can only compare texts for equality, so any distinct numbers will do."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers) + 1)

    def text(self, number: int) -> str:
        """Return the text of a number, or an invented text if the number belongs to none."""
        return next((text for text, known in self.numbers.items() if known == number), f"text {number}")


# Milliseconds for z3's timeout: z3 accepts no number above MOST, and 0 would mean no timeout.
MOST, LEAST = 1 << 31, 1


def solve(solver: z3.Solver, limits: Limits) -> z3.CheckSatResult:
    """Return the solver's answer to its assertions: sat, unsat, or unknown if the time limit ends it."""
    left = limits.seconds_left
    solver.set("timeout", MOST if left is None else int(min(max(left * 1000, LEAST), MOST)))
    return solver.check()
