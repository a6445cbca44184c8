"""Benchmark workloads: transactions on a key-value table, modelled on well-known benchmarks.

A checker needs only the keys that a transaction reads and writes, not the values that it computes. So amounts and texts
are replaced by numbers that occur once.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import product

from plume_py.base.override import override

TransactionPlan = list[tuple[str, str]]


class BenchmarkPlan(TransactionPlan):
    """The plan of a benchmark transaction, with the name of its kind."""

    def __init__(self, plan: TransactionPlan, kind: str) -> None:
        super().__init__(plan)
        self.kind = kind


class Benchmark(ABC):
    """A benchmark with ``size`` accounts, warehouses or users."""

    keys: list[str]

    def __init__(self, size: int) -> None:
        self.size = size

    def plan(self, rng: random.Random) -> TransactionPlan:
        """Return one transaction, its kind drawn by weight."""
        kinds, weights = zip(*self.kinds(), strict=True)
        chosen: Callable[[random.Random], TransactionPlan] = rng.choices(kinds, weights)[0]
        return BenchmarkPlan(chosen(rng), _name(chosen))

    @property
    def names(self) -> list[str]:
        """Names of the kinds of transactions."""
        return [_name(kind) for kind, _ in self.kinds()]

    @abstractmethod
    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        """Return the kinds of transactions with their weights."""


def _name(kind: Callable[[random.Random], TransactionPlan]) -> str:
    return kind.__name__.strip("_").replace("_", "-")


def _update(key: str) -> TransactionPlan:
    return [("r", key), ("w", key)]


class SmallBank(Benchmark):
    """SmallBank: two accounts per customer, and six kinds of transactions. ``write_check`` allows write skew.

    After Alomari et al., with the payments of OLTP-Bench, but without the table of names and the hot customers.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.keys = [f"{kind}:{c}" for c in range(size) for kind in ("savings", "checking")]

    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        """Return the kinds with the benchmark's weights: payments a quarter, the others equal."""
        return [
            (self._balance, 15),
            (self._deposit, 15),
            (self._transact_savings, 15),
            (self._amalgamate, 15),
            (self._write_check, 15),
            (self._send_payment, 25),
        ]

    def _customer(self, rng: random.Random) -> int:
        return rng.randrange(self.size)

    def _balance(self, rng: random.Random) -> TransactionPlan:
        c = self._customer(rng)
        return [("r", f"savings:{c}"), ("r", f"checking:{c}")]

    def _deposit(self, rng: random.Random) -> TransactionPlan:
        return _update(f"checking:{self._customer(rng)}")

    def _transact_savings(self, rng: random.Random) -> TransactionPlan:
        return _update(f"savings:{self._customer(rng)}")

    def _amalgamate(self, rng: random.Random) -> TransactionPlan:
        a, b = self._customer(rng), self._customer(rng)
        return [*_update(f"savings:{a}"), *_update(f"checking:{a}"), *(_update(f"checking:{b}") if a != b else [])]

    def _write_check(self, rng: random.Random) -> TransactionPlan:
        c = self._customer(rng)
        return [("r", f"savings:{c}"), ("r", f"checking:{c}"), ("w", f"checking:{c}")]

    def _send_payment(self, rng: random.Random) -> TransactionPlan:
        a, b = self._customer(rng), self._customer(rng)
        return [*_update(f"checking:{a}"), *(_update(f"checking:{b}") if a != b else [])]


class Tpcc(Benchmark):
    """TPC-C: new orders, payments, deliveries, order status and stock level on ``size`` warehouses.

    The shares are the standard's. Tables have few rows, few orders are reused, and nothing is accessed by name.
    """

    DISTRICTS, CUSTOMERS, ITEMS, ORDERS = 3, 5, 20, 10

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.keys = [f"item:{i}" for i in range(self.ITEMS)]
        for w in range(size):
            self.keys += [f"warehouse:{w}", *(f"stock:{w}:{i}" for i in range(self.ITEMS))]
            for d in range(self.DISTRICTS):
                self.keys += [f"district:{w}:{d}", f"next-order:{w}:{d}", f"undelivered:{w}:{d}"]
                self.keys += [f"customer:{w}:{d}:{c}" for c in range(self.CUSTOMERS)]
                self.keys += [f"order:{w}:{d}:{o}" for o in range(self.ORDERS)]

    @override
    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        return [
            (self._new_order, 45),
            (self._payment, 43),
            (self._order_status, 4),
            (self._delivery, 4),
            (self._stock_level, 4),
        ]

    def _district(self, rng: random.Random) -> str:
        return f"{rng.randrange(self.size)}:{rng.randrange(self.DISTRICTS)}"

    def _items(self, rng: random.Random, count: int) -> list[int]:
        return sorted(rng.sample(range(self.ITEMS), count))

    def _new_order(self, rng: random.Random) -> TransactionPlan:
        d = self._district(rng)
        w = d.split(":")[0]
        plan = [("r", f"warehouse:{w}"), ("r", f"district:{d}"), ("r", f"customer:{d}:{rng.randrange(self.CUSTOMERS)}")]
        plan += _update(f"next-order:{d}")
        for i in self._items(rng, rng.randint(2, 5)):
            plan += [("r", f"item:{i}"), *_update(f"stock:{w}:{i}")]
        return [*plan, ("w", f"order:{d}:{rng.randrange(self.ORDERS)}"), ("w", f"undelivered:{d}")]

    def _payment(self, rng: random.Random) -> TransactionPlan:
        d = self._district(rng)
        customer = f"customer:{d}:{rng.randrange(self.CUSTOMERS)}"
        return [*_update(f"warehouse:{d.split(':')[0]}"), *_update(f"district:{d}"), *_update(customer)]

    def _order_status(self, rng: random.Random) -> TransactionPlan:
        d = self._district(rng)
        return [
            ("r", f"customer:{d}:{rng.randrange(self.CUSTOMERS)}"),
            ("r", f"order:{d}:{rng.randrange(self.ORDERS)}"),
        ]

    def _delivery(self, rng: random.Random) -> TransactionPlan:
        w = rng.randrange(self.size)
        plan: TransactionPlan = []
        for d in range(self.DISTRICTS):
            plan += _update(f"undelivered:{w}:{d}")
            plan += _update(f"order:{w}:{d}:{rng.randrange(self.ORDERS)}")
            plan += _update(f"customer:{w}:{d}:{rng.randrange(self.CUSTOMERS)}")
        return plan

    def _stock_level(self, rng: random.Random) -> TransactionPlan:
        d = self._district(rng)
        stock = [("r", f"stock:{d.split(':')[0]}:{i}") for i in self._items(rng, 6)]
        return [("r", f"next-order:{d}"), *stock]


