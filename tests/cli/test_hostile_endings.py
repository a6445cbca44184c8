"""Exit codes after failures of streams, time or memory (cli/main.py, base/limits.py): 1 means only a violation."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import PATIENCE

from plume_py.base import limits as limits_module
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.memory import in_use
from plume_py.cli import main as main_module

ROOT = Path(__file__).parent.parent.parent
PROGRAM = [sys.executable, "-c", "from plume_py.cli.main import run; run()"]
HOLDS = str(ROOT / "histories/TCC/serial.json")
BREAKS = str(ROOT / "histories/RA/tap-m-co-conflict-cm.json")
UNUSABLE = 2  # results that cannot be written


def shell(command, *arguments, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = command.replace("ISOCHECK", f"'{sys.executable}' -c 'from plume_py.cli.main import run; run()' \"$@\"")
    return subprocess.run(
        ["bash", "-c", script, "bash", *map(str, arguments)],
        env=environment,
        capture_output=True,
        timeout=PATIENCE,
        **more,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize(
    ("streams", "wanted"),
    [
        ("2>/dev/full", (0, 1, 4, 2)),
        ("2>&-", (0, 1, 4, 2)),
        (">&-", (0, 1, 4, 2)),
        (">&- 2>&-", (0, 1, 4, 2)),
        ("0<&- >&- 2>&-", (0, 1, 4, 2)),
        (">/dev/full", (UNUSABLE, UNUSABLE, 4, 2)),
        (">/dev/full 2>/dev/full", (UNUSABLE, UNUSABLE, 4, 2)),
        ("| head -c 0; exit ${PIPESTATUS[0]}", (141, 141, 4, 2)),
        ("2>&1 | head -c 0; exit ${PIPESTATUS[0]}", (141, 141, 4, 2)),
    ],
)
def test_exit_codes_do_not_depend_on_where_messages_go(streams, wanted):
    for argument, code in zip((HOLDS, BREAKS, "nowhere.json", "--nonsense"), wanted, strict=True):
        assert shell(f"ISOCHECK {streams}", "check", argument).returncode == code, argument


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["stats", "nowhere"],
        ["convert", "nowhere", "x.json"],
        ["verify", "nowhere", "nowhere"],
        ["scan", "nowhere"],
        ["allocate", "nowhere"],
        ["infer", "nowhere"],
        ["predict", "nowhere"],
        ["synth", "--allow", "nowhere", "--forbid", "SI"],
        ["collect", "nowhere", "--out", "x"],
        ["watch", "nowhere", "--no-follow"],
        [],
        ["formats", "x"],
    ],
)
def test_no_command_exits_with_1_when_standard_error_is_closed(arguments, tmp_path):
    for streams in ("2>/dev/full", "2>&-", ">/dev/full", ">&- 2>&-"):
        assert shell(f"ISOCHECK {streams}", *arguments, cwd=tmp_path).returncode in (0, 2, 3, 4)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), 3),
        (RecursionError("deep"), 3),
        (LimitError("over"), 3),
        (KeyError("x"), 3),
        (OSError(28, "No space left on device"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_uncaught_error_is_one_line(monkeypatch, capsys, error, code):
    def fail(**_):
        raise error

    monkeypatch.setattr(main_module.cli, "main", fail)
    monkeypatch.setattr(main_module, "_silence_output", lambda: None)
    monkeypatch.delenv("ISOCHECK_DEBUG", raising=False)
    with pytest.raises(SystemExit) as stop:
        main_module.main()
    assert stop.value.code == code
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- limits


def test_work_that_never_checks_its_limits_is_stopped(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(limits_module.time, "monotonic", lambda: now[0])
    limits = Limits(10)
    with pytest.raises(LimitError, match="stopped after 10 s"), limits.enforced():
        now[0] = 10.5  # not yet: who asks by himself goes first
        time.sleep(3 * limits_module.TICK)
        now[0] = 11.5
        while True:
            pass


def test_a_limit_has_no_effect_after_its_end(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(limits_module.time, "monotonic", lambda: now[0])
    with Limits(10).enforced():
        pass
    now[0] = 100.0
    time.sleep(3 * limits_module.TICK)


def test_a_single_call_cannot_take_more_than_the_memory_allowed():
    limits = Limits(max_memory=in_use() + (64 << 20))
    with pytest.raises(LimitError, match="of memory"), limits.enforced():
        bytearray(1 << 30)
    assert len(bytearray(1 << 28)) == 1 << 28, "and afterwards it is lifted"


def bomb(name, tmp_path, repeat):
    """A small file that unpacks to a history of 4 MB times ``repeat``."""
    import gzip
    import lzma

    path = tmp_path / f"bomb{name}"
    with gzip.open(path, "wb", 1) if name.endswith(".gz") else lzma.open(path, "wb", preset=0) as file:
        file.write(b'{"sessions": [[], ')
        for _ in range(repeat):
            file.write(b"[]," * (1 << 20))
        file.write(b"[]]}")
    return path


@pytest.mark.parametrize("name", [".json.gz", ".json.xz"])
@pytest.mark.parametrize("command", [["check"], ["check", "--tap", "a"], ["predict"], ["verify"]])
def test_unpacking_obeys_the_memory_limit(tmp_path, name, command):
    path = bomb(name, tmp_path, 20)
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"level": "RC", "order": []}))
    more = [report] if command == ["verify"] else []
    peak = "import resource; peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; print(peak)"
    run = f"import subprocess, sys; code = subprocess.run({PROGRAM!r} + sys.argv[1:]).returncode"
    done = subprocess.run(
        [sys.executable, "-c", f"{run}; {peak}; sys.exit(code)", *command, path, *more, "--max-memory", "200M"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 3, done.stderr
    assert "memory" in done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) < 1.25 * 200 * 1024


def test_loading_obeys_the_time_limit(tmp_path):
    path = bomb(".json.gz", tmp_path, 20)
    done = shell("ISOCHECK", "check", path, "--timeout", "0.01", "--format", "json")
    result = json.loads(done.stdout)["results"][0]
    assert done.returncode == 3
    assert result["levels"]["TCC"]["reason"] == "stopped after 0.01 s"
