"""Start private clusters (``--managed``): PostgreSQL with standbys, Galera, etcd, Redis with a replica.

A cluster consists of servers (``server``) that run the programs of Debian's packages. ``network`` relays the
connections between members, so that faults can cut or delay them. ``MANAGED`` lists all servers and clusters that
``--managed`` can start.
"""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import LostError, Setup
from plume_py.collect.adapters.etcd import Member
from plume_py.collect.adapters.redis import RedisAdapter
from plume_py.collect.managed import SERVERS, USER, ManagedMariadb, ManagedPostgres
from plume_py.collect.network import Network
from plume_py.collect.nodes import Node
from plume_py.collect.server import START, ManagedServer, free_port

AnyServer = TypeVar("AnyServer", bound=ManagedServer)


class ManagedCluster(ABC):
    """Private servers by name, in the order of their start. Use it as a context manager."""

    title = ""
    kinds: Sequence[type[ManagedServer]] = ()  # classes of its servers
    faulty_network: Sequence[str] = ("partition", "delay")  # possible network faults

    def __init__(self) -> None:
        self.members: dict[str, ManagedServer] = {}
        self.network = Network()
        self._running = ExitStack()

    @classmethod
    def find(cls) -> None:
        """Raise an error that names the package to install if a program is missing."""
        for kind in cls.kinds:
            kind.find()

    @abstractmethod
    def form(self) -> None:
        """Start the members, and return when each of them takes part in the cluster."""

    def __enter__(self) -> "ManagedCluster":
        self._running.callback(self.network.close)
        try:
            self.form()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the members, the last one first."""
        self._running.__exit__(kind, error, at)

    def start(self, name: str, member: AnyServer) -> AnyServer:
        """Start ``member`` and add it under ``name``."""
        self.members[name] = member
        self._running.enter_context(member)
        return member

    def isolated(self, node: str) -> AbstractContextManager[None]:
        """Cut a node off from the other nodes, in both directions."""
        return self.network.isolated(node)

    def delayed(self, seconds: float) -> AbstractContextManager[None]:
        """Delay all traffic between nodes by ``seconds``."""
        return self.network.delayed(seconds)

    @property
    def nodes(self) -> list[Node]:
        """Names and addresses of the members."""
        return [Node(name, member.url) for name, member in self.members.items()]


STANDBYS = ("standby1", "standby2")
NODES = ("node1", "node2", "node3")


class _Primary(ManagedPostgres):
    @override
    def settings(self) -> dict[str, str]:
        # --set synchronous_commit decides which commits wait for the standbys. By default none does, as usual.
        both = f"FIRST {len(STANDBYS)} ({', '.join(STANDBYS)})"
        return {**super().settings(), "synchronous_standby_names": both, "synchronous_commit": "local"}


class _Standby(ManagedPostgres):
    """Hot standby: a copy of the primary that follows it."""

    programs = ("postgres", "pg_basebackup")

    def __init__(self, name: str, password: str, port: int) -> None:
        super().__init__()
        self._name, self.password, self._primary = name, password, port

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        self.write("passwords", f"127.0.0.1:*:*:{USER}:{self.password}\n")
        data = str(Path(self.folder, "data"))
        # -R writes the settings that make the copy a standby
        options = ["-d", self._conninfo(), "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        self.run([programs["pg_basebackup"], *options])

    @override
    def settings(self) -> dict[str, str]:
        again = {"wal_retrieve_retry_interval": "100ms"}  # the default of 5 s may outlast the run
        return {**super().settings(), "primary_conninfo": self._conninfo(), **again}

    def _conninfo(self) -> str:
        passwords = Path(self.folder, "passwords")
        return f"host=127.0.0.1 port={self._primary} user={USER} passfile={passwords} application_name={self._name}"


class PostgresStandby(ManagedCluster):
    """PostgreSQL: a primary with hot standbys."""

    title = "PostgreSQL with standbys"
    kinds = (_Primary, _Standby)

    @override
    def form(self) -> None:
        primary = self.start("primary", _Primary())
        for name in STANDBYS:
            port = self.network.link("primary", primary.port, lambda _, name=name: name)  # type: ignore[misc]
            self.start(name, _Standby(name, primary.password, port))


class _GaleraNode(ManagedMariadb):
    """MariaDB with Galera. A node that joins copies its data from another node."""

    programs: tuple[str, ...] = (*ManagedMariadb.programs, "rsync")
    statements_before = "SET SESSION wsrep_on = OFF;\n"  # not replicated
    PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")

    def __init__(self, name: str, group: dict[str, int], password: str = "") -> None:
        super().__init__()
        self._name, self._group, self.password = name, group, password or self.password
        self._has_begun = False
        self._transfer, self._increments = free_port(), free_port()

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        if self._name == next(iter(self._group)):
            super().prepare(programs)
        else:
            self.run(["/bin/mkdir", str(Path(self.folder, "data"))])  # as the server's user
            self.write_statements()

    @classmethod
    def find(cls) -> dict[str, str]:
        """Return the paths of its programs. Raise an error if a program or Galera's library is missing."""
        cls.provider()
        return super().find()

    @classmethod
    def provider(cls) -> str:
        """Return the path of Galera's library."""
        found = [path for path in cls.PROVIDERS if Path(path).exists()]
        if not found:
            raise IsocheckError("Galera is not installed; on Debian: apt-get install galera-4 mariadb-server")
        return found[0]

    @override
    def more_options(self) -> list[str]:
        options = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self._group[self._name]}",
            "ist.recv_addr": f"127.0.0.1:{self._increments}",
            "gcache.size": "32M",
            # Exclude a silent node after 1 s, not 5 s: a fault does not last much longer.
            "evs.keepalive_period": "PT0.3S",
            "evs.inactive_check_period": "PT0.2S",
            "evs.suspect_timeout": "PT1S",
            "evs.inactive_timeout": "PT3S",
        }
        begins = self._name == next(iter(self._group)) and not self._has_begun
        others = ",".join(f"127.0.0.1:{port}" for name, port in self._group.items() if name != self._name)
        return [
            "--wsrep-on=ON",
            f"--wsrep-provider={self.provider()}",
            f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in options.items())}",
            "--wsrep-cluster-name=isocheck",
            f"--wsrep-cluster-address=gcomm://{'' if begins else others}",
            f"--wsrep-node-name={self._name}",
            "--wsrep-node-address=127.0.0.1",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{self._transfer}",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
        ]

    @override
    def answers(self) -> None:
        if self._ask("SHOW STATUS LIKE 'wsrep_ready'") != ("wsrep_ready", "ON"):
            raise OSError("the node does not take part yet")
        self._has_begun = True

    def shut_off(self, is_isolated: bool) -> None:
        """Cut the node off from the other nodes, or reconnect it. Clients can always reach it."""
        self._ask(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={int(is_isolated)}'")

    def _ask(self, query: str) -> Any:
        import pymysql

        where: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "user": "root", "password": self.password}
        with pymysql.connect(**where, connect_timeout=2, read_timeout=10) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()


