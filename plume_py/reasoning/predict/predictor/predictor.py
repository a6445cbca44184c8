"""Predict runs that satisfy a level and violate the target, from one observed run (IsoPredict).

All runs within the boundary are solutions of one formula (run_encoding) that requires the level's axioms. A sufficient
condition, a forced cycle, is tried first. With ``exact``, a refutation search follows. It proposes a run that satisfies
the level and looks for a commit order that shows that the run satisfies the target. Such an order becomes a lemma that
excludes all runs for which it is a valid commit order. If no run remains, nothing can be predicted.

Each run found is simplified and then rechecked by the checker and by the rules of the boundary.
"""

import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plume_py.base.errors import InputError, LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import FixedOrder, Formula, Literal, TotalOrder
from plume_py.base.logic.sat import RefutationSearch
from plume_py.checking.declared import DECLARED, LevelMap, missing_levels, transaction_levels
from plume_py.history.model import INITIAL, NOBODY, History, Int8s
from plume_py.levels import DEFAULT, NAMES, STRONGEST, levels_that_see
from plume_py.levels.table import EVERYTHING, WRITERS
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl
from plume_py.reasoning.predict.predictor.axioms import contradictions
from plume_py.reasoning.predict.predictor.cycle_condition import ForcedCycle
from plume_py.reasoning.predict.predictor.observed_run import Boundary, Observed, Read, observe
from plume_py.reasoning.predict.predictor.prediction import (
    Prediction,
    PredictionResult,
    Run,
    changes,
    decode,
    new_outcome,
)
from plume_py.reasoning.predict.predictor.recheck import PredictionDefectError, recheck_prediction
from plume_py.reasoning.predict.predictor.run_encoding import Runs
from plume_py.reasoning.predict.predictor.statement_schedule import Schedule, is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator

# Levels at which it matters which transactions write the same keys.
CONFLICTING = levels_that_see(WRITERS, without=EVERYTHING)

# Beyond this size, the formula would fill the memory: relevant transactions (the formula grows with the third power),
# and the sum over reads of possible writers times writers of the key.
MAX_TRANSACTIONS, MAX_CHOICES = 300, 20_000_000

# Number of solver calls to make a prediction change fewer reads.
MAX_SOLVER_CALLS = 30


def predict(
    history: History,
    level: str = DEFAULT,
    *,
    target: str = STRONGEST,
    boundary: Boundary = "strict",
    exact: bool = True,
    count: int = 1,
    limits: Limits | None = None,
    level_map: LevelMap | None = None,
    assume: str | None = None,
    engine: ConcurrencyControl | None = None,
) -> PredictionResult:
    """Predict up to ``count`` runs within the boundary that satisfy ``level`` and violate ``target``.

    Each has another anomaly. ``level`` may be "declared". The observed history should satisfy the target; otherwise it
    may be a prediction itself. With ``engine``, only runs that such a database could schedule are predicted.
    docs/predict.md defines predictions.
    """
    outcome = new_outcome(level, target, boundary, exact)
    limits = limits or Limits()
    with outcome.ended_by_limits(), Predictor(history, outcome, limits, level_map, assume, engine) as predictor:
        predictor.run(count)
    return outcome


@dataclass
class _Simplification:
    """The simplest run so far, and the literals that it had to satisfy."""

    best: Run
    requirements: list[Literal]


