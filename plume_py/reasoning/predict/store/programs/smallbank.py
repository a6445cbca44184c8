"""A bank in the manner of SmallBank: savings and checking accounts, six kinds of transactions.

After the SmallBank of IsoPredict's evaluation; amounts are real, so that payments can lack cover.
A customer is found by name through a scan of the accounts table, as in a store that has no index: those reads never
change. Payments without cover are rolled back.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from plume_py.reasoning.predict.store.application import Plan, PlannedTransaction
from plume_py.reasoning.predict.store.store import Rollback, Transaction

CUSTOMERS = 42
HOT = 4  # customers that most transactions are about
HOT_SHARE = 0.9
SAVINGS, CHECKING = 60, 50


class SmallBank:
    """The six transactions."""

    name = "smallbank"

    def initial(self, key: str) -> Any:
        """Names of customers, and the same money for everyone."""
        table, _, number = key.partition(":")
        return {"account": f"customer {number}", "savings": SAVINGS, "checking": CHECKING}[table]

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        """Kinds and customers by lot."""
        rng = random.Random(f"smallbank {seed}")
        return [[_step(rng) for _ in range(transactions)] for _ in range(sessions)]

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """No money appears or disappears, but for the penalties of checks."""
        total = sum(final(f"{table}:{n}") for table in ("savings", "checking") for n in range(CUSTOMERS))
        expected = CUSTOMERS * (SAVINGS + CHECKING) + sum(step.parameters for step in committed)
        checks = sum(step.name == "WriteCheck" for step in committed)
        assert expected - checks <= total <= expected, "the accounts' total is not what was paid in and out"


def _step(rng: random.Random) -> PlannedTransaction:
    kinds = (amalgamate, balance, deposit_checking, send_payment, transact_savings, write_check)
    kind = rng.choices(kinds, (15, 30, 15, 15, 10, 15))[0]
    first, second = _customer(rng), _customer(rng)
    while second == first:
        second = _customer(rng)
    amount = rng.randint(5, 50)
    name = "".join(part.capitalize() for part in kind.__name__.split("_"))
    return PlannedTransaction(name, lambda txn: kind(txn, first, second, amount), _paid_in(name, amount))


def _paid_in(name: str, amount: int) -> int:
    """How much money comes in by a transaction, or goes out."""
    return {
        "DepositChecking": amount,
        "TransactSavings": amount if amount % 2 else -2 * amount,
        "WriteCheck": -amount,
    }.get(name, 0)


def _customer(rng: random.Random) -> int:
    return rng.randrange(HOT if rng.random() < HOT_SHARE else CUSTOMERS)


def _scan(txn: Transaction, customer: int) -> int:
    found = [n for n in range(CUSTOMERS) if txn.read(f"account:{n}") == f"customer {customer}"]
    return found[0]


def amalgamate(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Move all of one customer's money to another one's checking account."""
    one, two = _scan(txn, first), _scan(txn, second)
    total = txn.read(f"savings:{one}") + txn.read(f"checking:{one}")
    txn.write(f"savings:{one}", 0)
    txn.write(f"checking:{one}", 0)
    txn.write(f"checking:{two}", txn.read(f"checking:{two}") + total)


def balance(txn: Transaction, first: int, second: int, amount: int) -> None:
    """The sum of both accounts."""
    one = _scan(txn, first)
    txn.read(f"savings:{one}")
    txn.read(f"checking:{one}")


def deposit_checking(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Money in."""
    one = _scan(txn, first)
    txn.write(f"checking:{one}", txn.read(f"checking:{one}") + amount)


def send_payment(txn: Transaction, first: int, second: int, amount: int) -> None:
    """From one checking account to another, if there is enough."""
    one, two = _scan(txn, first), _scan(txn, second)
    funds = txn.read(f"checking:{one}")
    if funds < amount:
        raise Rollback("insufficient funds")
    txn.write(f"checking:{one}", funds - amount)
    txn.write(f"checking:{two}", txn.read(f"checking:{two}") + amount)


def transact_savings(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Money in, or out if there is enough."""
    one = _scan(txn, first)
    funds = txn.read(f"savings:{one}") + (amount if amount % 2 else -2 * amount)
    if funds < 0:
        raise Rollback("insufficient funds")
    txn.write(f"savings:{one}", funds)


def write_check(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Money out of checking; the sum of both accounts decides about a penalty."""
    one = _scan(txn, first)
    total = txn.read(f"savings:{one}") + txn.read(f"checking:{one}")
    penalty = 1 if total < amount else 0
    txn.write(f"checking:{one}", txn.read(f"checking:{one}") - amount - penalty)


PROGRAM = SmallBank()