class Galera(ManagedCluster):
    """MariaDB Galera: three nodes that all accept writes."""

    title = "MariaDB Galera"
    kinds = (_GaleraNode,)
    # Nodes exchange their addresses, so a relay between them would be bypassed. But each node can isolate itself.
    faulty_network = ("partition",)

    @override
    def form(self) -> None:
        group = {name: free_port() for name in NODES}
        first = self.start(NODES[0], _GaleraNode(NODES[0], group))
        for name in NODES[1:]:
            self.start(name, _GaleraNode(name, group, first.password))

    @contextmanager
    def isolated(self, node: str) -> Iterator[None]:
        """Cut a node off with Galera's option ``gmcast.isolate``."""
        member = self.members[node]
        assert isinstance(member, _GaleraNode)
        member.shut_off(True)
        try:
            yield
        finally:
            member.shut_off(False)


class _EtcdMember(ManagedServer):
    """An etcd member. It answers only while it is connected to a majority of the members."""

    title = "etcd"
    scheme = "etcd"
    package = "etcd-server"
    programs = ("etcd",)
    users = ("etcd",)

    def __init__(self, name: str, port: int, peers: dict[str, str]) -> None:
        super().__init__()
        self._name, self._peer, self._peers = name, port, peers

    @property
    @override
    def url(self) -> str:
        return f"etcd://127.0.0.1:{self.port}"

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        return  # etcd creates its files

    @override
    def command(self, programs: dict[str, str]) -> list[str]:
        here = f"http://127.0.0.1:{self.port}"
        options = {
            "name": self._name,
            "data-dir": str(Path(self.folder, "data")),
            "listen-client-urls": here,
            "advertise-client-urls": here,
            "listen-peer-urls": f"http://127.0.0.1:{self._peer}",
            "initial-advertise-peer-urls": self._peers[self._name],
            "initial-cluster": ",".join(f"{name}={url}" for name, url in self._peers.items()),
            "initial-cluster-state": "new",
            "logger": "zap",
        }
        return [programs["etcd"], *(f"--{name}={value}" for name, value in options.items())]

    @override
    def answers(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), timeout=2).close()

    def is_healthy(self) -> bool:
        """Return whether the member belongs to a majority."""
        member = Member(("127.0.0.1", self.port), Setup("", timeout=2.0))
        try:
            return bool(member.get("/health").get("health") == "true")
        except LostError:
            return False
        finally:
            member.close()


