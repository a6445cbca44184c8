"""TPC-C: orders, payments and deliveries, on one warehouse with a few districts, as in IsoPredict's evaluation.

It has fewer customers and items; transactions have about as many reads and writes.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from plume_py.reasoning.predict.store.application import Plan, PlannedTransaction
from plume_py.reasoning.predict.store.store import Rollback, Transaction

DISTRICTS, CUSTOMERS, ITEMS = 2, 4, 100
ITEM_COLUMNS, STOCK_COLUMNS = 22, 24  # columns that no transaction writes
LINE_COLUMNS = ("item", "quantity", "amount", "supplier", "district", "order", "number", "date", "info")
FIRST_ORDER = 1


class Tpcc:
    """The program: five transactions in roughly TPC-C's shares."""

    name = "tpcc"

    def initial(self, key: str) -> Any:
        table = key.partition(":")[0]
        return {"next-order": FIRST_ORDER, "next-delivery": FIRST_ORDER, "stock": 50, "balance": -10}.get(table, 0)

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        rng = random.Random(f"tpcc {seed}")
        return [[_step(rng) for _ in range(transactions)] for _ in range(sessions)]

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Assert TPC-C's first consistency conditions: payments add up, and order numbers are unique."""
        paid = sum(final(f"district-ytd:{district}") for district in range(DISTRICTS))
        assert final("warehouse-ytd:0") == paid, "the districts' payments are not the warehouse's"
        numbers = sum(final(f"next-order:{district}") - FIRST_ORDER for district in range(DISTRICTS))
        orders = sum(step.name == "NewOrder" for step in committed)
        assert numbers == orders, "two orders have the same number"


def _step(rng: random.Random) -> PlannedTransaction:
    kinds = (new_order, payment, order_status, delivery, stock_level)
    kind = rng.choices(kinds, (46, 42, 4, 4, 4))[0]
    items = tuple(rng.sample(range(ITEMS), rng.randint(5, 15)))
    wrong = rng.random() < 0.01  # the order has an unknown item and is rolled back
    district, customer, amount = rng.randrange(DISTRICTS), rng.randrange(CUSTOMERS), rng.randint(1, 500)
    name = "".join(part.capitalize() for part in kind.__name__.split("_"))
    return PlannedTransaction(name, lambda txn: kind(txn, district, customer, (amount, wrong, items)))


Details = tuple[int, bool, tuple[int, ...]]


def _row(txn: Transaction, table: str, number: object, columns: int) -> None:
    """Read columns of a row that no transaction writes."""
    for column in range(columns):
        txn.read(f"{table}-{column}:{number}")


def new_order(txn: Transaction, district: int, customer: int, details: Details) -> None:
    """Create an order: increment the district's counter, then update stock and add a line for each item."""
    _, wrong, items = details
    _row(txn, "warehouse", 0, 3)
    _row(txn, "customer", f"{district}.{customer}", 4)
    number = txn.read(f"next-order:{district}")
    txn.write(f"next-order:{district}", number + 1)
    order = f"{district}.{number}"
    for column in ("customer", "date", "lines"):
        txn.write(f"order-{column}:{order}", len(items) if column == "lines" else customer)
    txn.write(f"new-order:{order}", 1)
    for line, item in enumerate(items):
        _row(txn, "item", item, ITEM_COLUMNS)
        if wrong and line == len(items) - 1:
            raise Rollback("unknown item")
        quantity = txn.read(f"stock:{item}")
        txn.write(f"stock:{item}", quantity - 1 if quantity > 10 else quantity + 90)
        _row(txn, "stock-info", item, STOCK_COLUMNS)
        for column in ("ytd", "orders", "remote"):
            txn.write(f"stock-{column}:{item}", txn.read(f"stock-{column}:{item}") + 1)
        for column in LINE_COLUMNS:
            txn.write(f"line-{column}:{order}.{line}", item)


def payment(txn: Transaction, district: int, customer: int, details: Details) -> None:
    """Add a payment to the warehouse and the district, and subtract it from the customer's balance."""
    amount = details[0]
    _row(txn, "warehouse", 0, 6)
    _row(txn, "district", district, 6)
    txn.write("warehouse-ytd:0", txn.read("warehouse-ytd:0") + amount)
    txn.write(f"district-ytd:{district}", txn.read(f"district-ytd:{district}") + amount)
    _row(txn, "customer", f"{district}.{customer}", 12)
    txn.write(f"balance:{district}.{customer}", txn.read(f"balance:{district}.{customer}") - amount)
    payments = txn.read(f"payments:{district}.{customer}")
    txn.write(f"payments:{district}.{customer}", payments + 1)
    for column in ("amount", "date", "data"):
        txn.write(f"history-{column}:{district}.{customer}.{payments}", amount)


def order_status(txn: Transaction, district: int, customer: int, details: Details) -> None:
    """Read a customer's balance and last order."""
    _row(txn, "customer", f"{district}.{customer}", 4)
    txn.read(f"balance:{district}.{customer}")
    last = txn.read(f"next-order:{district}") - 1
    if last >= FIRST_ORDER:
        lines = txn.read(f"order-lines:{district}.{last}")
        for line in range(lines):
            txn.read(f"line-item:{district}.{last}.{line}")


def delivery(txn: Transaction, district: int, customer: int, details: Details) -> None:
    """Deliver the oldest undelivered order of each district."""
    for d in range(DISTRICTS):
        number = txn.read(f"next-delivery:{d}")
        if number >= txn.read(f"next-order:{d}"):
            continue
        order = f"{d}.{number}"
        txn.read(f"new-order:{order}")
        txn.write(f"new-order:{order}", 0)
        txn.write(f"next-delivery:{d}", number + 1)
        buyer = txn.read(f"order-customer:{order}")
        total = sum(txn.read(f"line-amount:{order}.{line}") for line in range(txn.read(f"order-lines:{order}")))
        txn.write(f"balance:{d}.{buyer}", txn.read(f"balance:{d}.{buyer}") + total)


def stock_level(txn: Transaction, district: int, customer: int, details: Details) -> None:
    """Read the stock of the items in recent orders."""
    following = txn.read(f"next-order:{district}")
    for number in range(max(FIRST_ORDER, following - 3), following):
        for line in range(txn.read(f"order-lines:{district}.{number}")):
            txn.read(f"stock:{txn.read(f'line-item:{district}.{number}.{line}')}")


PROGRAM = Tpcc()
