"""The network between the nodes of a cluster of ours: connections go through here, so that they can fail.

A link is a port on which one node is reached by the others. While two nodes are cut off from each other nothing is
passed on between them, and nothing is closed either: bytes wait, as they do in a network that has come apart. A delay
holds back every piece for a while.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CHUNK = 1 << 16
# How often to look whether what was cut off is connected again, in seconds.
LOOK = 0.02


class Network:
    """All links, and what is wrong with them at the moment."""

    def __init__(self) -> None:
        self._isolated: frozenset[str] = frozenset()
        self._delay = 0.0
        self._links: list[_Link] = []
        self._is_closed = threading.Event()

    def link(self, target: str, port: int, source: Callable[[int], str]) -> int:
        """The port at which others reach ``target``, which listens at ``port``.

        ``source`` says who is calling, by the port that the call comes from.
        """
        link = _Link(self, target, port, source)
        self._links.append(link)
        return link.port

    @contextmanager
    def isolated(self, node: str) -> Iterator[None]:
        """Nothing gets from this node to the others, or from them to it."""
        self._isolated = frozenset({node})
        try:
            yield
        finally:
            self._isolated = frozenset()

    @contextmanager
    def delayed(self, seconds: float) -> Iterator[None]:
        """Everything takes so much longer."""
        self._delay = seconds
        try:
            yield
        finally:
            self._delay = 0.0

    def hold_back(self, source: str, target: str) -> bool:
        """Wait as long as the network does between these two; False if it is over."""
        if self._delay:
            time.sleep(self._delay)
        while {source, target} & self._isolated and source != target:
            if self._is_closed.wait(LOOK):
                break
        return not self._is_closed.is_set()

    @property
    def is_there(self) -> bool:
        """Are there links at all?"""
        return bool(self._links)

    def close(self) -> None:
        """The links end."""
        self._is_closed.set()
        for link in self._links:
            link.close()


class _Link:
    """A port that leads to another one."""

    def __init__(self, network: Network, target: str, to: int, source: Callable[[int], str]) -> None:
        self._network, self._target, self._to, self._source = network, target, to, source
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, name=f"link to {target}", daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near, port), daemon=True).start()

    def _serve(self, near: socket.socket, port: int) -> None:
        source = self._source(port)
        if not self._network.hold_back(source, self._target):
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._to), timeout=10)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._pass_on, args=(near, far, source), daemon=True).start()
        self._pass_on(far, near, source)

    def _pass_on(self, origin: socket.socket, goal: socket.socket, source: str) -> None:
        """Until one of the two ends; then the other does, too."""
        with suppress(OSError):
            while piece := origin.recv(CHUNK):
                if not self._network.hold_back(source, self._target):
                    break
                goal.sendall(piece)
        for end in (origin, goal):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
