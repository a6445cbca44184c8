"""Decide PC, PSI, SI, SER and declared levels: infer forced edges, then search a commit order.

``strong.verdicts``, ``witness`` and ``evidence`` call ``StrongEngine.decide``. If the level is violated, ``unsat_core``
finds small sets of transactions that violate it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import Inference
from plume_py.checking.strong.solver.search import OrderOrCycles, Search
from plume_py.checking.strong.solver.unsat_core import Core, core_of_search, cores_of_known
from plume_py.history.model import Int8s, Int32s
from plume_py.levels import STRONG, visibility_bits, weaker_levels
from plume_py.levels.patterns import BASE
from plume_py.levels.table import PREFIX, WRITERS


@dataclass(frozen=True)
class Decision:
    """Whether the level holds. ``ok`` is None if a limit was reached; ``reason`` names the limit and the progress.

    If ``ok`` is False, ``reason`` is the limit that was reached before ``cores`` were found, or empty.
    """

    ok: bool | None
    reason: str = ""
    order: Int32s | None = None  # the commit order that shows it: participating transactions, first to last
    cores: tuple[Core, ...] = ()  # each violates the level; the smallest first
    stats: dict[str, float] = field(default_factory=dict)

    @property
    def core(self) -> Core | None:
        """The smallest core, or None."""
        return self.cores[0] if self.cores else None


# A search at a level without prefixes that takes this many rounds is suspended for one with prefixes, of at most this
# many.
ROUNDS_BEFORE_PREFIX, ROUNDS_WITH_PREFIX = 20, 400


class StrongEngine:
    """Decides one level, or one level per transaction (codes as in ``History.txn_level``), for one history.

    No read may be wrong without a cycle, and causality must be acyclic: the weak levels check that first.
    """

    def __init__(
        self, analysis: Analysis, level: str | Int8s, *, limits: Limits | None = None, rounds: int | None = None
    ) -> None:
        """With ``rounds``, the level is undecided if this many rounds of inference find no contradiction."""
        self.analysis, self.level, self.rounds = analysis, level, rounds
        self.limits = limits or Limits()
        self.seconds: dict[str, float] = {}
        self.stats: dict[str, float] = {}

    def decide(self) -> Decision:
        """Return whether the level holds; undecided if a limit is reached."""
        if any(pattern in self.analysis.reads.counts for pattern in BASE) or not self.analysis.version_ordering.acyclic:
            raise ValueError("a weak level is broken already")
        try:
            return self._decide()
        except LimitError as error:
            return Decision(None, str(error), stats=self._stats())
        except MemoryError:
            return Decision(None, "stopped: no more memory to be had", stats=self._stats())

    def _decide(self) -> Decision:
        with self._timed("layout"):
            layout = SolverColumns(self.analysis, self.level)
            inference = Inference(layout, self.limits)
        with self._timed("infer"):
            known = inference.run() if self.rounds is None else inference.run(self.rounds)
        self.stats |= {"edges": len(known.rows), "inference_rounds": len(known.rounds), "rounds": 0, "open_pairs": 0}
        sizes = np.diff(layout.key_start)
        self.stats["pairs"] = float(np.sum(sizes * (sizes - 1) // 2))
        self.stats["open_pairs"] = inference.open_pairs()
        if known.contradiction:
            return self._violated(lambda limits: cores_of_known(layout, known, limits))
        return self._search(layout, inference)

    def _search(self, layout: SolverColumns, inference: Inference) -> Decision:
        search = Search(layout, inference, self.limits)
        try:
            with self._timed("search"):
                outcome = self._outcome(search)
        finally:
            self.stats |= {"rounds": search.rounds, "choices": len(search.pairs), "clauses": len(search.clauses)}
            self.stats["component"] = search.largest_component()
            search.close()
        if outcome.order is not None:
            return Decision(True, order=outcome.order, stats=self._stats())
        pairs, cycles = search.pairs, outcome.cycles
        return self._violated(lambda limits: (core_of_search(layout, inference.known, pairs, cycles, limits),))

    def _violated(self, cores: Callable[[Limits], tuple[Core, ...]]) -> Decision:
        """Return the verdict "violated" with its cores, or with the limit that was reached before they were found."""
        try:
            with self._timed("core"):
                found = cores(self.limits.whole)  # the limit per level is for the decision only
        except LimitError as error:
            return Decision(False, str(error), stats=self._stats())
        return Decision(False, cores=found, stats=self._stats())

    def _outcome(self, search: Search) -> OrderOrCycles:
        """Return the result of the search.

        If it takes long at a level without prefixes, try a stronger level with them: its order may be easier to find.
        """
        stronger = _with_prefix(self.level) if isinstance(self.level, str) else None
        outcome = search.run(ROUNDS_BEFORE_PREFIX) if stronger is not None else None
        if outcome is None and stronger is not None:
            order = self._order_at(stronger)
            if order is not None and not len(search.axiom_violations(order)):
                outcome = OrderOrCycles(order, [])
        while outcome is None:
            outcome = search.run()
        return outcome

    def _order_at(self, level: str) -> Int32s | None:
        """Return a commit order for another level, if one is found soon."""
        inference = Inference(SolverColumns(self.analysis, level), self.limits)
        if inference.run().contradiction:
            return None
        search = Search(inference.layout, inference, self.limits)
        try:
            outcome = search.run(ROUNDS_WITH_PREFIX)
        finally:
            search.close()
        return None if outcome is None else outcome.order

    def _stats(self) -> dict[str, float]:
        return {**self.stats, **{f"seconds_{phase}": seconds for phase, seconds in self.seconds.items()}}

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        """Add the time of the block to the phase, here and for the report."""
        start = time.perf_counter()
        with self.analysis.timed(phase):
            try:
                yield
            finally:
                self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start


def _with_prefix(level: str) -> str | None:
    """Return the weakest level above this one with PREFIX, if ``level`` has WRITERS without PREFIX."""
    if visibility_bits(level) & (PREFIX | WRITERS) != WRITERS:
        return None
    return next(name for name in reversed(STRONG) if visibility_bits(name) & PREFIX and level in weaker_levels(name))
