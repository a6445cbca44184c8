"""Generate the transactions of a run: for each session a sequence of plans, drawn from the seed alone.

A plan lists reads and writes of keys, without values. ``client`` numbers the writes, so that no value is written twice,
and the database decides which values the reads return.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate

from plume_py.base.errors import IsocheckError
from plume_py.collect.benchmarks import BENCHMARKS, Benchmark, TransactionPlan

DISTRIBUTIONS = ("uniform", "zipfian", "hotspot")
# Share of the operations, and of the keys that they access, in the distribution ``hotspot``.
HOT_OPERATIONS, HOT_KEYS = 0.8, 0.2

# In a list run every key gets about three times as many appends as there are transactions between two rotations.
# Without rotation lists would grow without bound, and reading them would take ever longer.
ROTATE_LISTS = 20


@dataclass(frozen=True)
class Shape:
    """The workload options of a run."""

    workload: str = "register"
    sessions: int = 8
    transactions: int = 200  # per session
    operations: tuple[int, int] = (2, 6)  # minimum and maximum per transaction
    read_share: float = 0.5
    read_first: float = 0.5  # share of the writes that are preceded by a read of their key
    read_only: float = 0.1  # share of transactions
    write_only: float = 0.0
    keys: int = 10
    distribution: str = "uniform"
    rotate: int | None = None  # transactions after which a new key replaces the oldest; 0: never; None: default
    pause: float = 0.0  # milliseconds between operations, on average
    think: float = 0.0  # milliseconds between the transactions of a session, on average
    rate: float | None = None  # transactions due per second, of all sessions; None: each follows the previous one
    arrivals: str = "poisson"  # distribution of the due times
    seed: int = 0

    @property
    def lists(self) -> bool:
        """Whether values are lists that transactions append to."""
        return self.workload == "append"

    @property
    def rotation(self) -> int:
        """The value of ``rotate``, or the default of the workload."""
        if self.rotate is not None:
            return self.rotate
        return ROTATE_LISTS if self.lists else 0

    def described(self) -> dict[str, object]:
        """Return the options for the header of the history."""
        unused = {*(() if self.think else ("think",)), *(() if self.rate else ("rate", "arrivals"))}
        return {name: value for name, value in asdict(self).items() if name not in unused} | {"rotate": self.rotation}


class Workload:
    """The keys of a run, and the plans of each session."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._benchmark: Benchmark | None = None
        if shape.workload in BENCHMARKS:
            self._benchmark = BENCHMARKS[shape.workload](max(1, shape.keys))
        elif shape.workload not in ("register", "append"):
            raise IsocheckError(f"unknown workload {shape.workload!r:.40}; use one of {' '.join(workload_names())}")
        if shape.read_only + shape.write_only > 1:
            raise IsocheckError("the shares of read-only and write-only transactions add up to more than 1")
        if shape.rate and shape.think:
            raise IsocheckError("with --rate transactions are due at times of their own: leave --think out")
        self._choose = _chooser(shape.distribution, shape.keys)

    @property
    def kinds(self) -> list[str]:
        """Names of the kinds of transactions of a benchmark; empty for ``register`` and ``append``."""
        return self._benchmark.names if self._benchmark is not None else []

    @property
    def keys(self) -> list[str]:
        """All keys that a plan may access."""
        if self._benchmark is not None:
            return self._benchmark.keys
        shape = self._shape
        last = self._first_key(shape.sessions * shape.transactions)
        return [f"x{i}" for i in range(last + shape.keys)]

    def plans(self, session: int) -> Iterator[TransactionPlan]:
        """Yield the plans of one session, without end."""
        rng = random.Random(f"{self._shape.seed}:{session}")
        number = session
        while True:
            if self._benchmark is not None:
                yield self._benchmark.plan(rng)
            else:
                yield self._draw(rng, min(number, self._shape.sessions * self._shape.transactions))
            number += self._shape.sessions

    def _first_key(self, number: int) -> int:
        """Return the first key number in use at transaction ``number``; smaller ones are retired."""
        return number // self._shape.rotation if self._shape.rotation else 0

    def _draw(self, rng: random.Random, number: int) -> TransactionPlan:
        shape, first = self._shape, self._first_key(number)
        kind = rng.random()
        reads = 1.0 if kind < shape.read_only else 0.0 if kind < shape.read_only + shape.write_only else None
        plan: TransactionPlan = []
        for _ in range(rng.randint(*shape.operations)):
            key = f"x{first + self._choose(rng)}"
            if rng.random() < (shape.read_share if reads is None else reads):
                plan.append(("r", key))
                continue
            if reads is None and rng.random() < shape.read_first:
                plan.append(("r", key))
            plan.append(("w", key))
        return plan


def workload_names() -> list[str]:
    return ["register", "append", *BENCHMARKS]


def _chooser(distribution: str, keys: int) -> Callable[[random.Random], int]:
    """Return a function that draws a key number below ``keys``; zipfian and hotspot prefer small numbers."""
    if distribution == "zipfian":
        weights = list(accumulate(1 / (i + 1) for i in range(keys)))
        numbers = range(keys)
        return lambda rng: rng.choices(numbers, cum_weights=weights)[0]
    if distribution == "hotspot":
        hot = max(1, int(keys * HOT_KEYS))
        return lambda rng: rng.randrange(hot) if rng.random() < HOT_OPERATIONS else rng.randrange(keys)
    return lambda rng: rng.randrange(keys)
