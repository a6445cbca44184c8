"""What an argument is called, and which level it breaks: by the cycles in it that take the strongest level to forbid.

An argument is a tree of cycles. Some of them are there only to settle an order, and weaker levels forbid those, too;
what sets the level apart are the others. After these it is named, and one of them is told first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from plume_py.checking.strong.minimal.facts import Facts
from plume_py.checking.strong.minimal.forbidden_cycles import CAUSAL, Link, Proof, Reason
from plume_py.levels import STRONG, visibility_bits, weaker_levels
from plume_py.levels.patterns import CAUSALITY, CYCLE, LONG_FORK, LOST_UPDATE, READ_ONLY_ANOMALY, WRITE_SKEW
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

Cycle = tuple[Link, ...]
Order = tuple[str, int, int, int]  # relation, key, earlier, later


@dataclass(frozen=True)
class NamedProof:
    """A pattern, and the argument turned so that it begins with a cycle of that pattern."""

    pattern: str
    proof: Proof


def broken_level(proof: Proof, level: str) -> str:
    """The weakest level, up to the one that was asked, that the argument contradicts."""
    cycles = [part.cycle for part in proof.within()]
    for weaker in reversed(STRONG):
        if weaker in weaker_levels(level) and all(_forbidden(cycle, visibility_bits(weaker)) for cycle in cycles):
            return weaker
    return level


def named(facts: Facts, proof: Proof) -> NamedProof:
    """The name of an argument: the one that all its telling cycles have, or none in particular."""
    parts = list(proof.within())
    most = max(_rank(part.cycle) for part in parts)
    patterns = {_pattern(facts, part.cycle) for part in parts if _rank(part.cycle) == most}
    if len(patterns) > 1:
        return NamedProof(CYCLE, proof)
    return NamedProof(patterns.pop(), _beginning_with(proof, most))


def _rank(cycle: Cycle) -> int:
    """How strong a level must be to forbid a cycle of this shape: none, TRANSITIVE, and one bit more, two, or all."""
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
    """Does a level of which transactions see this rule out a cycle of this shape?"""
    relations = [link.relation for link in cycle]
    before = [relations[-1], *relations[:-1]]
    missed = [earlier for earlier, relation in zip(before, relations, strict=True) if relation == "RW"]
    if sees & EVERYTHING or (sees & WRITERS and _is_lost_update(cycle)):
        return True
    if not sees & PREFIX:
        return len(missed) <= 1
    return all(earlier in CAUSAL or (sees & WRITERS and earlier == "WW") for earlier in missed)


def _pattern(facts: Facts, cycle: Cycle) -> str:
    """What people call a cycle of this shape."""
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
    """Two writers of one key, of whom one did not see the other: the second one, or either."""
    relations = sorted(link.relation for link in cycle)
    return len({link.key for link in cycle}) == 1 and relations in (["RW", "WW"], ["RW", "RW"])


# The same argument, told from another of its cycles


def _beginning_with(proof: Proof, rank: int) -> Proof:
    """A proves that B is impossible, and B that A is: either may come first. A nearest cycle of ``rank`` does."""
    while _rank(proof.cycle) != rank:
        proof = _turned(proof, _first_link_to(proof, rank))
    return proof


def _first_link_to(proof: Proof, rank: int) -> Link:
    """By which order of the outermost cycle one comes to a nearest cycle of ``rank``."""
    ways = [(link, link) for link in _proved(proof)]
    for first, link in ways:  # breadth first: it grows as it is looked at
        assert isinstance(link.reason, Proof)
        if _rank(link.reason.cycle) == rank:
            return first
        ways += [(first, inner) for inner in _proved(link.reason)]
    raise AssertionError("what is within an argument is reached from it")


def _proved(proof: Proof) -> Iterator[Link]:
    for link in proof.cycle:
        yield from (inner for inner in (link, link.newer) if inner is not None and isinstance(inner.reason, Proof))


def _turned(proof: Proof, link: Link) -> Proof:
    """What ``link`` rests on comes first: what was supposed there is proved by what follows here from the opposite."""
    assert isinstance(link.reason, Proof)
    here = _with_reason(proof, (link.relation, link.key, link.source, link.target), None)
    return _with_reason(link.reason, (link.relation, link.key, link.target, link.source), here)


def _with_reason(proof: Proof, order: Order, reason: Reason) -> Proof:
    """The same argument, with another reason for an order wherever it is used."""
    made: dict[int, Proof] = {}

    def link_of(link: Link) -> Link:
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
