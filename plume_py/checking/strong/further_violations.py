"""Find further violations of strong levels: in the remaining history, without the reads behind those found before.

Verdicts do not depend on it, and histories that hold never come here; it adds names and counterexamples. It is bounded
by work, never by time, so that what it finds is the same on every machine; ``complete`` says whether no bound was
reached.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.subhistory import SubHistory
from plume_py.checking.result import Violation
from plume_py.checking.steps import StepWriter
from plume_py.checking.strong.counterexample import Explained, explain
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.violation import complete
from plume_py.checking.weak.classify import PatternCounts, name_patterns
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import READ_LIST, Bools, History, Int8s
from plume_py.levels import STRONG, STRONGEST, weaker_levels
from plume_py.levels.patterns import LOST_UPDATE

# Where weak levels are broken: the rest of the history in which they are not, if there is one.
HealthyPart = Callable[[Limits], SubHistory | None]

# How often what was found is left out: in large histories less often, so that about so many operations are looked at in
# all. Counted like that, and not in seconds, the answer is the same on every machine.
ROUNDS = 12
OPERATIONS = 500_000
# When each level has had its turn, so many violations are enough.
ENOUGH = 12
# In a history with more operations than this a look takes a few rounds of inference. Mostly what is wrong shows in the
# first or second one, and to find that nothing is would cost as much as the decision.
FEW_OPERATIONS = 20_000
ROUNDS_OF_INFERENCE = 3
# Steps of work (see ``Limits``) that it may take: so many, and more for each operation of the history. Ordinary
# histories take a tenth of it.
STEPS, STEPS_PER_OPERATION = 500_000_000, 5_000


class Besides:
    """Violations of some strong levels, or of a level per transaction: those found, and then further ones."""

    def __init__(self, analysis: Analysis, levels: tuple[str, ...] | Int8s, examples: int) -> None:
        """``examples``: how many violations of one pattern are to be kept."""
        self.analysis, self.examples = analysis, examples
        self.rest = Rest(SubHistory(analysis))
        self.turns = _turns(levels)
        self.violations: list[Violation] = []
        self.counts: Counter[str] = Counter()
        self.complete = True  # no bound kept it from finding a violation
        self.stopped = ""  # the limit of time or memory that ended it, if any

    def add(self, explained: Explained) -> None:
        """Keep a violation, unless there are enough of its pattern at its level: every broken level has one to show."""
        tap, level = explained.violation.tap, explained.violation.level
        self.counts[tap] += 1
        if sum(each.tap == tap and each.level == level for each in self.violations) < self.examples:
            self.violations.append(self._in_whole_history(explained))

    def search(self, known: list[Explained], limits: Limits, healthy: HealthyPart | None = None) -> None:
        """Look for more, without what was found; where a weak level is broken, in the ``healthy`` part."""
        bounded = limits.of_work(STEPS + STEPS_PER_OPERATION * self.analysis.history.operations)
        try:
            self._search(known, bounded, healthy)
        except LimitError as error:
            self.complete = False
            if not bounded.is_spent:
                self.stopped = str(error)

    def _search(self, known: list[Explained], limits: Limits, healthy: HealthyPart | None) -> None:
        if healthy is not None:
            part = healthy(limits)
            if part is None:
                return
            self.rest = Rest(part)
        turns = len(self.turns)
        for done in range(self._rounds()):
            if done >= turns and self.counts.total() >= ENOUGH:
                break
            self._leave_out(known)
            limits.check()
            known = self._next(limits)
            if not known:
                return
            for each in known:
                self.add(each)
        self.complete = False

    def _rounds(self) -> int:
        return max(1, min(ROUNDS, OPERATIONS // max(1, self.analysis.history.operations)))

    def _leave_out(self, known: list[Explained]) -> None:
        if known:
            self.rest.leave_out_reads((each.transactions, each.keys) for each in known)
        updates = any(each.violation.tap == LOST_UPDATE for each in known)
        if updates and self.counts[LOST_UPDATE] >= self.examples:
            self.rest.leave_out_contested()  # where there is one there often are hundreds

    def _next(self, limits: Limits) -> list[Explained]:
        """Violations in the rest, or none; each level has its turn until the rest keeps it, which it then does."""
        rest = self.rest.analysis
        few = ROUNDS_OF_INFERENCE if rest.history.operations > FEW_OPERATIONS else None
        while self.turns:
            level = self.turns.popleft()
            decision = StrongEngine(rest, level, limits=limits, rounds=few).decide()
            if decision.ok is False:
                self.turns.append(level)
                return explain(rest, decision, level, limits)
            if decision.ok is None:
                self.complete = False
                limits.check()
            # What a level does not show, no weaker one does.
            if isinstance(level, str) and (decision.ok or few):
                self.turns = deque(other for other in self.turns if other not in {level, *weaker_levels(level)})
        return []

    def _in_whole_history(self, explained: Explained) -> Violation:
        """With the operations of the whole history, of which the rest has only some."""
        writer = StepWriter(self.analysis)
        writer.keys, writer.transactions = dict.fromkeys(explained.keys), set(explained.transactions)
        argument = explained.argument.renumbered(self.rest.part.number_in_whole)
        old = explained.violation
        whole = complete(writer, old.tap, argument, old.level)
        levels = zip(whole.transactions, old.transactions, strict=True)
        return replace(whole, transactions=tuple(replace(new, level=seen.level) for new, seen in levels))


def _turns(levels: tuple[str, ...] | Int8s) -> "deque[str | Int8s]":
    """What to ask the rest about, again and again: every level up to those asked."""
    if not isinstance(levels, tuple):
        return deque([levels])
    asked = {*levels, *(weaker for level in levels for weaker in weaker_levels(level))}
    turns = [level for level in STRONG if level in asked]
    # Mostly there is one violation, and without it the strongest level holds: so that one is asked twice.
    return deque([turns[0], *turns])

# From rest.py: What is left of a history when reads are left out: to see what else is wrong with it. Reads are what constrains a history: with fewer of them there are only more commit orders. So what the rest contradicts, the whole history contradicts, whatever was left out.
class Rest:
    """A history without some reads."""

    def __init__(self, part: SubHistory) -> None:
        self.part = part

    @property
    def analysis(self) -> Analysis:
        """Of what is left."""
        return self.part.analysis

    @property
    def history(self) -> History:
        """What is left."""
        return self.analysis.history

    def leave_out(self, gone: Bools) -> None:
        """Leave out these operations, which must be reads."""
        self.part = self.part.without(gone)

    def leave_out_reads(self, violations: Iterable[tuple[Collection[int], Collection[int]]]) -> None:
        """Leave out what the transactions of each violation read of its keys."""
        history = self.history
        gone = np.zeros(history.operations, np.bool_)
        for transactions, keys in violations:
            for t in transactions:
                ops = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
                gone[ops] |= (history.op_kind[ops] & 1 == 0) & np.isin(history.op_key[ops], list(keys))
        self.leave_out(gone)

    def leave_out_contested(self) -> None:
        """Leave out reads of versions that several of their readers overwrite: every one is a lost update."""
        layout = SolverColumns(self.analysis, STRONGEST)
        updates = np.flatnonzero(layout.first_read & (layout.also_writes == 1))
        readers = np.bincount(layout.read_version[updates], minlength=len(layout.versions))
        contested = readers[layout.read_version] > 1
        gone = np.zeros(self.history.operations, np.bool_)
        gone[self.analysis.reads.read_op[contested & (layout.also_writes == 1)]] = True
        if np.any(gone):
            self.leave_out(gone)

# From consistent_part.py: What is left of a history that breaks a weak level, when the reads that break it are left out.
# Steps of work (see ``Limits``) that a round counts for, by operation.
STEPS_PER_OPERATION = 200


def healthy_part(weak: WeakLevels, level: str, named: PatternCounts, limits: Limits) -> SubHistory | None:
    """The history without what breaks ``level`` (RC, RA or TCC), for a start what was ``named``; None: no such part."""
    part = SubHistory(weak.analysis)
    while not weak.holds(level):
        limits.check()
        limits.spend(STEPS_PER_OPERATION * part.analysis.history.operations)
        gone = _wrong_reads(part.analysis, named)
        if not np.any(gone):
            return None
        part = part.without(gone)
        weak = WeakLevels(part.analysis)
        named = name_patterns(weak, level)
    return part


def _wrong_reads(analysis: Analysis, named: PatternCounts) -> Bools:
    """The reads that weak patterns are about. A list that is wrong speaks against all lists of its key."""
    history, reads = analysis.history, analysis.reads
    wrong = np.zeros(history.operations, np.bool_)
    for pattern, operations in reads.examples.items():
        if pattern != "j":  # which is k or l, too
            wrong[operations] = True
    wrong[reads.read_op[[triple.r for triples in named.triples.values() for triple in triples]]] = True
    wrong[reads.read_op[analysis.reads_on_cycles]] = True
    is_list = history.op_kind == READ_LIST
    keys = [*history.op_key[wrong & is_list].tolist(), *_keys_on_cycles(analysis)]
    wrong |= is_list & np.isin(history.op_key, keys)
    return wrong


def _keys_on_cycles(analysis: Analysis) -> Iterator[int]:
    """What those write whom version orders put on a cycle."""
    history, ordering = analysis.history, analysis.version_ordering
    if not ordering.acyclic and analysis.causal.acyclic:
        inside = np.repeat(ordering.component >= 0, np.diff(history.txn_start))
        yield from history.op_key[inside & ((history.op_kind & 1) == 1)].tolist()
