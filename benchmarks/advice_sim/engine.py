"""What both engines have in common: transactions that run in steps, wait for each other, and end.

A transaction is a generator. It yields STEP where another one may be next, and a Wait where it has to wait.
"""

from dataclasses import dataclass, field
from typing import Any

from .programs import GaveUpError, Scan, Select, in_order, interpret

STEP = object()


class AbortError(Exception):
    """The engine rolls the transaction back: a serialization failure, a duplicate key, a deadlock."""


@dataclass
class Wait:
    """``blockers`` tells who is still in the way."""

    blockers: Any


@dataclass(eq=False)
class Txn:
    number: int
    session: int
    level: str
    body: tuple[Any, ...]
    args: dict[str, int]
    status: str = "new"
    snapshot: int | None = None
    ended: int = 0
    log: list[Any] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)
    writes: list[Any] = field(default_factory=list)
    running: Any = None
    wait: Wait | None = None

    @property
    def is_over(self):
        return self.status in ("committed", "aborted", "gave up")


class Engine:
    """Tables, and the transactions on them. ``fine``: others may come in between within statements that lock."""

    def __init__(self, app, state, fine=True):
        self.app, self.fine, self.time = app, fine, 1
        self.load(state)

    def start(self, txn):
        txn.status, txn.running = "running", self.steps(txn)

    def steps(self, txn):
        """The whole transaction."""
        program, answer = interpret(txn.body, dict(txn.args), self.app.missing), None
        try:
            while True:
                try:
                    stmt = program.send(answer)
                except StopIteration:
                    break
                answer = yield from self.execute(txn, stmt)
                if isinstance(stmt, Select | Scan):
                    txn.log.append(tuple(in_order(answer)))
                yield STEP
        except GaveUpError:
            self.abort(txn)
            txn.status = "gave up"
            return
        except AbortError:
            self.abort(txn)
            return
        self.time += 1
        txn.ended = self.time
        self.commit(txn)
        txn.status = "committed"

    def abort(self, txn):
        txn.status = "aborted"
        self.undo(txn)

    def between(self):
        """A place within a statement at which others may do something."""
        if self.fine:
            yield STEP


class Run:
    """Transactions on an engine, moved on one at a time."""

    def __init__(self, engine, txns):
        self.engine, self.txns = engine, txns

    def runnable(self):
        """Whoever can do something: the first of each session that is not over, unless it waits."""
        found = []
        for session in dict.fromkeys(t.session for t in self.txns):
            txn = next((t for t in self.txns if t.session == session and not t.is_over), None)
            if txn is not None and not self.blockers(txn):
                found.append(txn)
        return found

    def blockers(self, txn):
        if txn.wait is None:
            return set()
        return {other for other in txn.wait.blockers() if other is not txn and not other.is_over}

    def step(self, txn):
        """Move it on. Is it at the end of a statement, or over?"""
        if txn.status == "new":
            self.engine.start(txn)
        txn.wait = None
        try:
            told = next(txn.running)
        except StopIteration:
            return True
        if isinstance(told, Wait):
            txn.wait = told
            return False
        return True

    def deadlocked(self):
        """Those that wait for each other."""
        waiting = {t: self.blockers(t) for t in self.txns if t.wait is not None and not t.is_over}
        for txn in waiting:
            seen, todo = set(), [txn]
            while todo:
                for other in waiting.get(todo.pop(), ()):
                    if other is txn:
                        return [t for t in seen | {txn} if t in waiting]
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
        return []

    def kill(self, txn):
        txn.wait = None
        txn.running.close()
        self.engine.abort(txn)

    def drive(self, choose, after_commit=lambda: None):
        """To the end; ``choose`` picks among those that can go on, and among those that wait for each other."""
        while True:
            stuck = self.deadlocked()
            if stuck:
                self.kill(choose(sorted(stuck, key=lambda t: t.number)))
                continue
            ready = self.runnable()
            if not ready:
                return
            txn = choose(ready)
            self.step(txn)
            if txn.status == "committed":
                after_commit()

    def outcome(self):
        """What those that committed have read, and the end; None if the engine would not let it happen."""
        if not self.engine.accepts(self.txns):
            return None
        kept = [t for t in self.txns if t.status == "committed"]
        return kept, tuple(tuple(t.log) for t in kept)
