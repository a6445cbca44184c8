"""Run a workload on a protocol in simulated time, and return its history, throughput and latency.

The command ``simulate`` (through module trial) calls it. Sessions are generators that yield delays; a priority queue of
their wake-up times is the event loop. ``CostModel`` defines the delays.
"""

import heapq
import random
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from math import inf
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import History
from plume_py.levels import NAMES, visibility_bits
from plume_py.levels.table import EVERYTHING, WRITERS
from plume_py.reasoning.allocate.protocols import (
    PROTOCOLS,
    WORK,
    AbortedError,
    Protocol,
    RunningTransaction,
    Steps,
    VersionStore,
)
from plume_py.reasoning.allocate.workload import Instance, Workload

SERVER, SPREAD, REPLICATED = "server", "spread", "replicated"
PLACES = (SERVER, SPREAD, REPLICATED)
NEVER, TOGETHER, EACH = "never", "together", "each"
VALIDATIONS = (NEVER, TOGETHER, EACH)

# Seconds until a blocked session tries again.
PATIENCE = 0.001

# Probability of a conditional access.
HAPPENS = 0.5

MOST_RETRIES = 1000


@dataclass(frozen=True)
class CostModel:
    """The cost model of a simulation. Times are simulated seconds.

    - ``data``: on one server outside all sessions (every operation is a round trip), spread over the nodes by key
      (operations on other nodes are round trips), or replicated at every node (no operation is).
    - ``begin``, ``commit``: round trips for the snapshot and for the commit.
    - ``validation``: free, one round trip to all nodes that hold a key to validate, or one to each in turn. At SI the
      written keys are validated, at SER also the read keys.
    - ``exclusive``: levels at which validation and commit are a critical section of the whole system.
    - ``waiting``: readers of a key wait while a writer of the key is about to commit.
    """

    low: float = 0.030  # shortest round trip
    high: float = 0.050  # longest round trip
    local: float = 0.0  # an operation without a round trip
    nodes: int = 1
    data: str = SERVER
    begin: int = 0
    commit: int = 1
    validation: str = NEVER
    exclusive: frozenset[str] = frozenset()
    waiting: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < inf:
            raise IsocheckError(
                f"a round trip takes {self.low:g} to {self.high:g} s: low must not exceed high, nor high all bounds"
            )
        for name, value, allowed in (("data", self.data, PLACES), ("validation", self.validation, VALIDATIONS)):
            if value not in allowed:
                raise IsocheckError(f"{name}={value}: choose {', '.join(allowed)}")
        if self.nodes < 1 or self.begin < 0 or self.commit < 0 or not 0 <= self.local < inf:
            raise IsocheckError("there is one node at least, and no cost is negative")

    def node_of(self, key: str) -> int:
        """Return the node that holds a key; the same in every process."""
        return sum(map(ord, key)) % self.nodes

    def is_remote(self, session: int, key: str) -> bool:
        """Return whether an operation on the key needs a round trip."""
        if self.data == SPREAD:
            return self.node_of(key) != session % self.nodes
        return self.data == SERVER

    def validation_trips(self, session: int, level: str, read: Iterable[str], written: Iterable[str]) -> int:
        """Return the number of round trips for the validation of these keys."""
        if self.validation == NEVER:
            return 0
        keys = {
            *(written if visibility_bits(level) & WRITERS else ()),
            *(read if visibility_bits(level) & EVERYTHING else ()),
        }
        if self.data == SERVER:
            nodes = {0} if keys else set()
        elif self.data == SPREAD:
            nodes = {self.node_of(key) for key in keys} - {session % self.nodes}
        else:
            nodes = set(range(self.nodes)) - {session % self.nodes} if keys else set()
        return len(nodes) if self.validation == EACH else min(1, len(nodes))

    def __str__(self) -> str:
        """Return the values that differ from the default, in the form that ``parse_cost_model`` reads."""
        changed = [f.name for f in fields(self) if getattr(self, f.name) != getattr(DEFAULT_COST_MODEL, f.name)]
        return ",".join(f"{name}={_value_text(getattr(self, name))}" for name in changed)


# By default, every operation and the commit are a round trip to one server.
DEFAULT_COST_MODEL = CostModel()


def _value_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return "+".join(name for name in NAMES if name in value)
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def parse_cost_model(text: str) -> CostModel:
    """Return the cost model for text of the form NAME=VALUE,…, for example ``data=spread,nodes=5,exclusive=SI+SER``."""
    given: dict[str, Any] = {}
    for piece in filter(None, text.split(",")):
        name, equals, value = piece.partition("=")
        if not equals or name not in {f.name for f in fields(CostModel)}:
            known = ", ".join(f.name for f in fields(CostModel))
            raise IsocheckError(f"--costs: {piece!r} is not NAME=VALUE with one of {known}")
        try:
            given[name] = _value(name, value)
        except ValueError:
            raise IsocheckError(f"--costs: {name}={value} is no number") from None
    return replace(DEFAULT_COST_MODEL, **given)


def _value(name: str, value: str) -> Any:
    if name == "exclusive":
        unknown = [level for level in value.split("+") if level not in NAMES]
        if unknown:
            raise IsocheckError(f"--costs: exclusive={value}: {unknown[0]} is no level; join levels by +")
        return frozenset(value.split("+"))
    if name == "waiting":
        if value not in ("true", "false"):
            raise IsocheckError(f"--costs: waiting={value}: choose true, false")
        return value == "true"
    if name in ("nodes", "begin", "commit"):
        return int(value)
    return float(value) if name in ("low", "high", "local") else value