class Predictor:
    """One formula, and the search for predictions in it."""

    def __init__(
        self,
        history: History,
        outcome: PredictionResult,
        limits: Limits,
        level_map: LevelMap | None,
        assume: str | None,
        engine: ConcurrencyControl | None = None,
    ) -> None:
        self.outcome, self.limits, self._engine = outcome, limits, engine
        self._level_options = level_map, assume
        self._formula = Formula(limits)
        self._refuter: RunRefuter | None = None
        try:
            with self._timed("generate"):
                self._build(history)
        except BaseException:  # usually a limit; Python does not free the solver's memory
            self._formula.close()
            raise

    def _build(self, history: History) -> None:
        """Build the formula."""
        outcome, engine = self.outcome, self._engine
        conflicts = outcome.target in CONFLICTING or outcome.level in (*CONFLICTING, DECLARED) or engine is not None
        self.observed: Observed = observe(history, outcome.boundary, conflicts=conflicts)
        outcome.notes += self.observed.notes
        outcome.notes += [] if engine is None else [f"as a database runs it: {engine.title}"]
        self._reject_large()
        self.levels = self._levels(history)
        self.runs = Runs(self.observed, self._formula)
        self._require_level()
        self._forced_cycle = ForcedCycle(self.runs, outcome.target, self.limits).literal

    def __enter__(self) -> "Predictor":
        return self

    def __exit__(self, *_: object) -> None:
        self._formula.close()
        if self._refuter is not None:
            self._refuter.close()

    def _levels(self, history: History) -> list[str]:
        if self.outcome.level != DECLARED:
            return [self.outcome.level] * self.observed.size
        codes = transaction_levels(history, *self._level_options)
        missing = missing_levels(history, codes, _flags(history, self.observed.live))
        if missing is not None:
            raise InputError(missing)
        return [NAMES[int(codes[t]) - 1] for t in self.observed.txns]

    def _reject_large(self) -> None:
        size = self.observed.size
        writers = self.observed.writers
        choices = sum(len(read.writers) * len(writers[read.key]) for read in self.observed.reads)
        self.limits.check()
        if size > MAX_TRANSACTIONS or choices > MAX_CHOICES:
            what = f"{size:,} transactions and {choices:,} choices matter"
            most = f"at most {MAX_TRANSACTIONS:,} and {MAX_CHOICES:,}"
            raise LimitError(f"too large to predict from at once: {what} ({most}); --window 50 goes part by part")

    def _require_level(self) -> None:
        order = TotalOrder(self._formula, self.observed.size)
        for read, writer, choice in self.runs.choices():
            if writer != INITIAL:
                self._formula.require(-choice, order.before(writer, read.node))
        for parts in contradictions(self.runs.as_committed(), self.levels, order):
            self._formula.require(*(-part for part in parts))
        if self._engine is not None:
            Schedule(self.runs.as_committed(), self._engine).require()

    @contextmanager
    def _timed(self, phase: str) -> "Iterator[None]":
        start, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.outcome.seconds[phase] += time.perf_counter() - start
            self.outcome.cpu_seconds[phase] += time.process_time() - cpu
            self.outcome.sizes |= {"variables": self._formula.variables, "clauses": self._formula.clauses}

    def run(self, count: int) -> None:
        """Find up to ``count`` predictions with different anomalies."""
        while len(self.outcome.predictions) < count:
            if not self._find(()):
                self.outcome.complete = True
                return
            simpler = _Simplification(decode(self.runs), [])
            try:
                self._simplify(simpler)
            except LimitError:  # the unsimplified prediction is valid
                self.outcome.predictions.append(self._rechecked(simpler.best))
                raise
            self.outcome.predictions.append(self._rechecked(simpler.best))
            self._forbid(self.outcome.predictions[-1])

    def _find(self, assumptions: Sequence[Literal]) -> bool:
        """Return whether a run violates the target. It is then the formula's last solution."""
        if self._refuter is not None:
            with self._timed("solve"):
                return self._refuter.find(assumptions)
        with self._timed("solve"):
            found = self._formula.solve([*assumptions, self._forced_cycle])
        if found or assumptions or not self.outcome.exact:
            return found
        with self._timed("generate"):
            self._refuter = RunRefuter(self.runs, self.outcome.target, self.limits)
        return self._find(assumptions)

    def _simplify(self, simpler: "_Simplification") -> None:
        """Look for a run that changes fewer reads and ends fewer sessions early, with few attempts."""
        self._change_less(simpler)
        for session, end in enumerate(simpler.best.ends):
            if end != NOBODY:
                self._try(simpler, self.runs.beyond(session, len(self.observed.cuts[session]) - 1))

    def _change_less(self, simpler: "_Simplification") -> None:
        """Restore observed reads, many at a time, the last ones first, because earlier reads may determine them."""
        needed: set[int] = set()
        changed = self._changed(simpler.best)
        size = len(changed)
        for _ in range(MAX_SOLVER_CALLS):
            todo = [read for read in reversed(changed) if read.number not in needed]
            size = min(size, len(todo))
            if not size:
                return
            requirement = self._formula.all_of(-self.runs.changes(read) for read in todo[:size])
            if self._try(simpler, requirement):
                changed = self._changed(simpler.best)
            elif size == 1:
                needed.add(todo[0].number)
            else:
                size = (size + 1) // 2

    def _changed(self, run: Run) -> list[Read]:
        ops = {change.op for change in changes(self.observed, run)}
        return [read for read in self.observed.reads if read.op in ops]

    def _try(self, simpler: "_Simplification", requirement: Literal) -> bool:
        """Return whether a prediction satisfies ``requirement`` and changes no more reads. It becomes the best."""
        if not self._find([*simpler.requirements, requirement]):
            return False
        found = decode(self.runs)
        if len(self._changed(found)) > len(self._changed(simpler.best)):
            return False
        simpler.best = found
        simpler.requirements.append(requirement)
        return True

    def _rechecked(self, run: Run) -> Prediction:
        """Return the prediction. Raise PredictionDefectError if the checker or the rules of the boundary reject it."""
        with self._timed("check"):
            levels = {t: self.levels[node] for node, t in enumerate(self.observed.txns)}
            prediction, problems = recheck_prediction(self.observed, run, self.outcome, levels)
            engine, history = self._engine, prediction.history
            if engine is not None and not is_scheduled(history, self.observed.history, run, engine, self.limits):
                problems.append("no order of its statements does it")
            if problems:
                raise PredictionDefectError("; ".join(problems))
            return prediction

    def _forbid(self, prediction: Prediction) -> None:
        """Exclude further predictions in which the transactions of this anomaly read the same versions."""
        names = {str(shown.id) for shown in prediction.violation.transactions}
        labels = self.observed.history.txn_label
        shown = {t for t in prediction.run.prefix if str(labels[t]) in names}
        literals = []
        for read in self.observed.reads:
            source = prediction.run.sources.get(read.op)
            if self.observed.txns[read.node] in shown and source is not None and source in (INITIAL, *shown):
                writer = INITIAL if source == INITIAL else self.observed.node_of[source]
                literals.append(-self.runs.selects(read, writer))
        self._formula.require(*literals)


