"""Tests of base/processes: interpreters that isocheck starts import no module from the current folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from program import PATIENCE, wait_until

import plume_py
from plume_py.base.processes import module_command

ISOCHECK = Path(sys.executable).with_name("isocheck")
HISTORY = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",1]]}]]}'
TRAP = "import pathlib\npathlib.Path(__file__).with_suffix('.sprung').touch()\nraise SystemExit(99)\n"
PACKAGES = ("plume_py", "click", "msgspec", "numpy", "numba", "distributed", "yaml", "sitecustomize", "usercustomize")


@pytest.fixture
def traps(tmp_path):
    """A folder with a history, and files and packages named after everything that we might import."""
    folder = tmp_path / "traps"
    folder.mkdir()
    for name in sys.stdlib_module_names - {"pathlib"}:
        (folder / f"{name}.py").write_text(TRAP)
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(TRAP)
    (folder / "h.json").write_text(HISTORY)
    yield folder
    assert not [path.relative_to(folder) for path in folder.rglob("*.sprung")]


def environment(**more):
    """As users have it: this package, but nothing of the folder at hand, can be found."""
    return {**os.environ, "PYTHONPATH": str(Path(plume_py.__file__).parent.parent), **more}


def run(folder, *arguments, **more):
    return subprocess.run(
        [ISOCHECK, *arguments], cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize("compiled", ["never", "always"])
def test_check_imports_nothing_from_the_current_folder(traps, compiled):
    assert run(traps, "check", "h.json", ISOCHECK_COMPILE=compiled).returncode == 0


def test_scan_workers_import_nothing_from_the_current_folder(traps):
    done = run(traps, "scan", "h.json", "--jobs", "2", ISOCHECK_DEBUG="1")
    assert done.returncode == 0, done.stderr


def test_the_watchdog_of_a_server_is_there_when_isocheck_is_killed(traps, tmp_path, child):
    arguments = ["collect", "--managed", "sqlite", "--transactions", "1000000", "--out", tmp_path / "h.jsonl"]
    (tmp_path / "tmp").mkdir()
    collecting = child([ISOCHECK, *arguments], cwd=traps, env=environment(TMPDIR=str(tmp_path / "tmp")))
    wait_until(lambda: (tmp_path / "h.jsonl").exists() and os.path.getsize(tmp_path / "h.jsonl") > 10_000, collecting)
    assert os.listdir(tmp_path / "tmp")
    collecting.kill()
    collecting.wait()
    wait_until(lambda: not os.listdir(tmp_path / "tmp"))


@pytest.mark.parametrize("name", ["plume_py.scan.worker", "plume_py.collect.orphan_watchdog"])
def test_every_module_that_is_started_as_a_process(traps, tmp_path, name):
    done = subprocess.run(
        module_command(name, str(tmp_path / "nothing")), cwd=traps, env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode != 99


def test_dask_workers_import_nothing_from_the_current_folder(traps):
    pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        from benchmarks import scan

        patch.setattr(scan, "WORK", traps)
        with scan._cluster(1) as cluster:
            done = run(traps, "scan", "h.json", "--engine", "dask", "--scheduler", cluster.address)
    assert done.returncode == 0, done.stderr


def test_only_processes_py_starts_interpreters():
    """So that none is forgotten."""
    package = Path(plume_py.__file__).parent
    found = [path.relative_to(package) for path in package.rglob("*.py") if "sys.executable" in path.read_text()]
    assert found == [Path("base/processes.py")]
    started = ("multiprocessing", "ProcessPool", "os.fork", "os.spawn", "os.exec")
    also = [path for path in package.rglob("*.py") if any(word in path.read_text() for word in started)]
    assert also == [package / "base" / "child_process.py"]  # a child that imports nothing anew


@pytest.mark.parametrize("content", ["cache_dir: planted\ndisable_jit: 1\n", "{ not yaml"])
def test_numba_settings_in_the_current_folder_are_not_read(tmp_path, content):
    (tmp_path / ".numba_config.yaml").write_text(content)
    (tmp_path / "h.json").write_text(HISTORY)
    done = run(tmp_path, "check", "h.json", ISOCHECK_COMPILE="always")
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "planted").exists()
