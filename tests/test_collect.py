"""Collecting: what is recorded is what happened, whatever happens. On SQLite and on stores that fail on purpose."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plume_py import check, load
from plume_py.collect.adapter import AbortedError, Adapter, Connection, LostError, Promise, Setup, spelled
from plume_py.collect.audit import audit
from plume_py.collect.client import Isolation
from plume_py.collect.recorder import Recorder
from plume_py.collect.registry import adapter_class, open_adapter, without_password
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape, Workload, workload_names
from plume_py.errors import InputError, IsocheckError
from plume_py.history.formats.jsonl_pending import pending_path

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-c", "from plume_py.cli.main import main; main()"]


def gather(url, out, *, isolation="serializable", level="SER", adapter=None, server=None, how=None, **shape):
    """A small run; what it came to."""
    shape = Shape(**{"sessions": 4, "transactions": 30, "keys": 6, **shape})
    adapter = adapter or open_adapter(Setup(url, lists=shape.lists))
    plan = Plan(shape, [Isolation(isolation, level)], str(out), **(how or {}))
    return collect(adapter, plan, server)


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def isocheck(*args, **how):
    done = subprocess.run([*PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=120, check=False, **how)
    assert "Traceback" not in done.stderr
    return done


# --- what comes out


def test_kinds_of_a_mix_have_their_levels(tmp_path):
    out = tmp_path / "h.jsonl"
    by_kind = {"balance": Isolation("serializable", "PC")}
    gather("broken:?bug=none", out, workload="smallbank", how={"by_kind": by_kind})
    for line in lines(out)[1:]:
        reads_only = all(op[0] == "r" for op in line["ops"])
        assert line["status"] != "committed" or (line["level"] == "PC") == reads_only
    wrong = isocheck("test", "broken:?bug=none", "--workload", "smallbank", "--levels", "balanse=SER")
    assert wrong.returncode == 2 and "no kind 'balanse'; use balance, deposit" in wrong.stderr
    assert isocheck("test", "broken:?bug=none", "--levels", "balance").returncode == 2


@pytest.mark.parametrize("workload", workload_names())
def test_sqlite_is_serializable_with_every_workload(workload, tmp_path):
    out = tmp_path / "h.jsonl"
    collected = gather(f"sqlite:///{tmp_path}/t.db", out, workload=workload)
    assert collected.audit is not None and collected.audit.ok and collected.audit.confirmed
    assert collected.counts["committed"] and not collected.counts["unknown"] and not collected.given_up
    history = load(out)
    assert history.transactions == collected.transactions == 120
    assert check(history, "SER").ok
    assert not Path(pending_path(str(out))).exists()


# bug -> levels that hold, levels that break
BUGS = {
    "none": (["SER"], []),
    "write-skew": (["SI"], ["SER"]),
    "lost-update": (["PC"], ["PSI", "SI"]),
    "lost-causality": (["RA"], ["TCC"]),
    "lost-session-order": (["RC", "CI"], ["RA"]),
    "fractured-commits": ([], ["RC"]),
    "stale-reads": ([], ["RC"]),
    "dirty-reads": ([], ["RC"]),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_broken_store_is_caught_at_the_level_it_breaks(bug, tmp_path):
    holds, breaks = BUGS[bug]
    found = {}
    for seed in range(5):  # threads take their turns as they like; what holds must hold every time
        gather(
            f"broken:?bug={bug}&seed={seed}", tmp_path / "h.jsonl",
            sessions=6, transactions=40, keys=5, pause=0.2, seed=seed,
        )  # fmt: skip
        result = check(load(tmp_path / "h.jsonl"), [*holds, *breaks])
        assert all(result.levels[level].ok for level in holds)
        found = {level: result.levels[level].ok for level in breaks}
        if False in found.values() or not breaks:
            break
    assert not any(found.values())


def test_a_lost_append_is_missing_from_the_table(tmp_path):
    collected = gather("broken:?bug=lost-update", tmp_path / "h.jsonl", workload="append", pause=0.2, keys=2)
    assert collected.audit is not None and not collected.audit.ok
    assert "lacks" in collected.audit.problems[0] and "which was committed" in collected.audit.problems[0]


def test_the_header_says_where_it_comes_from(tmp_path):
    out = tmp_path / "h.jsonl"
    gather(f"sqlite:///{tmp_path}/t.db", out, seed=7, transactions=3)
    header, *transactions = lines(out)
    about = header["collected"]
    assert header["initial"] == 0 and about["database"] == "SQLite" and about["workload"]["seed"] == 7
    assert about["settings"]["journal_mode"] == "wal" and re.match(r"3\.", about["version"])
    for transaction in transactions:
        assert transaction["start"] <= transaction["end"] and transaction["level"] == "SER"
    ids = [transaction["id"] for transaction in transactions]
    assert len(ids) == len(set(ids)) == 12


def test_values_are_written_once(tmp_path):
    gather("broken:?bug=none", tmp_path / "h.jsonl", how={"retries": 3}, pause=0.1)
    written = [op[2] for line in lines(tmp_path / "h.jsonl")[1:] for op in line["ops"] if op[0] == "w"]
    assert len(written) == len(set(written)) > 0


def test_plans_follow_from_the_seed_alone():
    def plans(seed):
        workload = Workload(Shape(seed=seed, distribution="zipfian", rotate=5))
        return [[plan for plan, _ in zip(workload.plans(s), range(20), strict=False)] for s in range(8)]

    assert plans(1) == plans(1) != plans(2)


@pytest.mark.parametrize("workload", workload_names())
def test_plans_touch_only_keys_that_exist(workload):
    shape = Shape(workload=workload, sessions=3, transactions=50, keys=4, rotate=7, distribution="hotspot")
    made = Workload(shape)
    keys = made.keys
    assert len(keys) == len(set(keys))
    used = {key for s in range(3) for plan, _ in zip(made.plans(s), range(60), strict=False) for _, key in plan}
    assert used <= set(keys)


def test_shares_of_read_only_and_write_only():
    workload = Workload(Shape(read_only=0.5, write_only=0.5, operations=(3, 3)))
    kinds = {tuple(kind for kind, _ in plan) for plan, _ in zip(workload.plans(0), range(50), strict=False)}
    assert kinds == {("r",) * 3, ("w",) * 3}
    with pytest.raises(IsocheckError):
        Workload(Shape(read_only=0.6, write_only=0.5))


def test_a_mix_records_a_level_per_transaction(tmp_path):
    adapter = Scripted(isolations={"read committed": Promise("RC"), "serializable": Promise("SER")})
    plan = Plan(
        Shape(sessions=2, transactions=40), [Isolation("read committed", "RC", 3), Isolation("serializable", "SER")],
        str(tmp_path / "h.jsonl"),
    )  # fmt: skip
    collect(adapter, plan)
    header, *transactions = lines(tmp_path / "h.jsonl")
    assert header["collected"]["mix"] == {"read committed": 3, "serializable": 1}
    levels = [transaction["level"] for transaction in transactions]
    assert levels.count("RC") > levels.count("SER") > 0
    assert check(load(tmp_path / "h.jsonl"), "declared").ok


# --- outcomes, with a store that fails as it is told


class Scripted(Adapter):
    """A dictionary under a lock for whole transactions; ``script`` maps the number of a commit to what goes wrong."""

    name = "scripted"
    isolations = {"serializable": Promise("SER")}  # noqa: RUF012
    can_kill = True

    def __init__(self, setup=Setup(""), script=None, isolations=None):  # noqa: B008
        super().__init__(setup)
        self.script = script or {}
        self.isolations = isolations or self.isolations
        self.data, self.lock, self.commits, self.connections = {}, threading.Lock(), 0, 0

    def version(self):
        return "1"

    def create(self, keys):
        self.data = dict.fromkeys(keys, 0)

    def connect(self):
        self.connections += 1
        return ScriptedConnection(self)

    def contents(self):
        return self.data

    def drop(self):
        pass


class ScriptedConnection(Connection):
    def __init__(self, store):
        self.store, self.mine, self.closed = store, None, threading.Event()

    def begin(self, isolation):
        self.store.lock.acquire()
        self.mine = dict(self.store.data)

    def read(self, key):
        return self.mine[key]

    def write(self, key, value):
        self.mine[key] = value
        if self.store.script.get("write") == value:
            raise LostError("lost in a write")

    append = write

    def commit(self):
        self.store.commits += 1
        action = self.store.script.get(self.store.commits)
        if action == "hang":
            self.closed.wait(30)
            raise OSError("cut off")
        if action == "refuse":
            raise AbortedError("conflict")
        if action != "lose before":
            self.store.data = self.mine
        if action in ("lose before", "lose after"):
            raise LostError("no answer")
        self._end()

    def rollback(self):
        self._end()

    def _end(self):
        if self.mine is not None:
            self.mine = None
            self.store.lock.release()

    def close(self):
        self._end()

    def abandon(self):
        self.closed.set()


def scripted(tmp_path, script, **options):
    adapter = Scripted(script=script)
    how = {"timeout": options.pop("timeout", 10.0), **options.pop("how", {})}
    collected = gather("", tmp_path / "h.jsonl", adapter=adapter, how=how, **{"sessions": 1, **options})
    return adapter, collected, lines(tmp_path / "h.jsonl")[1:]


def test_a_refusal_is_aborted_and_the_session_goes_on(tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {2: "refuse", 5: "refuse"})
    assert [line["status"] for line in recorded].count("aborted") == 2 == collected.counts["aborted"]
    assert {line["session"] for line in recorded} == {0} and adapter.connections == 1
    assert collected.audit.ok


@pytest.mark.parametrize("script", ["lose before", "lose after"])
def test_no_answer_to_a_commit_is_unknown_and_ends_the_session(script, tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {3: script}, read_only=0, write_only=1)
    assert [line["status"] for line in recorded[:4]] == ["committed", "committed", "unknown", "committed"]
    assert [line["session"] for line in recorded[:4]] == [0, 0, 0, 1]
    assert adapter.connections == 2 and collected.audit.ok
    assert check(load(tmp_path / "h.jsonl"), "SER").ok


def test_an_error_before_the_commit_is_aborted_even_if_the_connection_is_lost(tmp_path):
    adapter, collected, recorded = scripted(tmp_path, {"write": 4}, read_only=0, write_only=1)
    aborted = [line for line in recorded if line["status"] == "aborted"]
    assert len(aborted) == 1 and aborted[0]["ops"][-1][2] == 4, "the write that failed may have been seen"
    assert {line["session"] for line in recorded} == {0} and adapter.connections == 2 and collected.audit.ok


def test_retries_are_new_transactions(tmp_path):
    _, _, recorded = scripted(
        tmp_path, {1: "refuse", 2: "refuse"}, how={"retries": 5}, transactions=1, read_only=0, write_only=1
    )
    assert [line["status"] for line in recorded] == ["aborted", "aborted", "committed"]
    assert len({line["id"] for line in recorded}) == 3
    assert len({op[2] for line in recorded for op in line["ops"]}) == sum(len(line["ops"]) for line in recorded)


def test_a_server_that_hangs_does_not_hang_the_collector(tmp_path):
    begin = time.monotonic()
    _, collected, recorded = scripted(tmp_path, {4: "hang"}, timeout=0.2, read_only=0, write_only=1)
    assert time.monotonic() - begin < 10
    assert recorded[3]["status"] == "unknown" and collected.counts["committed"] == 29


def test_a_server_that_is_gone_ends_the_run(tmp_path):
    class Gone(Scripted):
        def connect(self):
            raise OSError("connection refused")

    from plume_py.collect import client

    adapter = Gone()
    shape = Shape(sessions=2, transactions=5)
    recorder = Recorder(str(tmp_path / "h.jsonl"), {"initial": 0})
    task = client.Task(adapter, shape, Workload(shape), [], recorder, threading.Event(), give_up=0.3)
    player = client.Client(task, 0)
    player.start()
    player.join(10)
    assert "connection refused" in player.given_up
    recorder.close()


def test_a_table_that_cannot_be_made_is_one_line(tmp_path):
    class Refusing(Scripted):
        def create(self, keys):
            raise RuntimeError("permission denied\nCONTEXT: …")

    with pytest.raises(InputError) as error:
        gather("", tmp_path / "h.jsonl", adapter=Refusing())
    assert "permission denied" in str(error.value) and "\n" not in str(error.value)


# --- the audit


def history(tmp_path, *transactions):
    path = tmp_path / "h.jsonl"
    header = {"initial": 0}
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *transactions)))
    return str(path)


@pytest.mark.parametrize(
    "table, problem",
    [
        ({"x": 2}, None),
        ({"x": 1}, "itself overwrote"),
        ({"x": 3}, "which was aborted"),
        ({"x": 4}, None),
        ({"x": 9}, "nobody wrote"),
        ({"x": 0}, "has its initial value"),
        ({}, "not in the table"),
    ],
)
def test_audit_of_registers(table, problem, tmp_path):
    path = history(
        tmp_path,
        {"id": "a", "ops": [["w", "x", 1], ["w", "x", 2]], "status": "committed"},
        {"id": "b", "ops": [["w", "x", 3]], "status": "aborted"},
        {"id": "c", "ops": [["w", "x", 4]], "status": "unknown"},
    )
    found = audit(path, table)
    assert found.ok == (problem is None)
    assert problem is None or problem in found.problems[0]


@pytest.mark.parametrize(
    "table, problem",
    [
        ([1, 2], None),
        ([1, 2, 4], None),
        ([2], "lacks 1"),
        ([1, 2, 2], "twice"),
        ([1, 3, 2], "which was aborted"),
        ([1, 2, 7], "nobody wrote"),
    ],
)
def test_audit_of_lists(table, problem, tmp_path):
    path = history(
        tmp_path,
        {"id": "a", "ops": [["append", "x", 1], ["append", "x", 2], ["r", "x", [1, 2]]], "status": "committed"},
        {"id": "b", "ops": [["append", "x", 3]], "status": "aborted"},
        {"id": "c", "ops": [["append", "x", 4]], "status": "unknown"},
    )
    found = audit(path, {"x": table})
    assert found.ok == (problem is None)
    assert problem is None or problem in found.problems[0]


# --- the file


def test_what_was_being_committed_when_the_collector_was_killed_is_unknown(tmp_path):
    path = str(tmp_path / "h.jsonl")
    recorder = Recorder(path, {"initial": 0})
    one = {"id": "a", "session": 0, "ops": [["w", "x", 1]]}
    two = {"id": "b", "session": 1, "ops": [["r", "x", 1]]}
    recorder.intend(one)
    recorder.intend(two)
    recorder.record({**two, "status": "committed"})  # it has seen a, whose own line is not there yet
    assert check(load(path), "TCC").ok and load(path).transactions == 2
    Path(pending_path(path)).write_bytes(Path(pending_path(path)).read_bytes() + b'{"id": "c", "ses')  # cut off
    assert load(path).transactions == 2
    whole = tmp_path / "whole.jsonl"
    assert isocheck("convert", path, whole).returncode == 0
    assert load(whole).transactions == 2 and not Path(pending_path(str(whole))).exists()
    copied = tmp_path / "other.jsonl"
    copied.write_bytes(Path(path).read_bytes())
    assert not check(load(copied), "TCC").ok, "without the hidden file, the write is missing"
    Path(path).write_text('{"initial": 0}\n{"session": 0, "ops": [["w", "x", 1]]}\n')
    assert load(path).transactions == 1, "the hidden file is of another history"


def test_a_damaged_hidden_file_is_one_line(tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_text('{"initial": 0, "collected": {"run": "r"}}\n{"session": 0, "ops": [["w", "x", 1]]}\n')
    Path(pending_path(str(path))).write_text('{"run":"r"}\n{"session": 0, "ops": 7}\n')
    with pytest.raises(InputError, match="the hidden file beside it: "):
        load(path)
    Path(pending_path(str(path))).unlink()
    os.mkfifo(pending_path(str(path)))
    assert load(path).transactions == 1


def test_the_hidden_file_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr("plume_py.collect.recorder.PENDING_LIMIT", 1000)
    path = str(tmp_path / "h.jsonl")
    recorder = Recorder(path, {"initial": 0})
    recorder.intend({"id": "open", "session": 9, "ops": [["w", "x", -1]]})
    for i in range(200):
        transaction = {"id": str(i), "session": 0, "ops": [["w", "x", i + 1]]}
        recorder.intend(transaction)
        recorder.record({**transaction, "status": "committed"})
    assert os.path.getsize(pending_path(path)) < 2000
    assert load(path).transactions == 201
    recorder.close()
    assert not os.path.exists(pending_path(path)) and load(path).transactions == 201
    assert recorder.counts == {"committed": 200, "aborted": 0, "unknown": 1}


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    path = str(tmp_path / "h.jsonl")
    recorder = Recorder(path, {"initial": 0})
    recorder.record({"id": "a", "session": 0, "ops": [["w", "x", 1]], "status": "committed"})
    write = os.write

    def half(handle, data):
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return write(handle, data[: len(data) - 5])

    monkeypatch.setattr(os, "write", half)
    recorder.record({"id": "b", "session": 0, "ops": [["w", "x", 2]], "status": "committed"})
    monkeypatch.undo()
    assert "No space left" in recorder.problem
    recorder.close()
    assert load(path).transactions == 1


def wait_for_lines(path, count):
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_cut_short_leaves_a_usable_history(how, tmp_path):
    out = tmp_path / "h.jsonl"
    arguments = ["collect", f"sqlite:///{tmp_path}/t.db", "--transactions", "1000000", "--out", str(out)]
    run = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_lines(out, 200)
    run.send_signal(how)
    printed, errors = run.communicate(timeout=60)
    assert out.read_bytes().endswith(b"\n")
    assert check(load(out), "SER").ok
    if how == signal.SIGKILL:
        return
    assert run.returncode == 130 and "interrupted" in printed and "agrees with the history" in printed, errors
    assert not Path(pending_path(str(out))).exists()


def test_a_managed_folder_goes_even_if_the_collector_is_killed(tmp_path):
    out = tmp_path / "h.jsonl"
    arguments = ["collect", "--managed", "sqlite", "--transactions", "1000000", "--out", str(out)]
    run = subprocess.Popen([*PROGRAM, *arguments], env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_for_lines(out, 20)
    assert list(tmp_path.glob("isocheck-*"))
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while list(tmp_path.glob("isocheck-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --- the command line


def test_test_needs_nothing_installed(tmp_path):
    run = isocheck("test", "--transactions", 20, "--history", tmp_path / "h.jsonl")
    assert run.returncode == 0 and "SER  holds" in run.stdout and "agrees with the history" in run.stdout
    assert (tmp_path / "h.jsonl").exists()


def test_test_shows_what_is_broken(tmp_path):
    run = isocheck(
        "test", "broken:?bug=stale-reads", "--pause", 0.2, "--transactions", 50, "--out", tmp_path / "pictures",
        "--report", tmp_path / "r.html", env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 1 and "SER  violated" in run.stdout
    assert list((tmp_path / "pictures").glob("*.dot")) and (tmp_path / "r.html").exists()
    kept = re.search(r"the history is kept in (\S+)", run.stderr)
    assert kept is not None and not check(load(kept[1]), "SER").ok


def test_expect_is_checked_instead_of_the_promise():
    run = isocheck("test", "broken:?bug=write-skew", "--expect", "SI", "--transactions", 40, "--format", "json")
    assert run.returncode == 0
    assert list(json.loads(run.stdout)["results"][0]["levels"]) == ["SI"]


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["collect", "nonsense", "--out", "h"], 2, "not the address of a database"),
        (["collect", "ftp://u:secret@x/", "--out", "h"], 2, "not the address of a database"),
        (["collect", "--out", "h"], 2, "give the URL of a database, or --managed"),
        (["collect", "broken:?bug=what", "--out", "h"], 2, "unknown bug"),
        (["collect", "broken:", "--isolation", "RC", "--out", "h"], 2, "has no isolation level 'RC'; it has serial"),
        (["collect", "broken:", "--faults", "pause", "--out", "h"], 2, "use --managed"),
        (["collect", "broken:", "--faults", "kill-connection", "--out", "h"], 2, "leave kill-connection out"),
        (["collect", "broken:", "--faults", "earthquake", "--out", "h"], 2, "'earthquake' is not a fault"),
        (["collect", "broken:", "--mix", "RC:2", "--out", "h"], 2, "is not a part of a mix"),
        (["collect", "broken:", "--operations", "5-2", "--out", "h"], 2, "is not a length"),
        (["collect", "broken:", "--out", "/nowhere/h"], 2, "cannot write /nowhere/h"),
        (["collect", "sqlite:///:memory:", "--out", "h"], 2, "needs a file"),
        (["collect", "sqlite:////nowhere/t.db", "--out", "h"], 4, "cannot set up the table"),
        (["collect", "no_such_module:Class", "--out", "h"], 2, "cannot import no_such_module"),
        (["collect", "no_such.py:Class", "--out", "h"], 2, "no such file"),
        (["collect", "json:JSONDecoder", "--out", "h"], 2, "is not an adapter"),
        (["collect", "broken:", "--transactions", "0", "--out", "h"], 3, "nothing committed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line(arguments, code, words, tmp_path):
    run = isocheck(*arguments, cwd=tmp_path)
    assert run.returncode == code, run.stderr
    assert words in run.stderr + run.stdout and "secret" not in run.stderr


def test_names_of_options_agree_with_the_tables():
    from plume_py.cli import collect as options
    from plume_py.collect.faults import KINDS
    from plume_py.collect.managed import SERVERS

    assert list(options.WORKLOADS) == workload_names()
    assert list(options.MANAGED) == list(SERVERS) and options.FAULTS == KINDS


# --- addresses and adapters


def test_passwords_are_not_written_down():
    assert without_password("postgresql://me:secret@host:5/db?x=1") == "postgresql://me@host:5/db?x=1"
    assert without_password("postgresql://host/db?password=secret&x=1") == "postgresql://host/db?x=1"
    assert without_password("sqlite:///t.db") == "sqlite:///t.db"
    assert spelled("Read_Committed") == spelled("read-committed") == "read committed"


def test_an_adapter_in_a_module(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    assert adapter_class("plume_py.collect.adapters.sqlite:SqliteAdapter").name == "SQLite"


def test_the_adapter_in_the_documentation_works_as_a_file(tmp_path):
    page = (ROOT / "docs" / "collect.md").read_text()
    example = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class Dictionary" in block)
    (tmp_path / "dictionary.py").write_text(example.partition("# Run it")[0])
    run = isocheck("test", f"{tmp_path}/dictionary.py:Dictionary", "--workload", "append", cwd=tmp_path)
    assert run.returncode == 0 and "SER  holds" in run.stdout, run.stderr


def test_random_scripts_never_give_a_false_alarm(tmp_path):
    """Whatever goes wrong in a store that is serializable, the history says nothing else."""
    rng = random.Random(1)
    for _ in range(15):
        script = {rng.randrange(1, 60): rng.choice(["refuse", "lose before", "lose after"]) for _ in range(12)}
        _, collected, _ = scripted(tmp_path, script, sessions=3, keys=3)
        assert collected.audit.ok
        assert check(load(tmp_path / "h.jsonl"), "SER").ok
