"""Tests of ``collect.deadline``, ``adapter`` and ``table_setup`` with databases that hang or answer nonsense."""

import importlib
import os
import signal
import socket
import threading
import time
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from click.testing import CliRunner
from collecting import Scripted, ScriptedConnection, gather, lines
from faulty_proxy import ACTIONS, DIRECTIONS, attack
from program import PATIENCE, PROGRAM, isocheck, lines_in, wait_until

from plume_py import check, load
from plume_py.base.errors import InputError, LimitError
from plume_py.cli.main import cli
from plume_py.collect import table_setup
from plume_py.collect.adapter import LostError, Setup, to_element, to_list
from plume_py.collect.adapters.redis import RedisAdapter
from plume_py.collect.deadline import Guard, in_time
from plume_py.collect.managed import ManagedPostgres
from plume_py.collect.registry import open_adapter

# --- answers that are no numbers


@pytest.mark.parametrize(
    "answer, value",
    [
        ("12", 12),
        (b"-3", -3),
        (7, 7),
        (None, None),
        ("abc", "abc"),
        ("1_0", "1_0"),
        (" 1", " 1"),
        ("+1", "+1"),
        ("01", "01"),
        ("١٢", "١٢"),
        ("9" * 50, "9" * 50),
        (9**50, hex(9**50)),
        (b"\xff", "\\xff"),
        ("7" * 5000, "7" * 1000 + "…"),
        (1.5, "1.5"),
        (Decimal(-3), -3),
        (Decimal("1.5"), "1.5"),
        (Decimal("NaN"), "NaN"),
        (Decimal("9" * 5000), "9" * 1000 + "…"),
        (True, "True"),
        ("\ud800", "\\ud800"),
    ],
)
def test_an_answer_that_is_not_an_integer_remains_text(answer, value):
    found = to_element(answer)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "answer, value",
    [
        ("", []),
        (",1,2", [1, 2]),
        (",1,abc", [1, "abc"]),
        ("abc", ["abc"]),
        (None, ["NULL"]),
        (b",1,\xff", [1, "\\xff"]),
    ],
)
def test_a_list_keeps_elements_that_are_not_integers_as_text(answer, value):
    assert to_list(answer) == value


@pytest.mark.parametrize("text", ["abc", "", "1_0", "+1", " 1", "01", "١٢", "7" * 5000])
def test_the_driver_of_mysql_decodes_numbers_only(text):
    """Applications on the same connections need numbers. Other contents of a number column remain text."""
    kinds = pytest.importorskip("pymysql").constants.FIELD_TYPE
    convert = importlib.import_module("plume_py.collect.adapters.mysql")._CONVERSIONS
    assert convert[kinds.LONGLONG](text) == text
    assert convert[kinds.LONGLONG]("-12") == convert[kinds.NEWDECIMAL]("-12") == -12
    assert convert[kinds.NEWDECIMAL]("abc") == convert[kinds.DOUBLE]("abc") == "abc"


class Lying(Scripted):
    """Answers the third read of x0 with ``answer``, or raises it if it is an exception."""

    def __init__(self, answer, lists=False):
        super().__init__(Setup("scripted://here", lists=lists))
        self.answer, self.reads = answer, 0

    def create(self, keys):
        self.data = {key: [] if self.setup.lists else 0 for key in keys}

    def connect(self):
        store = self

        class Connection(ScriptedConnection):
            def read(self, key):
                store.reads += 1
                if store.reads == 3:
                    if isinstance(store.answer, Exception):
                        raise store.answer
                    return store.answer
                return super().read(key)

            def append(self, key, value):
                self.mine[key] = [*self.mine[key], value]

        return Connection(self)


@pytest.mark.parametrize("answer", ["abc", None, "7" * 1000])
def test_a_nonsensical_answer_is_a_thin_air_read(answer, tmp_path):
    collected = gather("", tmp_path / "h.jsonl", adapter=Lying(answer), sessions=1, keys=1)
    assert collected.counts["aborted"] == 0
    result = check(load(tmp_path / "h.jsonl", init_txn="none"), "RC")
    assert result.ok is False and "a" in result.levels["RC"].taps


@pytest.mark.parametrize("answer", [to_list(None), ["abc"]])
def test_a_nonsensical_list_is_a_violation(answer, tmp_path):
    adapter = Lying(answer, lists=True)
    collected = gather("", tmp_path / "h.jsonl", adapter=adapter, sessions=1, keys=1, workload="append")
    assert collected.counts["aborted"] == 0
    result = check(load(tmp_path / "h.jsonl", init_txn="none"), "RC")
    assert result.ok is False and "a" in result.levels["RC"].taps


@pytest.mark.parametrize("error", [ValueError("x"), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), IndexError("x")])
def test_an_answer_that_is_not_understood_ends_the_run(error, tmp_path):
    with pytest.raises(InputError, match=r"scripted://here: the answer to a read of x0 is not understood"):
        gather("", tmp_path / "h.jsonl", adapter=Lying(error), sessions=1, keys=1)
    assert all(line["status"] == "committed" for line in lines(tmp_path / "h.jsonl")[1:])


# --- waits