class Etcd(ManagedCluster):
    """etcd: three members, of which two are a majority."""

    title = "etcd"
    kinds = (_EtcdMember,)

    @override
    def form(self) -> None:
        ports = {name: free_port() for name in NODES}
        peers = {name: f"http://127.0.0.1:{self.network.link(name, ports[name], self._caller)}" for name in NODES}
        members = [self.start(name, _EtcdMember(name, ports[name], peers)) for name in NODES]
        wait_until(lambda: all(member.is_healthy() for member in members), "the members of etcd had found no leader")

    def _caller(self, port: int) -> str:
        members = list(self.members.items())  # a copy: members are still added when the first ones connect
        return next((name for name, member in members if member.calls_from(port)), "")


class _Redis(ManagedServer):
    """A Redis server. Writes that it confirms have reached the operating system."""

    title = "Redis"
    scheme = "redis"
    package = "redis-server"
    programs = ("redis-server",)
    users = ("redis",)

    def __init__(self, password: str = "", primary: int = 0) -> None:
        super().__init__()
        self.password, self._primary = password or self.password, primary

    @property
    @override
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}"

    @override
    def prepare(self, programs: dict[str, str]) -> None:
        follows = f"replicaof 127.0.0.1 {self._primary}\nmasterauth {self.password}\n" if self._primary else ""
        self.write(
            "redis.conf",
            f"bind 127.0.0.1\nrequirepass {self.password}\n{follows}dir {self.folder}\n"
            'save ""\nappendonly yes\nappendfsync no\nshutdown-timeout 0\n'
            "repl-diskless-sync yes\nrepl-diskless-sync-delay 0\n",
        )

    @override
    def command(self, programs: dict[str, str]) -> list[str]:
        return [programs["redis-server"], str(Path(self.folder, "redis.conf")), "--port", str(self.port)]

    @override
    def answers(self) -> None:
        adapter = RedisAdapter(Setup(self.url, timeout=2.0))
        try:
            role = adapter.ask("ROLE")
            if role[0] == "slave" and role[3] != "connected":
                raise OSError("it does not follow its primary yet")
        finally:
            adapter.leave()


class RedisReplica(ManagedCluster):
    """Redis: a primary with one replica."""

    title = "Redis with a replica"
    kinds = (_Redis,)

    @override
    def form(self) -> None:
        primary = self.start("primary", _Redis())
        port = self.network.link("primary", primary.port, lambda _: "replica")
        self.start("replica", _Redis(primary.password, port))


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until ``condition`` is true. After ``START`` seconds raise an error that begins with ``what``."""
    deadline = time.monotonic() + START
    while not condition():
        if time.monotonic() > deadline:
            raise IsocheckError(f"{what} after {START:.0f} s")
        time.sleep(0.05)


CLUSTERS: dict[str, type[ManagedCluster]] = {
    "postgresql-standby": PostgresStandby,
    "galera": Galera,
    "etcd": Etcd,
    "redis": RedisReplica,
}

MANAGED: dict[str, type[ManagedServer] | type[ManagedCluster]] = {**SERVERS, **CLUSTERS}
