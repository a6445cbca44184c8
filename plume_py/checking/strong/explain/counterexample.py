"""Counterexamples of strong and mixed levels: from a core that cannot be ordered to a named, minimal violation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plume_py.base.limits import Limits
from plume_py.base.text import key_text, txn_text
from plume_py.checking.declared import DECLARED
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import Step, Violation
from plume_py.checking.strong.explain.classify import broken_level, named
from plume_py.checking.strong.explain.proof_steps import ProofWriter, chain
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.checking.strong.minimal.forbidden_cycles import Proof
from plume_py.checking.strong.minimal.proof_tree import Levels, ProofFinder
from plume_py.checking.strong.solver.answer import Core, Decision
from plume_py.checking.violation import Argument, complete
from plume_py.history.model import INITIAL, Int8s
from plume_py.levels import LEVELS, NAMES, STRONG, visibility_bits, weaker_levels
from plume_py.levels.patterns import CYCLE, LONG_FORK, LOST_UPDATE, READ_ONLY_ANOMALY, WRITE_SKEW

# Why the shape of the cycle is a contradiction.
RULES = {name: level.rule for name, level in LEVELS.items()} | {DECLARED: "each by the level it runs at"}

# So many violations are told of one decision; further ones only from cores with at most so many transactions.
AT_ONCE = 4
SMALL = 12


@dataclass(frozen=True)
class Explained:
    """A violation, what it was made of, and the numbers of the transactions and keys in it."""

    violation: Violation
    argument: Argument
    transactions: tuple[int, ...]  # as they are shown
    keys: tuple[int, ...]


def explain(
    analysis: Analysis,
    decision: Decision,
    level: "str | Mapping[int, str] | Int8s",
    limits: Limits | None = None,
) -> list[Explained]:
    """What ``decision`` found: nothing if the level holds, is undecided, or is broken by weak patterns.

    The first violation comes from the smallest core, others from small cores that share no transaction with it or each
    other.
    ``level`` is a name, or a level for each transaction: a mapping, or codes as in ``History.txn_level``. At ``limits``
    it ends with a LimitError.
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
        # What breaks a weaker level, too, is better told at that one.
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
    """Codes of levels as a mapping."""

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
    name = named(facts, proof)
    pattern, proof = name.pattern, _turned(name.proof)
    writer = ProofWriter(analysis, facts, broken == DECLARED)
    steps = writer.steps(proof)
    argument = Argument(steps, _in_words(pattern, steps, facts, proof, writer), rule=RULES[broken])
    return _explained(writer, pattern, broken, levels, argument)


def _unexplained(analysis: Analysis, facts: Facts, levels: Levels) -> Explained:
    """The set is right, but its argument is too long to be told."""
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
    """The same cycle, beginning where one would begin to tell it: after a RW, with who saw whom or wrote first."""
    links = proof.cycle
    turns = [(*links[i:], *links[:i]) for i in range(len(links))]
    return Proof(min(turns, key=lambda turn: (turn[-1].relation != "RW", turn[0].relation == "RW", turn[0].source)))


# In words


def _in_words(pattern: str, steps: tuple[Step, ...], facts: Facts, proof: Proof, writer: ProofWriter) -> str:
    """What happened, in a sentence."""
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
        whom = "the initial state" if t1 == INITIAL else txn_text(writer.name(facts.number[t1]))
        first, second = sorted(zip((a, b), names, strict=True))
        return (
            f"{first[1]} and {second[1]} both read {number} from {whom} and both overwrote it, "
            "so whichever came second lost the other's update"
        )
    late = next(step for step in steps if step.relation == "RW")
    return f"{txn_text(late.source)} overwrote {number} without having seen {txn_text(late.target)}'s earlier write"


def _views(steps: tuple[Step, ...]) -> Iterator[str]:
    """Who saw what and missed what: for each RW, what leads to it."""
    seen = txn_text(steps[0].source)
    for step in steps:
        if step.relation == "RW":
            yield f"{txn_text(step.source)} saw {seen} and not {txn_text(step.target)}"
            seen = txn_text(step.target)
