"""Every history that was found is judged again by code that had no part in finding it.

Levels that ``isocheck check`` knows are decided by it, its counterexamples and our commit orders are then re-checked by
``isocheck verify``. The others are evaluated on the given history, for all orders as far as that is feasible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import factorial
from typing import TYPE_CHECKING

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import TRUE, Formula
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, WEAKER
from plume_py.reasoning.synth.concrete_history import Concrete, ConcreteView
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.problem import ConcreteWitness, witness_of
from plume_py.reasoning.synth.registry import checker_level

if TYPE_CHECKING:
    from plume_py.checking.result import Result
    from plume_py.history.model import History

# Witnesses that are tried one by one; where there are more of them, a solver searches through them.
FEASIBLE = 5_000


class DefectError(Exception):
    """Two parts of isocheck disagree: a defect of one of them, never to be passed over."""


@dataclass(frozen=True)
class Rechecked:
    """What the checker said about the history, and in words what was done."""

    result: "Result | None"
    lines: tuple[str, ...]


def recheck(
    concrete: Concrete,
    allow: Sequence[Definition],
    forbid: Sequence[Definition],
    witnesses: Sequence[ConcreteWitness],
    limits: Limits | None = None,
) -> Rechecked:
    """Judge again; DefectError if anything comes out differently."""
    history = concrete.history()
    results = _checked(history, [d for d in (*allow, *forbid) if checker_level(d)], limits)
    lines = []
    shown = {w.level: w for w in witnesses}
    for definition in allow:
        _confirm_witness(concrete, definition, shown.get(definition.name))
        name = checker_level(definition)
        if name is None:
            lines.append(f"{definition.name} holds: its definition is true for the witness")
            continue
        _agree(concrete, definition, results[definition.order].levels[name].ok, expected=True)
        how = _verify_order(history, concrete, definition, shown.get(definition.name))
        lines.append(f"{definition.name} holds: says check{how}")
    for definition in forbid:
        name = checker_level(definition)
        if name is None:
            lines.append(f"{definition.name} is broken: {_exhausted(concrete, definition, limits)}")
            continue
        result = results[definition.order]
        _agree(concrete, definition, result.levels[name].ok, expected=False)
        lines.append(f"{definition.name} is broken: says check{_verify_violations(history, result)}")
    return Rechecked(_as_one((*allow, *forbid), results), tuple(lines))


def _checked(history: "History", definitions: list[Definition], limits: Limits | None) -> "dict[str, Result]":
    """What the checker says, by the order between transactions."""
    from plume_py.checking.check import check

    names: dict[str, list[str]] = {}
    for definition in definitions:
        names.setdefault(definition.order, []).append(str(checker_level(definition)))
    return {
        order: check(history, list(dict.fromkeys(levels)), order=order, name="history", limits=limits)
        for order, levels in names.items()
    }


def _as_one(definitions: Sequence[Definition], results: "dict[str, Result]") -> "Result | None":
    """What was said in several orders: each verdict under a name that says its order, and all counterexamples."""
    from plume_py.checking.check import distinct

    if len(results) < 2 and DEFAULT_ORDER in results:
        return results[DEFAULT_ORDER]
    if not results:
        return None
    levels = {}
    for definition in definitions:
        name = checker_level(definition)
        if name is not None:
            levels[definition.name] = results[definition.order].levels[name]
    weaker_first = [results[order] for order in sorted(results, key=lambda order: len(WEAKER[order]))]
    violations = tuple(distinct(violation for result in weaker_first for violation in result.violations))
    counts = {tap: count for result in weaker_first for tap, count in result.counts.items()}
    return replace(weaker_first[0], levels=levels, violations=violations, counts=counts)


def _agree(concrete: Concrete, definition: Definition, ok: bool | None, expected: bool) -> None:
    if ok is None:
        raise LimitError(f"a history was found, but the limits ended before check had judged {definition.name}")
    if ok != expected:
        ours, theirs = ("holds", "is broken") if expected else ("is broken", "holds")
        raise DefectError(f"{definition.name} of {concrete.short()}: it {ours}, but check says that it {theirs}")


def _confirm_witness(concrete: Concrete, definition: Definition, given_witness: ConcreteWitness | None) -> None:
    """The definition must come out true, all constants, for the witness that the search gave."""
    with Formula() as formula:
        witness = (given_witness or ConcreteWitness(definition.name, tuple(range(len(concrete.txns))))).witness(formula)
        if definition.holds(ConcreteView(formula, concrete), witness) != TRUE:
            raise DefectError(f"{definition.name} of {concrete.short()}: the witness does not show it")


def _verify_order(
    history: "History", concrete: Concrete, definition: Definition, witness: ConcreteWitness | None
) -> str:
    """The commit order of the search, by ``verify``."""
    from plume_py.verify import WitnessClaim, verify_witness

    name = checker_level(definition)
    if witness is None or name not in (*RUNNABLE, "declared"):
        return ""
    order: list[str | int] = [concrete.name(t) for t in witness.order]
    levels = [concrete.txns[t].level or "" for t in witness.order] if name == "declared" else []
    claim = WitnessClaim(level=name, order=order, between=definition.order, levels=levels)  # type: ignore[arg-type]
    problems = verify_witness(history, claim)
    if problems:
        raise DefectError(f"{witness.level} of {concrete.short()}: verify refutes its order: {problems[0]}")
    return f", and verify: {' '.join(map(str, order))} shows it"


def _verify_violations(history: "History", result: "Result") -> str:
    """The counterexamples of the checker, by ``verify``."""
    from plume_py.report.json import document
    from plume_py.verify import WitnessClaim, read_claim, verify_entry

    claim = read_claim(document([result]).encode())
    assert not isinstance(claim, WitnessClaim)
    problems = verify_entry(history, claim[0])
    if problems:
        raise DefectError(f"verify refutes the checker: {problems[0]}")
    return ", and verify proves it again"


def _exhausted(concrete: Concrete, definition: Definition, limits: Limits | None) -> str:
    """No witness shows the level: each is tried, or a solver finds none."""
    count = _witnesses(definition, len(concrete.txns))
    if count > FEASIBLE:
        if witness_of(definition, concrete, polynomial=False, limits=limits) is not None:
            raise DefectError(f"{definition.name} of {concrete.short()}: it holds after all")
        return "a search of its own finds no witness"
    with Formula() as formula:
        h = ConcreteView(formula, concrete)
        for shown in _every_witness(definition, len(concrete.txns)):
            if definition.holds(h, shown.witness(formula)) == TRUE:
                raise DefectError(f"{definition.name} of {concrete.short()}: it holds after all")
    return f"none of all {count:,} witnesses shows it" if count > 1 else "its definition is false"


def _witnesses(definition: Definition, size: int) -> int:
    if definition.form == "history":
        return 1
    if definition.form == "own":
        return FEASIBLE + 1  # too many to be tried one by one
    visibilities = 2 ** (size * (size - 1) // 2) if definition.form == "vis" else 1
    return int(factorial(size) * visibilities)


def _every_witness(definition: Definition, size: int) -> Iterator[ConcreteWitness]:
    if definition.form == "history":
        yield ConcreteWitness(definition.name, tuple(range(size)))
        return
    for order in permutations(range(size)):
        if definition.form == "co":
            yield ConcreteWitness(definition.name, order)
            continue
        pairs = list(combinations(order, 2))
        for chosen in range(2 ** len(pairs)):
            yield ConcreteWitness(
                definition.name, order, frozenset(p for at, p in enumerate(pairs) if chosen >> at & 1)
            )
