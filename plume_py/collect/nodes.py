"""Several nodes of one database: which of them a transaction runs on, and which one was it.

Every node has an adapter of its own, all for the same table. A session has a home among them and stays there; or it
roams, and goes somewhere else for each transaction. Whatever writes goes to a node that takes writes.
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

# Seconds that the nodes get to have the table, and in the end the same in it; and between looks.
AGREED_WITHIN, LOOK = 30.0, 0.1
# Seconds after which a node that did not answer is tried again by a session that roams.
AGAIN = 1.0


@dataclass(frozen=True)
class Node:
    """A node and where it is; the name is for the history."""

    name: str
    url: str


@dataclass(frozen=True)
class Routing:
    """Which nodes sessions use; for ``replicas``, all that only read goes to those."""

    roam: bool = False
    read_from: str = "any"
    seed: int = 0


def nodes_at(urls: Sequence[str]) -> list[Node]:
    """The nodes that these addresses name; one address may name several hosts, separated by commas."""
    found = [single for url in urls for single in _single(url)]
    names = [_host(url) or f"node {number}" for number, url in enumerate(found, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return [Node(name, url) for name, url in zip(names, found, strict=True)]


def open_nodes(setup: Setup, nodes: Sequence[Node], routing: Routing) -> Adapter:
    """The adapter for these nodes."""
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
    """The nodes as one database."""

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
        """Nodes that take no writes."""
        return [name for name, adapter in self.adapters.items() if adapter.is_replica()]

    @cached_property
    def writers(self) -> list[str]:
        """Nodes that transactions with writes go to; where replicas are to be read from, there must be some."""
        able = [name for name in self.adapters if name not in self.replicas]
        if not able:
            raise IsocheckError("every one of these nodes only takes reads; give the address of the primary, too")
        all_to_one = self.routing.read_from == "replicas" and not self.replicas
        return able[:1] if all_to_one else able

    @cached_property
    def readers(self) -> list[str]:
        """Nodes that other transactions go to."""
        if self.routing.read_from == "any":
            return list(self.adapters)
        return self.replicas or [name for name in self.adapters if name not in self.writers]

    def choices(self, session: int, reads_only: bool) -> list[str]:
        """Where a transaction of ``session`` may run: all that are able if it roams, else its home."""
        able = self.readers if reads_only else self.writers
        if self.routing.roam:
            return able
        home = next(islice(cycle(self.adapters), session, None))
        return [home if home in able else able[session % len(able)]]

    def version(self) -> str:
        """Of the first; its name, which it may have learnt now, is ours."""
        version = self.first.version()
        self.name, self.can_kill = self.first.name, self.first.can_kill
        return version

    def create(self, keys: Sequence[str]) -> None:
        """Where writes are taken; then it must arrive everywhere."""
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
        """For the first session."""
        return self.connect_session(0)

    def connect_session(self, session: int) -> Connection:
        """To one node, or to those that it roams."""
        return _Connection(self, session)

    def contents(self) -> dict[str, Value]:
        """The table where writes are taken, once all nodes have the same, or their time is up."""
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
        """Nodes that had something else in the end."""
        return self._differing

    def drop(self) -> None:
        """By the one that made it; everybody else leaves."""
        writer = self._writer()
        for adapter in self.adapters.values():
            if adapter is not writer:
                adapter.leave()
        writer.drop()

    def tables(self) -> list[str]:
        """Where writes are taken."""
        return self._writer().tables()

    def is_alive(self, table: str) -> bool | None:
        """A node knows its own connections only, and a run may be at another one."""
        alive = [adapter.is_alive(table) for adapter in self.adapters.values()]
        return True if True in alive else None if None in alive else False

    def drop_table(self, table: str) -> None:
        """Where writes are taken."""
        self._writer().drop_table(table)

    def beat(self) -> None:
        """Where the table was made."""
        self._writer().beat()

    def leave(self) -> None:
        """Everybody."""
        for adapter in self.adapters.values():
            adapter.leave()

    def settings(self) -> dict[str, str]:
        """Of the first."""
        return self.first.settings()

    def statements(self) -> dict[str, str]:
        """Of the first."""
        return self.first.statements()

    def nodes(self) -> dict[str, str]:
        """Names and addresses."""
        return {name: adapter.setup.url for name, adapter in self.adapters.items()}

    def variants(self, isolation: str) -> tuple[str, ...]:
        """What replicas have instead."""
        return self.first.variants(isolation)

    def kill(self, connection: Connection) -> None:
        """At its node."""
        assert isinstance(connection, _Connection)
        if connection.current is not None:
            self.adapters[connection.node].kill(connection.current)

    def settle(self) -> None:
        """At every node."""
        for adapter in self.adapters.values():
            adapter.settle()

    def _writer(self) -> Adapter:
        return self.adapters[self.writers[0]]


class _Connection(Connection):
    """A session's connections, to each node that it needs; between ``begin`` and ``commit`` one is current."""

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
        """A node that answers; to connect may take a while, and fail."""
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
                self._not_before[name] = time.monotonic() + AGAIN
                problem = f"{name}: {first_line(error)}"
        raise LostError(problem)

    def _go(self, isolation: str, reads_only: bool) -> Connection:
        self.current, self.isolation = None, ""
        self.node = self._node(reads_only)
        if self.node in self._nodes.replicas:
            self.isolation = (*self._nodes.adapters[self.node].variants(isolation), isolation)[0]
        self.current = self._open[self.node]
        return self.current

    def begin(self, isolation: str) -> None:
        self._go(isolation, reads_only=False).begin(isolation)

    def begin_reading(self, isolation: str) -> None:
        self._go(isolation, reads_only=True).begin_reading(self.isolation or isolation)

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
    """Has it come true in time, and if not, why it could not even be asked."""
    deadline = time.monotonic() + AGREED_WITHIN
    while True:
        problem = ""
        try:
            if condition():
                return True, ""
        except IsocheckError:
            raise
        except Exception as error:  # of a driver: not there yet
            problem = first_line(error)
        if time.monotonic() > deadline:
            return False, problem
        time.sleep(LOOK)


def _single(url: str) -> list[str]:
    """``scheme://user:password@host1:1,host2:2/database`` as an address for each host."""
    keep_secret(url)
    scheme, separator, rest = url.partition("://")
    end = min((rest.index(mark) for mark in "/?#" if mark in rest), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    if not separator or "," not in hosts:
        return [url]
    return [f"{scheme}{separator}{user}{at}{host}{rest[end:]}" for host in hosts.split(",") if host]


def _host(url: str) -> str:
    """What stands for the host in an address; for the history, so without user and password."""
    rest = url.partition("://")[2]
    end = min((rest.index(mark) for mark in "/?#" if mark in rest), default=len(rest))
    return rest[:end].rpartition("@")[2]
