"""What the sessions do: plans of transactions, drawn from the seed alone. Which values are read is up to the database.

Values are not part of a plan: the runner takes the next one of the session, so that no value is ever written twice.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate

from plume_py.base.errors import IsocheckError
from plume_py.collect.benchmarks import MIXES, Mix, Plan

DISTRIBUTIONS = ("uniform", "zipfian", "hotspot")
HOT_OPERATIONS, HOT_KEYS = 0.8, 0.2

# In a list run every key gets about three times as many appends as there are transactions from one rotation to the
# next; without rotation lists would grow for ever, and reading them cost ever more.
ROTATE_LISTS = 20


@dataclass(frozen=True)
class Shape:
    """The options of a run; ``lists`` follows from the workload."""

    workload: str = "register"
    sessions: int = 8
    transactions: int = 200  # per session
    operations: tuple[int, int] = (2, 6)  # from … to, per transaction
    read_share: float = 0.5
    read_first: float = 0.5  # share of the writes that read their key before
    read_only: float = 0.1  # share of transactions
    write_only: float = 0.0
    keys: int = 10
    distribution: str = "uniform"
    rotate: int | None = None  # a key is retired, and a new one comes, every so many transactions; 0: never
    pause: float = 0.0  # milliseconds between operations, on average
    think: float = 0.0  # milliseconds between the transactions of a session, on average
    rate: float | None = None  # transactions that are due per second, of all sessions; else one follows the other
    arrivals: str = "poisson"  # when they are due
    seed: int = 0

    @property
    def lists(self) -> bool:
        """Are values lists that are appended to?"""
        return self.workload == "append"

    @property
    def rotation(self) -> int:
        """``rotate``, or what is usual for the workload."""
        if self.rotate is not None:
            return self.rotate
        return ROTATE_LISTS if self.lists else 0

    def described(self) -> dict[str, object]:
        """For the header of the history."""
        unused = {*(() if self.think else ("think",)), *(() if self.rate else ("rate", "arrivals"))}
        return {name: value for name, value in asdict(self).items() if name not in unused} | {"rotate": self.rotation}


class Workload:
    """Keys, and for each session its plans."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._mix: Mix | None = None
        if shape.workload in MIXES:
            self._mix = MIXES[shape.workload](max(1, shape.keys))
        elif shape.workload not in ("register", "append"):
            raise IsocheckError(f"unknown workload {shape.workload!r:.40}; use one of {' '.join(workload_names())}")
        if shape.read_only + shape.write_only > 1:
            raise IsocheckError("the shares of read-only and write-only transactions add up to more than 1")
        if shape.rate and shape.think:
            raise IsocheckError("with --rate transactions are due at times of their own: leave --think out")
        self._choose = _chooser(shape.distribution, shape.keys)

    @property
    def kinds(self) -> list[str]:
        """What the kinds of transactions are called, if it is a ready-made mix."""
        return self._mix.names if self._mix is not None else []

    @property
    def keys(self) -> list[str]:
        """Every key that any plan may touch."""
        if self._mix is not None:
            return self._mix.keys
        shape = self._shape
        last = self._first_key(shape.sessions * shape.transactions)
        return [f"x{i}" for i in range(last + shape.keys)]

    def plans(self, session: int) -> Iterator[Plan]:
        """The transactions of one session, without end."""
        rng = random.Random(f"{self._shape.seed}:{session}")
        number = session
        while True:
            if self._mix is not None:
                yield self._mix.plan(rng)
            else:
                yield self._draw(rng, min(number, self._shape.sessions * self._shape.transactions))
            number += self._shape.sessions

    def _first_key(self, number: int) -> int:
        """Keys below this one have been retired when transaction ``number`` begins."""
        return number // self._shape.rotation if self._shape.rotation else 0

    def _draw(self, rng: random.Random, number: int) -> Plan:
        shape, first = self._shape, self._first_key(number)
        kind = rng.random()
        reads = 1.0 if kind < shape.read_only else 0.0 if kind < shape.read_only + shape.write_only else None
        plan: Plan = []
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
    """Every workload there is."""
    return ["register", "append", *MIXES]


def _chooser(distribution: str, keys: int) -> Callable[[random.Random], int]:
    """Draws a key number below ``keys``; zipfian and hotspot prefer small ones."""
    if distribution == "zipfian":
        weights = list(accumulate(1 / (i + 1) for i in range(keys)))
        numbers = range(keys)
        return lambda rng: rng.choices(numbers, cum_weights=weights)[0]
    if distribution == "hotspot":
        hot = max(1, int(keys * HOT_KEYS))
        return lambda rng: rng.randrange(hot) if rng.random() < HOT_OPERATIONS else rng.randrange(keys)
    return lambda rng: rng.randrange(keys)
