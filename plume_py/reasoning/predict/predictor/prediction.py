"""Predicted runs as plain data, their histories, and the result of a prediction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from plume_py.base.errors import LimitError
from plume_py.checking.declared import DECLARED
from plume_py.checking.result import Result, Violation
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, NOBODY, UNKNOWN, History
from plume_py.history.value_codes import Atom
from plume_py.levels import NAMES, parse_level
from plume_py.reasoning.predict import LEVELS, TARGETS
from plume_py.reasoning.predict.predictor.observed_run import Boundary, Observed
from plume_py.reasoning.predict.predictor.run_encoding import Runs


@dataclass(frozen=True)
class ReadChange:
    """A read with another writer than observed. Writers are transactions of the observed history, or INITIAL.

    The observed writer is None (unknown) for a transaction of unknown outcome.
    """

    txn: int
    op: int
    key: int
    observed: int | None
    predicted: int


@dataclass(frozen=True)
class Run:
    """The part of the observed run that is kept, and the writers that its reads return.

    Numbers are of the observed history.
    """

    boundary: Boundary
    ends: tuple[int, ...]  # session -> operation of its boundary read (relaxed: some read of its boundary transaction)
    prefix: dict[int, int]  # transaction -> the first of its operations that is left out
    sources: dict[int, int]  # operation of an external read -> its writer: a transaction, or INITIAL


@dataclass(frozen=True)
class Prediction:
    """A run that satisfies the level and violates the target."""

    run: Run
    changes: tuple[ReadChange, ...]
    history: History
    result: Result  # of checking ``history`` for the target

    @property
    def violation(self) -> Violation:
        """The first counterexample, after which the prediction is named."""
        return self.result.violations[0]


@dataclass
class PredictionResult:
    """The result. ``ok`` is True if no run can be predicted, False if one was, None if undecided."""

    level: str
    target: str
    boundary: Boundary
    exact: bool
    predictions: list[Prediction] = field(default_factory=list)
    complete: bool = False  # no further prediction exists, by the strategy chosen
    reason: str | None = None  # why it is undecided
    window: int | None = None  # number of consecutive transactions per window
    unconfirmed: int = 0  # predicted within a window, but not valid in the whole run
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "solve": 0.0, "check": 0.0})
    cpu_seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "solve": 0.0, "check": 0.0})
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool | None:
        """True: none predicted. False: predicted. None: undecided."""
        if self.predictions:
            return False
        return True if self.complete else None

    @contextmanager
    def ended_by_limits(self) -> Iterator[None]:
        """Turn a limit of time or memory into an undecided result."""
        try:
            yield
        except LimitError as error:
            self.reason = str(error)
        except MemoryError:
            self.reason = "stopped: no more memory to be had"

    def add_effort(self, other: "PredictionResult") -> None:
        """Add the times of another result; keep the larger of the sizes."""
        for mine, more in ((self.seconds, other.seconds), (self.cpu_seconds, other.cpu_seconds)):
            for phase, seconds in more.items():
                mine[phase] += seconds
        for what, size in other.sizes.items():
            self.sizes[what] = max(size, self.sizes.get(what, 0))


def new_outcome(level: str, target: str, boundary: Boundary, exact: bool) -> PredictionResult:
    """Return an empty result. Raise ValueError if runs that violate ``target`` cannot be predicted from ``level``."""
    name = parse_level(level) or level
    if name not in (*LEVELS, DECLARED) or target not in TARGETS or name == target:
        raise ValueError(f"cannot predict from {level} to {target}")
    return PredictionResult(name, target, boundary, exact)


def decode(runs: Runs) -> Run:
    """Return the run in the formula's last solution."""
    observed, value = runs.observed, runs.formula.value
    history = observed.history
    places = runs.session_ends()
    ends = tuple(NOBODY if at == NOBODY else observed.cuts[s][at].op for s, at in enumerate(places))
    chosen = {read.op: writer for read, writer, literal in runs.choices() if value(literal)}
    late = {observed.txns[node] for node in range(observed.size) if value(runs.late(node))}
    sources = {op: INITIAL if writer == INITIAL else observed.txns[writer] for op, writer in chosen.items()}
    gone: dict[int, int] = {}  # session -> its first late transaction; later ones without a node are late, too
    for t in late:
        gone[int(history.txn_session[t])] = min(t, gone.get(int(history.txn_session[t]), t))
    kept = {t: end for t, end in _prefix(observed, ends) if t < gone.get(int(history.txn_session[t]), t + 1)}
    reads = {o for t, end in kept.items() for o in range(int(history.txn_start[t]), end)}
    return Run(observed.boundary, ends, kept, {op: source for op, source in sources.items() if op in reads})


