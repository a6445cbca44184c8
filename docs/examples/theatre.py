"""The seats of a theatre: whoever finds one free books it, and nobody may stand."""

import random

from plume_py.reasoning.predict.store import PlannedTransaction, Rollback

SEATS = 3


class Theatre:
    """Two kinds of transactions."""

    def initial(self, key):
        """The value of a key before all transactions: keys are texts, values whatever you like."""
        return SEATS if key == "free" else None

    def plan(self, seed, sessions, transactions):
        """The transactions of each session: the same for the same seed, and with parameters that are fixed."""
        rng = random.Random(seed)
        return [[step(rng, f"{s}.{n}") for n in range(transactions)] for s in range(sessions)]

    def check(self, final, committed):
        """What should be true in the end, whatever the order; only if you have something to say."""
        tickets = sum(transaction.name == "book" for transaction in committed)
        assert tickets + final("free") == SEATS, f"{tickets} tickets sold, and {final('free')} of {SEATS} seats free"


def step(rng, guest):
    """One transaction of the plan: its name, and what it does."""
    if rng.random() < 0.5:
        return PlannedTransaction("look", lambda txn: txn.read("free"))
    return PlannedTransaction("book", lambda txn: book(txn, guest))


def book(txn, guest):
    """What a transaction does depends on what it reads, and on nothing else."""
    free = txn.read("free")
    if free == 0:
        raise Rollback("sold out")
    txn.write("free", free - 1)
    txn.write(f"ticket of {guest}", free)
