"""Find a proof that no order exists: reduce a core to a minimal set, then refute it by a small tree of contradictions.

``strong.counterexample`` calls ``ProofFinder.argue``. A subset of the transactions has fewer constraints, so a subset
that violates the level shows that the history does. A proof is a forbidden cycle, or two writers of a key whose order
leads to a cycle both ways, with further such cases nested.
"""

from collections.abc import Callable, Iterable, Mapping

from plume_py.base.limits import Limits
from plume_py.checking.graph.reads import Reads
from plume_py.checking.graph.realtime import RealTime
from plume_py.checking.strong.minimal.facts import Facts, fixed_versions, gather
from plume_py.checking.strong.minimal.forbidden_cycles import Assumptions, Proof, unordered
from plume_py.checking.strong.minimal.saturation import saturate
from plume_py.checking.strong.minimal.search import search_facts
from plume_py.history.model import INITIAL, History, Int32s

Levels = str | Mapping[int, str]

# Maximum number of states of the search that decides whether a subset violates the level.
STATES = 400
# Maximum number of suppositions, and maximum depth of nested cases.
TRIALS = 4000
DEPTH = 6
# In larger sets, only forced orders are examined, and no proof is searched.
FEW = 150
# Sizes of the windows of causal order tried instead of a large set, and number of windows per size.
WINDOWS = (50, 100, 200, 400, 800)
TRIED = 30
# Bound of the reduction: the sum of the squares of the sizes tried.
WORK = 200_000_000
# Steps of work (see ``Limits``) per set tried, per pair of its transactions, per state of a search, and per
# supposition.
STEPS_PER_SET, STEPS_PER_PAIR, STEPS_PER_STATE, STEPS_PER_TRIAL = 30_000, 100, 5_000, 20_000
# Longer proofs are not reported.
LONGEST = 200
# Larger sets are reduced by the search first, which is cheaper than a proof.
MANY = 12


