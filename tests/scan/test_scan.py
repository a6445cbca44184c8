"""``isocheck scan`` (scan/run.py, supervisor.py, worker.py): planted violations are found, and no result is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from program import PATIENCE, PROGRAM, wait_until

from benchmarks import archive
from plume_py.base.errors import IsocheckError
from plume_py.base.memory import SMALLEST, share_of_machine
from plume_py.cli.main import cli
from plume_py.scan.run import engine_for
from plume_py.scan.settings import ScanTask, Settings
from plume_py.scan.supervisor import WorkerProcess

SMALL = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",1],["r","y",0]]}]]}'
STALE = '{"initial":0,"sessions":[[{"ops":[["w","%s",1]]},{"ops":[["r","%s",0]]}]]}'


def scan(*arguments, code=None):
    named = [] if {"-l", "--level"} & set(map(str, arguments)) else ["--level", "TCC"]
    done = CliRunner().invoke(cli, ["scan", *map(str, arguments), *named])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    if code is not None:
        assert done.exit_code == code, done.output
    return done


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def by_name(path):
    return {Path(line["history"]).name: line for line in lines(path)}


@pytest.fixture(autouse=True, scope="module")
def no_compiler():
    """With an empty cache, compiling would take longer than the time limits here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOCHECK_COMPILE", "never")
        yield


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A small archive, and what must be found in it."""
    folder = tmp_path_factory.mktemp("scan") / "archive"
    sizes, archive.SIZES = archive.SIZES, ((0.97, 3, 5, 4), (0.03, 6, 10, 5))
    try:
        return folder, archive.make(folder, 140, 14, limits=False)
    finally:
        archive.SIZES = sizes


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A small file that takes minutes to unpack."""
    path = tmp_path_factory.mktemp("large") / "endless.jsonl.gz"
    archive._write_members(path, [b'{"session":0,"ops":[["w","x",1]]}\n', *[b"\n" * (16 << 20)] * 1_000])
    return path


@pytest.fixture(scope="module")
def reference(planted):
    """The results of an undisturbed scan."""
    target = planted[0].with_name("reference.jsonl")
    scan(planted[0], "--level", "weak", "--jobs", 2, "--no-times", "--results", target)
    return target


def test_a_scan_finds_exactly_the_planted_violations(planted, reference):
    folder, expected = planted
    assert archive.mistakes(expected, folder, iter(lines(reference))) == []
    document = json.loads(
        scan(folder, "--level", "weak", "--results", reference, "--resume", "--format", "json", code=4).output
    )
    outcomes = [found.outcome for found in expected.values()]
    assert document["summary"]["outcomes"] == {
        outcome: outcomes.count(outcome) for outcome in ("holds", "violated", "undecided", "unreadable")
    }
    for level in archive.LEVELS:
        violated = sum(level in found.broken for found in expected.values())
        assert document["summary"]["levels"][level]["violated"] == violated
    assert sum(document["run"]["skipped"].values()) == len(archive.OTHERS)
    assert document["run"]["same"] == len(expected) and document["run"]["checked"] == 0
    assert sum(sum(row.values()) for row in document["summary"]["folders"].values()) == len(expected)


def test_globs_lists_and_folders_give_the_same_results(planted, reference, tmp_path):
    """One job, paths from a list and a glob, in another order: the same lines."""
    folder, expected = planted
    (tmp_path / "files.txt").write_text(
        "# a comment\n\n" + "".join(f"{folder / name}\n" for name in expected if not name.startswith("broken/"))
    )
    target = tmp_path / "results.jsonl"
    scan(f"@{tmp_path / 'files.txt'}", f"{folder}/broken/*", "--level", "weak", "--jobs", 1,
         "--no-times", "--results", target)  # fmt: skip
    assert sorted(target.read_bytes().splitlines()) == sorted(reference.read_bytes().splitlines())


def test_a_line_of_the_results_contains_the_result_of_check(tmp_path):
    path = tmp_path / "stale.json"
    path.write_text(STALE % ("x", "x"))
    scan(path, "--results", tmp_path / "r.jsonl", code=1)
    (line,) = lines(tmp_path / "r.jsonl")
    checked = json.loads(CliRunner().invoke(cli, ["check", str(path), "--level", "TCC", "--format", "jsonl"]).output)
    more = {name: line.pop(name) for name in ("outcome", "lowest", "shapes", "size", "hash", "settings")}
    assert line.pop("seconds").keys() == checked.pop("seconds").keys()
    assert line == checked
    assert more["outcome"] == "violated" and more["lowest"] == "TCC" and more["size"] == path.stat().st_size
    assert [name[:2] for name in more["shapes"]] == ["k-"]


