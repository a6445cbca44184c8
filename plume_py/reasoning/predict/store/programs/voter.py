"""Voter: a poll in which all calls come from the same phone number, which has one vote.

In a serial run, only the first transaction writes; all others find that the number has voted.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from plume_py.reasoning.predict.store.application import Plan, PlannedTransaction
from plume_py.reasoning.predict.store.store import Transaction

CONTESTANTS = 6
AREAS = 40
COLUMNS = ("contestant", "state", "phone", "created")


class Voter:
    """The program, with one kind of transaction."""

    name = "voter"

    def initial(self, key: str) -> Any:
        table, _, number = key.partition(":")
        return f"{table} {number}" if table in ("contestant", "area") else 0

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        rng = random.Random(f"voter {seed}")
        return [[_vote(rng) for _ in range(transactions)] for _ in range(sessions)]

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Assert that the number has at most one vote."""
        votes = sum(final(f"total:{contestant}") for contestant in range(CONTESTANTS))
        assert votes <= 1, "the number has more than one vote"


def _vote(rng: random.Random) -> PlannedTransaction:
    contestant, area = rng.randrange(CONTESTANTS), rng.randrange(AREAS)
    return PlannedTransaction("Vote", lambda txn: vote(txn, contestant, area))


def vote(txn: Transaction, contestant: int, area: int) -> None:
    """Scan contestants and areas, read the number's votes, and vote if there are none."""
    for n in range(CONTESTANTS):
        txn.read(f"contestant:{n}")
    for n in range(AREAS):
        txn.read(f"area:{n}")
    votes = txn.read("votes:number")
    for column in COLUMNS:
        txn.read(f"vote-{column}:1")
    if votes < 1:
        txn.write("votes:number", votes + 1)
        for column in COLUMNS:
            txn.write(f"vote-{column}:1", f"{column} {contestant} {area}")
        txn.write(f"total:{contestant}", 1)


PROGRAM = Voter()
