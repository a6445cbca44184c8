"""Wikipedia: nearly all transactions read a page, a few edit or watch one.

An edit is rolled back if the page has changed since the transaction read it. That never happens when a transaction sees
one state.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from plume_py.reasoning.predict.store.application import Plan, PlannedTransaction
from plume_py.reasoning.predict.store.store import Rollback, Transaction

PAGES, USERS = 2, 6
TEXT_BLOCKS = 36


class Wikipedia:
    """The program, with five kinds of transactions."""

    name = "wikipedia"

    def initial(self, key: str) -> Any:
        table = key.partition(":")[0]
        return {"page-latest": 1, "watched": False}.get(table, 0)

    def plan(self, seed: int, sessions: int, transactions: int) -> Plan:
        rng = random.Random(f"wikipedia {seed}")
        return [[_step(rng) for _ in range(transactions)] for _ in range(sessions)]

    def check(self, final: Callable[[str], Any], committed: Sequence[PlannedTransaction]) -> None:
        """Assert that every edit has its own revision."""
        revisions = sum(final(f"page-latest:{page}") - 1 for page in range(PAGES))
        edits = sum(step.name == "UpdatePage" for step in committed)
        assert revisions == edits, "two edits are one revision"


def _step(rng: random.Random) -> PlannedTransaction:
    kinds = (get_page_anonymous, get_page_authenticated, update_page, add_watch_list, remove_watch_list)
    kind = rng.choices(kinds, (50, 23, 13, 2, 12))[0]
    page, user = min(rng.randrange(PAGES), rng.randrange(PAGES)), rng.randrange(USERS)
    name = "".join(part.capitalize() for part in kind.__name__.split("_"))
    return PlannedTransaction(name, lambda txn: kind(txn, page, user))


def _read_page(txn: Transaction, page: int) -> int:
    """Read the page, its restrictions, its latest revision, and the revision's text; return the revision."""
    for n in range(PAGES):
        txn.read(f"page-title:{n}")
    for column in ("namespace", "restrictions", "counter", "random", "length"):
        txn.read(f"page-{column}:{page}")
    latest: int = txn.read(f"page-latest:{page}")
    for column in ("comment", "user", "time", "size"):
        txn.read(f"revision-{column}:{page}.{latest}")
    for block in range(TEXT_BLOCKS):
        txn.read(f"text-{block}:{page}.{latest}")
    return latest


def _read_user(txn: Transaction, user: int) -> None:
    for n in range(USERS):
        txn.read(f"user-name:{n}")
    for column in ("real-name", "password", "email", "options", "token", "registration", "groups"):
        txn.read(f"user-{column}:{user}")
    txn.read(f"user-touched:{user}")
    txn.read(f"user-edits:{user}")


def get_page_anonymous(txn: Transaction, page: int, user: int) -> None:
    """Read a page."""
    for n in range(50):
        txn.read(f"ipblocks:{n}")
    _read_page(txn, page)


def get_page_authenticated(txn: Transaction, page: int, user: int) -> None:
    """Read a page as a user."""
    _read_user(txn, user)
    _read_page(txn, page)


def update_page(txn: Transaction, page: int, user: int) -> None:
    """Add a revision, and notify the watchers of the page."""
    _read_user(txn, user)
    latest = _read_page(txn, page)
    for block in range(TEXT_BLOCKS):
        txn.write(f"text-{block}:{page}.{latest + 1}", f"text of {latest + 1}")
    for column in ("comment", "user", "time", "size"):
        txn.write(f"revision-{column}:{page}.{latest + 1}", user)
    if txn.read(f"page-latest:{page}") != latest:
        raise Rollback("edit conflict")
    txn.write(f"page-latest:{page}", latest + 1)
    txn.write(f"page-length:{page}", 100 + latest)
    for column in ("title", "user", "time", "size", "old-size", "kind"):
        txn.write(f"recent-{column}:{page}.{latest + 1}", user)
    for watcher in range(USERS):
        if txn.read(f"watched:{watcher}.{page}"):
            txn.write(f"notified:{watcher}.{page}", latest + 1)
    txn.write(f"user-edits:{user}", txn.read(f"user-edits:{user}") + 1)
    txn.write(f"user-touched:{user}", latest)


def _watch(txn: Transaction, page: int, user: int, watched: bool) -> None:
    _read_user(txn, user)
    if txn.read(f"watched:{user}.{page}") == watched:
        raise Rollback("nothing to do")
    txn.write(f"watched:{user}.{page}", watched)
    txn.write(f"user-touched:{user}", page)


def add_watch_list(txn: Transaction, page: int, user: int) -> None:
    """Watch a page."""
    _watch(txn, page, user, True)


def remove_watch_list(txn: Transaction, page: int, user: int) -> None:
    _watch(txn, page, user, False)


PROGRAM = Wikipedia()
