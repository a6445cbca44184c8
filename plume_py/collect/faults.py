"""Faults, while a workload runs: connections that the server ends in the middle of a commit, nodes, their network."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import Adapter
from plume_py.collect.client import Client, now

KINDS = ("kill-connection", "restart", "pause", "kill", "partition", "delay")
# Those that are about one of several nodes, and about what is between them.
OF_NODES, OF_NETWORK = ("kill", "partition", "delay"), ("partition", "delay")

# How long to wait for a client to come to its commit.
AIM = 2.0
# How long a node is away, or cut off, in seconds: clusters take a while to notice, and then go on without it.
AWAY = 4.0
# By how much, in seconds, a network is slower.
SLOWER = 0.2


class Server(Protocol):
    """A server that the collector started itself, and may therefore mistreat."""

    def kill(self) -> None:
        """End it the hard way."""

    def revive(self) -> None:
        """Start it again; returns when it answers."""

    def pause(self) -> None:
        """Stop it where it is."""

    def resume(self) -> None:
        """Let it go on."""


class Servers(Protocol):
    """All that was started: by name, or one without; and the network between them, if there is one."""

    @property
    def members(self) -> Mapping[str, Server]:
        """The servers."""

    @property
    def faulty_network(self) -> Sequence[str]:
        """What can be wrong with it."""

    def isolated(self, node: str) -> AbstractContextManager[None]:
        """Nothing gets from this node to the others, or from them to it."""

    def delayed(self, seconds: float) -> AbstractContextManager[None]:
        """Everything between nodes takes so much longer."""


@dataclass
class Fault:
    """What happened to whom, from when to when; nanoseconds, as in the history."""

    kind: str
    node: str
    start: int
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} of {self.node}" if self.node else self.kind


class Faults(threading.Thread):
    """A thread that causes one fault after another, of the ``kinds`` in turn, about one per ``interval`` seconds."""

    def __init__(
        self,
        kinds: Sequence[str],
        adapter: Adapter,
        server: Servers | None,
        clients: Sequence[Client],
        *,
        interval: float,
        timeout: float,
        seed: int,
    ) -> None:
        super().__init__(name="faults", daemon=True)
        reject_impossible(kinds, adapter, server)
        self._kinds = list(kinds)
        self._adapter = adapter
        self._server = server
        self._clients = clients
        self._interval = interval
        self._timeout = timeout
        self._rng = random.Random(f"{seed}:faults")
        self._over = threading.Event()
        self.done: Counter[str] = Counter()
        self.timeline: list[Fault] = []
        self.problem = ""

    @override
    def run(self) -> None:
        turn = 0
        while not self._over.wait(self._interval * self._rng.uniform(0.5, 1.5)):
            kind = self._kinds[turn % len(self._kinds)]
            turn += 1
            try:
                if self._cause(kind):
                    self.done[kind] += 1
            except Exception as error:  # told at the end; without a server, the clients give up by themselves
                self.problem = f"{kind}: {error}"

    def finish(self, until: float) -> None:
        """Cause no more faults; returns when the last one is over, or at ``until`` of the monotonic clock."""
        self._over.set()
        self.join(max(0.0, until - time.monotonic()))

    def since(self, start: int) -> str:
        """The faults that were there at that time or have been since."""
        return ", ".join(str(fault) for fault in self.timeline if fault.end is None or fault.end >= start)

    def _cause(self, kind: str) -> bool:
        causes = {
            "kill-connection": self._kill_connection,
            "restart": lambda: self._kill(0.0),
            "pause": self._pause,
            "kill": lambda: self._kill(AWAY * self._rng.uniform(0.5, 1.5)),
            "partition": self._partition,
            "delay": self._delay,
        }
        return causes[kind]()

    @contextmanager
    def _told(self, kind: str, node: str) -> Iterator[None]:
        fault = Fault(kind, node, now())
        self.timeline.append(fault)
        try:
            yield
        finally:
            fault.end = now()

    def _kill_connection(self) -> bool:
        """Wait for a client to send its commit, and have the server end that connection at the same time."""
        victim = self._aim(lambda client: None)
        connection = None if victim is None else victim.connection
        if connection is None:
            return False
        with self._told("kill-connection", connection.node):
            self._adapter.kill(connection)
        return True

    def _kill(self, away: float) -> bool:
        """While a commit is under way, if one is; the server comes back after ``away`` seconds."""
        assert self._server is not None
        node = self._node(self._aim(lambda client: None))
        with self._told("kill" if away else "restart", node):
            self._server.members[node].kill()
            try:
                self._over.wait(away)
            finally:
                self._server.members[node].revive()
        return True

    def _pause(self) -> bool:
        """Just before a commit is sent, if one is; every other pause is longer than clients are willing to wait."""
        assert self._server is not None
        servers = self._server.members
        paused: list[str] = []

        def pause(client: Client | None) -> None:
            paused.append(self._node(client))
            servers[paused[0]].pause()

        if self._aim(pause) is None:
            pause(None)
        try:
            with self._told("pause", paused[0]):
                long = self.done["pause"] % 2 == 0
                self._over.wait(1.5 * self._timeout + 3 if long else min(0.3, self._timeout / 2))
        finally:
            servers[paused[0]].resume()
        return True

    def _partition(self) -> bool:
        """One node is alone, with those of the clients that are at it."""
        assert self._server is not None
        node = self._rng.choice(list(self._server.members))
        with self._told("partition", node), self._server.isolated(node):
            self._over.wait(AWAY * self._rng.uniform(0.5, 1.5))
        return True

    def _delay(self) -> bool:
        """Everybody hears of everybody later."""
        assert self._server is not None
        with self._told("delay", ""), self._server.delayed(SLOWER * self._rng.uniform(0.5, 1.5)):
            self._over.wait(AWAY * self._rng.uniform(0.5, 1.5))
        return True

    def _node(self, client: Client | None) -> str:
        """The node that a client is at, or any."""
        assert self._server is not None
        connection = None if client is None else client.connection
        named = "" if connection is None else connection.node
        return named if named in self._server.members else self._rng.choice(list(self._server.members))

    def _aim(self, action: Callable[[Client], None]) -> Client | None:
        """Have the next client that commits do ``action`` just before; None if none gets there in time."""
        trigger = _Trigger(action)
        for client in self._clients:
            client.at_commit = partial(trigger.fire, client)
        return trigger.wait(AIM)


class _Trigger:
    """An action that the first of several threads takes, or nobody once it is not waited for any more."""

    def __init__(self, action: Callable[[Client], None]) -> None:
        self._action = action
        self._lock = threading.Lock()
        self._fired = threading.Event()
        self._by: Client | None = None
        self._over = False

    def fire(self, client: Client) -> None:
        with self._lock:
            if not self._over:
                self._over, self._by = True, client
                self._action(client)
                self._fired.set()

    def wait(self, seconds: float) -> Client | None:
        self._fired.wait(seconds)
        with self._lock:
            self._over = True
            return self._by


def reject_impossible(kinds: Sequence[str], adapter: Adapter, server: Servers | None) -> None:
    """Say so before anything runs."""
    for kind in kinds:
        if kind not in KINDS:
            raise IsocheckError(f"unknown fault {kind!r:.40}; use {', '.join(KINDS)}")
        if kind == "kill-connection" and not adapter.can_kill:
            raise IsocheckError(f"{adapter.name} has no server that could end a connection: leave kill-connection out")
        if kind != "kill-connection" and server is None:
            raise IsocheckError(f"the fault {kind} needs a server that isocheck started itself: use --managed")
        if kind in OF_NODES and server is not None and len(server.members) < 2:
            raise IsocheckError(f"the fault {kind} needs several nodes: use --managed with a cluster")
        if kind in OF_NETWORK and server is not None and kind not in server.faulty_network:
            raise IsocheckError(f"there is no {kind} between these nodes: leave it out")
