"""Two concurrency-control protocols in which each transaction has its own level, as MixIso describes them.

They run in the simulated time of module simulate. An operation is a generator: it yields WORK for one unit of work, and
WAIT if it must be resumed later because a lock is held. ``bug`` introduces one named defect, to test that the checker
detects it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from plume_py.levels import levels_that_see, visibility_bits
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

WORK, WAIT = True, False

Steps = Iterator[bool]


class AbortedError(Exception):
    """The protocol aborts the transaction. The caller may retry it."""


@dataclass
class RunningTransaction:
    """The state of a running transaction."""

    number: int  # its age; retries keep it
    level: str
    start: int = 0  # time of the snapshot, in commits
    reads: dict[str, int] = field(default_factory=dict)
    buffer: dict[str, int] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    owned: set[str] = field(default_factory=set)
    commit: int = 0

    @property
    def sees_everything(self) -> bool:
        """Whether its level requires that it sees every transaction that commits before it."""
        return bool(visibility_bits(self.level) & EVERYTHING)


class VersionStore:
    """Committed versions by key, read and write locks, and a clock that counts commits."""

    def __init__(self) -> None:
        self.clock = 0
        self.versions: dict[str, list[tuple[int, int]]] = {}
        self.readers: dict[str, dict[int, RunningTransaction]] = {}
        self.owner: dict[str, RunningTransaction] = {}

    def latest(self, key: str, upto: int) -> int:
        """Return the last value committed at or before time ``upto``, or the initial 0."""
        return next((value for time, value in reversed(self.versions.get(key, ())) if time <= upto), 0)

    def changed(self, key: str, since: int) -> bool:
        """Return whether a version of the key was committed after time ``since``."""
        return any(time > since for time, _ in self.versions.get(key, ()))

    def tick(self) -> int:
        """Advance the clock and return its time."""
        self.clock += 1
        return self.clock

    def install(self, txn: RunningTransaction) -> None:
        """Make the transaction's writes visible from its commit time on."""
        for key, value in txn.buffer.items():
            versions = self.versions.setdefault(key, [])
            versions.append((txn.commit, value))
            versions.sort()

    # Locks follow wait-die: an older transaction waits, a younger one aborts, so no deadlock occurs.

    def lock_shared(self, txn: RunningTransaction, key: str) -> Steps:
        """Acquire a read lock."""
        while self.owner.get(key, txn) is not txn:
            yield from _wait_or_die(txn, [self.owner[key]])
        self.readers.setdefault(key, {})[txn.number] = txn
        txn.shared.add(key)

    def lock_exclusive(self, txn: RunningTransaction, key: str) -> Steps:
        """Acquire a write lock."""
        while True:
            holders = [t for t in self.readers.get(key, {}).values() if t is not txn]
            if self.owner.get(key, txn) is not txn:
                holders.append(self.owner[key])
            if not holders:
                break
            yield from _wait_or_die(txn, holders)
        self.owner[key] = txn
        txn.owned.add(key)

    def release(self, txn: RunningTransaction) -> None:
        """Release all locks of the transaction."""
        for key in txn.shared:
            self.readers[key].pop(txn.number, None)
        for key in txn.owned:
            self.owner.pop(key, None)
        txn.shared, txn.owned = set(), set()


def _wait_or_die(txn: RunningTransaction, holders: list[RunningTransaction]) -> Steps:
    if any(holder.number < txn.number for holder in holders):
        raise AbortedError
    yield WAIT


class _SnapshotProtocol:
    """The common part of both protocols: each transaction takes a snapshot when it begins."""

    def __init__(self, store: VersionStore, bug: str = "") -> None:
        self.store, self.bug = store, bug

    def begin(self, txn: RunningTransaction) -> None:
        txn.start = self.store.clock


class SiS2pl(_SnapshotProtocol):
    """SI by snapshots with first-committer-wins, SER by strict two-phase locking with deferred updates."""

    name, levels = "si-s2pl", levels_that_see(PREFIX | WRITERS)
    bugs = ("unlock-early", "no-conflict-check", "early-timestamp")
    locks = True

    def read(self, txn: RunningTransaction, key: str) -> Steps:
        """Read from the transaction's own buffer, else from its snapshot; at SER the latest version, under a lock."""
        if txn.sees_everything:
            yield from self.store.lock_shared(txn, key)
        yield WORK
        if key not in txn.buffer:
            upto = self.store.clock if txn.sees_everything else txn.start
            txn.reads[key] = self.store.latest(key, upto)

    def write(self, txn: RunningTransaction, key: str, value: int) -> Steps:
        if txn.sees_everything:
            yield from self.store.lock_exclusive(txn, key)
        yield WORK
        txn.buffer[key] = value

    def commit(self, txn: RunningTransaction) -> Steps:
        """Lock the written keys, check for conflicts, install the writes, and unlock."""
        if self.bug == "early-timestamp":  # MixIso's example E.1
            txn.commit = self.store.tick()
        for key in sorted(txn.buffer):
            yield from self.store.lock_exclusive(txn, key)
        if self.bug == "unlock-early":
            self._validate(txn)
            txn.commit = self.store.tick()
            self.store.release(txn)
            yield WORK
        else:
            yield WORK
            self._validate(txn)
            txn.commit = txn.commit or self.store.tick()
        self.store.install(txn)
        self.store.release(txn)

    def _validate(self, txn: RunningTransaction) -> None:
        conflict = any(self.store.changed(key, txn.start) for key in txn.buffer)
        if conflict and not txn.sees_everything and self.bug != "no-conflict-check":
            raise AbortedError


class PcSiSer(_SnapshotProtocol):
    """PC, SI and SER by snapshots. At commit, SI fails if a written key has changed, SER also if a read key has."""

    name, levels = "pc-si-ser", levels_that_see(PREFIX)
    bugs = ("no-conflict-check", "no-read-check", "late-install")
    locks = False

    def read(self, txn: RunningTransaction, key: str) -> Steps:
        yield WORK
        if key not in txn.buffer:
            txn.reads[key] = self.store.latest(key, txn.start)

    def write(self, txn: RunningTransaction, key: str, value: int) -> Steps:
        yield WORK
        txn.buffer[key] = value

    def commit(self, txn: RunningTransaction) -> Steps:
        """Validate, and install the writes at once."""
        yield WORK
        self._validate(txn)
        txn.commit = self.store.tick()
        if self.bug == "late-install":
            yield WORK
        self.store.install(txn)

    def _validate(self, txn: RunningTransaction) -> None:
        if visibility_bits(txn.level) & WRITERS and self.bug != "no-conflict-check":
            self._reject_changed(txn, txn.buffer)
        if txn.sees_everything and self.bug != "no-read-check":
            self._reject_changed(txn, txn.reads)

    def _reject_changed(self, txn: RunningTransaction, keys: dict[str, int]) -> None:
        if any(self.store.changed(key, txn.start) for key in keys):
            raise AbortedError


Protocol = SiS2pl | PcSiSer
PROTOCOLS: dict[str, type[SiS2pl] | type[PcSiSer]] = {"si-s2pl": SiS2pl, "pc-si-ser": PcSiSer}
