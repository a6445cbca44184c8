"""Check every synthesized history again with code that took no part in the search.

- Levels of ``isocheck check``: the checker decides them; ``verify`` then re-checks its counterexamples and the commit
  orders of the search.
- Other levels: an allowed level is evaluated for the witness of the search; a forbidden one for every possible witness,
  or by a solver if there are more than ``FEASIBLE``.

Any disagreement is a defect of isocheck and raises DefectError.
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
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteView
from plume_py.reasoning.synth.definition import ConcreteWitness, Definition
from plume_py.reasoning.synth.formulas import checker_level
from plume_py.reasoning.synth.problem import witness_of

if TYPE_CHECKING:
    from plume_py.checking.result import Result
    from plume_py.history.model import History

# The largest number of witnesses that are evaluated one by one.
FEASIBLE = 5_000


class DefectError(Exception):
    """Two parts of isocheck disagree, so one of them is wrong."""


@dataclass(frozen=True)
class RecheckResult:
    """The result of the checker, if it decides some of the levels, and a line of text per level."""

    result: "Result | None"
    lines: tuple[str, ...]


def recheck(
    concrete: ConcreteHistory,
    allow: Sequence[Definition],
    forbid: Sequence[Definition],
    witnesses: Sequence[ConcreteWitness],
    limits: Limits | None = None,
) -> RecheckResult:
    """Check a history again; raise DefectError if anything differs from the search."""
    history = concrete.history()
    results = _checker_results(history, [d for d in (*allow, *forbid) if checker_level(d)], limits)
    lines = []
    witness_by_level = {w.level: w for w in witnesses}
    for definition in allow:
        witness = witness_by_level.get(definition.name)
        _confirm_witness(concrete, definition, witness)
        name = checker_level(definition)
        if name is None:
            lines.append(f"{definition.name} holds: its definition is true for the witness")
            continue
        _require_agreement(concrete, definition, results[definition.order].levels[name].ok, expected=True)
        verified = _verify_order(history, concrete, definition, witness)
        lines.append(f"{definition.name} holds: says check{verified}")
    for definition in forbid:
        name = checker_level(definition)
        if name is None:
            lines.append(f"{definition.name} is broken: {_refute_all_witnesses(concrete, definition, limits)}")
            continue
        result = results[definition.order]
        _require_agreement(concrete, definition, result.levels[name].ok, expected=False)
        lines.append(f"{definition.name} is broken: says check{_verify_violations(history, result)}")
    return RecheckResult(_merged((*allow, *forbid), results), tuple(lines))


def _checker_results(history: "History", definitions: list[Definition], limits: Limits | None) -> "dict[str, Result]":
    """Return the checker's result for each order between transactions that some level uses."""
    from plume_py.checking.check import check

    names: dict[str, list[str]] = {}
    for definition in definitions:
        names.setdefault(definition.order, []).append(str(checker_level(definition)))
    return {
        order: check(history, list(dict.fromkeys(levels)), order=order, name="history", limits=limits)
        for order, levels in names.items()
    }


def _merged(definitions: Sequence[Definition], results: "dict[str, Result]") -> "Result | None":
    """Merge the results of several orders: verdicts under the names of the definitions, and all counterexamples."""
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


def _require_agreement(concrete: ConcreteHistory, definition: Definition, ok: bool | None, expected: bool) -> None:
    if ok is None:
        raise LimitError(f"a history was found, but the limits ended before check had judged {definition.name}")
    if ok != expected:
        ours, theirs = ("holds", "is broken") if expected else ("is broken", "holds")
        raise DefectError(f"{definition.name} of {concrete.short()}: it {ours}, but check says that it {theirs}")


def _confirm_witness(concrete: ConcreteHistory, definition: Definition, found: ConcreteWitness | None) -> None:
    """Raise DefectError unless the definition is true for the witness of the search."""
    with Formula() as formula:
        witness = found or ConcreteWitness(definition.name, tuple(range(len(concrete.txns))))
        if definition.holds(ConcreteView(formula, concrete), witness.witness(formula)) != TRUE:
            raise DefectError(f"{definition.name} of {concrete.short()}: the witness does not show it")


def _verify_order(
    history: "History", concrete: ConcreteHistory, definition: Definition, witness: ConcreteWitness | None
) -> str:
    """Verify the commit order of the search; return the words for it."""
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
    """Verify the counterexamples of the checker; return the words for it."""
    from plume_py.report.json import document
    from plume_py.verify import WitnessClaim, read_claim, verify_entry

    claim = read_claim(document([result]).encode())
    assert not isinstance(claim, WitnessClaim)
    problems = verify_entry(history, claim[0])
    if problems:
        raise DefectError(f"verify refutes the checker: {problems[0]}")
    return ", and verify proves it again"


def _refute_all_witnesses(concrete: ConcreteHistory, definition: Definition, limits: Limits | None) -> str:
    """Raise DefectError if some witness satisfies the level; return the words for it."""
    count = _witness_count(definition, len(concrete.txns))
    if count > FEASIBLE:
        if witness_of(definition, concrete, polynomial=False, limits=limits) is not None:
            raise DefectError(f"{definition.name} of {concrete.short()}: it holds after all")
        return "a search of its own finds no witness"
    with Formula() as formula:
        h = ConcreteView(formula, concrete)
        for witness in _every_witness(definition, len(concrete.txns)):
            if definition.holds(h, witness.witness(formula)) == TRUE:
                raise DefectError(f"{definition.name} of {concrete.short()}: it holds after all")
    return f"none of all {count:,} witnesses shows it" if count > 1 else "its definition is false"


def _witness_count(definition: Definition, size: int) -> int:
    """Return the number of possible witnesses; for declared witnesses, a number above ``FEASIBLE``."""
    if definition.form == "history":
        return 1
    if definition.form == "own":
        return FEASIBLE + 1
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
            visible = frozenset(pair for at, pair in enumerate(pairs) if chosen >> at & 1)
            yield ConcreteWitness(definition.name, order, visible)
