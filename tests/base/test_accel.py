"""Kernels give the same compiled and not, and numba finds a private place for its cache, or works without one."""

import os
import stat
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from program import PATIENCE

from plume_py import load
from plume_py.base import accel, limits
from plume_py.base.errors import InputError, LimitError
from plume_py.checking.graph import clock_kernels, order_kernels, row_kernels, session_kernels
from plume_py.checking.strong.decide import node_kernels
from plume_py.checking.weak import edge_kernels, tcc_kernels
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
    accel.release(*KERNELS)
    yield
    accel.release(*KERNELS)


def both_ways(monkeypatch: pytest.MonkeyPatch, action) -> tuple:
    """The result of ``action`` with plain kernels, and with compiled ones."""
    results = []
    for mode in ("never", "always"):
        monkeypatch.setenv("ISOCHECK_COMPILE", mode)
        accel.release(*KERNELS)
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
def test_text_reads_the_same_compiled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_assembling_gives_the_same_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled = both_ways(monkeypatch, mixed_history)
    assert_same(plain, compiled)
    assert list(plain) == list(compiled)
    assert np.array_equal(plain.lists.items, compiled.lists.items)


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.writer])
def test_rendering_gives_the_same_bytes_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = mixed_history() if name in ("json", "jsonl", "edn") else generate(transactions=5)
    plain, compiled = both_ways(monkeypatch, lambda: b"".join(FORMATS[name].load_writer()(history).chunks))
    assert hasattr(render_kernels.render, "py_func")
    assert plain == compiled and len(plain) > 1000


def test_small_work_is_compiled_only_when_it_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOCHECK_COMPILE", raising=False)
    monkeypatch.setattr(accel, "_done", {})
    monkeypatch.setattr(accel, "_compiled", set())  # as if no other test had compiled anything
    accel.prepare(accel.WORTH_COMPILING - 1, render_kernels)
    assert not hasattr(render_kernels.put, "py_func")
    accel.prepare(1, render_kernels)
    assert hasattr(render_kernels.put, "py_func")
    accel.release(render_kernels)
    assert not hasattr(render_kernels.put, "py_func")


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
    monkeypatch.setattr(accel, "__file__", "/nonexistent/plume_py/base/accel.py")
    private = accel._private
    monkeypatch.setattr(accel, "_private", lambda path: not str(path).startswith("/nonexistent") and private(path))
    return temporary


def cache_base() -> Path | None:
    """The folder in which the kernels' own cache folder lies."""
    folder = accel._cache_folder((tcc_kernels, clock_kernels))
    return None if folder is None else folder.parent


def test_the_package_itself_is_the_first_choice(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accel, "__file__", str(tmp_path / "accel.py"))
    assert cache_base() == tmp_path / "__pycache__"


def test_without_package_and_home_the_cache_is_a_private_temporary_folder(fresh: Path) -> None:
    folder = cache_base()
    assert folder == fresh / f"isocheck-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_users_cache_folder_comes_before_a_temporary_one(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_base() == tmp_path / "home" / ".cache" / "isocheck"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_base() == tmp_path / "xdg" / "isocheck"


def test_a_folder_that_others_can_write_is_not_trusted(fresh: Path) -> None:
    prepared = fresh / f"isocheck-{os.getuid()}"
    prepared.mkdir()
    prepared.chmod(0o777)
    assert cache_base() is None


def test_a_folder_that_its_group_can_write_is_not_trusted(fresh: Path) -> None:
    prepared = fresh / f"isocheck-{os.getuid()}"
    prepared.mkdir()
    prepared.chmod(0o770)
    assert cache_base() is None