def pair():
    near, far = socket.socketpair()
    return near, far, lambda: near.shutdown(socket.SHUT_RDWR)


def test_an_overdue_wait_is_cut_even_while_bytes_arrive():
    near, far, cut = pair()
    over = threading.Event()

    def trickle():
        with suppress(OSError):
            while not over.wait(0.02):
                far.send(b"x")

    threading.Thread(target=trickle, daemon=True).start()
    with near, far, pytest.raises(LostError, match="no answer within"), Guard().wait(0.2, cut):
        while near.recv(1):
            pass
        raise OSError("closed")
    over.set()


def test_an_answer_in_time_is_not_cut():
    near, far, cut = pair()
    with near, far:
        far.send(b"x")
        with Guard().wait(600, cut):
            assert near.recv(1) == b"x"
        with pytest.raises(OSError, match="another"), Guard().wait(600, cut):
            raise OSError("another")


def test_a_large_answer_is_cut():
    listening = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listening.getsockname())
    far = listening.accept()[0]

    def flood():
        with suppress(OSError):
            while True:
                far.sendall(bytes(1 << 16))

    threading.Thread(target=flood, daemon=True).start()
    with listening, near, far:
        wait = Guard().wait(600, lambda: near.shutdown(socket.SHUT_RDWR), near.fileno, 1 << 20)
        with pytest.raises(Exception, match="more than 1 MB"), wait:
            while near.recv(1 << 16):
                pass
            raise OSError("closed")


def test_work_that_never_ends_is_abandoned():
    with pytest.raises(LostError):
        in_time(time.monotonic() + 0.05, threading.Event().wait)


class Silent(Scripted):
    """A database that never answers, with an adapter that cannot be interrupted."""

    def __init__(self, silent):
        super().__init__()
        setattr(self, silent, lambda *_: threading.Event().wait())


@pytest.mark.parametrize("silent", ["version", "tables", "create", "settings", "connect", "contents", "settle", "drop"])
def test_a_silent_database_does_not_block_the_run(silent, tmp_path):
    try:
        collected = gather("", tmp_path / "h.jsonl", adapter=Silent(silent), how={"seconds": 0.5, "timeout": 0.5})
    except InputError as error:
        assert silent in ("version", "create", "settings") and "no answer within" in str(error)
        return
    if silent in ("contents", "settle"):
        assert "no answer within" in collected.audit_problem
    if silent == "drop":
        assert "isocheck collect --clean" in collected.notes[0]
    if silent == "tables":
        assert collected.counts["committed"], "what other runs left takes no time from the run"