class ProofFinder:
    """Finds proofs for one history at one level, or at a level per transaction."""

    def __init__(
        self,
        history: History,
        reads: Reads,
        level: Levels,
        position: Int32s | None = None,
        limits: Limits | None = None,
        real_time: RealTime | None = None,
    ) -> None:
        """``position`` is by transaction in the causal order: neighbours there often contradict each other.

        ``real_time`` is included if given. Methods raise LimitError at ``limits``.
        """
        self.history = history
        self.reads = reads
        self.level = level
        self.real_time = real_time
        self.position = position
        self.limits = limits or Limits()
        self.work = WORK

    def facts(self, transactions: Iterable[int]) -> Facts:
        return gather(self.history, self.level, self.reads, transactions, self.real_time)

    def broken(self, transactions: Iterable[int]) -> bool:
        """Return whether a short search shows that these transactions violate the level."""
        self.limits.check()
        facts = self.facts(transactions)
        self.work -= facts.count**2
        self.limits.spend(STEPS_PER_SET + STEPS_PER_PAIR * facts.count**2)
        if facts.count > FEW:
            return saturate(facts) is None
        found = search_facts(facts, STATES)
        self.limits.spend(STEPS_PER_STATE * found.states)
        return found.ok is False

    def smallest(self, transactions: Iterable[int], promising: Callable[[list[int]], bool] | None = None) -> list[int]:
        """Return a minimal subset that still violates the level, by removing halves first, then smaller parts."""
        still = promising or self.broken
        kept = sorted(transactions)
        size = max(1, len(kept) // 2)
        while True:
            parts = [kept[i : i + size] for i in range(0, len(kept), size)]
            for part in reversed(parts):
                if self.work < 0:
                    return kept
                gone = set(part)
                rest = [t for t in kept if t not in gone]
                if rest and still(rest):
                    kept = rest
            if size == 1:
                return kept
            size = max(1, min(size, len(kept)) // 2)

    def proof(self, transactions: Iterable[int]) -> tuple[Facts, Proof | None]:
        """Return the facts and a proof that these transactions violate the level, or None if none was found soon."""
        facts = self.facts(transactions)
        index = {t: i for i, t in enumerate(facts.number)}
        key = {x: i for i, x in enumerate(facts.key_number)}
        shown = fixed_versions(self.history, self.reads, set(facts.number))
        case = Assumptions.of(facts, [(index[a], index[b], key[x], operation) for a, b, x, operation in shown])
        return facts, _ProofSearch(self.limits).refute(case, 0)

    def _near(self, transactions: list[int]) -> list[int]:
        """Return a window of a large set that violates the level, or the set if none is found soon."""
        if len(transactions) <= FEW or self.position is None:
            return transactions
        in_order = sorted(transactions, key=self.position.__getitem__)
        for size in WINDOWS:
            starts = range(0, max(1, len(in_order) - size // 2), size // 2)
            for start in starts[:: max(1, len(starts) // TRIED)]:
                if self.broken(in_order[start : start + size]):
                    return sorted(in_order[start : start + size])
        return transactions

    def argue(self, transactions: Iterable[int]) -> tuple[Facts, Proof | None]:
        """Return a small set of transactions as facts, and a small proof, or None."""
        kept = self._near(sorted(transactions))
        if len(kept) > MANY or self.proof(kept)[1] is None:
            kept = self.smallest(kept) if self.broken(kept) else kept
        facts, proof = self.proof(kept) if len(kept) <= FEW else (self.facts(kept), None)
        if proof is None:
            return facts, None
        kept = self.smallest(
            _mentioned(facts, proof), lambda rest: self.broken(rest) and self.proof(rest)[1] is not None
        )
        facts, proof = self.proof(kept)
        return facts, None if proof is None or proof.size > LONGEST else proof


def _mentioned(facts: Facts, proof: Proof) -> list[int]:
    """Return the transactions in a proof, by their numbers in the history."""
    return sorted({facts.number[t] for t in speaks_of(proof)})


def speaks_of(proof: Proof) -> set[int]:
    """Return the transactions in a proof, inner proofs included."""
    links = [link for part in proof.within() for link in part.cycle]
    return {t for link in links for t in (link.source, link.target, link.via) if t != INITIAL}


class _ProofSearch:
    """One search for a proof, with its remaining budget."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.budget = TRIALS

    def refute(self, case: Assumptions, depth: int) -> Proof | None:
        """Return a proof that the assumptions are contradictory, or None if none was found."""
        proof = case.contradiction()
        while proof is None and self.budget > 0:
            proof, moved = self._try_pairs(case)
            if proof is None and not moved:
                proof = self._split(case, depth)
                if proof is None:
                    return None
                # One order is excluded and remains excluded.
                proof = case.contradiction() if proof is SETTLED else proof
        return proof

    def _try_pairs(self, case: Assumptions) -> tuple[Proof | None, bool]:
        """Suppose both orders of each open pair.

        If both fail, the case is refuted; if one fails, the other is added.
        """
        settled: list[tuple[int, int, int, Proof]] = []
        best: tuple[int, int, int, int, Proof] | None = None
        for x, a, b in case.open_pairs():
            if self.budget <= 0:
                break
            one, other = self._suppose(case, x, a, b), self._suppose(case, x, b, a)
            if one and other:
                size = one.size + other.size
                if best is None or size < best[0]:
                    # The shorter proof is nested: it is the reason of the order that the longer one uses.
                    best = (size, x, a, b, other) if other.size <= one.size else (size, x, b, a, one)
            elif one:
                settled.append((x, b, a, one))
            elif other:
                settled.append((x, a, b, other))
        if best is not None:
            _, x, a, b, excluded = best
            case.order(x, a, b, excluded)
            return case.contradiction((a, b)), True
        for x, a, b, excluded in settled:
            case.order(x, a, b, excluded)
        return (case.contradiction() if settled else None), bool(settled)

    def _suppose(self, case: Assumptions, x: int, a: int, b: int) -> Proof | None:
        self.budget -= 1
        self.limits.check()
        self.limits.spend(STEPS_PER_TRIAL + STEPS_PER_PAIR * case.facts.count**2)
        supposed = case.copy()
        supposed.order(x, a, b, None)
        return supposed.contradiction((a, b))

    def _split(self, case: Assumptions, depth: int) -> Proof | None:
        """Suppose an order that has no direct contradiction; return SETTLED if it turns out impossible."""
        if depth >= DEPTH:
            return None
        for x, a, b in case.open_pairs():
            for first, second in ((a, b), (b, a)):
                supposed = case.copy()
                supposed.order(x, first, second, None)
                inner = self.refute(supposed, depth + 1)
                if inner is not None:
                    case.order(x, second, first, inner)
                    return SETTLED
            return None  # both orders are possible: no contradiction
        for a, b in unordered(case):
            if len(set(case.facts.level)) == 1:
                break  # with one level, the orders of writers suffice
            for first, second in ((a, b), (b, a)):
                supposed = case.copy()
                supposed.commit(first, second, None)
                inner = self.refute(supposed, depth + 1)
                if inner is not None:
                    case.commit(second, first, inner)
                    return SETTLED
            return None
        return None


# Marker: one order was excluded; continue with the other.
SETTLED = Proof(())
