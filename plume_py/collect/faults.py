"""Faults, while a workload runs: connections that the server ends in the middle of a commit, restarts, pauses."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import Adapter
from plume_py.collect.client import Client

KINDS = ("kill-connection", "restart", "pause")

# How long to wait for a client to come to its commit.
AIM = 2.0


class Server(Protocol):
    """A server that the collector started itself, and may therefore mistreat."""

    def restart(self) -> None:
        """End it the hard way and start it again; returns when it answers."""

    def pause(self) -> None:
        """Stop it where it is."""

    def resume(self) -> None:
        """Let it go on."""


class Faults(threading.Thread):
    """A thread that causes one fault after another, of the ``kinds`` in turn, about one per ``interval`` seconds."""

    def __init__(
        self,
        kinds: Sequence[str],
        adapter: Adapter,
        server: Server | None,
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
        self.problem = ""

    @override
    def run(self) -> None:
        turn = 0
        while not self._over.wait(self._interval * self._rng.uniform(0.5, 1.5)):
            kind = self._kinds[turn % len(self._kinds)]
            turn += 1
            try:
                if {"kill-connection": self._kill, "restart": self._restart, "pause": self._pause}[kind]():
                    self.done[kind] += 1
            except Exception as error:  # told at the end; without a server, the clients give up by themselves
                self.problem = f"{kind}: {error}"

    def finish(self) -> None:
        """No more faults; returns when the last one is over, as far as that can be waited for."""
        self._over.set()
        self.join(max(60.0, 3 * self._timeout))

    def _kill(self) -> bool:
        """Wait for a client to send its commit, and have the server end that connection at the same time."""
        victim = self._aim(lambda: None)
        connection = None if victim is None else victim.connection
        if connection is None:
            return False
        self._adapter.kill(connection)
        return True

    def _restart(self) -> bool:
        """While a commit is under way, if one is."""
        assert self._server is not None
        self._aim(lambda: None)
        self._server.restart()
        return True

    def _pause(self) -> bool:
        """Just before a commit is sent, if one is; every other pause is longer than clients are willing to wait."""
        assert self._server is not None
        long = self.done["pause"] % 2 == 0
        try:
            if self._aim(self._server.pause) is None:
                self._server.pause()
            time.sleep(1.5 * self._timeout + 3 if long else min(0.3, self._timeout / 2))
        finally:
            self._server.resume()
        return True

    def _aim(self, action: Callable[[], None]) -> Client | None:
        """Have the next client that commits do ``action`` just before; None if none gets there in time."""
        trigger = _Trigger(action)
        for client in self._clients:
            client.at_commit = partial(trigger.fire, client)
        return trigger.wait(AIM)


class _Trigger:
    """An action that the first of several threads takes, or nobody once it is not waited for any more."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._lock = threading.Lock()
        self._fired = threading.Event()
        self._by: Client | None = None
        self._over = False

    def fire(self, client: Client) -> None:
        with self._lock:
            if not self._over:
                self._over, self._by = True, client
                self._action()
                self._fired.set()

    def wait(self, seconds: float) -> Client | None:
        self._fired.wait(seconds)
        with self._lock:
            self._over = True
            return self._by


def reject_impossible(kinds: Sequence[str], adapter: Adapter, server: Server | None) -> None:
    """Say so before anything runs."""
    for kind in kinds:
        if kind not in KINDS:
            raise IsocheckError(f"unknown fault {kind!r:.40}; use {', '.join(KINDS)}")
        if kind == "kill-connection" and not adapter.can_kill:
            raise IsocheckError(f"{adapter.name} has no server that could end a connection: leave kill-connection out")
        if kind != "kill-connection" and server is None:
            raise IsocheckError(f"the fault {kind} needs a server that isocheck started itself: use --managed")
