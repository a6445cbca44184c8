"""Find further violations of strong levels after the first ones.

``strong.verdicts`` calls this module once it knows that PC, PSI, SI, SER or a declared level is violated. Verdicts do
not change; the report gains pattern names and counterexamples. Histories without violations never reach this module.

Algorithm: remove the reads that caused the violations found so far, decide the levels again on the reduced history,
explain its violation, and repeat. Fewer reads allow more commit orders, so every violation of a reduced history is also
a violation of the whole history. If a weak level is violated, ``consistent_part`` first removes the reads that violate
it.

Rounds, operations and steps of work bound the search, never seconds: its result is the same on every machine.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.subhistory import ReducedHistory
from plume_py.checking.result import Violation
from plume_py.checking.steps import StepWriter
from plume_py.checking.strong.counterexample import Explained, explain
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.violation import complete
from plume_py.checking.weak.classify import PatternCounts, name_patterns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import READ_LIST, Bools, Int8s
from plume_py.levels import STRONG, STRONGEST, weaker_levels
from plume_py.levels.patterns import LOST_UPDATE

# Computes the part of the history in which the weak levels hold, or returns None.
ConsistentPart = Callable[[Limits], ReducedHistory | None]

# Number of rounds: at most ROUNDS, and at most so many that about OPERATIONS operations are examined in all.
ROUNDS = 12
OPERATIONS = 500_000
# Stop at this number of violations once every level has been decided.
ENOUGH = 12
# In a history with more operations than this, run only a few rounds of inference per decision. Most violations appear
# in the first or second round, and to find that none is left would cost as much as the decision.
FEW_OPERATIONS = 20_000
ROUNDS_OF_INFERENCE = 3
# Bound in steps of work (see ``Limits``): a constant, and more per operation. Ordinary histories need a tenth of it.
STEPS, STEPS_PER_OPERATION = 500_000_000, 5_000
# Steps of work per operation that one round of ``consistent_part`` costs.
WEAK_STEPS_PER_OPERATION = 200


class FurtherViolations:
    """Violations of some strong levels, or of declared levels: the first ones, then the ones that ``search`` adds.

    ``complete`` says whether the search ended without reaching a bound. ``stopped`` is the time or memory limit that
    ended it, if any.
    """

    def __init__(self, analysis: Analysis, levels: tuple[str, ...] | Int8s, examples: int) -> None:
        """``examples``: number of violations to keep per pattern and level."""
        self.analysis, self.examples = analysis, examples
        self.remaining = ReducedHistory(analysis)
        self.levels_to_decide = _levels_to_decide(levels)
        self.violations: list[Violation] = []
        self.counts: Counter[str] = Counter()
        self.complete = True
        self.stopped = ""

    def add(self, explained: Explained) -> None:
        """Count a violation, and keep it unless its pattern already has enough examples at its level."""
        tap, level = explained.violation.tap, explained.violation.level
        self.counts[tap] += 1
        if sum(each.tap == tap and each.level == level for each in self.violations) < self.examples:
            self.violations.append(self._in_whole_history(explained))

    def search(self, found: list[Explained], limits: Limits, consistent_part: ConsistentPart | None = None) -> None:
        """Add violations of the history without the causes of those ``found``, until a bound is reached.

        If a weak level is violated, pass ``consistent_part``: the search then starts from that part.
        """
        bounded = limits.of_work(STEPS + STEPS_PER_OPERATION * self.analysis.history.operations)
        try:
            self._search(found, bounded, consistent_part)
        except LimitError as error:
            self.complete = False
            if not bounded.is_spent:
                self.stopped = str(error)

    def _search(self, found: list[Explained], limits: Limits, consistent_part: ConsistentPart | None) -> None:
        if consistent_part is not None:
            part = consistent_part(limits)
            if part is None:
                return
            self.remaining = part
        levels = len(self.levels_to_decide)
        for done in range(max(1, min(ROUNDS, OPERATIONS // max(1, self.analysis.history.operations)))):
            if done >= levels and self.counts.total() >= ENOUGH:
                break
            self._remove_causes(found)
            limits.check()
            found = self._next(limits)
            if not found:
                return
            for each in found:
                self.add(each)
        self.complete = False

    def _remove_causes(self, found: list[Explained]) -> None:
        """Remove what the transactions of each violation read from its keys."""
        if found:
            history = self.remaining.analysis.history
            gone = np.zeros(history.operations, np.bool_)
            for each in found:
                for t in each.transactions:
                    ops = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
                    gone[ops] |= (history.op_kind[ops] & 1 == 0) & np.isin(history.op_key[ops], list(each.keys))
            self.remaining = self.remaining.without(gone)
        if self.counts[LOST_UPDATE] >= self.examples and any(each.violation.tap == LOST_UPDATE for each in found):
            # A history with one lost update often has hundreds.
            gone = _contested_reads(self.remaining.analysis)
            if np.any(gone):
                self.remaining = self.remaining.without(gone)

    def _next(self, limits: Limits) -> list[Explained]:
        """Decide the next levels until one is violated; return its violations, or an empty list.

        Drop a level that holds, and all weaker ones: removing reads cannot violate them. Drop undecided levels as
        well.
        """
        remaining = self.remaining.analysis
        few = ROUNDS_OF_INFERENCE if remaining.history.operations > FEW_OPERATIONS else None
        while self.levels_to_decide:
            level = self.levels_to_decide.popleft()
            decision = StrongEngine(remaining, level, limits=limits, rounds=few).decide()
            if decision.ok is False:
                self.levels_to_decide.append(level)
                return explain(remaining, decision, level, limits)
            if decision.ok is None:
                self.complete = False
                limits.check()
            # A violation that the decision does not find at this level, it finds at no weaker level either.
            if isinstance(level, str) and (decision.ok or few):
                dropped = {level, *weaker_levels(level)}
                self.levels_to_decide = deque(other for other in self.levels_to_decide if other not in dropped)
        return []

    def _in_whole_history(self, explained: Explained) -> Violation:
        """Return the violation with the operations that its transactions have in the whole history."""
        writer = StepWriter(self.analysis)
        writer.keys, writer.transactions = dict.fromkeys(explained.keys), set(explained.transactions)
        argument = explained.argument.renumbered(self.remaining.number_in_whole)
        old = explained.violation
        whole = complete(writer, old.tap, argument, old.level)
        levels = zip(whole.transactions, old.transactions, strict=True)
        return replace(whole, transactions=tuple(replace(new, level=shown.level) for new, shown in levels))


def _levels_to_decide(levels: tuple[str, ...] | Int8s) -> "deque[str | Int8s]":
    """Return the levels to decide in turn: the given ones and all weaker strong levels, the strongest first and twice.

    Most histories have one violation, and without its reads the strongest level holds.
    """
    if not isinstance(levels, tuple):
        return deque([levels])
    wanted = {*levels, *(weaker for level in levels for weaker in weaker_levels(level))}
    ordered = [level for level in STRONG if level in wanted]
    return deque([ordered[0], *ordered])


def _contested_reads(analysis: Analysis) -> Bools:
    """Return, by operation, whether it reads a version that its transaction and another reader overwrite.

    Each such read takes part in a lost update.
    """
    layout = SolverColumns(analysis, STRONGEST)
    updates = np.flatnonzero(layout.first_read & (layout.also_writes == 1))
    readers = np.bincount(layout.read_version[updates], minlength=len(layout.versions))
    contested = (readers[layout.read_version] > 1) & (layout.also_writes == 1)
    gone = np.zeros(analysis.history.operations, np.bool_)
    gone[analysis.reads.read_op[contested]] = True
    return gone


# The part of a history in which the weak levels hold


def consistent_part(weak: WeakLevels, level: str, named: PatternCounts, limits: Limits) -> ReducedHistory | None:
    """Return the history without the reads that violate ``level`` (RC, RA or TCC), or None if that is impossible.

    ``named`` has the patterns of the whole history. Each round removes the reads that they name.
    """
    part = ReducedHistory(weak.analysis)
    while not weak.holds(level):
        limits.check()
        limits.spend(WEAK_STEPS_PER_OPERATION * part.analysis.history.operations)
        gone = _reads_in_patterns(part.analysis, named)
        if not np.any(gone):
            return None
        part = part.without(gone)
        weak = WeakLevels(part.analysis)
        named = name_patterns(weak, level)
    return part


def _reads_in_patterns(analysis: Analysis, named: PatternCounts) -> Bools:
    """Return, by operation, whether it is a read that a weak pattern names.

    If a list read is among them, all list reads of its key are.
    """
    history, reads = analysis.history, analysis.reads
    wrong = np.zeros(history.operations, np.bool_)
    for pattern, operations in reads.examples.items():
        if pattern != "j":  # its reads are also in triples k or l
            wrong[operations] = True
    wrong[reads.read_op[[triple.r for triples in named.triples.values() for triple in triples]]] = True
    wrong[reads.read_op[analysis.reads_on_cycles]] = True
    is_list = history.op_kind == READ_LIST
    keys = [*history.op_key[wrong & is_list].tolist(), *_keys_on_version_cycles(analysis)]
    wrong |= is_list & np.isin(history.op_key, keys)
    return wrong


def _keys_on_version_cycles(analysis: Analysis) -> Iterator[int]:
    """Yield the keys written by transactions that a version order puts on a cycle."""
    history, ordering = analysis.history, analysis.version_ordering
    if not ordering.acyclic and analysis.causal.acyclic:
        inside = np.repeat(ordering.component >= 0, np.diff(history.txn_start))
        yield from history.op_key[inside & ((history.op_kind & 1) == 1)].tolist()
