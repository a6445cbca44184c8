"""An in-memory store with a bug that tests whether isocheck catches it: ``broken:?bug=stale-reads``.

Without a bug the store is serializable. A transaction reads from the snapshot at its begin, and commits only if nothing
that it read or wrote has changed since. Each bug takes away one piece:

==================  ===================================================================  =========  ========
bug                 effect                                                               satisfied  violated
==================  ===================================================================  =========  ========
stale-snapshot      a snapshot may be old, but not older than what its session read      SER        SSER
write-skew          commit requires only that written keys are unchanged                 SI         SER
lost-update         commit checks nothing                                                PC         PSI, SI
lost-causality      some of the newest commits are hidden, but not what depends on them  RA         TCC
lost-session-order  a snapshot may lack earlier commits of the same session              RC, CI     RA
fractured-commits   a commit becomes visible key by key                                  -          RC
stale-reads         single reads return an older version                                 -          RC
dirty-reads         writes are visible before they commit, and some then abort           -          RC
==================  ===================================================================  =========  ========

"satisfied" lists the strongest levels that the store still provides, "violated" the weakest that it does not.

``&chance=0.01`` sets the probability of lost-causality, stale-reads and dirty-reads.
"""

import random
import threading
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import AbortedError, Adapter, Connection, Setup, Value, promises
from plume_py.levels.databases import BROKEN

BUGS = (
    "none",
    "stale-snapshot",
    "write-skew",
    "lost-update",
    "lost-causality",
    "lost-session-order",
    "fractured-commits",
    "stale-reads",
    "dirty-reads",
)

# Default probability of a bug, number of versions that it reaches back, and seconds that a commit stays half visible.
CHANCE = 0.3
VERSIONS_BACK = 6
HALF_VISIBLE = 0.002

# A version: the number of its commit, the client that committed, and the value.
Version = tuple[int, int, Value]


class BrokenAdapter(Adapter):
    """The store: all versions of every key, under one lock."""

    name = "broken store"
    isolations = promises(BROKEN)

    def __init__(self, setup: Setup) -> None:
        """Accept an address such as ``broken:?bug=NAME&seed=N&chance=P``."""
        super().__init__(setup)
        query = parse_qs(urlsplit(setup.url).query)
        self.bug = query.get("bug", ["none"])[0]
        if self.bug not in BUGS:
            raise IsocheckError(f"unknown bug {self.bug!r:.40}; use one of {' '.join(BUGS)}")
        self._seed = query.get("seed", ["0"])[0]
        self.chance = _chance(query.get("chance", [str(CHANCE)])[0])
        self.lock = threading.Lock()
        self.versions: dict[str, list[Version]] = {}
        self.committers: list[int] = [-1]  # commit number -> client
        self.clients = 0

    def version(self) -> str:
        return f"bug={self.bug}"

    def create(self, keys: Sequence[str]) -> None:
        """Create every key with a version of commit 0."""
        initial: Value = [] if self.setup.lists else 0
        self.versions = {key: [(0, -1, initial)] for key in keys}

    def connect(self) -> Connection:
        with self.lock:
            self.clients += 1
            return _Client(self, self.clients, random.Random(f"{self._seed}:{self.clients}"))

    @override
    def contents(self) -> dict[str, Value]:
        with self.lock:
            return {key: versions[-1][2] for key, versions in self.versions.items()}

    @override
    def drop(self) -> None:
        self.versions = {}


def _chance(text: str) -> float:
    try:
        chance = float(text)
    except ValueError:
        chance = -1.0
    if not 0 <= chance <= 1:
        raise IsocheckError(f"chance={text!r:.40} is no share; use a number from 0 to 1")
    return chance