@dataclass(frozen=True)
class SimulatedRun:
    """The result of a simulation, in simulated seconds."""

    history: History
    committed: int
    aborted: int
    seconds: float
    latency: float  # mean time from the begin of the first attempt to the commit

    @property
    def throughput(self) -> float:
        """Committed transactions per second."""
        return self.committed / self.seconds if self.seconds else 0.0


@dataclass
class Simulation:
    """Sessions that run instances one after the other on a protocol."""

    protocol: str
    levels: Sequence[str]
    workload: Workload
    seed: int = 0
    bug: str = ""
    costs: CostModel = DEFAULT_COST_MODEL
    now: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = PROTOCOLS[self.protocol]
        unsupported = sorted(set(self.levels) - set(kind.levels))
        if unsupported:
            raise IsocheckError(f"{self.protocol} has no {unsupported[0]}; it runs {', '.join(kind.levels)}")
        if self.bug and self.bug not in kind.bugs:
            raise IsocheckError(f"{self.protocol} has no bug {self.bug!r}; choose {', '.join(kind.bugs)}")
        if self.costs.waiting and kind.locks:
            raise IsocheckError(
                f"{self.protocol} has locks that readers wait for; waiting=true is for protocols without"
            )
        self.random = random.Random(self.seed)
        self.store = VersionStore()
        self.rules: Protocol = kind(self.store, self.bug)
        self.builder = HistoryBuilder(initial=0)
        self.values, self.ages = count(1), count()
        self.aborted = 0
        self.committing = Counter[str]()  # key -> transactions that are about to commit a write of it
        self.section: RunningTransaction | None = None  # the transaction in the critical section

    def run(self) -> SimulatedRun:
        """Run all sessions to their end."""
        queue: list[tuple[float, int, Iterator[float]]] = []
        order = count()
        for s, members in enumerate(self.workload.sessions()):
            heapq.heappush(queue, (0.0, next(order), self._session(s, members)))
        while queue:
            self.now, _, session = heapq.heappop(queue)
            delay = next(session, None)
            if delay is not None:
                heapq.heappush(queue, (self.now + delay, next(order), session))
        mean = sum(self.latencies) / len(self.latencies) if self.latencies else 0.0
        history = self.builder.build(init_txn="none")
        return SimulatedRun(history, len(self.latencies), self.aborted, self.now, mean)

    def _session(self, session: int, members: list[int]) -> Iterator[float]:
        for i in members:
            begun, age = self.now, next(self.ages)
            for attempt in count(1):
                txn = RunningTransaction(age, self.levels[i])
                done = yield from self._attempt(session, txn, self.workload.instances[i], attempt)
                if done:
                    break
                if attempt == MOST_RETRIES:
                    raise IsocheckError(f"{self.workload.instances[i].name} was aborted {attempt} times in a row")
                yield self._trips(1)
            self.latencies.append(self.now - begun)

    def _attempt(
        self, session: int, txn: RunningTransaction, instance: Instance, attempt: int
    ) -> Generator[float, None, bool]:
        """Run one attempt of a transaction; return whether it committed."""
        ops: list[tuple[str, str, int]] = []
        yield self._trips(self.costs.begin)
        self.rules.begin(txn)
        status = "committed"
        try:
            yield from self._work(session, txn, instance, ops)
            yield from self._commit(session, txn)
        except AbortedError:
            status = "aborted"
            self.store.release(txn)
            self.aborted += 1
        name = instance.name if attempt == 1 else f"{instance.name}, attempt {attempt}"
        self.builder.add(session, ops, status=status, level=txn.level, id=name)
        return status == "committed"

    def _work(
        self, session: int, txn: RunningTransaction, instance: Instance, ops: list[tuple[str, str, int]]
    ) -> Iterator[float]:
        for access in instance.accesses:
            if access.conditional and self.random.random() >= HAPPENS:
                continue
            key, remote = access.cell, self.costs.is_remote(session, access.cell)
            if access.reads:
                while self.costs.waiting and self.committing[key]:
                    yield PATIENCE
                yield from self._timed(self.rules.read(txn, key), remote)
                ops.append(("r", key, txn.buffer.get(key, txn.reads.get(key, 0))))
            if access.writes:
                value = next(self.values)
                yield from self._timed(self.rules.write(txn, key, value), remote)
                ops.append(("w", key, value))

    def _commit(self, session: int, txn: RunningTransaction) -> Iterator[float]:
        """Wait for the critical section if the level needs it, then validate and commit."""
        trips = self.costs.validation_trips(session, txn.level, txn.reads, txn.buffer)
        while txn.level in self.costs.exclusive and self.section is not None:
            yield PATIENCE
        if txn.level in self.costs.exclusive:
            self.section = txn
        self.committing.update(txn.buffer.keys())
        try:
            if trips:
                yield self._trips(trips)
            yield from self._timed(self.rules.commit(txn), self.costs.commit)
        finally:
            self.committing.subtract(txn.buffer.keys())
            if self.section is txn:
                self.section = None

    def _timed(self, steps: Steps, trips: int) -> Iterator[float]:
        for step in steps:
            yield PATIENCE if step != WORK else self._trips(trips) if trips else self.costs.local

    def _trips(self, number: int) -> float:
        return sum(self.random.uniform(self.costs.low, self.costs.high) for _ in range(number))
