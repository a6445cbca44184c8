"""Cause faults while a workload runs: lost connections, servers that stop, a faulty network between nodes.

``run`` starts the thread ``Faults``. Where possible, a fault strikes when a client is about to commit, because then
outcomes become unknown.
"""

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
# Faults that need several nodes, and among them faults of the network between nodes.
OF_NODES, OF_NETWORK = ("kill", "partition", "delay"), ("partition", "delay")

# Seconds to wait for a client to reach its commit.
COMMIT_WAIT = 2.0
# Mean seconds that a node is down or cut off: a cluster needs some time to notice and to go on without it.
DOWNTIME = 4.0
# Mean delay of a slow network, in seconds.
NETWORK_DELAY = 0.2


class PrivateServer(Protocol):
    """A server that the collector started itself, and may therefore disturb."""

    kill_at_stop: bool  # at the end of the run, kill it instead of waiting until it has stopped in order

    def kill(self) -> None:
        """Kill the server without time to finish anything."""

    def revive(self) -> None:
        """Start the server again, and return when it answers."""

    def pause(self) -> None:
        """Stop its processes."""

    def resume(self) -> None:
        """Continue its processes."""


class PrivateServers(Protocol):
    """A private server or cluster."""

    @property
    def members(self) -> Mapping[str, PrivateServer]:
        """The servers by name; a single server has the empty name."""

    @property
    def faulty_network(self) -> Sequence[str]:
        """Possible faults of the network between the members."""

    def isolated(self, node: str) -> AbstractContextManager[None]:
        """Cut a node off from the other nodes, in both directions."""

    def delayed(self, seconds: float) -> AbstractContextManager[None]:
        """Delay all traffic between nodes by ``seconds``."""


@dataclass
class Fault:
    """A fault, its node, and its start and end in nanoseconds of the history's clock."""

    kind: str
    node: str
    start: int
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} of {self.node}" if self.node else self.kind


class Faults(threading.Thread):
    """Thread that causes the given ``kinds`` of faults in turn, about one per ``interval`` seconds."""

    def __init__(
        self,
        kinds: Sequence[str],
        adapter: Adapter,
        server: PrivateServers | None,
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
            except Exception as error:  # reported at the end; if the server remains down, the clients give up
                self.problem = f"{kind}: {error}"

    def finish(self, until: float) -> None:
        """Cause no more faults. Return when the current one is over, or at ``until`` of the monotonic clock."""
        self._over.set()
        self.join(max(0.0, until - time.monotonic()))

    def since(self, start: int) -> str:
        """Return the faults that were active at ``start`` or later, as text."""
        return ", ".join(str(fault) for fault in self.timeline if fault.end is None or fault.end >= start)

    def _cause(self, kind: str) -> bool:
        causes = {
            "kill-connection": self._kill_connection,
            "restart": lambda: self._kill(0.0),
            "pause": self._pause,
            "kill": lambda: self._kill(DOWNTIME * self._rng.uniform(0.5, 1.5)),
            "partition": self._partition,
            "delay": self._delay,
        }
        return causes[kind]()

    @contextmanager
    def _recorded(self, kind: str, node: str) -> Iterator[None]:
        """Record the start and the end of a fault in the timeline."""
        fault = Fault(kind, node, now())
        self.timeline.append(fault)
        try:
            yield
        finally:
            fault.end = now()

    def _kill_connection(self) -> bool:
        """Make the server terminate a connection while its client sends a commit."""
        victim = self._aim(lambda client: None)
        connection = None if victim is None else victim.connection
        if connection is None:
            return False
        with self._recorded("kill-connection", connection.node):
            self._adapter.kill(connection)
        return True

    def _kill(self, away: float) -> bool:
        """Kill a node, during a commit if possible, and start it again after ``away`` seconds."""
        assert self._server is not None
        node = self._node(self._aim(lambda client: None))
        with self._recorded("kill" if away else "restart", node):
            self._server.members[node].kill()
            try:
                self._over.wait(away)
            finally:
                self._server.members[node].revive()
        return True

    def _pause(self) -> bool:
        """Pause a node, just before a commit if possible. Every other pause is longer than the clients' patience."""
        assert self._server is not None
        servers = self._server.members
        paused: list[str] = []

        def pause(client: Client | None) -> None:
            paused.append(self._node(client))
            servers[paused[0]].pause()

        if self._aim(pause) is None:
            pause(None)
        try:
            with self._recorded("pause", paused[0]):
                long = self.done["pause"] % 2 == 0
                self._over.wait(1.5 * self._timeout + 3 if long else min(0.3, self._timeout / 2))
        finally:
            servers[paused[0]].resume()
        return True

    def _partition(self) -> bool:
        """Cut a random node off from the others. Its clients still reach it."""
        assert self._server is not None
        node = self._rng.choice(list(self._server.members))
        with self._recorded("partition", node), self._server.isolated(node):
            self._over.wait(DOWNTIME * self._rng.uniform(0.5, 1.5))
        return True

    def _delay(self) -> bool:
        """Slow down the network between all nodes."""
        assert self._server is not None
        with self._recorded("delay", ""), self._server.delayed(NETWORK_DELAY * self._rng.uniform(0.5, 1.5)):
            self._over.wait(DOWNTIME * self._rng.uniform(0.5, 1.5))
        return True

    def _node(self, client: Client | None) -> str:
        """Return the node that a client uses, or a random one."""
        assert self._server is not None
        connection = None if client is None else client.connection
        named = "" if connection is None else connection.node
        return named if named in self._server.members else self._rng.choice(list(self._server.members))

    def _aim(self, action: Callable[[Client], None]) -> Client | None:
        """Make the next client that commits run ``action`` just before. Return it, or None if none commits in time."""
        trigger = _Trigger(action)
        for client in self._clients:
            client.at_commit = partial(trigger.fire, client)
        return trigger.wait(COMMIT_WAIT)


class _Trigger:
    """Action that runs once, in the first thread that fires it before the wait ends."""

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


def reject_impossible(kinds: Sequence[str], adapter: Adapter, server: PrivateServers | None) -> None:
    """Raise IsocheckError if a fault is unknown, or impossible with this database."""
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