def test_a_link_is_not_followed_even_to_a_folder_of_ours(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (fresh / f"isocheck-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert cache_base() is None and not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("planted", ["link", "open", "file"])
def test_what_was_planted_for_these_kernels_is_not_used(fresh: Path, tmp_path: Path, planted: str) -> None:
    folder = accel._cache_folder((tcc_kernels,))
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
    assert accel._cache_folder((tcc_kernels,)) is None


def test_where_others_can_put_their_folder_in_the_place_of_ours_there_is_no_cache(fresh: Path) -> None:
    fresh.chmod(0o777)
    assert cache_base() is None
    fresh.chmod(0o1777)
    assert cache_base() == fresh / f"isocheck-{os.getuid()}"


def test_a_folder_of_somebody_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert accel._private(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert not accel._private(tmp_path)


def test_a_file_in_the_way_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert not accel._writable(tmp_path / "cache")
    assert not accel._private(tmp_path / "cache" / "inside")


def test_the_users_own_choice_of_cache_stays(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache_base() == tmp_path / "chosen"


def test_a_changed_kernel_leaves_the_cache_of_those_that_call_it(fresh: Path) -> None:
    alone = accel._cache_folder((tcc_kernels,))
    used = accel._kernels_used(tcc_kernels)
    assert used == [
        clock_kernels,
        order_kernels,
        session_kernels,
        edge_kernels,
        row_kernels,
    ]
    for other in used:
        assert accel._cache_folder((tcc_kernels, other)) != alone


def test_a_changed_table_of_levels_leaves_the_cache_of_the_kernels_that_ask_it(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = accel._cache_folder((node_kernels,))
    monkeypatch.setattr(node_kernels, "PREFIX", 2 * node_kernels.PREFIX)
    assert accel._cache_folder((node_kernels,)) != before


def test_a_record_with_its_fields_in_another_order_leaves_the_cache_of_the_kernels_that_take_it(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = accel._cache_folder((clock_kernels,))
    monkeypatch.setattr(clock_kernels, "Clocks", namedtuple("Clocks", clock_kernels.Clocks._fields[::-1]))
    assert accel._cache_folder((clock_kernels,)) != before


def test_compiled_kernels_follow_a_changed_constant_of_another_module(tmp_path: Path) -> None:
    (tmp_path / "asking_kernels.py").write_text("from table import BIT\n\n\ndef ask(bits):\n    return bits & BIT\n")
    code = "from plume_py.base import accel\nimport asking_kernels as k\naccel.prepare(0, k)\nprint(k.ask(3))\n"
    code += "assert k.ask.py_func\nprint(sum(k.ask.stats.cache_hits.values()))"
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


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "folder", "full folder", "pipe", "link", "gone"])
def test_a_damaged_entry_is_said_and_built_anew(tmp_path: Path, damage: str, ending: str) -> None:
    (tmp_path / "asking_kernels.py").write_text("def ask(bits):\n    return bits + 40\n")
    code = "from plume_py.base import accel\nimport asking_kernels as k\naccel.prepare(0, k)\nprint(k.ask(2))\n"
    code += "print(sum(k.ask.stats.cache_hits.values()))"
    environment = {**os.environ, "ISOCHECK_COMPILE": "always", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])

    def run() -> tuple[list[str], str]:
        command = [sys.executable, "-B", "-c", code]
        done = subprocess.run(command, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
        return done.stdout.split(), done.stderr

    assert run() == (["42", "0"], "")
    (entry,) = (tmp_path / "cache").rglob(f"*.{ending}")
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


def test_without_any_place_kernels_are_compiled_all_the_same() -> None:
    code = """
from plume_py.base import accel, limits
from plume_py.checking.graph import clock_kernels
from plume_py.history.formats import render_kernels as kernels
accel._writable = lambda folder: False
accel.prepare(0, kernels)
import numpy as np
out = np.zeros(2, np.uint8)
assert kernels.put(out, 0, np.array([7, 8], np.uint8), np.array([0, 2]), 0) == 2
assert out.tolist() == [7, 8] and kernels.put.py_func
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
    environment |= {"ISOCHECK_COMPILE": "always", "HOME": "/nonexistent"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=PATIENCE)


def test_no_kernel_is_begun_when_the_time_is_up(monkeypatch, tmp_path) -> None:
    """A tick that comes while one is compiled has to be ignored, and between two there is hardly time for one."""
    now = [0.0]
    monkeypatch.setattr(limits, "TICK", 3600.0)
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    sessions = np.array([0, 0, 1], np.int32)
    accel.release(session_kernels)
    try:
        accel.prepare(1, session_kernels)
        with pytest.raises(LimitError, match="stopped after 10 s"), limits.Limits(10).enforced():
            now[0] = 11.0
            session_kernels.precedes(sessions, 0, 1)
        assert not session_kernels.precedes.signatures
        assert session_kernels.precedes(sessions, 0, 1), "and nothing is broken by it"
        assert session_kernels.precedes.signatures
        with limits.Limits(10).enforced():
            now[0] = 22.0
            assert not session_kernels.precedes(sessions, 1, 2), "what is compiled just runs"
    finally:
        accel.release(session_kernels)