class _Client(Connection):
    def __init__(self, store: BrokenAdapter, number: int, rng: random.Random) -> None:
        self._store = store
        self._number = number
        self._rng = rng
        self._written: dict[str, Value] = {}
        self._read: set[str] = set()
        self._snapshot = 0
        self._newest_seen = 0  # newest commit that its session saw
        self._hidden: set[int] = set()
        self._dirty: list[tuple[str, Version]] = []  # dirty-reads: versions that others see already

    def begin(self, isolation: str) -> None:
        with self._store.lock:
            newest = len(self._store.committers) - 1
            self._written, self._read, self._hidden, self._dirty = {}, set(), set(), []
            self._snapshot = newest
            if self._store.bug == "lost-session-order":
                self._snapshot = max(0, newest - self._rng.randrange(VERSIONS_BACK))
            elif self._store.bug == "stale-snapshot":
                self._snapshot = max(self._newest_seen, newest - self._rng.randrange(VERSIONS_BACK))
            elif self._store.bug == "lost-causality":
                recent = range(max(1, newest - VERSIONS_BACK), newest + 1)
                self._hidden = {
                    c
                    for c in recent
                    if self._rng.random() < self._store.chance and self._store.committers[c] != self._number
                }

    def read(self, key: str) -> Value:
        self._read.add(key)
        if key in self._written:
            return _copy(self._written[key])
        with self._store.lock:
            return _copy(self._visible(self._store.versions[key]))

    def _visible(self, versions: list[Version]) -> Value:
        """Return the value that a read returns, from all ``versions`` of the key."""
        bug = self._store.bug
        if bug in ("dirty-reads", "fractured-commits"):
            return versions[-1][2]
        if bug == "stale-reads" and self._rng.random() < self._store.chance:
            return versions[max(0, len(versions) - 1 - self._rng.randrange(VERSIONS_BACK))][2]
        for number, _, value in reversed(versions):
            if number <= self._snapshot and number not in self._hidden:
                return value
        raise AssertionError("commit 0 is always visible")

    def write(self, key: str, value: int) -> None:
        self._put(key, value)

    def append(self, key: str, value: int) -> None:
        before = self.read(key)
        assert isinstance(before, list)
        self._put(key, [*before, value])

    def _put(self, key: str, value: Value) -> None:
        self._written[key] = value
        if self._store.bug == "dirty-reads":
            with self._store.lock:
                version: Version = (0, self._number, _copy(value))
                self._store.versions[key].append(version)
                self._dirty.append((key, version))

    def commit(self) -> None:
        store = self._store
        if store.bug == "dirty-reads":
            if self._written and self._rng.random() < self._store.chance:
                raise AbortedError("refused, though others may have seen it")
            return
        with store.lock:
            self._validate()
            self._newest_seen = max(self._newest_seen, self._snapshot)
            if not self._written:
                return
            number = self._newest_seen = len(store.committers)
            store.committers.append(self._number)
            if store.bug != "fractured-commits":
                for key, value in self._written.items():
                    store.versions[key].append((number, self._number, value))
                return
        for key, value in self._written.items():
            with store.lock:
                store.versions[key].append((number, self._number, value))
            time.sleep(HALF_VISIBLE)

    def _validate(self) -> None:
        """Raise AbortedError if a key that must remain unchanged has changed since the snapshot."""
        bug = self._store.bug
        if bug in ("none", "stale-snapshot", "stale-reads", "lost-session-order"):
            must_not_change = self._read | set(self._written) if self._written else set()
        elif bug == "write-skew":
            must_not_change = set(self._written)
        else:
            return
        if any(self._store.versions[key][-1][0] > self._snapshot for key in must_not_change):
            raise AbortedError("changed since the transaction began")

    def rollback(self) -> None:
        if self._store.bug != "dirty-reads":
            return
        with self._store.lock:
            for key, version in self._dirty:
                versions = self._store.versions[key]
                versions[:] = [other for other in versions if other is not version]

    def close(self) -> None:
        return


def _copy(value: Value) -> Value:
    return list(value) if isinstance(value, list) else value
