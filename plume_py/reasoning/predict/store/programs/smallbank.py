"""SmallBank: savings and checking accounts, six kinds of transactions, as in IsoPredict's evaluation.

Amounts matter here, so payments can lack funds; these are rolled back. A customer is found by a scan of the account
names, as in a store without an index. These reads never change.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from plume_py.reasoning.predict.store.application import Plan, PlannedTransaction
from plume_py.reasoning.predict.store.store import Rollback, Transaction

CUSTOMERS = 42
HOT = 4  # customers of most transactions
HOT_SHARE = 0.9
SAVINGS, CHECKING = 60, 50


class SmallBank:
    """The program."""

    name = "smallbank"

    def initial(self, key: str) -> Any:
        table, _, number = key.partition(":")
        return {"account": f"customer {number}", "savings": SAVINGS, "checking": CHECKING}[table]

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        rng = random.Random(f"smallbank {seed}")
        return [[_step(rng) for _ in range(transactions)] for _ in range(sessions)]

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Assert that no money appears or disappears, except for penalties of checks."""
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
    """Return the money that a transaction adds to the bank, or removes from it."""
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
    """Move all money of one customer to the checking account of another."""
    one, two = _scan(txn, first), _scan(txn, second)
    total = txn.read(f"savings:{one}") + txn.read(f"checking:{one}")
    txn.write(f"savings:{one}", 0)
    txn.write(f"checking:{one}", 0)
    txn.write(f"checking:{two}", txn.read(f"checking:{two}") + total)


def balance(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Read both accounts."""
    one = _scan(txn, first)
    txn.read(f"savings:{one}")
    txn.read(f"checking:{one}")


def deposit_checking(txn: Transaction, first: int, second: int, amount: int) -> None:
    one = _scan(txn, first)
    txn.write(f"checking:{one}", txn.read(f"checking:{one}") + amount)


def send_payment(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Pay from one checking account to another, with sufficient funds only."""
    one, two = _scan(txn, first), _scan(txn, second)
    funds = txn.read(f"checking:{one}")
    if funds < amount:
        raise Rollback("insufficient funds")
    txn.write(f"checking:{one}", funds - amount)
    txn.write(f"checking:{two}", txn.read(f"checking:{two}") + amount)


def transact_savings(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Pay into the savings account, or out of it with sufficient funds only."""
    one = _scan(txn, first)
    funds = txn.read(f"savings:{one}") + (amount if amount % 2 else -2 * amount)
    if funds < 0:
        raise Rollback("insufficient funds")
    txn.write(f"savings:{one}", funds)


def write_check(txn: Transaction, first: int, second: int, amount: int) -> None:
    """Pay from the checking account, with a penalty if both accounts together lack the funds."""
    one = _scan(txn, first)
    total = txn.read(f"savings:{one}") + txn.read(f"checking:{one}")
    penalty = 1 if total < amount else 0
    txn.write(f"checking:{one}", txn.read(f"checking:{one}") - amount - penalty)


PROGRAM = SmallBank()
