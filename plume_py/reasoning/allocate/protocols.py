"""Two concurrency-control protocols that let each transaction have its own level, as MixIso describes them.

They run in simulated time: an operation is a generator that yields WORK for a while of work, and WAIT to be asked again
when a lock may be free. ``bug`` switches one mistake on, to see that the checker finds it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from plume_py.levels import levels_that_see, visibility_bits
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

WORK, WAIT = True, False

Steps = Iterator[bool]


class AbortedError(Exception):
    """The protocol ends a transaction; it may be tried again."""


@dataclass
class Running:
    """A transaction at work."""

    number: int  # by age: retries keep it
    level: str
    start: int = 0  # the snapshot: what was committed up to here
    reads: dict[str, int] = field(default_factory=dict)
    buffer: dict[str, int] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    owned: set[str] = field(default_factory=set)
    commit: int = 0

    @property
    def sees_everything(self) -> bool:
        """That commits before it?"""
        return bool(visibility_bits(self.level) & EVERYTHING)


class VersionStore:
    """Versions by key, in the order in which they were committed, and a clock that counts commits."""

    def __init__(self) -> None:
        self.clock = 0
        self.versions: dict[str, list[tuple[int, int]]] = {}
        self.readers: dict[str, dict[int, Running]] = {}
        self.owner: dict[str, Running] = {}

    def latest(self, key: str, upto: int) -> int:
        """The value that was committed last, at or before ``upto``; initially 0."""
        return next((value for time, value in reversed(self.versions.get(key, ())) if time <= upto), 0)

    def changed(self, key: str, since: int) -> bool:
        """Was a version committed after ``since``?"""
        return any(time > since for time, _ in self.versions.get(key, ()))

    def tick(self) -> int:
        """The next moment."""
        self.clock += 1
        return self.clock

    def install(self, txn: Running) -> None:
        """Make its writes visible, at its commit time."""
        for key, value in txn.buffer.items():
            versions = self.versions.setdefault(key, [])
            versions.append((txn.commit, value))
            versions.sort()

    # -- locks: an older transaction waits, a younger one gives up, so nobody waits in a circle --

    def share(self, txn: Running, key: str) -> Steps:
        """A lock to read."""
        while self.owner.get(key, txn) is not txn:
            yield from _wait_or_die(txn, [self.owner[key]])
        self.readers.setdefault(key, {})[txn.number] = txn
        txn.shared.add(key)

    def own(self, txn: Running, key: str) -> Steps:
        """A lock to write."""
        while True:
            holders = [t for t in self.readers.get(key, {}).values() if t is not txn]
            if self.owner.get(key, txn) is not txn:
                holders.append(self.owner[key])
            if not holders:
                break
            yield from _wait_or_die(txn, holders)
        self.owner[key] = txn
        txn.owned.add(key)

    def release(self, txn: Running) -> None:
        """Give all locks back."""
        for key in txn.shared:
            self.readers[key].pop(txn.number, None)
        for key in txn.owned:
            self.owner.pop(key, None)
        txn.shared, txn.owned = set(), set()


def _wait_or_die(txn: Running, holders: list[Running]) -> Steps:
    if any(holder.number < txn.number for holder in holders):
        raise AbortedError
    yield WAIT


class SiS2pl:
    """SI by snapshots with first-committer-wins, SER by strict two-phase locking with deferred updates."""

    name, levels = "si-s2pl", levels_that_see(PREFIX | WRITERS)
    bugs = ("unlock-early", "no-conflict-check", "early-timestamp")
    locks = True

    def __init__(self, store: VersionStore, bug: str = "") -> None:
        self.store, self.bug = store, bug

    def begin(self, txn: Running) -> None:
        """Take the snapshot."""
        txn.start = self.store.clock

    def read(self, txn: Running, key: str) -> Steps:
        """From the own buffer, the snapshot, or under a lock the latest."""
        if txn.sees_everything:
            yield from self.store.share(txn, key)
        yield WORK
        if key not in txn.buffer:
            upto = self.store.clock if txn.sees_everything else txn.start
            txn.reads[key] = self.store.latest(key, upto)

    def write(self, txn: Running, key: str, value: int) -> Steps:
        """Into the buffer."""
        if txn.sees_everything:
            yield from self.store.own(txn, key)
        yield WORK
        txn.buffer[key] = value

    def commit(self, txn: Running) -> Steps:
        """Lock what is written, look for conflicts, install, unlock."""
        if self.bug == "early-timestamp":  # MixIso's example E.1
            txn.commit = self.store.tick()
        for key in sorted(txn.buffer):
            yield from self.store.own(txn, key)
        if self.bug == "unlock-early":
            self._judge(txn)
            txn.commit = self.store.tick()
            self.store.release(txn)
            yield WORK
        else:
            yield WORK
            self._judge(txn)
            txn.commit = txn.commit or self.store.tick()
        self.store.install(txn)
        self.store.release(txn)

    def _judge(self, txn: Running) -> None:
        conflict = any(self.store.changed(key, txn.start) for key in txn.buffer)
        if conflict and not txn.sees_everything and self.bug != "no-conflict-check":
            raise AbortedError


class PcSiSer:
    """All read a snapshot; at commit SI fails if what it writes has changed since, SER also if what it read has."""

    name, levels = "pc-si-ser", levels_that_see(PREFIX)
    bugs = ("no-conflict-check", "no-read-check", "late-install")
    locks = False

    def __init__(self, store: VersionStore, bug: str = "") -> None:
        self.store, self.bug = store, bug

    def begin(self, txn: Running) -> None:
        """Take the snapshot."""
        txn.start = self.store.clock

    def read(self, txn: Running, key: str) -> Steps:
        """From the own buffer or the snapshot."""
        yield WORK
        if key not in txn.buffer:
            txn.reads[key] = self.store.latest(key, txn.start)

    def write(self, txn: Running, key: str, value: int) -> Steps:
        """Into the buffer."""
        yield WORK
        txn.buffer[key] = value

    def commit(self, txn: Running) -> Steps:
        """Validate and install in one moment."""
        yield WORK
        self._judge(txn)
        txn.commit = self.store.tick()
        if self.bug == "late-install":
            yield WORK
        self.store.install(txn)

    def _judge(self, txn: Running) -> None:
        if visibility_bits(txn.level) & WRITERS and self.bug != "no-conflict-check":
            self._reject_changed(txn, txn.buffer)
        if txn.sees_everything and self.bug != "no-read-check":
            self._reject_changed(txn, txn.reads)

    def _reject_changed(self, txn: Running, keys: dict[str, int]) -> None:
        if any(self.store.changed(key, txn.start) for key in keys):
            raise AbortedError


Protocol = SiS2pl | PcSiSer
PROTOCOLS: dict[str, type[SiS2pl] | type[PcSiSer]] = {"si-s2pl": SiS2pl, "pc-si-ser": PcSiSer}