def test_histories_beyond_the_time_limit_are_stopped_and_the_scan_continues(endless, tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    shutil.copy(endless, folder / "endless.jsonl.gz")
    for i in range(5):
        (folder / f"small-{i}.json").write_text(SMALL)
    target = tmp_path / "r.jsonl"
    scan(folder, "--jobs", 1, "--timeout", 1.5, "--max-memory", "100M", "--results", target, code=3)
    found = by_name(target)
    assert found["endless.jsonl.gz"]["levels"] == {
        "TCC": {"ok": None, "taps": [], "reason": "time limit of 1.5 s reached", "order": "session"}
    }
    assert all(found[f"small-{i}.json"]["outcome"] == "holds" for i in range(5))

    again = scan(folder, "--timeout", 1.5, "--max-memory", "100M", "--results", target, "--resume", "--format", "json")
    assert json.loads(again.output)["run"]["same"] == 6, "the same limits would say the same"
    more = scan(folder, "--timeout", 1, "--max-memory", "2G", "--results", target, "--resume", "--format", "json")
    run = json.loads(more.output)["run"]
    assert (run["same"], run["checked"]) == (5, 1), "other limits are another question, but only for the undecided"
    assert len(lines(target)) == 6, "the old line is gone"
    assert by_name(target)["endless.jsonl.gz"]["levels"]["TCC"]["reason"] == "time limit of 1 s reached"


def test_histories_beyond_the_memory_limit_are_undecided(tmp_path):
    """A small file that unpacks to much more, and one after it that is none the worse."""
    folder = tmp_path / "archive"
    folder.mkdir()
    archive._write_members(folder / "huge.json.gz", [b'{"sessions":[[', *[b" " * (32 << 20)] * 5, b"]]}"])
    (folder / "small.json").write_text(SMALL)
    target = tmp_path / "r.jsonl"
    scan(folder, "--jobs", 1, "--timeout", 60, "--max-memory", "80M", "--results", target, code=3)
    found = by_name(target)
    assert found["huge.json.gz"]["levels"]["TCC"]["reason"] == "memory limit of 80 MB reached"
    assert found["small.json"]["outcome"] == "holds"


def kill_when_at_work(process, times):
    """Kill the worker process ``times`` times, each time a new one, once it is at work."""
    killed = set()
    until = time.monotonic() + PATIENCE
    while len(killed) < times and time.monotonic() < until:
        worker, current = process._process, process._current
        if worker is not None and worker.pid not in killed and current is not None:
            time.sleep(0.2)
            os.kill(worker.pid, signal.SIGKILL)
            killed.add(worker.pid)
        time.sleep(0.02)


def tasks_around(path, tmp_path):
    (tmp_path / "before.json").write_text(SMALL)
    (tmp_path / "after.json").write_text(STALE % ("x", "x"))
    paths = [tmp_path / "before.json", path, tmp_path / "after.json"]
    return [ScanTask(i, str(p), p.stat().st_size) for i, p in enumerate(paths)]


def test_only_the_history_that_kills_its_worker_twice_is_undecided(endless, tmp_path):
    process = WorkerProcess(Settings(), None)
    killer = threading.Thread(target=kill_when_at_work, args=(process, 2))
    answers = []
    for answer in process.check(tasks_around(endless, tmp_path)):
        answers.append(answer)
        if answer.number == 0:
            killer.start()
    killer.join()
    process.close()
    assert [answer.outcome for answer in answers] == ["holds", "undecided", "violated"]
    reason = json.loads(answers[1].payload)["levels"]["TCC"]["reason"]
    assert reason.startswith("worker died (signal 9, SIGKILL)")
    assert json.loads(answers[1].payload)["hash"]


def test_a_history_whose_worker_died_once_is_tried_again(endless, tmp_path):
    """The retry has all the time it needs; here the time limit ends it, which shows that it was tried again."""
    process = WorkerProcess(Settings(timeout=1), None)
    killer = threading.Thread(target=kill_when_at_work, args=(process, 1))
    killer.start()
    answers = list(process.check(tasks_around(endless, tmp_path)[1:]))
    killer.join()
    process.close()
    assert [answer.outcome for answer in answers] == ["undecided", "violated"]
    assert "time limit of 1 s" in answers[0].payload.decode()


def test_a_worker_that_is_stopped_while_it_starts_checks_nothing(endless, tmp_path, monkeypatch):
    """Whoever stops it sees no process yet; it must not go on with the batch."""
    process = WorkerProcess(Settings(), None)
    start = subprocess.Popen

    def slow_start(*arguments, **more):
        process.stop()
        return start(*arguments, **more)

    monkeypatch.setattr(subprocess, "Popen", slow_start)
    assert list(process.check(tasks_around(endless, tmp_path)[1:])) == []
    process.close()


@pytest.mark.parametrize("end", ["time limit", "parent killed"])
def test_a_remote_history_leaves_no_copy_behind(endless, tmp_path, end, child):
    pytest.importorskip("fsspec")
    process = child(
        [
            *PROGRAM,
            "scan",
            f"file://{endless}",
            "-q",
            "--level",
            "TCC",
            "--timeout",
            "1" if end == "time limit" else "60",
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    if end == "parent killed":
        wait_until(lambda: list(tmp_path.glob(f"*/{endless.name}")))
        process.kill()
    process.wait(PATIENCE)
    wait_until(lambda: not list(tmp_path.glob(f"*/{endless.name}")))


def test_an_error_says_that_worker_processes_do_not_start(tmp_path, monkeypatch):
    (tmp_path / "small.json").write_text(SMALL)

    def refuse(*arguments, **more):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    failed = CliRunner().invoke(cli, ["scan", str(tmp_path)]).exception
    assert isinstance(failed, IsocheckError)
    assert str(failed) == "cannot start a worker process: Too many open files; fewer --jobs may help"


def test_the_memory_is_shared_among_the_workers():
    machine = share_of_machine(1)
    assert share_of_machine(2) == machine // 2
    assert share_of_machine(10**6) == SMALLEST, "less would decide nothing"
    engines = [engine_for(None, jobs, Settings(), tasks) for jobs, tasks in ((64, 1), (2, 100), (8, 0))]
    assert [len(engine._workers) for engine in engines] == [1, 2, 1]
    assert engines[0]._workers[0]._memory == machine


def children(pid):
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kills", [(60,), pytest.param((10, 60, 110), marks=pytest.mark.full)])
def test_a_killed_and_resumed_scan_has_the_results_of_an_undisturbed_one(planted, endless, tmp_path, kills, child):
    """Killed when there are so many lines."""
    folder = tmp_path / "archive"
    shutil.copytree(planted[0], folder)
    shutil.copy(endless, folder / "endless.jsonl.gz")
    arguments = ["scan", str(folder), "--level", "weak", "--no-times", "--jobs", "2", "--timeout", "1"]
    whole, target = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    subprocess.run([*PROGRAM, *arguments, "--results", whole], stdout=subprocess.DEVNULL, check=False)
    for least in kills:
        process = child([*PROGRAM, *arguments, "--results", target, "--resume"], stdout=subprocess.DEVNULL)
        while process.poll() is None and (not target.exists() or target.read_bytes().count(b"\n") < least):
            time.sleep(0.01)
        workers = children(process.pid)
        process.kill()
        process.wait()
        assert process.returncode == -signal.SIGKILL, "it was still at work"
        # Workers end with their parent, but a long call into C has to return first.
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))  # noqa: B023
    with target.open("ab") as file:
        file.write(target.read_bytes()[:100])  # torn
    last = subprocess.run(
        [*PROGRAM, *arguments, "--results", target, "--resume", "--format", "json"], capture_output=True, check=False
    )
    run = json.loads(last.stdout)["run"]
    # On a busy machine even hashing the large one may take longer than its limit, and it is then tried again.
    assert run["same"] >= kills[-1] - 1 and run["same"] + run["checked"] == len(planted[1]) + 1
    assert sorted(target.read_bytes().splitlines()) == sorted(whole.read_bytes().splitlines())


def test_interrupted_by_the_keyboard(endless, tmp_path, child):
    (tmp_path / "small.json").write_text(SMALL)
    target = tmp_path / "r.jsonl"
    process = child(
        [*PROGRAM, "scan", endless, tmp_path / "small.json", "--level", "TCC", "--jobs", "2", "--results", target],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: target.exists() and target.read_bytes().endswith(b"\n"))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors.split("\n") == [f"isocheck: what is done is in {target}; go on with --resume", "interrupted", ""]
    assert [line["outcome"] for line in lines(target)] == ["holds"]


def test_resume_checks_only_new_and_changed_histories(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.json").write_text(SMALL)
    target = tmp_path / "r.jsonl"
    scan(folder, "--results", target, code=0)
    (folder / "1.json").write_text(STALE % ("x", "x"))
    (folder / "4.json").write_text(SMALL)
    os.utime(folder / "2.json", (1, 1))
    run = json.loads(scan(folder, "--results", target, "--resume", "--format", "json", code=1).output)["run"]
    assert (run["same"], run["checked"]) == (3, 2)
    assert [line["outcome"] for _, line in sorted(by_name(target).items())] == ["holds", "violated"] + ["holds"] * 3
    assert len(lines(target)) == 5
    run = json.loads(scan(folder, "-l", "RA", "--results", target, "--resume", "--format", "json").output)["run"]
    assert run["checked"] == 5, "another level is another question"


def test_existing_results_are_not_touched_without_resume(tmp_path):
    (tmp_path / "h.json").write_text(SMALL)
    target = tmp_path / "r.jsonl"
    target.write_text("precious\n")
    done = subprocess.run([*PROGRAM, "scan", tmp_path / "h.json", "--results", target], capture_output=True, text=True)
    assert done.returncode == 2 and "exists already; go on with --resume" in done.stderr
    done = subprocess.run(
        [*PROGRAM, "scan", tmp_path / "h.json", "--results", target, "--resume"], capture_output=True, text=True
    )
    assert done.returncode == 4 and "not a file of results" in done.stderr
    assert target.read_text() == "precious\n"


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ([], "Missing argument"),
        (["h", "--resume"], "--resume needs --results"),
        (["h", "--engine", "dask"], "belong together"),
        (["h", "--scheduler", "tcp://x:1"], "belong together"),
        (["h", "--engine", "dask", "--scheduler", "tcp://x:1", "--jobs", "2"], "--jobs is for the local engine"),
        (["h", "--max-memory", "much"], "write 500M or 2G"),
        (["h", "--max-memory", "1M"], "at least 64M"),
        (["h", "--timeout", "0"], "--timeout"),
        (["h", "--report", "-"], "--report needs a file"),
        (["h", "--report", "h"], "would overwrite h"),
        (["h", "--report", "/proc/none/page.html"], "cannot write /proc/none/page.html"),
        (["h", "--report", "r", "--results", "r"], "would overwrite r"),
    ],
)
def test_wrong_usage(arguments, problem):
    done = scan(*arguments, code=2)
    assert problem in done.output


