"""Adapter for Redis and Valkey: MULTI, with or without WATCH.

The protocol is so simple that no driver is needed. Reads run at once; writes stay in the client until EXEC, which runs
them in one step. Lists are stored as text, so that an empty list exists as well.
"""

import re
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import (
    AbortedError,
    Adapter,
    AnswerError,
    Connection,
    LostError,
    NotSearchedError,
    Setup,
    Value,
    promises,
    to_value,
)
from plume_py.collect.deadline import LARGEST_ANSWER
from plume_py.collect.table_setup import is_name
from plume_py.levels.databases import REDIS

# Keys per command.
BATCH = 1000
# Keys of the largest database that is searched for tables of abandoned runs.
MOST_SCANNED = 1_000_000
# Maximum nesting of arrays in an answer, and maximum length of a line. Real answers stay far below.
DEEPEST, LONGEST_LINE = 4, 1 << 16
# Errors of EXEC or MULTI after which nothing was run. A proxy may return other errors.
_NOT_RUN = ("EXECABORT", "READONLY", "NOREPLICAS", "LOADING", "OOM", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "NOPERM")
_NUMBER = re.compile(rb"-?[0-9]{1,19}")


class ReplyError(Exception):
    """The server answered with an error."""


class RedisAdapter(Adapter):
    """A server of Redis or Valkey."""

    name = "Redis"
    isolations = promises(REDIS)
    can_kill = True

    def __init__(self, setup: Setup) -> None:
        """Accept an address such as ``redis://:password@host:6379/0``."""
        super().__init__(setup)
        if setup.session_settings:
            raise IsocheckError("Redis has no settings of a connection: leave --set out")
        try:
            parts = urlsplit(setup.url)
            self._where = parts.hostname or "127.0.0.1", parts.port or 6379
            self._database = int(parts.path.strip("/") or 0)
        except ValueError:
            address = without_password(setup.url)
            raise IsocheckError(
                f"not the address of a server: {address!r:.80}; write redis://:password@host:6379/0"
            ) from None
        self._login = [unquote(part) for part in (parts.username, parts.password) if part]
        self._admin: RespConnection | None = None
        self._asking = threading.RLock()

    def version(self) -> str:
        """Return the version from ``INFO``.

        Valkey reports there its own and the Redis version that it is compatible with.
        """
        info = dict(line.split(":", 1) for line in str(self.ask("INFO", "server")).splitlines() if ":" in line)
        self.name = "Valkey" if "valkey_version" in info else "Redis"
        return info.get("valkey_version") or info.get("redis_version", "")

    def settings(self) -> dict[str, str]:
        names = ("appendonly", "appendfsync", "min-replicas-to-write")
        try:
            answers = [self.ask("CONFIG", "GET", name) for name in names]
        except ReplyError:  # the user may not
            return {}
        return {str(answer[0]): str(answer[1]) for answer in answers if answer}

    @override
    def is_replica(self) -> bool:
        return bool(self.ask("ROLE")[0] == "slave")

    def create(self, keys: Sequence[str]) -> None:
        """Set every key, prefixed by the name of the table."""
        initial = "" if self.setup.lists else "0"
        for key in keys:
            self.ask("SET", self.key(key), initial)

    @override
    def connect(self) -> Connection:
        return _RedisConnection(self)

    def contents(self) -> dict[str, Value]:
        keys = self._keys(self.setup.table)
        texts = [text for at in range(0, len(keys), BATCH) for text in self.ask("MGET", *keys[at : at + BATCH])]
        short = [key.partition(":")[2] for key in keys]
        return {key: self.value(text) for key, text in zip(short, texts, strict=True) if text is not None}

    def drop(self) -> None:
        try:
            self._delete(self.setup.table)
        finally:
            self.leave()

    @override
    def tables(self) -> list[str]:
        size = int(self.ask("DBSIZE"))
        if size > MOST_SCANNED:
            raise NotSearchedError(f"the database has {size:,} keys, more than {MOST_SCANNED:,}")
        names = {key.partition(":")[0] for key in self._keys("isocheck_????????t??????_????????")}
        return sorted(filter(is_name, names))

    @override
    def is_alive(self, table: str) -> bool | None:
        try:
            return any(client.get("name") == table for client in self._clients())
        except ReplyError:  # the user may not
            return None

    @override
    def drop_table(self, table: str) -> None:
        assert is_name(table)
        self._delete(table)

    @override
    def beat(self) -> None:
        self.ask("PING")

    def _delete(self, table: str) -> None:
        keys = self._keys(table)
        for at in range(0, len(keys), BATCH):
            self.ask("DEL", *keys[at : at + BATCH])

    def _clients(self) -> list[dict[str, str]]:
        lines = str(self.ask("CLIENT", "LIST")).splitlines()
        return [dict(field.split("=", 1) for field in line.split() if "=" in field) for line in lines]

    @override
    def leave(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def kill(self, connection: Connection) -> None:
        assert isinstance(connection, _RedisConnection)
        self.ask("CLIENT", "KILL", "ID", str(connection.number))

    def settle(self) -> None:
        """Kill all connections with our name except the admin connection. CLIENT KILL ends them before it answers."""
        own = str(self.ask("CLIENT", "ID"))
        for client in self._clients():
            if client.get("name") == self.setup.table and client.get("id") != own:
                with suppress(ReplyError):  # gone already
                    self.ask("CLIENT", "KILL", "ID", client["id"])

    def key(self, key: str) -> str:
        """Return the name of ``key`` in the server."""
        return f"{self.setup.table}:{key}"

    def value(self, text: str | None) -> Value:
        """Return the value that a key's text encodes."""
        return to_value(text, self.setup.lists)

    def open(self) -> "RespConnection":
        """Return a connection that is logged in, uses our database and has our name."""
        server = RespConnection(self._where, self.setup)
        try:
            if self._login:
                server.ask("AUTH", *self._login)
            server.ask("SELECT", str(self._database))
            server.ask("CLIENT", "SETNAME", self.setup.table)
        except BaseException:
            server.close()
            raise
        return server

    def ask(self, *words: str) -> Any:
        """Return the answer to a command on the admin connection.

        Retry once if that connection was lost, as in a restart.
        """
        with self._asking:
            for attempt in (1, 2):
                try:
                    if self._admin is None:
                        self._admin = self.open()
                    return self._admin.ask(*words)
                except (OSError, LostError, AnswerError) as error:
                    self.leave()
                    if attempt == 2 or isinstance(error, AnswerError):
                        raise
        raise AssertionError("either answered or raised")

    def _keys(self, table: str) -> list[str]:
        found: set[str] = set()
        at = "0"
        while True:
            at, some = self.ask("SCAN", at, "MATCH", f"{table}:*", "COUNT", str(BATCH))
            found.update(some)
            if at == "0":
                return sorted(found)


class _RedisConnection(Connection):
    def __init__(self, adapter: RedisAdapter) -> None:
        self._adapter = adapter
        self._server = adapter.open()
        self.number = int(self._server.ask("CLIENT", "ID"))
        self._watches = False
        self._watched: set[str] = set()
        self._written: dict[str, str] = {}  # registers that the transaction set
        self._appended: dict[str, str] = {}  # text that it appended to lists
        self._commands: list[tuple[str, ...]] = []

    def begin(self, isolation: str) -> None:
        self._watches = isolation == "watch"
        self._forget()

    def read(self, key: str) -> Value:
        if key in self._written:
            return self._adapter.value(self._written[key])
        name = self._adapter.key(key)
        if self._watches and key not in self._watched:
            self._ask("WATCH", name)
            self._watched.add(key)
        text = self._ask("GET", name)
        if text is None:
            return None
        if not isinstance(text, str):
            raise AnswerError(f"GET was answered by {text!r:.40}")
        return self._adapter.value(text + self._appended.get(key, ""))

    def write(self, key: str, value: int) -> None:
        self._written[key] = str(value)
        self._commands.append(("SET", self._adapter.key(key), str(value)))

    def append(self, key: str, value: int) -> None:
        self._appended[key] = self._appended.get(key, "") + f",{value}"
        self._commands.append(("APPEND", self._adapter.key(key), f",{value}"))

    def commit(self) -> None:
        """Send all commands together. Without writes, EXEC reports whether a watched key has changed."""
        if not self._commands and not self._watched:
            return
        queued = self._server.ask_all([("MULTI",), *self._commands, ("EXEC",)])
        begun, *waiting, done = queued
        self._watched.clear()
        refusal = next((answer for answer in queued if isinstance(answer, ReplyError)), None)
        if begun != "OK" or any(answer != "QUEUED" and not isinstance(answer, ReplyError) for answer in waiting):
            raise LostError(f"MULTI was answered by {begun!r:.60}")  # the commands may have run one by one
        if isinstance(done, ReplyError):
            raise (AbortedError if str(done).startswith(_NOT_RUN) else LostError)(str(refusal))
        if done is None:
            raise AbortedError("a key that was watched has changed")
        if not isinstance(done, list) or len(done) != len(waiting):
            raise LostError(f"EXEC was answered by {done!r:.60}")
        if refusal is not None or any(isinstance(answer, ReplyError) for answer in done):
            raise LostError("a part of the transaction was refused")

    def rollback(self) -> None:
        if self._watched:
            self._ask("UNWATCH")
        self._forget()

    def close(self) -> None:
        self._server.close()

    def abandon(self) -> None:
        self._server.abandon()

    def fileno(self) -> int:
        return self._server.fileno()

    def _forget(self) -> None:
        self._watched, self._written, self._appended, self._commands = set(), {}, {}, []

    def _ask(self, *words: str) -> Any:
        try:
            return self._server.ask(*words)
        except ReplyError as error:
            raise AbortedError(str(error)) from None


class RespConnection:
    """A connection that speaks version 2 of the Redis protocol (RESP)."""

    def __init__(self, where: tuple[str, int], setup: Setup) -> None:
        self._setup = setup
        self._socket = socket.create_connection(where, timeout=max(2.0, setup.timeout))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")

    def ask(self, *words: str) -> Any:
        """Return the answer to one command."""
        answer = self.ask_all([words])[0]
        if isinstance(answer, ReplyError):
            raise answer
        return answer

    def ask_all(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        """Send commands together and return their answers, including errors."""
        with self._setup.guard.wait(self._setup.patience, self.abandon, self.fileno):
            self._socket.sendall(b"".join(map(_encoded, commands)))
            return [self._answer() for _ in commands]

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        with suppress(OSError):
            self._answers.close()
            self._socket.close()

    def abandon(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _answer(self, depth: int = 0) -> Any:
        line = self._answers.readline(LONGEST_LINE)
        if not line.endswith(b"\r\n"):
            raise LostError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return ReplyError(rest.decode("utf-8", "replace"))
        if kind == b"+":
            return rest.decode("utf-8", "replace")
        if kind not in (b":", b"$", b"*") or not _NUMBER.fullmatch(rest) or depth > DEEPEST:
            raise AnswerError(f"an answer that is not of the protocol of Redis: {line!r:.60}")
        number = int(rest)
        if kind == b":":
            return number
        if number == -1:
            return None
        if not 0 <= number <= LARGEST_ANSWER:
            raise AnswerError(f"an answer of {number:,} pieces" if kind == b"*" else f"an answer of {number:,} bytes")
        return self._exactly(number) if kind == b"$" else [self._answer(depth + 1) for _ in range(number)]

    def _exactly(self, size: int) -> str:
        piece = self._answers.read(size + 2)
        if len(piece) < size + 2:
            raise LostError("the connection was closed")
        return piece[:-2].decode("utf-8", "backslashreplace")


def _encoded(words: tuple[str, ...]) -> bytes:
    pieces = [word.encode() for word in words]
    return b"*%d\r\n" % len(pieces) + b"".join(b"$%d\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
