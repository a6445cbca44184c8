"""Relay the connections between the nodes of a private cluster, so that faults can cut or delay them.

A link is a port at which other nodes reach one node. While two nodes are cut off from each other, the relay passes
nothing on and closes nothing: bytes wait, as in a partitioned network. A delay holds back every piece of data.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# Maximum bytes per piece of data.
CHUNK = 1 << 16
# Seconds between two polls of a node that is cut off.
POLL_INTERVAL = 0.02


class Network:
    """All links of a cluster, and their current faults."""

    def __init__(self) -> None:
        self._isolated: frozenset[str] = frozenset()
        self._delay = 0.0
        self._links: list[_Link] = []
        self._is_closed = threading.Event()

    def link(self, target: str, port: int, source: Callable[[int], str]) -> int:
        """Return a port at which other nodes reach ``target``, which listens at ``port``.

        ``source`` returns the name of the node that calls from a given port.
        """
        link = _Link(self, target, port, source)
        self._links.append(link)
        return link.port

    @contextmanager
    def isolated(self, node: str) -> Iterator[None]:
        """Cut a node off from the other nodes, in both directions."""
        self._isolated = frozenset({node})
        try:
            yield
        finally:
            self._isolated = frozenset()

    @contextmanager
    def delayed(self, seconds: float) -> Iterator[None]:
        """Delay all traffic between nodes by ``seconds``."""
        self._delay = seconds
        try:
            yield
        finally:
            self._delay = 0.0

    def hold_back(self, source: str, target: str) -> bool:
        """Wait as long as the current faults require between two nodes. Return False if the network is closed."""
        if self._delay:
            time.sleep(self._delay)
        while {source, target} & self._isolated and source != target:
            if self._is_closed.wait(POLL_INTERVAL):
                break
        return not self._is_closed.is_set()

    def close(self) -> None:
        """Close all links."""
        self._is_closed.set()
        for link in self._links:
            link.close()


class _Link:
    """A port that relays connections to another port."""

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
        """Relay data until one side closes its connection, then close both."""
        with suppress(OSError):
            while piece := origin.recv(CHUNK):
                if not self._network.hold_back(source, self._target):
                    break
                goal.sendall(piece)
        for end in (origin, goal):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
