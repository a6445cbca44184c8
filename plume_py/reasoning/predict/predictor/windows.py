"""Predict from long histories in overlapping windows of consecutive transactions.

Transactions are taken in a commit order of the observed run; each window overlaps the previous one by half. The
transactions before a window become its initial state. Later transactions are left out, because a prefix of a run is
also a run. Each predicted run is extended to the whole history up to the window's end and rechecked there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from plume_py.base.limits import Limits
from plume_py.checking.declared import DECLARED, LevelMap, transaction_levels
from plume_py.checking.witness import commit_order
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, NOBODY, STATUS_NAMES, UNKNOWN, History
from plume_py.levels import NAMES, STRONGEST
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl
from plume_py.reasoning.predict.predictor.observed_run import Boundary, Observed, observe
from plume_py.reasoning.predict.predictor.prediction import PredictionResult, Run, new_outcome
from plume_py.reasoning.predict.predictor.predictor import Predictor
from plume_py.reasoning.predict.predictor.recheck import recheck_prediction

# Number of a window's predictions that may fail in the whole run before the next window begins.
MAX_UNCONFIRMED = 10


@dataclass
class Window:
    """Consecutive transactions as a history, with the numbers of its transactions and operations in the whole."""

    history: History
    txns: list[int]
    ops: list[int]
    settled: dict[int, int] = field(default_factory=dict)  # key of the whole -> its last writer before the window


class WholeRun:
    """The observed run in a commit order, cut into windows."""

    def __init__(self, history: History, target: str, boundary: Boundary, limits: Limits) -> None:
        self.history = history
        self.observed: Observed = observe(history, boundary)
        self.order: list[int] = commit_order(history, target, limits=limits).tolist()
        self._start = history.txn_start.tolist()
        self._key = history.op_key.tolist()
        self._is_write = [bool(kind & 1) for kind in history.op_kind.tolist()]
        txns = self.observed.txns
        self._reader = {read.op: txns[read.node] for read in self.observed.reads}
        # External read -> its writer. Other reads can only return the initial state or an own write.
        self._sources = {
            read.op: INITIAL if read.observed == INITIAL else txns[read.observed]
            for read in self.observed.reads
            if read.observed is not None
        }

    def windows(self, size: int, levels: Mapping[int, str]) -> Iterator[tuple[int, Window]]:
        """Yield each window with its start in the order. ``levels`` are of transactions."""
        settled: dict[int, int] = {}
        step = max(1, size // 2)
        for first in range(0, max(1, len(self.order) - (size - step)), step):
            yield first, self._window(self.order[first : first + size], dict(settled), levels)
            for t in self.order[first : first + step]:
                settled |= dict.fromkeys((key for key in self._written(t)), t)

    def _written(self, t: int) -> Iterator[int]:
        return (self._key[o] for o in range(self._start[t], self._start[t + 1]) if self._is_write[o])

    def _window(self, members: list[int], settled: dict[int, int], levels: Mapping[int, str]) -> Window:
        builder = HistoryBuilder(None)
        txns, ops = sorted(members), []
        inside = set(members)
        for s in range(self.history.sessions):
            builder.session(s)
        for t in txns:
            kept = list(self._operations(t, inside, settled))
            ops += [o for o, _ in kept]
            status = STATUS_NAMES[int(self.history.txn_status[t])]
            builder.add(
                int(self.history.txn_session[t]), [op for _, op in kept], status=status, level=levels.get(t), id=str(t)
            )
        return Window(builder.build(init_txn="none"), txns, ops, settled)

    def _operations(
        self, t: int, inside: set[int], settled: Mapping[int, int]
    ) -> Iterator[tuple[int, tuple[str, int, int | None]]]:
        """Yield the window's operations of ``t``, with operation numbers as values.

        Reads of versions overwritten before the window are left out.
        """
        own: set[int] = set()
        for o in range(self._start[t], self._start[t + 1]):
            key = self._key[o]
            if self._is_write[o]:
                own.add(key)
                yield o, ("w", key, o)
            elif key not in own:
                source = self._sources.get(o, INITIAL)
                if self.history.txn_status[t] == UNKNOWN:
                    yield o, ("r", key, None)  # the value is ignored
                elif source in inside:
                    yield o, ("r", key, self._last_write(source, key))
                elif source == settled.get(key, INITIAL):
                    yield o, ("r", key, None)

    def _last_write(self, t: int, key: int) -> int:
        return max(o for o in range(self._start[t], self._start[t + 1]) if self._is_write[o] and self._key[o] == key)

    def put_back(self, run: Run, window: Window, first: int) -> Run:
        """Return the run of a window as a run of the whole history, with all transactions before the window."""
        ends = tuple(NOBODY if end == NOBODY else window.ops[end] for end in run.ends)
        prefix = {t: self._start[t + 1] for t in self.order[:first]}
        for t in run.prefix:
            whole = window.txns[t]
            end = ends[int(self.history.txn_session[whole])]
            cut = run.boundary == "strict" and self._start[whole] <= end < self._start[whole + 1]
            prefix[whole] = end + 1 if cut else self._start[whole + 1]
        sources = {o: source for o, source in self._sources.items() if o < prefix.get(self._reader[o], 0)}
        for o, source in run.sources.items():
            key = self._key[window.ops[o]]
            sources[window.ops[o]] = window.settled.get(key, INITIAL) if source == INITIAL else window.txns[source]
        return Run(run.boundary, ends, prefix, sources)


def predict_in_windows(
    history: History,
    level: str,
    *,
    size: int,
    target: str = STRONGEST,
    boundary: Boundary = "strict",
    exact: bool = True,
    count: int = 1,
    limits: Limits | None = None,
    level_map: LevelMap | None = None,
    assume: str | None = None,
    engine: ConcurrencyControl | None = None,
) -> PredictionResult:
    """Predict as ``predict`` does, but only anomalies within ``size`` consecutive transactions.

    The history must satisfy the target.
    """
    outcome = new_outcome(level, target, boundary, exact)
    outcome.window = size
    limits = limits or Limits()
    with outcome.ended_by_limits():
        whole = WholeRun(history, target, boundary, limits)
        outcome.notes += whole.observed.notes
        outcome.notes += [] if engine is None else [f"as a database runs it: {engine.title}"]
        levels = _declared_levels(history, level_map, assume, whole.observed) if outcome.level == DECLARED else {}
        search = _WindowSearch(whole, outcome, levels, limits, engine)
        for first, window in whole.windows(size, levels):
            search.add_from(first, window, count)
            if len(outcome.predictions) >= count:
                return outcome
        outcome.complete = search.complete
        if outcome.ok is None:
            outcome.reason = f"{outcome.unconfirmed} predictions of windows do not prove themselves in the whole run"
    return outcome


@dataclass
class _WindowSearch:
    """The search in all windows, with its result."""

    whole: WholeRun
    outcome: PredictionResult
    levels: Mapping[int, str]
    limits: Limits
    engine: ConcurrencyControl | None
    complete: bool = True  # no window was left early

    def add_from(self, first: int, window: Window, count: int) -> None:
        """Add the window's predictions that are valid in the whole run, up to ``count`` predictions in all."""
        outcome = self.outcome
        mine = new_outcome(outcome.level, outcome.target, outcome.boundary, outcome.exact)
        try:
            with Predictor(window.history, mine, self.limits, None, None, self.engine) as predictor:
                for tries in range(count + MAX_UNCONFIRMED):
                    predictor.run(tries + 1)
                    if mine.complete or len(outcome.predictions) >= count:
                        return
                    self._add(self.whole.put_back(mine.predictions[-1].run, window, first))
                self.complete = False
        finally:
            outcome.add_effort(mine)

    def _add(self, run: Run) -> None:
        outcome = self.outcome
        prediction, problems = recheck_prediction(self.whole.observed, run, outcome, self.levels, self.limits)
        if problems:
            outcome.unconfirmed += 1
        elif all(prediction.changes != other.changes for other in outcome.predictions):  # windows overlap
            outcome.predictions.append(prediction)


def _declared_levels(
    history: History, level_map: LevelMap | None, assume: str | None, observed: Observed
) -> dict[int, str]:
    codes = transaction_levels(history, level_map, assume)
    return {t: NAMES[int(codes[t]) - 1] for t in observed.live if codes[t]}
