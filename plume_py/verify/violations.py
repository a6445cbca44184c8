"""Verify the counterexamples of a report.

A counterexample of a weak level is proved step by step. Each step must be true in the history (SO, RT, WR, WW) or
forced by the level's axiom (CM), and the steps must form the cycle of the pattern. A counterexample of a strong or
declared level is proved by trying all commit orders of its transactions; its steps are not used.
"""

from dataclasses import dataclass, field

import msgspec

from plume_py.base.text import display, key_text, txn_text
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History
from plume_py.history.value_codes import Atom
from plume_py.levels import LEVELS, weaker_levels
from plume_py.levels.orders import WEAKER, level_of
from plume_py.verify.claims import HistoryClaim, Id, StepClaim, TransactionClaim, ViolationClaim
from plume_py.verify.facts import DUPLICATE, START, TORN, HistoryFacts, contradict
from plume_py.verify.strong import STRONG, all_orders_fail

INITIAL = "(initial state)"  # the initial state in reports; no transaction may have this id
CAUSAL = {"SO", "RT", "WR"}
LISTS = (DUPLICATE, TORN, "incompatible-order", "version-order-cycle")
# The level that a pattern violates. Patterns of single reads and lists violate every level except CI.
LEVEL_OF = {
    **dict.fromkeys((*"abcdefghi", *LISTS), "RC"),
    "j": "CI",
    **dict.fromkeys("kl", "RA"),
    **dict.fromkeys("mn", "TCC"),
}


STRONG_PATTERNS = ("lost-update", "write-skew", "long-fork", "read-only-anomaly", "causality", "cycle")
ORDERS = 100_000  # the largest number of partial commit orders to try per counterexample


class RefutedError(Exception):
    """A counterexample does not prove its claim."""


class UndecidedError(Exception):
    """A counterexample has too many transactions to be decided."""


@dataclass
class Verdict:
    """The problems of a report. It is confirmed if there are none."""

    refuted: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)


def require(condition: object, problem: str) -> None:
    """Raise RefutedError unless the condition is true."""
    if not condition:
        raise RefutedError(problem)


def verify_entry(history: History, entry: HistoryClaim) -> list[str]:
    """Return the problems of the verdicts "violated" in a report. "Holds" is proved by a witness instead."""
    verdict = judge_entry(history, entry)
    return verdict.refuted + verdict.undecided


def judge_entry(history: History, entry: HistoryClaim) -> Verdict:
    """Return the same problems, the refuted claims separately from the undecided ones."""
    history = as_ordinary(history)  # a violation must not depend on the guess that a transaction is the initial one
    facts: dict[str, HistoryFacts] = {}
    verdict = Verdict()
    for number, claim in enumerate(entry.violations, 1):
        name = f"violation {number} ({display(claim.tap)})"
        try:
            require(claim.order in WEAKER, f"there is no order {display(claim.order)}")
            if claim.order not in facts:
                facts[claim.order] = HistoryFacts(history, claim.order)
            ClaimCheck(facts[claim.order], claim).check()
        except RefutedError as error:
            verdict.refuted.append(f"{name}: {error}")
        except UndecidedError as error:
            verdict.undecided.append(f"{name}: {error}")
    for name, claimed in entry.levels.items():
        level = level_of(name)
        if level not in LEVELS:
            continue
        weaker, orders = {level, *weaker_levels(level)}, {claimed.order, *WEAKER.get(claimed.order, ())}
        violated = {claim.level for claim in entry.violations if claim.level in weaker and claim.order in orders}
        if claimed.ok and violated:
            verdict.refuted.append(f"{name} is said to hold, but a violation of {min(violated)} is shown")
        if claimed.ok is False and not violated:
            verdict.refuted.append(f"{name} is said to be violated, but no violation of it is shown")
    return verdict