def _flags(history: History, live: list[int]) -> Int8s:
    flags = np.zeros(history.transactions, np.uint8)
    flags[live] = 1
    return flags


class OrderFinder:
    """Find commit orders that show that proposed runs satisfy the target.

    It has its own formula, in which the writers of reads and the participating transactions are assumptions.
    """

    def __init__(self, observed: Observed, target: str, formula: Formula) -> None:
        self.observed, self.formula = observed, formula
        self._selects = {(r.number, w): self.formula.variable() for r in observed.reads for w in r.writers}
        self._writes = {(node, x): self.formula.variable() for node, kept in enumerate(observed.writes) for x in kept}
        self._takes_part = [self.formula.variable() for _ in observed.txns]
        self.order = TotalOrder(self.formula, observed.size)
        for parts in contradictions(self, [target] * observed.size, self.order):
            self.formula.require(*(-part for part in parts))

    def selects(self, read: Read, writer: int) -> Literal:
        return self._selects[read.number, writer]

    def writes(self, node: int, key: int) -> Literal:
        return self._writes[node, key]

    def takes_part(self, node: int) -> Literal:
        return self._takes_part[node]

    def orders_for(self, runs: Runs) -> list[list[int]]:
        """Return a commit order that shows the target for the run in the last solution of ``runs``, if any."""
        value = runs.formula.value
        given = [
            self.selects(read, writer) if value(runs.selects(read, writer)) else -self.selects(read, writer)
            for read, writer, _ in runs.choices()
        ]
        given += [v if value(runs.writes(*where)) else -v for where, v in self._writes.items()]
        given += [v if value(runs.takes_part(node)) else -v for node, v in enumerate(self._takes_part)]
        return [self.order.solution()] if self.formula.solve(given) else []


class RunRefuter:
    """Search a run without a commit order for the target, by proposing runs and learning from their orders."""

    def __init__(self, runs: Runs, target: str, limits: Limits) -> None:
        self.runs, self.target, self._limits = runs, target, limits
        self._formula = Formula(limits)
        try:
            self._order_finder = OrderFinder(runs.observed, target, self._formula)
        except BaseException:
            self.close()
            raise

    def find(self, assumptions: Sequence[Literal]) -> bool:
        """Return whether a run satisfies the level and violates the target. It is then the formula's last solution."""
        solve = self.runs.formula.solve
        search = RefutationSearch(
            lambda: self.runs if solve(assumptions) else None, self._order_finder.orders_for, self._learn
        )
        return search.run(self._limits) is not None

    def _learn(self, orders: Sequence[list[int]]) -> None:
        """Exclude the runs for which one of these orders shows the target."""
        levels = [self.target] * self.runs.observed.size
        formula = self.runs.formula
        for order in orders:
            broken = contradictions(self.runs, levels, FixedOrder(order))
            formula.require(*(formula.all_of(parts) for parts in broken))

    def close(self) -> None:
        self._formula.close()
