"""Present several nodes of a database as one, and choose the node on which each transaction runs.

Each node has its own adapter; all adapters use the same table. Transactions that may write run on a node that accepts
writes. With ``--read-from replicas``, read-only transactions run on replicas.

A session stays at its home node (session s at node s modulo n). With ``--roam`` it moves to a random node for each
transaction. The history records the node of each transaction.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, islice

from plume_py.base.errors import IsocheckError
from plume_py.base.passwords import keep_secret
from plume_py.base.text import display
from plume_py.collect.adapter import Adapter, Connection, LostError, Setup, Value, first_line
from plume_py.collect.registry import open_adapter

READ_FROM = ("any", "replicas")

# Seconds until all nodes must have the table, and at the end the same contents; seconds between two polls.
AGREED_WITHIN, POLL_INTERVAL = 30.0, 0.1
# Seconds before a session retries a node that did not answer.
RETRY_INTERVAL = 1.0


@dataclass(frozen=True)
class Node:
    """Name of a node in the history, and its address."""

    name: str
    url: str


@dataclass(frozen=True)
class Routing:
    """Routing policy: whether sessions roam, and which nodes serve read-only transactions."""

    roam: bool = False
    read_from: str = "any"
    seed: int = 0


def nodes_at(urls: Sequence[str]) -> list[Node]:
    """Return the nodes at these addresses. One address may list several hosts, separated by commas."""
    found = [single for url in urls for single in _single(url)]
    names = [_host(url) or f"node {number}" for number, url in enumerate(found, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return [Node(name, url) for name, url in zip(names, found, strict=True)]


def open_nodes(setup: Setup, nodes: Sequence[Node], routing: Routing) -> Adapter:
    """Return the adapter of a single node, or an adapter that combines several."""
    if len(nodes) == 1:
        if routing != Routing(seed=routing.seed):
            raise IsocheckError("--roam and --read-from are about several nodes; give the addresses of all of them")
        return open_adapter(replace(setup, url=nodes[0].url))
    adapters = {node.name: open_adapter(replace(setup, url=node.url)) for node in nodes}
    kinds = {type(adapter) for adapter in adapters.values()}
    if len(kinds) > 1:
        raise IsocheckError("these are addresses of different databases; nodes are several addresses of one")
    return NodesAdapter(setup, adapters, routing)


class NodesAdapter(Adapter):
    """Adapter that combines the adapters of several nodes."""

    def __init__(self, setup: Setup, adapters: Mapping[str, Adapter], routing: Routing) -> None:
        self.adapters = dict(adapters)
        self.first = next(iter(self.adapters.values()))
        super().__init__(replace(setup, url=self.first.setup.url))
        self.routing = routing
        self.name, self.isolations, self.mixture = self.first.name, self.first.isolations, self.first.mixture
        self.can_kill = self.first.can_kill
        self._differing: list[str] = []

    @cached_property
    def replicas(self) -> list[str]:
        """Names of the nodes that reject writes."""
        return [name for name, adapter in self.adapters.items() if adapter.is_replica()]

    @cached_property
    def writers(self) -> list[str]:
        """Names of the nodes for transactions that may write. Raise IsocheckError if every node rejects writes.

        If transactions shall read from replicas but there are none, the first node is the only writer.
        """
        able = [name for name in self.adapters if name not in self.replicas]
        if not able:
            raise IsocheckError("every one of these nodes only takes reads; give the address of the primary, too")
        all_to_one = self.routing.read_from == "replicas" and not self.replicas
        return able[:1] if all_to_one else able

    @cached_property
    def readers(self) -> list[str]:
        """Names of the nodes for read-only transactions."""
        if self.routing.read_from == "any":
            return list(self.adapters)
        return self.replicas or [name for name in self.adapters if name not in self.writers]

    def choices(self, session: int, reads_only: bool) -> list[str]:
        """Return the nodes on which a transaction of ``session`` may run: one, or all suitable ones if it roams."""
        able = self.readers if reads_only else self.writers
        if self.routing.roam:
            return able
        home = next(islice(cycle(self.adapters), session, None))
        return [home if home in able else able[session % len(able)]]

    def version(self) -> str:
        """Return the version of the first node, and take over its name, which its adapter may learn here."""
        version = self.first.version()
        self.name, self.can_kill = self.first.name, self.first.can_kill
        return version

    def create(self, keys: Sequence[str]) -> None:
        """Create the table at a writer, and wait until every node has it."""
        self._writer().create(keys)
        for name, adapter in self.adapters.items():
            arrived, problem = _wait_for(lambda adapter=adapter: set(adapter.contents()) >= set(keys))  # type: ignore[misc]
            if not arrived:
                why = f" ({problem})" if problem else ""
                raise IsocheckError(
                    f"the table did not arrive at {name} within {AGREED_WITHIN:.0f} s{why}: are these nodes of one"
                    " database?"
                )

    def connect(self) -> Connection:
        return self.connect_session(0)

    def connect_session(self, session: int) -> Connection:
        return _NodesConnection(self, session)

    def contents(self) -> dict[str, Value]:
        """Return the writer's table once all nodes have the same contents, or when the time limit is reached."""
        tables: dict[str, dict[str, Value]] = {}

        def agree() -> bool:
            tables.update({name: adapter.contents() for name, adapter in self.adapters.items()})
            return all(table == tables[self.writers[0]] for table in tables.values())

        _, problem = _wait_for(agree)
        if problem:
            raise LostError(problem)
        standard = tables[self.writers[0]]
        self._differing = [
            f"{name} still has {display(table.get(key))} in {display(key)} after {AGREED_WITHIN:.0f} s, where"
            f" {self.writers[0]} has {display(standard.get(key))}"
            for name, table in tables.items()
            for key in [key for key in {**standard, **table} if table.get(key) != standard.get(key)][:1]
        ]
        return standard

    def disagreements(self) -> list[str]:
        return self._differing

    def drop(self) -> None:
        """Drop the table at a writer, and close the adapters of the other nodes."""
        writer = self._writer()
        for adapter in self.adapters.values():
            if adapter is not writer:
                adapter.leave()
        writer.drop()

    def tables(self) -> list[str]:
        return self._writer().tables()

    def is_alive(self, table: str) -> bool | None:
        """Combine the answers of all nodes, because a node knows only its own connections."""
        alive = [adapter.is_alive(table) for adapter in self.adapters.values()]
        return True if True in alive else None if None in alive else False

    def drop_table(self, table: str) -> None:
        self._writer().drop_table(table)

    def beat(self) -> None:
        self._writer().beat()

    def leave(self) -> None:
        for adapter in self.adapters.values():
            adapter.leave()

    def settings(self) -> dict[str, str]:
        return self.first.settings()

    def statements(self) -> dict[str, str]:
        return self.first.statements()

    def nodes(self) -> dict[str, str]:
        return {name: adapter.setup.url for name, adapter in self.adapters.items()}

    def variants(self, isolation: str) -> tuple[str, ...]:
        return self.first.variants(isolation)

    def kill(self, connection: Connection) -> None:
        assert isinstance(connection, _NodesConnection)
        if connection.current is not None:
            self.adapters[connection.node].kill(connection.current)

    def settle(self) -> None:
        for adapter in self.adapters.values():
            adapter.settle()

    def _writer(self) -> Adapter:
        return self.adapters[self.writers[0]]