class ClaimCheck:
    """The verification of one counterexample. ``number`` maps the ids that it shows to transactions."""

    def __init__(self, facts: HistoryFacts, claim: ViolationClaim) -> None:
        self.facts, self.claim = facts, claim
        self.number: dict[Id, int] = {}
        for txn in claim.transactions:
            require(txn.id not in self.number and txn.id != INITIAL, f"the id {txn_text(txn.id)} is ambiguous")
            self.number[txn.id] = self._look_up(txn)

    def _look_up(self, claim: TransactionClaim) -> int:
        """Return the transaction with this id and position; refute unless it has the operations that are shown."""
        facts, name = self.facts, txn_text(claim.id)
        found = [t for t in facts.by_id.get(claim.id, ()) if facts.history.place(t) == claim.place]
        require(len(found) == 1, f"there is no transaction {name} at {display(claim.place)}")
        txn = facts.txns[found[0]]
        ops = [(kind, x, tuple(v) if isinstance(v, list) else v) for kind, x, v in claim.ops]
        remaining = iter([tuple(op) for op in txn.ops])
        require(all(op in remaining for op in ops), f"{name} has other operations than shown")
        require(len(ops) + claim.hidden_ops == len(txn.ops), f"{name} has more or fewer operations than shown")
        require(txn.session == claim.session, f"{name} is in another session than shown")
        return found[0]

    def check(self) -> None:
        """Raise RefutedError unless the counterexample proves that its level is violated."""
        tap, level, steps = self.claim.tap, self.claim.level, self.claim.steps
        if tap in STRONG_PATTERNS:
            self._check_orders()
            return
        require(LEVEL_OF.get(tap) == level, f"this is not a pattern of {display(level)}")
        if tap in (*"abcdef", DUPLICATE, TORN):
            self._check_flaw()
        elif tap == "incompatible-order":
            self._check_lists()
        else:
            for step in steps:
                self._check_step(step)
            if tap == "j":
                self._check_two_sources()
            else:
                self._check_chain()

    def _check_orders(self) -> None:
        """Refute unless no commit order of the transactions satisfies their levels; the steps are not used."""
        level = self.claim.level
        levels = {self._transaction(txn.id): txn.level or level for txn in self.claim.transactions}
        require(set(levels.values()) <= {"RC", "RA", "TCC", *STRONG}, "a transaction without a level is shown")
        require(level == "declared" or set(levels.values()) == {level}, "its transactions run at other levels")
        answer = all_orders_fail(self.facts, lambda t: levels.get(t, level), set(levels), ORDERS)
        if answer is None:
            raise UndecidedError(f"its {len(levels)} transactions have too many orders to try them all")
        require(answer, f"its transactions have a commit order that keeps {display(level)}")

    def _transaction(self, name: Id | None) -> int:
        require(name in self.number, f"{txn_text(name)} is not among the transactions shown")
        t = self.number[name]  # type: ignore[index]
        require(t in self.facts.reads, f"{txn_text(name)} did not commit, or is the initial state")
        return t

    def _source(self, name: Id) -> int:
        return START if name == INITIAL else self._transaction(name)

    def _check_flaw(self) -> None:
        """Refute unless a read of the key by the reader shows the pattern, from the given writer if there is one."""
        steps, x = self.claim.steps, self.claim.keys[0] if len(self.claim.keys) == 1 else None
        require(x is not None and len(steps) <= 1, "one read of one key is expected")
        if steps:
            require(steps[0].relation == "WR" and steps[0].key == x, "its step is not the read in question")
            source = steps[0].source
            found = self._flawed(steps[0].target, x)
            require(found, f"no read of {key_text(x)} by {txn_text(steps[0].target)} is like that")
            require(
                source in self.number and self.number[source] in found,
                f"{txn_text(source)} did not write what was read",
            )
            return
        names = list(self.number)
        require(1 <= len(names) <= 2, "one reader is expected, or a reader and a writer")
        readers = [name for name in names if self.number[name] in self.facts.reads]
        others = {name: {self.number[other] for other in names if other != name} for name in names}
        require(
            any((found := self._flawed(name, x)) and others[name] <= found for name in readers),
            f"no read of {key_text(x)} by {txn_text(names[0])} is like that",
        )

    def _flawed(self, reader: Id, x: Atom) -> set[int | None]:
        """Return the writers (None: no writer) behind the reads of x by the reader that show the pattern."""
        flaws = self.facts.flaws.get(self._transaction(reader), [])
        return {t1 for pattern, y, t1 in flaws if pattern == self.claim.tap and y == x}

    def _check_lists(self) -> None:
        """Refute unless two reads of the key imply orders of which neither is a prefix of the other."""
        require(len(self.claim.keys) == 1, "one list is expected")
        x = self.claim.keys[0]
        lists = self.facts.lists
        reads = [read for name in self.number for read in lists.clean_reads(self._transaction(name), x)]
        orders = [lists.extension(read) for read in reads]
        longest = max(orders, key=len, default=())
        require(
            any(contradict(order, longest) for order in orders),
            f"the reads of {key_text(x)} that are shown do not contradict each other",
        )

    def _check_two_sources(self) -> None:
        """Refute unless one transaction reads one key from two writers (TAP j)."""
        require(len(self.claim.steps) == 2, "two reads are expected")
        one, other = self.claim.steps
        require({one.relation, other.relation} == {"WR"}, "its steps are not reads")
        require(one.target == other.target and one.key == other.key, "its reads differ in reader or key")
        require(one.source != other.source, "both reads saw the same transaction")

    def _check_chain(self) -> None:
        """Refute unless the steps form a cycle, or end at the initial state, and have the kinds of the pattern."""
        tap, steps = self.claim.tap, self.claim.steps
        kinds = [step.relation for step in steps]
        require(steps, "it has no steps")
        if len(steps) > 1 or steps[0].target != INITIAL:
            for step, following in zip(steps, steps[1:] + steps[:1], strict=True):
                require(step.target == following.source, f"no step leads on from {txn_text(step.target)}")
                require(step.source != INITIAL, "nothing precedes the initial state")
        forced, others = kinds.count("CM"), set(kinds) - {"CM"}
        if tap == "g":
            require(set(kinds) <= CAUSAL, "it is not a cycle of SO, RT and WR")
        elif tap == "version-order-cycle":
            require(not forced and "WW" in kinds, "it is not a cycle of version orders, SO, RT and WR")
        elif tap in "hkm":
            require(forced == 1 and others <= CAUSAL, "all but one of its steps should be SO, RT or WR")
        else:
            require(forced and (forced > 1 or "WW" in others), "its other steps are SO, RT and WR alone")

    def _check_step(self, step: StepClaim) -> None:
        """Refute unless the step is true in the history, or forced by the level."""
        facts, name = self.facts, f"{txn_text(step.source)} -{display(step.relation)}-> {txn_text(step.target)}"
        if step.relation == "CM":
            self._check_forced(step, name)
            return
        require(step.relation in ("SO", "RT", "WR", "WW"), f"{name} is not a step that this level knows")
        a, b = self._source(step.source), self._transaction(step.target)
        if step.relation == "SO":
            true = facts.session[a] == facts.session[b] and START < a < b
        elif step.relation == "RT":
            true = a != START and facts.precedes_in_real_time(a, b)
        elif step.relation == "WR":
            true = (step.key, a) in facts.reads[b] and self._is_value(step, a, b)
        else:
            true = self._is_listed(step.key, a, b, self._transaction(step.reader))
        require(
            true, f"{name} is not so in the history" + (f" (key {display(step.key)})" if step.key is not None else "")
        )

    def _is_value(self, step: StepClaim, a: int, b: int) -> bool:
        """Return whether b read the value of the step from a.

        For a list, the value is the last element that is not b's own, or null if there is none.
        """
        if step.value is msgspec.UNSET or (a == START and step.value is None):
            return True
        return (b, step.key, a, step.value) in self.facts.values_read

    def _is_listed(self, x: Atom, a: int, b: int, reader: int) -> bool:
        """Return whether a list of x that ``reader`` read shows a's append before b's, or a's and not b's."""
        for read in self.facts.lists.clean_reads(reader, x):
            order = self.facts.lists.writers(read)
            if a in order and x in self.facts.wrote[b] and b not in order[: order.index(a) + 1]:
                return True
        return False

    def _check_forced(self, step: StepClaim, name: str) -> None:
        """Refute a step t2 -CM-> t1 unless the level forces it.

        The reader t3 must have read x from t1, t2 must also write x, and the evidence must be a path from t2 to t3 that
        fulfils the premise of the level.
        """
        facts, x = self.facts, step.key
        t2, t1, t3 = self._transaction(step.source), self._source(step.target), self._transaction(step.reader)
        require(
            (x, t1) in facts.reads[t3], f"{name}: {facts.name(t3)} did not read {key_text(x)} from {facts.name(t1)}"
        )
        require(
            x in facts.wrote[t2] and t2 not in (t1, t3),
            f"{name}: {facts.name(t2)} is not another writer of {key_text(x)}",
        )
        for inner in step.evidence:
            require(inner.relation in CAUSAL, f"{name}: its evidence is not SO, RT or WR")
            self._check_step(inner)
        ends = [step.source, *(inner.target for inner in step.evidence)]
        starts = [*(inner.source for inner in step.evidence), step.reader]
        require(ends == starts, f"{name}: its evidence does not lead from {facts.name(t2)} to {facts.name(t3)}")
        level, evidence = self.claim.level, step.evidence
        if level != "TCC":
            require(len(evidence) == 1, f"{name}: {level} wants its evidence to be one step")
        if level == "RC":
            earlier = facts.reads[t3][: _last(facts.reads[t3], (x, t1))]
            require(evidence[0].relation == "WR", f"{name}: RC wants its evidence to be a read")
            require(
                (evidence[0].key, t2) in earlier, f"{name}: {facts.name(t3)} did not read from {facts.name(t2)} before"
            )


def _last(items: list[tuple[Atom, int]], item: tuple[Atom, int]) -> int:
    return max(at for at, other in enumerate(items) if other == item)
