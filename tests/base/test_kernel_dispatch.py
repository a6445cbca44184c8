"""Tests of base/kernels (dispatch, cache): plain and compiled kernels agree, and the cache is private and checked."""

# The name of this file must not end with _kernels, or it would count as a kernel module.

import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from program import PATIENCE

from plume_py import load
from plume_py.base import limits
from plume_py.base.errors import InputError, LimitError
from plume_py.base.kernels import cache, dispatch
from plume_py.checking.graph import clock_kernels, order_kernels, shared_kernels
from plume_py.checking.strong.solver import saturation_kernels
from plume_py.checking.weak import edge_kernels
from plume_py.history import assemble_kernels
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats import render_kernels, text_kernels
from plume_py.history.formats.registry import FORMATS
from plume_py.history.generate import generate
from plume_py.history.model import History

KERNELS = assemble_kernels, render_kernels, text_kernels
COLUMNS = ("op_kind", "op_key", "op_version", "txn_start", "txn_session", "txn_status", "session_start", "version_key")
COLUMNS += ("version_value", "version_writer", "key_code")


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Plain kernels before and after."""
    dispatch.uncompile(*KERNELS)
    yield
    dispatch.uncompile(*KERNELS)


def both_ways(monkeypatch: pytest.MonkeyPatch, action) -> tuple:
    """The result of ``action`` with plain kernels, and with compiled ones."""
    results = []
    for mode in ("never", "always"):
        monkeypatch.setenv("ISOCHECK_COMPILE", mode)
        dispatch.uncompile(*KERNELS)
        try:
            results.append(action())
        except InputError as error:
            results.append(str(error))
    assert any(hasattr(value, "py_func") for module in KERNELS for value in vars(module).values())
    return tuple(results)


def assert_same(one: History, other: History) -> None:
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
        assert getattr(one, column).dtype == getattr(other, column).dtype, column
    assert (one.keys, one.values, one.init_txn) == (other.keys, other.values, other.init_txn)


TEXTS = {
    "a generated history": None,
    "shuffled lines": "w(1,5,0,0)\nr(1,5,9,3)\nw(2,6,0,0)\nr(2,0,9,3)\nw(3,1,0,1)\nw(4,4,0,-1)\nw(5,5,9,-1)\n",
    "extreme numbers": "w(18446744073709551615,9223372036854775808,0,9223372036854775807)\nr( 1 , 0 ,0, 5)\r\n",
    "negative numbers": "w(-9223372036854775807,-1,-5,-7)\nr(0,0,-5,-7)\n",
    "comments": "# one\n\n  w(1,2,3,4) \n# two",
    "only a comment": "# nothing",
    "nothing": "",
    "many sessions": "".join(f"w({i * 7919},{i},{i},{i})\n" for i in range(3000)),
    "not an operation": "w(1,2,3,4)\nw(1,2,3)\n",
    "a number too large": "w(1,18446744073709551616,3,4)\n",
    "an id in two sessions": "w(1,2,3,4)\nw(1,3,4,4)\n",
    "an ambiguous read": "w(1,2,3,4)\nw(1,2,4,5)\nr(1,2,5,6)\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_plain_and_compiled_kernels_read_the_same_history_from_text(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, text = tmp_path / "h.txt", TEXTS[name]
    if text is None:
        path.write_bytes(b"".join(FORMATS["plume"].load_writer()(generate(transactions=20)).chunks))
    else:
        path.write_text(text)
    plain, compiled = both_ways(monkeypatch, lambda: load(path, format="plume"))
    if isinstance(plain, str):
        assert plain == compiled
    else:
        assert_same(plain, compiled)


def mixed_history() -> History:
    builder = HistoryBuilder(None)
    for i in range(600):
        session = i * 7 % 5
        ops = [
            ("w", i % 50, i),
            ("r", i % 50, i),
            ("append", f"l{i % 3}", -i),
            ("r", f"l{i % 3}", [-i] if i % 2 else []),
        ]
        builder.add(session, ops[: i % 5], status=("committed", "aborted", "unknown")[i % 3], id=i)
    return builder.build()


def test_plain_and_compiled_kernels_build_the_same_history(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled = both_ways(monkeypatch, mixed_history)
    assert_same(plain, compiled)
    assert list(plain) == list(compiled)
    assert np.array_equal(plain.lists.items, compiled.lists.items)


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.writer])
def test_plain_and_compiled_kernels_write_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = mixed_history() if name in ("json", "jsonl", "edn") else generate(transactions=5)
    plain, compiled = both_ways(monkeypatch, lambda: b"".join(FORMATS[name].load_writer()(history).chunks))
    assert hasattr(render_kernels.render, "py_func")
    assert plain == compiled and len(plain) > 1000


@pytest.fixture
def auto(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a new process, with nothing compiled ever before."""
    monkeypatch.delenv("ISOCHECK_COMPILE", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(dispatch, "_done", {})
    monkeypatch.setattr(dispatch, "_compiled", set())


def swapped() -> bool:
    return hasattr(render_kernels.put, "py_func")


def test_kernels_are_compiled_once_small_work_has_added_up(auto: None) -> None:
    dispatch.prepare(dispatch.WORTH_COMPILING - 1, render_kernels)
    assert not swapped()
    dispatch.prepare(1, render_kernels)
    assert swapped()
    dispatch.uncompile(render_kernels)
    assert not swapped()


def test_work_adds_up_over_processes(auto: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        assert not swapped()
        monkeypatch.setattr(dispatch, "_done", {})
        dispatch.prepare(dispatch.WORTH_COMPILING // 2 + 1, render_kernels)
    assert swapped()


def test_less_work_is_enough_when_the_cache_has_the_kernels(auto: None) -> None:
    dispatch.prepare(dispatch.WORTH_COMPILING, render_kernels)
    assert _put() == [7, 8] and render_kernels.put.compiled == 1
    dispatch.uncompile(render_kernels)
    dispatch.prepare(dispatch.WORTH_STARTING - 1, render_kernels)
    assert not swapped()
    dispatch.prepare(1, render_kernels)
    assert swapped() and _put() == [7, 8] and render_kernels.put.compiled == 0


def _put() -> list[int]:
    out = np.zeros(2, np.uint8)
    render_kernels.put(out, 0, np.array([7, 8], np.uint8), np.array([0, 2]), 0)
    return out.tolist()


# where the cache goes


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package that cannot be written, no home, a place for temporary files."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(cache, "__file__", "/nonexistent/plume_py/base/kernels/cache.py")
    private = cache._private
    monkeypatch.setattr(cache, "_private", lambda path: not str(path).startswith("/nonexistent") and private(path))
    return temporary


def cache_base() -> Path | None:
    """The folder in which the kernels' own cache folder lies."""
    folder = cache.cache_folder(edge_kernels, clock_kernels)
    return None if folder is None else folder.parent


def test_the_cache_is_in_the_package_if_it_can_be_written(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    assert cache_base() == tmp_path / "__pycache__"


def test_the_cache_is_a_private_temporary_folder_if_package_and_home_cannot_be_written(fresh: Path) -> None:
    folder = cache_base()
    assert folder == fresh / f"isocheck-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_users_cache_folder_is_preferred_to_a_temporary_one(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_base() == tmp_path / "home" / ".cache" / "isocheck"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_base() == tmp_path / "xdg" / "isocheck"


def test_a_folder_that_other_users_can_write_is_not_used(fresh: Path) -> None:
    prepared = fresh / f"isocheck-{os.getuid()}"
    prepared.mkdir()
    prepared.chmod(0o777)
    assert cache_base() is None


def test_a_folder_that_its_group_can_write_is_not_used(fresh: Path) -> None:
    prepared = fresh / f"isocheck-{os.getuid()}"
    prepared.mkdir()
    prepared.chmod(0o770)
    assert cache_base() is None


def test_a_link_is_not_used_even_if_its_target_is_private(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (fresh / f"isocheck-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert cache_base() is None and not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("planted", ["link", "open", "file"])
def test_a_planted_link_open_folder_or_file_is_not_used(fresh: Path, tmp_path: Path, planted: str) -> None:
    folder = cache.cache_folder(edge_kernels)
    assert folder is not None
    folder.rmdir()
    if planted == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif planted == "open":
        folder.mkdir()
        folder.chmod(0o775)
    else:
        folder.touch()
    assert cache.cache_folder(edge_kernels) is None


def test_there_is_no_cache_in_a_folder_whose_entries_other_users_can_replace(fresh: Path) -> None:
    fresh.chmod(0o777)
    assert cache_base() is None
    fresh.chmod(0o1777)
    assert cache_base() == fresh / f"isocheck-{os.getuid()}"


def test_there_is_no_cache_if_no_folder_can_be_written(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert cache_base() is None


def test_a_relative_xdg_cache_home_is_ignored(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache_base() == fresh / f"isocheck-{os.getuid()}" and not Path("here").exists()


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache._private(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert not cache._private(tmp_path)


def test_a_file_is_not_used_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert not cache._private(tmp_path / "cache")
    assert not cache._private(tmp_path / "cache" / "inside")


def test_numba_cache_dir_chooses_the_folder(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache_base() == tmp_path / "chosen"


def test_the_folder_of_a_kernel_depends_on_the_kernels_that_it_calls(fresh: Path) -> None:
    alone = cache.cache_folder(edge_kernels)
    used = dispatch._kernels_used(edge_kernels)
    assert used == [clock_kernels, order_kernels, shared_kernels]
    for other in used:
        assert cache.cache_folder(edge_kernels, other) != alone


def test_the_folder_of_a_kernel_depends_on_the_constants_that_it_imports(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.cache_folder(saturation_kernels)
    monkeypatch.setattr(saturation_kernels, "PREFIX", 2 * saturation_kernels.PREFIX)
    assert cache.cache_folder(saturation_kernels) != before


def test_the_folder_of_a_kernel_depends_on_the_order_of_the_fields_of_its_records(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.cache_folder(clock_kernels)
    monkeypatch.setattr(clock_kernels, "Clocks", namedtuple("Clocks", clock_kernels.Clocks._fields[::-1]))
    assert cache.cache_folder(clock_kernels) != before


def test_a_kernel_is_compiled_again_when_a_constant_of_another_module_changes(tmp_path: Path) -> None:
    (tmp_path / "asking_kernels.py").write_text("from table import BIT\n\n\ndef ask(bits):\n    return bits & BIT\n")
    code = "from plume_py.base.kernels import dispatch\nimport asking_kernels as k\n"
    code += "dispatch.prepare(0, k)\nprint(k.ask(3))\n"
    code += "assert k.ask.py_func\nprint(1 - k.ask.compiled)"
    environment = {**os.environ, "ISOCHECK_COMPILE": "always", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    printed = []
    for bit in (1, 1, 2):
        (tmp_path / "table.py").write_text(f"BIT = {bit}\n")
        run = [sys.executable, "-B", "-c", code]
        found = subprocess.run(run, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
        printed.append(found.stdout.split())
    assert printed == [["1", "0"], ["1", "1"], ["2", "0"]]


def _spoil(path: Path, damage: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "folder":
        path.mkdir()
    elif damage == "full folder":
        (path / "inside").mkdir(parents=True)
    elif damage == "pipe":
        os.mkfifo(path)
    elif damage == "link":
        path.symlink_to("/dev/null")


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "folder", "full folder", "pipe", "link", "gone"])
def test_a_damaged_file_is_reported_and_compiled_again(tmp_path: Path, damage: str) -> None:
    (tmp_path / "asking_kernels.py").write_text("def ask(bits):\n    return bits + 40\n")
    code = "from plume_py.base.kernels import dispatch\nimport asking_kernels as k\n"
    code += "dispatch.prepare(0, k)\nprint(k.ask(2))\n"
    code += "print(1 - k.ask.compiled)"
    environment = {**os.environ, "ISOCHECK_COMPILE": "always", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run() -> tuple[list[str], str]:
        command = [sys.executable, "-B", "-c", code]
        done = subprocess.run(command, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
        return done.stdout.split(), done.stderr

    assert run() == (["42", "0"], "")
    (entry,) = (tmp_path / "cache").rglob("*.code")
    _spoil(entry, damage)
    answer, said = run()
    assert answer == ["42", "0"]
    notes = said.splitlines()
    if damage == "gone":
        assert not notes
    else:
        assert notes and all(str(entry) in note and note.endswith("it is built anew") for note in notes)
    if damage != "full folder":
        assert run() == (["42", "1"], "")
    assert not [path for path in (tmp_path / "cache").rglob("*") if "tmp" in path.name]


def test_a_file_with_the_code_of_another_kernel_is_not_used(tmp_path: Path) -> None:
    functions = "def double(n):\n    return n + n\n\n\ndef square(n):\n    return n * n\n"
    (tmp_path / "asking_kernels.py").write_text(functions)
    code = "from plume_py.base.kernels import dispatch\nimport asking_kernels as k\ndispatch.prepare(0, k)\n"
    code += "print(k.double(5), k.square(5))"
    environment = {**os.environ, "ISOCHECK_COMPILE": "always", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-B", "-c", code]
    for _ in range(2):
        done = subprocess.run(command, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
        assert done.stdout == "10 25\n"
        (double,), (square,) = ((tmp_path / "cache").rglob(f"{name}-*.code") for name in ("double", "square"))
        double.write_bytes(square.read_bytes())
    assert f"{double}: it is damaged" in done.stderr


def test_the_wait_for_a_stopped_process_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits._Clock, "limited", False)
    monkeypatch.setattr(cache, "LONGEST_WAIT", 0.1)
    monkeypatch.setattr(cache, "_gave_up", [])
    with cache.compile_lock(str(tmp_path)), cache.compile_lock(str(tmp_path)):
        assert cache._gave_up
        monkeypatch.setattr(cache, "LONGEST_WAIT", 3600.0)
        with cache.compile_lock(str(tmp_path)):
            pass  # once is enough


def test_a_process_with_a_time_limit_does_not_wait_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits._Clock, "limited", False)
    monkeypatch.setattr(cache.time, "sleep", lambda _: pytest.fail("it waited"))
    with cache.compile_lock(str(tmp_path)):
        limits.Limits(3600.0)
        with cache.compile_lock(str(tmp_path)):
            pass


def test_the_time_limit_of_a_level_excludes_waiting_and_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    own, wall = [0.0], [0.0]
    monkeypatch.setattr(limits, "_uncounted", threading.local())  # whole seconds, so that sums are exact
    monkeypatch.setattr(limits.time, "thread_time", lambda: own[0])
    monkeypatch.setattr(limits.time, "monotonic", lambda: wall[0])
    level = limits.Limits(per_level=60.0).for_level()
    wall[0] += 1000.0
    level.check()
    with limits.uncounted():
        own[0] += 1000.0
    own[0] += 59.0
    level.check()
    own[0] += 1.0
    with pytest.raises(LimitError, match="stopped after 60 s of processor time for this level"):
        level.check()
    level.whole.check()


def test_numba_disable_jit_switches_compilation_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not dispatch.worth_compiling(dispatch.WORTH_COMPILING, render_kernels)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert dispatch.worth_compiling(0, render_kernels)


def test_kernels_are_compiled_without_a_cache_folder() -> None:
    code = """
from plume_py.base.kernels import cache, dispatch
from plume_py.history.formats import render_kernels as kernels
cache._private = lambda folder: False
dispatch.prepare(0, kernels)
import numpy as np
out = np.zeros(2, np.uint8)
assert kernels.put(out, 0, np.array([7, 8], np.uint8), np.array([0, 2]), 0) == 2
assert out.tolist() == [7, 8] and kernels.put.py_func
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
    environment |= {"ISOCHECK_COMPILE": "always", "HOME": "/nonexistent"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=PATIENCE)


def test_no_compilation_starts_after_the_time_limit(monkeypatch, tmp_path) -> None:
    """A tick that comes while one is compiled has to be ignored, and between two there is hardly time for one."""
    now = [0.0]
    monkeypatch.setattr(limits, "TICK", 3600.0)
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    dispatch.prepare(1, render_kernels)
    with pytest.raises(LimitError, match="stopped after 10 s"), limits.Limits(10).enforced():
        now[0] = 11.0
        _put()
    assert not render_kernels.put.compiled
    assert _put() == [7, 8], "and nothing is broken by it"
    assert render_kernels.put.compiled == 1
    with limits.Limits(10).enforced():
        now[0] = 22.0
        assert _put() == [7, 8], "what is compiled just runs"


def test_a_check_with_compiled_kernels_does_not_import_numba(tmp_path: Path) -> None:
    code = """
import sys
from plume_py import check
from plume_py.history.generate import generate
print(check(sys.argv[1], "weak").ok, "numba" in sys.modules)
"""
    path = tmp_path / "h.txt"
    path.write_bytes(b"".join(FORMATS["plume"].load_writer()(generate(transactions=5)).chunks))
    environment = {**os.environ, "ISOCHECK_COMPILE": "always", "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", code, str(path)]
    for _ in range(2):
        done = subprocess.run(run, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"]