class _NodesConnection(Connection):
    """Connections of one session to the nodes that it uses; one of them is current during a transaction."""

    def __init__(self, nodes: NodesAdapter, session: int) -> None:
        self._nodes = nodes
        self._session = session
        self._rng = random.Random(f"{nodes.routing.seed}:{session}:nodes")
        self._open: dict[str, Connection] = {}
        self._not_before: dict[str, float] = {}
        self.current: Connection | None = None
        try:
            for reads_only in (False, True):
                self._node(reads_only)
        except BaseException:
            self.close()
            raise

    def _node(self, reads_only: bool) -> str:
        """Return the name of a suitable node, connecting to it if necessary. Raise LostError if none answers."""
        names, problem = list(self._nodes.choices(self._session, reads_only)), "no node answers"
        self._rng.shuffle(names)
        for name in names:
            if name in self._open:
                return name
            if time.monotonic() < self._not_before.get(name, 0.0):
                continue
            try:
                self._open[name] = self._nodes.adapters[name].connect_session(self._session)
                return name
            except Exception as error:
                self._not_before[name] = time.monotonic() + RETRY_INTERVAL
                problem = f"{name}: {first_line(error)}"
        raise LostError(problem)

    def _choose_connection(self, isolation: str, reads_only: bool) -> Connection:
        self.current, self.isolation = None, ""
        self.node = self._node(reads_only)
        if self.node in self._nodes.replicas:
            self.isolation = (*self._nodes.adapters[self.node].variants(isolation), isolation)[0]
        self.current = self._open[self.node]
        return self.current

    def begin(self, isolation: str) -> None:
        self._choose_connection(isolation, reads_only=False).begin(isolation)

    def begin_reading(self, isolation: str) -> None:
        self._choose_connection(isolation, reads_only=True).begin_reading(self.isolation or isolation)

    def read(self, key: str) -> Value:
        assert self.current is not None
        return self.current.read(key)

    def write(self, key: str, value: int) -> None:
        assert self.current is not None
        self.current.write(key, value)

    def append(self, key: str, value: int) -> None:
        assert self.current is not None
        self.current.append(key, value)

    def commit(self) -> None:
        assert self.current is not None
        self.current.commit()

    def rollback(self) -> None:
        if self.current is not None:
            self.current.rollback()

    def close(self) -> None:
        problems = []
        while self._open:
            try:
                self._open.popitem()[1].close()
            except Exception as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def abandon(self) -> None:
        current = self.current
        if current is not None:
            current.abandon()


def _wait_for(condition: Callable[[], bool]) -> tuple[bool, str]:
    """Poll ``condition`` until it is true. Return whether it became true in time, and the last error otherwise."""
    deadline = time.monotonic() + AGREED_WITHIN
    while True:
        problem = ""
        try:
            if condition():
                return True, ""
        except IsocheckError:
            raise
        except Exception as error:  # from a driver: not ready yet
            problem = first_line(error)
        if time.monotonic() > deadline:
            return False, problem
        time.sleep(POLL_INTERVAL)


def _single(url: str) -> list[str]:
    """Split ``scheme://user:password@host1:1,host2:2/database`` into one address per host."""
    keep_secret(url)
    scheme, separator, rest = url.partition("://")
    end = min((rest.index(mark) for mark in "/?#" if mark in rest), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    if not separator or "," not in hosts:
        return [url]
    return [f"{scheme}{separator}{user}{at}{host}{rest[end:]}" for host in hosts.split(",") if host]


def _host(url: str) -> str:
    """Return the host of an address without user and password, for the history."""
    rest = url.partition("://")[2]
    end = min((rest.index(mark) for mark in "/?#" if mark in rest), default=len(rest))
    return rest[:end].rpartition("@")[2]