def _prefix(observed: Observed, ends: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    history = observed.history
    for t in observed.live:
        s, stop = int(history.txn_session[t]), int(history.txn_start[t + 1])
        start, end = int(history.txn_start[t]), ends[s]
        if end == NOBODY or end >= stop:
            yield t, stop
        elif end >= start:
            yield t, end + 1 if observed.boundary == "strict" else stop


def changes(observed: Observed, run: Run) -> tuple[ReadChange, ...]:
    """Return the reads with another writer than observed, in the order of the history."""
    found = []
    for read in observed.reads:
        source = run.sources.get(read.op)
        before = read.observed if read.observed in (None, INITIAL) else observed.txns[read.observed]
        if source is not None and source != before:
            found.append(ReadChange(observed.txns[read.node], read.op, read.key, before, source))
    return tuple(found)


def running_order(history: History, run: Run) -> list[int]:
    """Return the run's transactions, with writers before their readers and each session in order.

    Boundary transactions come as late as possible.
    """
    owner = {o: t for t, end in run.prefix.items() for o in range(int(history.txn_start[t]), end)}
    before: dict[int, set[int]] = {t: set() for t in run.prefix}
    for o, source in run.sources.items():
        if source != INITIAL:
            before[owner[o]].add(source)
    last: dict[int, int] = {}  # session -> its previous transaction
    for t in sorted(run.prefix):
        s = int(history.txn_session[t])
        if s in last:
            before[t].add(last[s])
        last[s] = t
    cut = {owner[o] for o in run.ends if o in owner}
    after: dict[int, list[int]] = {t: [] for t in before}
    for t, sources in before.items():
        for source in sources:
            after[source].append(t)
    ready = [(t in cut, t) for t in before if not before[t]]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, t = heappop(ready)
        order.append(t)
        for reader in after[t]:
            before[reader].remove(t)
            if not before[reader]:
                heappush(ready, (reader in cut, reader))
    return order


def history_of(
    observed: Observed, run: Run, levels: Mapping[int, str] | None = None, *, committed: bool = False
) -> History:
    """Return the predicted run as a history. ``levels`` are for transactions that do not declare one.

    ``committed`` adds the writes of boundary transactions after the boundary, as observed. A written value identifies
    its writer; a value that does not is replaced by the writer's id.
    """
    history = observed.history
    implicit = history.initial is not None or history.init_txn != NOBODY
    initial = history.initial_value if history.init_txn == NOBODY else None
    values = _Values(observed, initial)
    builder = HistoryBuilder(initial, implicit_initial=implicit)
    labels = [history.session_label[s] for s in range(history.sessions)]
    if len(set(map(str, labels))) < len(labels):
        labels = list(range(history.sessions))  # sessions with equal names must stay separate
    for t in sorted(run.prefix):
        level = None if levels is None else levels.get(t)
        if level is None and history.txn_level is not None and history.txn_level[t]:
            level = NAMES[int(history.txn_level[t]) - 1]
        ops = list(_operations(observed, run, t, values))
        if committed:
            ops += _later_writes(history, run, t, values)
        builder.add(labels[int(history.txn_session[t])], ops, level=level, id=history.txn_label[t])
    return builder.build(format="predicted", init_txn="none")


def _operations(observed: Observed, run: Run, t: int, values: "_Values") -> Iterator[tuple[str, Atom, Atom]]:
    history = observed.history
    unknown = history.txn_status[t] == UNKNOWN
    own: dict[int, Atom] = {}  # key -> value that it wrote last
    for o in range(int(history.txn_start[t]), run.prefix[t]):
        key, name = int(history.op_key[o]), history.key(int(history.op_key[o]))
        if history.op_kind[o] & 1:
            own[key] = values.written(o)
            yield "w", name, own[key]
        elif o in run.sources:
            source = run.sources[o]
            node = INITIAL if source == INITIAL else observed.node_of[source]
            yield "r", name, values.initial if node == INITIAL else values.written(observed.writes[node][key])
        elif not unknown:  # a read that cannot change: of an own write, or of the initial state
            yield "r", name, own.get(key, values.initial)


def _later_writes(history: History, run: Run, t: int, values: "_Values") -> Iterator[tuple[str, Atom, Atom]]:
    for o in range(run.prefix[t], int(history.txn_start[t + 1])):
        if history.op_kind[o] & 1:
            yield "w", history.key(int(history.op_key[o])), values.written(o)


class _Values:
    """Unique values for versions: the observed value, or a made-up one if it does not identify its writer."""

    def __init__(self, observed: Observed, initial: Atom) -> None:
        self._history, self.initial = observed.history, initial
        history = observed.history
        writers: dict[tuple[int, Atom], int] = {}
        self._owner: dict[int, int] = {}
        self._ambiguous: set[int] = set()
        self._taken: set[Atom] = {initial}
        for t in observed.live:
            for o in range(int(history.txn_start[t]), int(history.txn_start[t + 1])):
                if history.op_kind[o] & 1:
                    key = int(history.op_key[o])
                    value = history.value(int(history.op_version[o]))
                    self._owner[o] = t
                    self._taken.add(value)
                    other = writers.setdefault((key, value), o)
                    if other != o or value == initial:
                        self._ambiguous |= {o, other}

    def written(self, o: int) -> Atom:
        """Return the value that operation ``o`` wrote."""
        if o in self._ambiguous:
            name = f"{self._history.txn_label[self._owner[o]]}#{o}"
            while name in self._taken:  # made-up names differ from each other by the operation's number at their end
                name = f"#{name}"
            return name
        return self._history.value(int(self._history.op_version[o]))
