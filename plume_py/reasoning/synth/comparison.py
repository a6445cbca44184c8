"""Compare levels on all histories within a scope: two levels (``relate``), or many (``hierarchy``).

Level a implies level b within the scope if no history is allowed by a and forbidden by b. ``hierarchy`` decides this
for all pairs. It searches few of them: implication is transitive, and a history found for one pair is evaluated at all
levels, which refutes further implications. Each step of the result comes with a smallest history that separates its
levels. Callers: ``isocheck relate`` and ``isocheck hierarchy``, and the generator of docs/hierarchy.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plume_py.base.limits import Limits
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, NONE, REALTIME, SESSION, TIMED
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.formulas import definitions, in_order
from plume_py.reasoning.synth.problem import orders_of_levels, witness_of
from plume_py.reasoning.synth.scope import Scope
from plume_py.reasoning.synth.synthesis import Progress, SynthesisResult, synthesize

# The levels that ``hierarchy`` compares by default, and the default when it compares several orders.
USUAL = ("CI", "RC", "RA", "TCC", "PC", "UA", "NLU", "PSI", "SI", "UpdateSer", "SER")
USUAL_IN_ORDERS = RUNNABLE
# The orders between transactions that ``hierarchy --orders`` compares.
COMPARED = (NONE, SESSION, REALTIME)

# (every history that a allows is allowed by b, and vice versa) -> a is ... than b.
_RELATIONS = {
    (True, True): "equivalent",
    (True, False): "stronger",
    (False, True): "weaker",
    (False, False): "incomparable",
}


# -- two levels --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relationship:
    """The relation of levels a and b: the searches for histories that only a allows, and that only b allows."""

    a: str
    b: str
    only_a: SynthesisResult
    only_b: SynthesisResult

    @property
    def word(self) -> str:
        """The relation of a to b within the scope: equivalent, stronger, weaker or incomparable."""
        return _RELATIONS[not self.only_a.found, not self.only_b.found]

    @property
    def sentence(self) -> str:
        link = {"equivalent": "equivalent to", "incomparable": "incomparable with"}.get(self.word, f"{self.word} than")
        return f"{self.a} is {link} {self.b}, for all histories of up to {self.only_a.scope}"


def relate(
    a: str | Definition,
    b: str | Definition,
    scope: Scope,
    limits: Limits | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Relationship:
    """Return the relation of two levels within the scope, with smallest histories that separate them."""
    first, second = definitions([a, b])

    def search(allow: Definition, forbid: Definition, decided: str = "") -> SynthesisResult:
        def report(progress: Progress) -> None:
            if on_progress is not None:
                on_progress(f"{decided}allowed by {allow.name}, forbidden by {forbid.name}: {progress}")

        callback = report if on_progress else None
        return synthesize([allow], [forbid], scope, minimal=True, limits=limits, on_progress=callback)

    only_a = search(first, second)
    decided = f"{'one' if only_a.found else 'none'} allowed by {first.name}, forbidden by {second.name}; "
    return Relationship(first.name, second.name, only_a, search(second, first, decided))


# -- many levels -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HierarchyEdge:
    """Class ``above`` is stronger than class ``below``, with no class in between.

    ``separation`` has a history that only ``below`` allows.
    """

    below: int
    above: int
    separation: SynthesisResult


@dataclass(frozen=True)
class Hierarchy:
    """Classes of equivalent levels, weaker ones first, and the steps between neighbours."""

    scope: Scope
    classes: tuple[tuple[str, ...], ...]
    steps: tuple[HierarchyEdge, ...]

    @property
    def timed(self) -> bool:
        return any(step.separation.found[0].concrete.timed for step in self.steps)

    def name(self, number: int) -> str:
        return " = ".join(self.classes[number])


@dataclass(frozen=True)
class PartialComparison:
    """The comparisons decided so far: implies[a][b] is whether level a implies level b, None if undecided."""

    names: tuple[str, ...]
    scope: Scope
    implies: tuple[tuple[bool | None, ...], ...]

    def __str__(self) -> str:
        pairs = len(self.names) * (len(self.names) - 1)
        return f"{pairs - len(self.pairs(None))} of {pairs} comparisons settled"

    def pairs(self, answer: bool | None) -> list[tuple[str, str]]:
        order = range(len(self.names))
        return [(self.names[a], self.names[b]) for a in order for b in order if a != b and self.implies[a][b] is answer]

    def lines(self) -> Iterator[str]:
        yield f"settled on all histories of up to {self.scope}:"
        words = {True: "implies", False: "does not imply", None: "undecided:"}
        for name in self.names:
            parts = []
            for answer, verb in words.items():
                others = [b for a, b in self.pairs(answer) if a == name]
                if others:
                    parts.append(f"{verb} {', '.join(others)}")
            yield f"  {name} {'; '.join(parts)}"

    def plain(self) -> dict[str, Any]:
        settled = [{"a": a, "b": b, "implies": answer} for answer in (True, False) for a, b in self.pairs(answer)]
        return {"scope": self.scope.plain(), "settled": settled, "undecided": list(map(list, self.pairs(None)))}


OnComparison = Callable[[PartialComparison], None]


def in_all_orders(names: Iterable[str | Definition]) -> list[Definition]:
    """Return each level in the orders ``COMPARED``; levels whose name includes an order are returned unchanged."""
    found = []
    for level in definitions(names):
        has_order = level.order != DEFAULT_ORDER or level.level != level.name
        found += [level] if has_order else [in_order(level, order) for order in COMPARED]
    return list(dict.fromkeys(found))


def hierarchy(
    names: Iterable[str | Definition],
    scope: Scope,
    limits: Limits | None = None,
    on_progress: OnComparison | None = None,
) -> Hierarchy:
    """Compare all levels with each other within the scope. ``on_progress`` is called with the decided comparisons."""
    levels = definitions(names)
    # All pairs are compared on the same histories. Otherwise, what one pair shows would not hold for the others.
    if scope.rereads is None:
        scope = replace(scope, rereads=any(level.uses_read_order for level in levels))
    if scope.orders is None:
        scope = replace(scope, orders=orders_of_levels(levels))
    implies = _implications(levels, scope, limits, on_progress)
    order = range(len(levels))
    leaders = [a for a in order if not any(implies[a][b] and implies[b][a] for b in range(a))]  # one per class
    leaders.sort(key=lambda a: -sum(implies[b][a] for b in order))  # weaker levels are implied by more levels
    classes = [tuple(levels[b].name for b in order if implies[a][b] and implies[b][a]) for a in leaders]
    steps = []
    for above, a in enumerate(leaders):
        for below, b in enumerate(leaders):
            if a != b and implies[a][b]:
                between = any(c not in (a, b) and implies[a][c] and implies[c][b] for c in leaders)
                if not between:
                    steps.append(HierarchyEdge(below, above, _separation(levels[b], levels[a], scope, limits)))
    return Hierarchy(scope, tuple(classes), tuple(steps))


def _separation(below: Definition, above: Definition, scope: Scope, limits: Limits | None) -> SynthesisResult:
    """Return a smallest history that only ``below`` allows, without times if neither level uses real time."""
    if scope.orders is not None and TIMED.isdisjoint((below.order, above.order)):
        scope = replace(scope, orders=scope.orders - TIMED)
    return synthesize([below], [above], scope, minimal=True, limits=limits)


def _implications(
    levels: Sequence[Definition], scope: Scope, limits: Limits | None, on_progress: OnComparison | None
) -> list[list[bool]]:
    """Return implies[a][b]: every history that level a allows is allowed by level b."""
    order = range(len(levels))
    implies: list[list[bool | None]] = [[True if a == b else None for b in order] for a in order]

    def report() -> None:
        if on_progress is not None:
            on_progress(PartialComparison(tuple(level.name for level in levels), scope, tuple(map(tuple, implies))))

    quiet = (lambda _: None) if on_progress is not None else None  # report pairs, not numbers of transactions
    for a in order:
        for b in order:
            if implies[a][b] is not None:
                continue
            report()
            outcome = synthesize([levels[a]], [levels[b]], scope, up_to=True, limits=limits, on_progress=quiet)
            if not outcome.found:
                implies[a][b] = True
                _close(implies)
                continue
            concrete = outcome.found[0].concrete
            holds = [witness_of(level, concrete, limits=limits) is not None for level in levels]
            for c in order:
                for d in order:
                    if holds[c] and not holds[d]:
                        implies[c][d] = False
    report()
    return [[bool(cell) for cell in row] for row in implies]


def _close(implies: list[list[bool | None]]) -> None:
    """Add the implications that follow by transitivity."""
    order = range(len(implies))
    for b in order:
        for a in order:
            for c in order:
                if implies[a][b] and implies[b][c]:
                    implies[a][c] = True