class Twitter(Benchmark):
    """Twitter: tweets, timelines and follows of ``size`` users."""

    SLOTS = 3

    def __init__(self, size: int) -> None:
        super().__init__(size)
        slots = range(self.SLOTS)
        self.keys = [f"{kind}:{u}" for u in range(size) for kind in ("last", "following", "followers")]
        self.keys += [f"tweet:{u}:{slot}" for u, slot in product(range(size), slots)]

    @override
    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        return [(self._tweet, 25), (self._timeline, 50), (self._follow, 15), (self._profile, 10)]

    def _user(self, rng: random.Random) -> int:
        return rng.randrange(self.size)

    def _tweet(self, rng: random.Random) -> TransactionPlan:
        u = self._user(rng)
        return [("w", f"tweet:{u}:{rng.randrange(self.SLOTS)}"), *_update(f"last:{u}")]

    def _timeline(self, rng: random.Random) -> TransactionPlan:
        plan = [("r", f"following:{self._user(rng)}")]
        for u in rng.sample(range(self.size), min(self.size, 3)):
            plan += [("r", f"last:{u}"), ("r", f"tweet:{u}:{rng.randrange(self.SLOTS)}")]
        return plan

    def _follow(self, rng: random.Random) -> TransactionPlan:
        return [*_update(f"following:{self._user(rng)}"), *_update(f"followers:{self._user(rng)}")]

    def _profile(self, rng: random.Random) -> TransactionPlan:
        u = self._user(rng)
        return [("r", f"{kind}:{u}") for kind in ("last", "following", "followers")]


class Rubis(Benchmark):
    """RUBiS: an auction site with ``size`` users and twice as many items."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.items = 2 * size
        self.keys = [f"{kind}:{u}" for u in range(size) for kind in ("user", "rating", "comments")]
        self.keys += [f"{kind}:{i}" for i in range(self.items) for kind in ("item", "bids", "highest", "quantity")]

    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        """Return the kinds with their weights: half of the transactions browse."""
        return [
            (self._browse, 30),
            (self._view, 20),
            (self._bid, 25),
            (self._buy_now, 10),
            (self._comment, 10),
            (self._sell, 5),
        ]

    def _item(self, rng: random.Random) -> int:
        return rng.randrange(self.items)

    def _browse(self, rng: random.Random) -> TransactionPlan:
        items = rng.sample(range(self.items), min(self.items, 4))
        return [("r", f"{kind}:{i}") for i in items for kind in ("item", "highest")]

    def _view(self, rng: random.Random) -> TransactionPlan:
        u = rng.randrange(self.size)
        return [("r", f"user:{u}"), ("r", f"rating:{u}"), ("r", f"comments:{u}")]

    def _bid(self, rng: random.Random) -> TransactionPlan:
        i = self._item(rng)
        return [
            ("r", f"user:{rng.randrange(self.size)}"),
            ("r", f"item:{i}"),
            *_update(f"highest:{i}"),
            *_update(f"bids:{i}"),
        ]

    def _buy_now(self, rng: random.Random) -> TransactionPlan:
        i = self._item(rng)
        return [("r", f"item:{i}"), *_update(f"quantity:{i}")]

    def _comment(self, rng: random.Random) -> TransactionPlan:
        u = rng.randrange(self.size)
        return [("r", f"user:{u}"), *_update(f"comments:{u}"), *_update(f"rating:{u}")]

    def _sell(self, rng: random.Random) -> TransactionPlan:
        i = self._item(rng)
        return [
            ("r", f"user:{rng.randrange(self.size)}"),
            ("w", f"item:{i}"),
            ("w", f"quantity:{i}"),
            ("w", f"highest:{i}"),
        ]


class WriteSkew(Benchmark):
    """Pairs of keys: a transaction reads both and writes one. Snapshot isolation allows write skew here."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.keys = [f"{side}{i}" for i in range(size) for side in "ab"]

    def kinds(self) -> list[tuple[Callable[[random.Random], TransactionPlan], float]]:
        """Return the kinds with their weights: one transaction in ten only reads."""
        return [(self._skew, 9), (self._look, 1)]

    def _skew(self, rng: random.Random) -> TransactionPlan:
        i = rng.randrange(self.size)
        return [("r", f"a{i}"), ("r", f"b{i}"), ("w", f"{rng.choice('ab')}{i}")]

    def _look(self, rng: random.Random) -> TransactionPlan:
        i = rng.randrange(self.size)
        return [("r", f"a{i}"), ("r", f"b{i}")]


BENCHMARKS: dict[str, Callable[[int], Benchmark]] = {
    "smallbank": SmallBank,
    "tpcc": Tpcc,
    "twitter": Twitter,
    "rubis": Rubis,
    "write-skew": WriteSkew,
}
