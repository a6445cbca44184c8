"""Adapter for etcd, through its JSON gateway; no driver is needed.

A transaction reads at the revision of its first read, and keeps its writes in the client. It commits them together if
no key that it read has changed, as etcd's own transaction library does.
"""

import http.client
import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.override import override
from plume_py.collect.adapter import (
    AbortedError,
    Adapter,
    AnswerError,
    Connection,
    LostError,
    Setup,
    Value,
    promises,
    split_address,
    to_value,
)
from plume_py.collect.deadline import LARGEST_ANSWER
from plume_py.collect.table_setup import is_name
from plume_py.levels.databases import ETCD

# Maximum number of operations in one etcd transaction.
MOST_OPERATIONS = 128
# Maximum bytes per key in one answer.
BYTES_PER_KEY = 400
# Seconds without a sign of life after which a run counts as dead.
ALIVE = 60


class EtcdAdapter(Adapter):
    """A member of an etcd cluster."""

    name = "etcd"
    isolations = promises(ETCD)

    def __init__(self, setup: Setup) -> None:
        """Accept an address such as ``etcd://host:2379``."""
        super().__init__(setup)
        if setup.session_settings:
            raise IsocheckError("etcd has no settings of a connection: leave --set out")
        parts, port = split_address(setup.url, "the address of a member", "write etcd://host:2379")
        self._where = parts.hostname or "127.0.0.1", port or 2379
        self._admin: Member | None = None
        self._keys = 0  # number of keys in the table
        self._lease = ""

    def version(self) -> str:
        return str(self._admin_member().get("/version")["etcdserver"])

    def create(self, keys: Sequence[str]) -> None:
        """Put every key, prefixed by the name of the table."""
        if is_name(self.setup.table):
            # A key with a lease shows that the run is alive: etcd removes it soon after the last sign of life.
            self._lease = str(self._admin_member().post("/v3/lease/grant", {"TTL": str(ALIVE)})["ID"])
            self._admin_member().post("/v3/kv/put", {"key": _sign(self.setup.table), "lease": self._lease})
        initial = _b64("" if self.setup.lists else "0")
        puts = [{"requestPut": {"key": self.key(key), "value": initial}} for key in keys]
        for at in range(0, len(puts), MOST_OPERATIONS):
            self._admin_member().post("/v3/kv/txn", {"success": puts[at : at + MOST_OPERATIONS]})
        self._keys = len(keys)

    def connect(self) -> Connection:
        return _EtcdConnection(self)

    def contents(self) -> dict[str, Value]:
        """Return the table as the majority of members has it."""
        max_bytes = LARGEST_ANSWER + BYTES_PER_KEY * self._keys
        found = self._admin_member().post("/v3/kv/range", _range_of(f"{self.setup.table}/"), max_bytes).get("kvs", [])
        skip = len(self.setup.table) + 1
        with _understood():
            return {_text(kv["key"])[skip:]: self.value(_text(kv.get("value", ""))) for kv in found}

    def drop(self) -> None:
        try:
            self._admin_member().post("/v3/kv/deleterange", _range_of(f"{self.setup.table}/"))
            if self._lease:
                self._admin_member().post("/v3/lease/revoke", {"ID": self._lease})
        finally:
            self.leave()

    @override
    def tables(self) -> list[str]:
        """Return the tables, found by the first key of each name: an answer with all keys could be too large."""
        names: list[str] = []
        question = {**_range_of("isocheck_"), "keys_only": True, "limit": "1"}
        while found := self._admin_member().post("/v3/kv/range", question).get("kvs"):
            with _understood():
                key = b64decode(found[0]["key"])
            name, slash, _ = key.partition(b"/")
            if slash:
                names.append(name.decode("utf-8", "backslashreplace"))
            # Continue after all keys of that table, or after this single key.
            question["key"] = b64encode(name + b"0" if slash else key + b"\0").decode()
        return [name for name in names if is_name(name)]

    @override
    def is_alive(self, table: str) -> bool:
        return bool(self._admin_member().post("/v3/kv/range", {"key": _sign(table)}).get("kvs"))

    @override
    def drop_table(self, table: str) -> None:
        assert is_name(table)
        self._admin_member().post("/v3/kv/deleterange", _range_of(f"{table}/"))

    @override
    def beat(self) -> None:
        if self._lease:
            member = self.open()  # the admin connection may be busy
            try:
                member.post("/v3/lease/keepalive", {"ID": self._lease})
            finally:
                member.close()

    def leave(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def key(self, key: str) -> str:
        """Return the name of ``key`` in the server, encoded."""
        return _b64(f"{self.setup.table}/{key}")

    def value(self, text: str | None) -> Value:
        """Return the value that a key's text encodes."""
        return to_value(text, self.setup.lists)

    def open(self) -> "Member":
        """Return a new connection."""
        return Member(self._where, self.setup)

    def _admin_member(self) -> "Member":
        if self._admin is None:
            self._admin = self.open()
        return self._admin


class _EtcdConnection(Connection):
    def __init__(self, adapter: EtcdAdapter) -> None:
        self._adapter = adapter
        self._member = adapter.open()
        self._member.get("/version")  # fails if the member does not answer
        self._is_local = False
        self._begin()

    def _begin(self) -> None:
        self._revision = ""  # of the first read
        # key -> its text, None if it is absent, and the revision at which it was written
        self._read: dict[str, tuple[str | None, str]] = {}
        self._written: dict[str, str] = {}

    def begin(self, isolation: str) -> None:
        self._is_local = isolation == "serializable reads"
        self._begin()

    def read(self, key: str) -> Value:
        return self._adapter.value(self._text(key))

    def _text(self, key: str) -> str | None:
        if key in self._written:
            return self._written[key]
        if key not in self._read:
            self._read[key] = self._range(key)
        return self._read[key][0]

    def _range(self, key: str) -> tuple[str | None, str]:
        request: dict[str, Any] = {"key": self._adapter.key(key)}
        if self._is_local:
            request["serializable"] = True
        if self._revision:
            request["revision"] = self._revision
        try:
            answer = self._member.post("/v3/kv/range", request)
        except MemberError as error:
            raise AbortedError(str(error)) from None
        with _understood():
            self._revision = self._revision or answer["header"]["revision"]
            if "kvs" not in answer:
                return None, "0"
            found = answer["kvs"][0]
            return _text(found.get("value", "")), found["mod_revision"]

    def write(self, key: str, value: int) -> None:
        self._written[key] = str(value)

    def append(self, key: str, value: int) -> None:
        self._written[key] = f"{self._text(key) or ''},{value}"

    def commit(self) -> None:
        """Commit the writes if no key that was read has changed. Reads alone need no check: they read one revision."""
        if not self._written:
            return
        unchanged = [
            {"key": self._adapter.key(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision}
            for key, (_, revision) in self._read.items()
        ]
        puts = [
            {"requestPut": {"key": self._adapter.key(key), "value": _b64(text)}} for key, text in self._written.items()
        ]
        answer = self._member.post("/v3/kv/txn", {"compare": unchanged, "success": puts})
        if "header" not in answer or answer.get("succeeded") not in (None, False, True):
            raise LostError("the answer to the transaction is none of etcd")
        if not answer.get("succeeded"):  # a field that is false is left out
            raise AbortedError("what was read has changed")

    def rollback(self) -> None:
        return  # nothing was sent

    def close(self) -> None:
        self._member.close()

    def abandon(self) -> None:
        self._member.abandon()

    def fileno(self) -> int:
        return self._member.fileno()


class MemberError(LostError):
    """The member answered with an error, which may leave open whether it did something."""


class Member:
    """A connection to a member."""

    def __init__(self, where: tuple[str, int], setup: Setup) -> None:
        self._setup = setup
        self._http = http.client.HTTPConnection(*where, timeout=max(2.0, setup.timeout))

    def get(self, path: str) -> Any:
        """Return the answer to a GET request."""
        return self._ask("GET", path, None)

    def post(self, path: str, request: dict[str, Any], max_bytes: int = LARGEST_ANSWER) -> Any:
        """Return the answer to a POST request, of at most ``max_bytes`` bytes."""
        return self._ask("POST", path, json.dumps(request).encode(), max_bytes)

    def _ask(self, method: str, path: str, body: bytes | None, max_bytes: int = LARGEST_ANSWER) -> Any:
        try:
            if self._http.sock is None:
                self._http.connect()
                connected: Any = self._http.sock
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._setup.guard.wait(self._setup.patience, self.abandon, self.fileno, max_bytes):
                self._http.request(method, path, body)
                answer = self._http.getresponse()
                text = answer.read(max_bytes + 1)
            if len(text) > max_bytes:
                raise AnswerError(f"an answer of more than {max_bytes:,} bytes")
            content = json.loads(text)
            if not answer.isclosed():
                raise LostError("an answer that is cut short")
            if not isinstance(content, dict):
                raise LostError(f"an answer that is no object: {content!r:.60}")
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self._http.close()
            raise LostError(str(error) or type(error).__name__) from None
        except (LostError, AnswerError):
            self._http.close()
            raise
        if answer.status != http.client.OK:
            raise MemberError(str(content.get("error", answer.reason)))
        return content

    def fileno(self) -> int:
        connected: Any = self._http.sock
        return -1 if connected is None else int(connected.fileno())

    def close(self) -> None:
        self._http.close()

    def abandon(self) -> None:
        with suppress(OSError, AttributeError):
            self._http.sock.shutdown(socket.SHUT_RDWR)


def _range_of(prefix: str) -> dict[str, str]:
    """Return the range of all keys with this prefix."""
    return {"key": _b64(prefix), "range_end": _b64(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def _sign(table: str) -> str:
    return _b64(f"{table}!")


def _b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(encoded: str) -> str:
    return b64decode(encoded).decode("utf-8", "backslashreplace")


@contextmanager
def _understood() -> Iterator[None]:
    """Raise AnswerError, which ends the run, if an answer does not have the shape of etcd's."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise AnswerError(f"an answer that is none of etcd ({type(error).__name__}: {error!s:.60})") from None