def test_no_history_at_all_is_not_a_success(tmp_path):
    (tmp_path / "README.md").write_text("# nothing\n")
    done = scan(tmp_path, code=4)
    assert "no history found" in done.output and "1 not a history" in done.output


def test_levels_not_decided_are_shown_as_undecided(tmp_path):
    (tmp_path / "h.json").write_text(SMALL)
    document = json.loads(scan(tmp_path, "-l", "declared", "-l", "RC", "--format", "json").output)["summary"]
    assert document["levels"]["RC"] == {"holds": 1, "violated": 0, "undecided": 0}
    assert document["levels"]["declared"]["violated"] == 0


def test_modules_in_the_working_directory_are_not_imported(tmp_path):
    (tmp_path / "h.json").write_text(SMALL)
    for name in ("queue.py", "numpy.py", "msgspec.py"):
        (tmp_path / name).write_text("raise SystemExit('wrong module')")
    done = subprocess.run(
        [Path(sys.executable).with_name("isocheck"), "scan", "h.json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "1 hold" in done.stdout, done.stderr


def test_help_does_not_import_numpy():
    code = "import sys; from plume_py.cli.scan import command; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_levels_in_real_time_are_checked(tmp_path):
    """Such a level was left out once, and a history that was not checked at all then counted as holding."""
    content = '{"sessions":[[{"ops":[["w","x",1]],"start":1,"end":2}],[{"ops":[["r","x",null]],"start":3,"end":4}]]}'
    (tmp_path / "stale.json").write_text(content)
    scan(tmp_path, "--level", "SSER", "--results", tmp_path / "r.jsonl", code=1)
    (result,) = lines(tmp_path / "r.jsonl")
    assert result["levels"]["SSER"]["ok"] is False
