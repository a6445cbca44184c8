"""Explain violations of strong and declared levels: from an unsatisfiable core to a named, minimal violation.

``strong.verdicts`` and ``further_violations`` call ``explain``. ``ProofFinder`` reduces a core and finds a proof, a
tree of cycles. Some cycles only settle an order, and weaker levels forbid those too. The cycles that take the strongest
level to forbid determine the pattern and the level, and the report begins with one of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from plume_py.base.limits import Limits
from plume_py.base.text import key_text, txn_text
from plume_py.checking.declared import DECLARED
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import Step, Violation
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.checking.strong.minimal.forbidden_cycles import CAUSAL, Proof, ProofEdge, Reason
from plume_py.checking.strong.minimal.proof_tree import Levels, ProofFinder
from plume_py.checking.strong.proof_steps import ProofWriter, chain
from plume_py.checking.strong.solver.engine import Decision
from plume_py.checking.strong.solver.unsat_core import Core
from plume_py.checking.violation import Argument, complete
from plume_py.history.model import INITIAL, Int8s
from plume_py.levels import LEVELS, NAMES, STRONG, visibility_bits, weaker_levels
from plume_py.levels.patterns import CAUSALITY, CYCLE, LONG_FORK, LOST_UPDATE, READ_ONLY_ANOMALY, WRITE_SKEW
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

# The rule of each level that the cycle contradicts.
RULES = {name: level.rule for name, level in LEVELS.items()} | {DECLARED: "each by the level it runs at"}

# Maximum number of violations per decision; cores after the first must have at most SMALL transactions.
AT_ONCE = 4
SMALL = 12

Cycle = tuple[ProofEdge, ...]
Order = tuple[str, int, int, int]


@dataclass(frozen=True)
class Explained:
    """A violation, its argument, and the numbers of its transactions and keys."""

    violation: Violation
    argument: Argument
    transactions: tuple[int, ...]  # in the order shown
    keys: tuple[int, ...]


def explain(
    analysis: Analysis,
    decision: Decision,
    level: "str | Mapping[int, str] | Int8s",
    limits: Limits | None = None,
) -> list[Explained]:
    """Return violations of ``level`` from the cores of a decision; none if the decision is not "violated".

    The first comes from the smallest core. Further ones come from small cores that share no transaction with an earlier
    one. ``level`` is a name, or a level per transaction: a mapping, or codes as in ``History.txn_level``. Raise
    LimitError at ``limits``.
    """
    levels = level if isinstance(level, str | Mapping) else _Codes(level)
    told: list[Explained] = []
    used: set[int] = set()
    for core in decision.cores:
        if len(told) == AT_ONCE:
            break
        if not told or (len(core.transactions) <= SMALL and used.isdisjoint(core.transactions)):
            told.append(_from_core(analysis, core, levels, limits))
            used.update(told[-1].transactions)
    return told


def _from_core(analysis: Analysis, core: Core, levels: Levels, limits: Limits | None) -> Explained:
    position = analysis.causal.position

    def refuter_at(level: Levels) -> ProofFinder:
        return ProofFinder(analysis.history, analysis.reads, level, position, limits, analysis.real_time)

    facts, proof = refuter_at(levels).argue(core.transactions)
    for weaker in _weaker(levels):
        # A violation of a weaker level is reported at that level.
        refuter = refuter_at(weaker)
        if refuter.broken(facts.number):
            facts, proof = refuter.argue(facts.number)
            levels = weaker
            break
    if proof is None:
        return _unexplained(analysis, facts, levels)
    return _violation(analysis, facts, proof, levels)


def _weaker(levels: Levels) -> list[str]:
    if not isinstance(levels, str):
        return []
    below = [level for level in STRONG if level in weaker_levels(levels)]
    return sorted(below, key=lambda level: visibility_bits(level).bit_count())


class _Codes(Mapping[int, str]):
    """Level codes as a mapping."""

    def __init__(self, codes: Int8s) -> None:
        self.codes = codes

    def __getitem__(self, t: int) -> str:
        return NAMES[int(self.codes[t]) - 1]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.codes)))

    def __len__(self) -> int:
        return len(self.codes)


def _violation(analysis: Analysis, facts: Facts, proof: Proof, levels: Levels) -> Explained:
    broken = broken_level(proof, levels) if isinstance(levels, str) else DECLARED
    name = classify_proof(facts, proof)
    pattern, proof = name.pattern, _turned(name.proof)
    writer = ProofWriter(analysis, facts, broken == DECLARED)
    steps = writer.steps(proof)
    argument = Argument(steps, _in_words(pattern, steps, facts, proof, writer), rule=RULES[broken])
    return _explained(writer, pattern, broken, levels, argument)


def _unexplained(analysis: Analysis, facts: Facts, levels: Levels) -> Explained:
    """Return the violation of a core whose proof is too long to report."""
    level = levels if isinstance(levels, str) else DECLARED
    writer = ProofWriter(analysis, facts, level == DECLARED)
    for t in facts.number:
        writer.name(t)
    for x, writers in enumerate(facts.writers):
        if len(writers) > 1 or facts.readers[x]:
            writer.key(facts.key_number[x])
    words = (
        f"these {facts.count} transactions alone break the level, whatever the order of their writes; "
        "the argument has too many cases to be shown"
    )
    return _explained(writer, CYCLE, level, levels, Argument((), words))


def _explained(writer: ProofWriter, pattern: str, broken: str, levels: Levels, argument: Argument) -> Explained:
    violation = complete(writer, pattern, argument, broken, None if isinstance(levels, str) else levels)
    return Explained(violation, argument, tuple(sorted(writer.transactions)), tuple(writer.keys))


def _turned(proof: Proof) -> Proof:
    """Return the same cycle from its best start: after a RW, with a visible or earlier transaction."""
    links = proof.cycle
    turns = [(*links[i:], *links[:i]) for i in range(len(links))]
    return Proof(min(turns, key=lambda turn: (turn[-1].relation != "RW", turn[0].relation == "RW", turn[0].source)))


# Pattern and level of a proof


@dataclass(frozen=True)
class NamedProof:
    """A pattern, and the proof rearranged so that it begins with a cycle of that pattern."""

    pattern: str
    proof: Proof


def broken_level(proof: Proof, level: str) -> str:
    """Return the weakest level, up to ``level``, that the proof contradicts."""
    cycles = [part.cycle for part in proof.within()]
    for weaker in reversed(STRONG):
        if weaker in weaker_levels(level) and all(_forbidden(cycle, visibility_bits(weaker)) for cycle in cycles):
            return weaker
    return level


def classify_proof(facts: Facts, proof: Proof) -> NamedProof:
    """Return the pattern of a proof: the one that all cycles of the highest rank have, or CYCLE if they differ."""
    parts = list(proof.within())
    most = max(_rank(part.cycle) for part in parts)
    patterns = {_pattern(facts, part.cycle) for part in parts if _rank(part.cycle) == most}
    if len(patterns) > 1:
        return NamedProof(CYCLE, proof)
    return NamedProof(patterns.pop(), _beginning_with(proof, most))


def _rank(cycle: Cycle) -> int:
    """Return how strong a level must be to forbid a cycle of this shape.

    0: any level; 1: TRANSITIVE; 2: one bit more; 3: two bits more; 4: EVERYTHING.
    """
    relations = [link.relation for link in cycle]
    missed = relations.count("RW")
    if not missed:
        return 0
    if missed == 1 and set(relations) <= {"RW", *CAUSAL}:
        return 1
    if _forbidden(cycle, PREFIX) or _forbidden(cycle, WRITERS):
        return 2
    return 3 if _forbidden(cycle, PREFIX | WRITERS) else 4


def _forbidden(cycle: Cycle, sees: int) -> bool:
    """Return whether a level with these visibility bits rules out a cycle of this shape."""
    relations = [link.relation for link in cycle]
    before = [relations[-1], *relations[:-1]]
    missed = [earlier for earlier, relation in zip(before, relations, strict=True) if relation == "RW"]
    if sees & EVERYTHING or (sees & WRITERS and _is_lost_update(cycle)):
        return True
    if not sees & PREFIX:
        return len(missed) <= 1
    return all(earlier in CAUSAL or (sees & WRITERS and earlier == "WW") for earlier in missed)


def _pattern(facts: Facts, cycle: Cycle) -> str:
    """Return the pattern of a cycle of this shape."""
    relations = [link.relation for link in cycle]
    missed = relations.count("RW")
    adjacent = any(a == b == "RW" for a, b in pairwise([relations[-1], *relations]))
    if _is_lost_update(cycle):
        return LOST_UPDATE
    if adjacent and any(not facts.writes[link.source] for link in cycle):
        return READ_ONLY_ANOMALY
    if missed == len(relations):
        return WRITE_SKEW
    if missed >= 2 and not adjacent and set(relations) <= {"RW", *CAUSAL}:
        return LONG_FORK
    if missed == 1 and set(relations) <= {"RW", *CAUSAL}:
        return CAUSALITY
    return CYCLE


def _is_lost_update(cycle: Cycle) -> bool:
    """Return whether two writers of one key did not see each other, or one did not see the other."""
    relations = sorted(link.relation for link in cycle)
    return len({link.key for link in cycle}) == 1 and relations in (["RW", "WW"], ["RW", "RW"])


# The same proof, beginning with another of its cycles


def _beginning_with(proof: Proof, rank: int) -> Proof:
    """Return the proof beginning with a nearest cycle of ``rank``.

    A proves that B is impossible, and B that A is: either may come first.
    """
    while _rank(proof.cycle) != rank:
        proof = _turned_inside_out(proof, _first_link_to(proof, rank))
    return proof


def _first_link_to(proof: Proof, rank: int) -> ProofEdge:
    """Return the order in the outermost cycle that leads to a nearest cycle of ``rank``."""
    ways = [(link, link) for link in _proved(proof)]
    for first, link in ways:  # breadth first: the loop extends the list
        assert isinstance(link.reason, Proof)
        if _rank(link.reason.cycle) == rank:
            return first
        ways += [(first, inner) for inner in _proved(link.reason)]
    raise AssertionError("what is within an argument is reached from it")


def _proved(proof: Proof) -> Iterator[ProofEdge]:
    for link in proof.cycle:
        yield from (inner for inner in (link, link.newer) if inner is not None and isinstance(inner.reason, Proof))


def _turned_inside_out(proof: Proof, link: ProofEdge) -> Proof:
    """Return the proof with the reason of ``link`` outermost.

    The order that was supposed there is now proved by what follows here from its opposite.
    """
    assert isinstance(link.reason, Proof)
    here = _with_reason(proof, (link.relation, link.key, link.source, link.target), None)
    return _with_reason(link.reason, (link.relation, link.key, link.target, link.source), here)


def _with_reason(proof: Proof, order: Order, reason: Reason) -> Proof:
    """Return the proof with another reason for ``order`` wherever it occurs."""
    made: dict[int, Proof] = {}

    def link_of(link: ProofEdge) -> ProofEdge:
        if link.newer is not None:
            return link._replace(newer=link_of(link.newer))
        if (link.relation, link.key, link.source, link.target) == order:
            return link._replace(reason=reason)
        return link._replace(reason=proof_of(link.reason)) if isinstance(link.reason, Proof) else link

    def proof_of(old: Proof) -> Proof:
        if id(old) not in made:
            made[id(old)] = Proof(tuple(map(link_of, old.cycle)))
        return made[id(old)]

    return proof_of(proof)


# Sentences


def _in_words(pattern: str, steps: tuple[Step, ...], facts: Facts, proof: Proof, writer: ProofWriter) -> str:
    """Return what happened, in one sentence."""
    names = [txn_text(writer.name(facts.number[link.source])) for link in proof.cycle]
    if pattern == LOST_UPDATE:
        return _lost_update(steps, facts, proof, names, writer)
    if pattern == WRITE_SKEW:
        missed = [f"{txn_text(s.source)} read {key_text(s.key)}, which {txn_text(s.target)} overwrote" for s in steps]
        who, others = ("neither", "the other") if len(missed) == 2 else ("none", "the next one")
        return f"{', and '.join(missed)}: {who} saw what {others} wrote, so {who} can come first"
    if pattern == LONG_FORK:
        return f"{', but '.join(_views(steps))}"
    if pattern == READ_ONLY_ANOMALY:
        readers = [n for n, link in zip(names, proof.cycle, strict=True) if not facts.writes[link.source]]
        return f"{readers[0]} only reads, and yet what it saw closes a cycle, {chain(steps)}"
    return f"there would be a cycle, {chain(steps)}"


def _lost_update(steps: tuple[Step, ...], facts: Facts, proof: Proof, names: list[str], writer: ProofWriter) -> str:
    x = proof.cycle[0].key
    number = key_text(steps[0].key)
    a, b = (link.source for link in proof.cycle)
    sources = [{t1 for y, t1 in facts.reads[t] if y == x} for t in (a, b)]
    both = sources[0] & sources[1]
    if both:
        t1 = min(both)
        shared = "the initial state" if t1 == INITIAL else txn_text(writer.name(facts.number[t1]))
        first, second = sorted(zip((a, b), names, strict=True))
        return (
            f"{first[1]} and {second[1]} both read {number} from {shared} and both overwrote it, "
            "so whichever came second lost the other's update"
        )
    late = next(step for step in steps if step.relation == "RW")
    return f"{txn_text(late.source)} overwrote {number} without having seen {txn_text(late.target)}'s earlier write"


def _views(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield, for each RW, what its source saw and missed."""
    seen = txn_text(steps[0].source)
    for step in steps:
        if step.relation == "RW":
            yield f"{txn_text(step.source)} saw {seen} and not {txn_text(step.target)}"
            seen = txn_text(step.target)
