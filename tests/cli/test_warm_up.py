"""``isocheck warm-up`` (cli/warm_up.py), and kernels compiled by a second process (checking/precompile.py)."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from paths import ROOT
from program import PATIENCE

from plume_py.checking import precompile
from plume_py.cli import warm_up


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is compiled yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ISOCHECK_COMPILE", "auto")
    return tmp_path / "cache"


def codes(folder: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in folder.rglob("*.code")}


def test_warm_up_compiles_what_its_commands_need(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"one": ["generate h.txt --sessions 2 --transactions 3"], "two": ["generate g.txt --transactions 2"]}
    monkeypatch.setattr(warm_up, "PARTS", parts)
    done = CliRunner().invoke(warm_up.command, ["--jobs", "2"])
    assert done.exit_code == 0 and done.output.startswith("kernels are compiled (")
    assert {"execute", "render", "intern_keys"} <= codes(cold)
    assert len(list(cold.rglob("execute-*.code"))) == 1, "once, by whoever came first"


def test_a_relative_cache_folder_is_below_the_working_directory(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold.mkdir()
    monkeypatch.chdir(cold)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "kernels")
    monkeypatch.setattr(warm_up, "PARTS", {"one": ["generate h.txt --sessions 2 --transactions 3"]})
    assert CliRunner().invoke(warm_up.command, []).exit_code == 0
    assert "execute" in codes(cold / "kernels")


def test_warm_up_reports_the_command_that_failed(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "PARTS", {"one": ["stats nothing.txt"]})
    done = CliRunner().invoke(warm_up.command, [])
    assert str(done.exception) == "isocheck stats nothing.txt: isocheck: nothing.txt: No such file or directory"


def test_all_commands_of_warm_up_exist() -> None:
    for words in (words for commands in warm_up.PARTS.values() for words in commands):
        assert words.split()[0] in ("generate", "check", "convert", "stats", "watch", "allocate", "robust")


def test_a_second_process_compiles_while_the_first_loads(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cold.with_name("h.txt")
    path.write_text("w(1,2,3,4)\n")
    monkeypatch.setattr(precompile, "MIN_BYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    started = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **how: started.append(start(*words, **how)) or started[-1])
    with precompile.compiled_ahead(str(path), ["RC"]):
        give_up = time.monotonic() + PATIENCE
        while "resolve" not in codes(cold) and time.monotonic() < give_up:
            time.sleep(0.05)
    assert "resolve" in codes(cold) and len(started) == 1
    assert started[0].returncode is not None, "nothing is left behind"
    with precompile.compiled_ahead(str(path), ["RC"]):
        assert len(started) == 1, "now they are there"


def test_the_second_process_ends_with_its_parent(cold: Path) -> None:
    command = [sys.executable, "-m", "plume_py.checking.precompile", "TCC"]
    environment = {**os.environ, "ISOCHECK_COMPILE": "always"}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and "backward_edges" not in codes(cold)