def test_the_memory_limit_ends_the_run(tmp_path):
    with pytest.raises(LimitError, match="stopped at 1 MB of memory"):
        gather(
            "broken:", tmp_path / "h.jsonl", isolation="serializable", transactions=10**6, how={"max_memory": 1 << 20}
        )


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_no_connection_fault_records_a_commit_as_aborted(kind, request, tmp_path):
    """Compare the history with the table, which is read directly. ``faulty_proxy`` runs the full campaign."""
    server = request.getfixturevalue(kind)
    cases = [(action, direction, number) for action in ACTIONS for direction in DIRECTIONS for number in (12, 150)]
    found = {}

    def one(case):
        found[case] = attack(kind, server.url, *case, tmp_path)

    threads = [threading.Thread(target=one, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(cases)
    assert [(case, wrong) for case, (_, _, wrong) in found.items() if wrong] == []


# --- killed runs


def test_table_names_are_matched_strictly():
    name = table_setup.new_name()
    assert table_setup.is_name(name) and not table_setup.is_old(name)
    others = ("isocheck_kv", "isocheck_0a1b2c3d", f"{name}x", f"x{name}", name.upper(), f"{name}\n", f"{name}_backup")
    assert not any(table_setup.is_name(other) or table_setup.is_old(other) for other in others)
    assert table_setup.is_old("isocheck_20200101t000000_0a1b2c3d")
    assert not table_setup.is_old("isocheck_99999999t999999_0a1b2c3d"), "no time"
    assert not table_setup.is_old("isocheck_29990101t000000_0a1b2c3d"), "in the future"


class Shared(Scripted):
    """An adapter with tables of other runs."""

    def __init__(self, alive):
        super().__init__()
        self.alive, self.left = alive, ["isocheck_20200101t000000_00000001", table_setup.new_name(), "isocheck_mine"]

    def tables(self):
        return self.left

    def is_alive(self, name):
        return self.alive.pop(0) if len(self.alive) > 1 else self.alive[0]

    def drop_table(self, name):
        self.left = [other for other in self.left if other != name]


@pytest.mark.parametrize(
    "alive, left",
    [([True], 3), ([None], 2), ([False], 1), ([False, False, True], 3)],
    ids=["alive", "unknown", "dead", "alive at the second look"],
)
def test_only_abandoned_tables_are_removed(alive, left, monkeypatch):
    monkeypatch.setattr(table_setup, "SECOND_CHECK", 0.0)
    adapter = Shared(alive)
    cleaned = table_setup.clean(adapter)
    assert len(adapter.left) == left and len(cleaned.removed) == 3 - left and "isocheck_mine" in adapter.left


def test_tables_that_cannot_be_removed_in_time_are_left_to_a_later_run():
    adapter = Shared([False])
    cleaned = table_setup.clean(adapter, time.monotonic())
    assert len(adapter.left) == 3 and not cleaned.removed and len(cleaned.kept) == 2


def test_tables_of_any_size_are_found_in_etcd():
    """Each answer has one key, because all keys of a large table exceed the limit of an answer."""
    large, other = table_setup.new_name(), table_setup.new_name()
    names = [large, f"{other}!", "isocheck_mine", *(f"{large}/x{n}" for n in range(100)), f"{other}/x", "isochecks/x"]
    keys = sorted([*(name.encode() for name in names), b"isocheck_\xff", b"isocheck_\xff/x", b"isocheck"])

    class Member:
        asked = 0

        def post(self, path, request):
            first, last = b64decode(request["key"]), b64decode(request["range_end"])
            self.asked += 1
            found = [key for key in keys if first <= key < last][: int(request.get("limit", 1000))]
            return {"kvs": [{"key": b64encode(key).decode()} for key in found]} if found else {"header": {}}

    adapter, member = open_adapter(Setup("etcd://here")), Member()
    adapter._admin_member = lambda: member
    assert sorted(adapter.tables()) == sorted([large, other]) and member.asked < 20


def killed(child, url, folder):
    """Start a run and kill it. Return the name of the table that it left."""
    out = folder / f"killed-{time.monotonic_ns()}.jsonl"
    process = child([*PROGRAM, "collect", url, "--out", out, "--transactions", 10**6, "--sessions", 2])
    wait_until(lambda: lines_in(out) > 20, process)
    adapter = open_adapter(Setup(url))
    (name,) = adapter.tables()
    assert adapter.is_alive(name)
    assert "its run is still connected" in isocheck("collect", "--clean", url).stdout
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not adapter.is_alive(name))
    adapter.leave()
    return name


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_the_next_run_removes_the_table_of_a_killed_one(kind, request, child, tmp_path):
    url = f"sqlite:///{tmp_path}/t.db" if kind == "sqlite" else request.getfixturevalue(kind).url
    name = killed(child, url, tmp_path)
    done = isocheck("collect", url, "--out", tmp_path / "h.jsonl", "--transactions", 5)
    assert f"removed {name}" in done.stdout and open_adapter(Setup(url)).tables() == []
    name = killed(child, url, tmp_path)
    assert isocheck("collect", "--clean", url).stdout == f"removed {name}\n"
    assert "no abandoned run" in isocheck("collect", "--clean", url).stdout
    assert [path.name for path in tmp_path.glob("t.db-isocheck*")] == []


def test_clean_says_that_it_did_not_search_a_large_redis(monkeypatch):
    monkeypatch.setattr(RedisAdapter, "ask", lambda self, *words: {"DBSIZE": 1_000_001}[words[0]])
    done = CliRunner().invoke(cli, ["collect", "--clean", "redis://127.0.0.1:1"])
    assert (done.exit_code, done.output) == (
        0,
        "not searched for tables of abandoned runs: the database has 1,000,001 keys, more than 1,000,000\n",
    )


def test_clean_needs_a_database():
    assert isocheck("collect", "--clean").returncode == 2
    assert isocheck("collect", "sqlite:///t.db").returncode == 2


def test_a_table_to_keep_is_not_removed_by_the_next_run(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    assert isocheck("collect", url, "--keep-table", "--out", tmp_path / "a.jsonl", "--transactions", 2).returncode == 0
    assert "no abandoned run" in isocheck("collect", "--clean", url).stdout


# --- a commit that a standby may lack


def test_a_postgresql_commit_with_a_warning_is_unknown(tmp_path):
    """The server waits for a standby that does not exist, until its commits are cancelled."""
    try:
        ManagedPostgres.find()
    except Exception as missing:
        pytest.skip(str(missing))
    import psycopg

    class Alone(ManagedPostgres):
        def settings(self):
            return {**super().settings(), "synchronous_standby_names": "nowhere", "synchronous_commit": "local"}

    over = threading.Event()

    def cancel(url):
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(0.05):
                connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    with Alone() as server:
        setup = Setup(server.url, table=table_setup.new_name(), timeout=PATIENCE)
        setup = replace(setup, session_settings={"synchronous_commit": "on"})
        canceller = threading.Thread(target=cancel, args=(server.url,), daemon=True)
        canceller.start()
        out, how = tmp_path / "h.jsonl", {"timeout": PATIENCE}
        shape = {"sessions": 1, "transactions": 4, "read_only": 0, "write_only": 1}
        collected = gather("", out, adapter=open_adapter(setup), how=how, **shape)
        over.set()
        canceller.join()
    # A late request to cancel cancels the next statement, which then aborts.
    assert not collected.counts["committed"] and collected.counts["unknown"]
    assert collected.audit.ok and collected.audit.from_unknown, "the primary has them"
    unknown = [line["reason"] for line in lines(out)[1:] if line["status"] == "unknown"]
    assert all("synchronous replication" in reason for reason in unknown), unknown
