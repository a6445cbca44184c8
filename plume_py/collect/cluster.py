"""Clusters for a run: several private servers that belong together, and the network between them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TypeVar

from plume_py.collect.network import Network
from plume_py.collect.nodes import Node
from plume_py.collect.server import ManagedServer

Member = TypeVar("Member", bound=ManagedServer)


class ManagedCluster(ABC):
    """Servers by name, in the order of their start; a context manager."""

    title = ""
    kinds: Sequence[type[ManagedServer]] = ()  # of servers that it has
    faulty_network: Sequence[str] = ("partition", "delay")  # what can happen between its members

    def __init__(self) -> None:
        self.members: dict[str, ManagedServer] = {}
        self.network = Network()
        self._running = ExitStack()

    @classmethod
    def find(cls) -> None:
        """An error that says what to install if a program is missing."""
        for kind in cls.kinds:
            kind.find()

    @abstractmethod
    def form(self) -> None:
        """Start the members; when this returns, each of them takes part."""

    def __enter__(self) -> "ManagedCluster":
        self._running.callback(self.network.close)
        try:
            self.form()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, name: str, member: Member) -> Member:
        """One more member."""
        self.members[name] = member
        self._running.enter_context(member)
        return member

    def stop(self) -> None:
        """The last one first."""
        self._running.close()

    def isolated(self, node: str) -> AbstractContextManager[None]:
        """Nothing gets from this node to the others, or from them to it."""
        return self.network.isolated(node)

    def delayed(self, seconds: float) -> AbstractContextManager[None]:
        """Everything between nodes takes so much longer."""
        return self.network.delayed(seconds)

    @property
    def nodes(self) -> list[Node]:
        """Where clients find the members."""
        return [Node(name, member.url) for name, member in self.members.items()]
