"""Tests of base/temp_folder: the next run removes what a killed process left, and nothing else."""

import io
import os
from contextlib import suppress

import pytest
from program import PROGRAM, isocheck, wait_until

from plume_py.base.errors import IsocheckError
from plume_py.base.temp_folder import TempFolder, remove_abandoned
from plume_py.collect import orphan_watchdog

HISTORY = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}]]}'


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_the_folder_is_removed_with_its_content(temporary):
    with TempFolder() as scratch:
        os.makedirs(os.path.join(scratch.path, "a", "b"))
        assert os.stat(scratch.path).st_mode & 0o077 == 0
    assert not os.listdir(temporary)


def test_a_kept_folder_is_not_removed(temporary):
    scratch = TempFolder()
    with open(os.path.join(scratch.path, "history.jsonl"), "w"):  # noqa: PTH123
        pass
    scratch.keep()
    scratch.remove()
    remove_abandoned()
    assert os.listdir(scratch.path) == ["history.jsonl"]


def test_other_folders_are_not_taken_for_abandoned(temporary):
    def name(digit):
        return f"isocheck-run-{digit * 16}"

    with TempFolder() as in_use:
        (temporary / name("0")).mkdir()
        (temporary / name("1")).mkdir()
        (temporary / name("1") / ".held").touch()
        (temporary / name("1") / "more").mkdir()
        (temporary / name("2")).mkdir()
        (temporary / name("2") / "of the user").touch()
        (temporary / name("3")).symlink_to(name("2"))
        (temporary / name("4")).touch()
        (temporary / "isocheck-run-0").mkdir()
        (temporary / name("5")).mkdir()
        (temporary / name("5") / ".held").symlink_to(temporary / name("4"))
        kept = [name(digit) for digit in "2345"] + ["isocheck-run-0", os.path.basename(in_use.path)]
        if os.geteuid() == 0:
            (temporary / name("6")).mkdir()
            os.chown(temporary / name("6"), 12345, 54321)
            kept.append(name("6"))
        remove_abandoned()
        assert sorted(os.listdir(temporary)) == sorted(kept)


def test_a_missing_temporary_folder_is_an_error_of_one_line(temporary, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(temporary / "none"))
    with pytest.raises(IsocheckError, match="no place for temporary files"):
        TempFolder()


def test_an_interrupted_removal_is_finished_by_the_next_run(temporary, monkeypatch):
    """Also the one that tidies up for a killed run: what is left is still known as ours."""
    calls = ("unlink", "rmdir")

    def remove(dies_at):
        scratch = TempFolder()
        for name in ("a", "z"):
            os.makedirs(os.path.join(scratch.path, name, "b"))
            with open(os.path.join(scratch.path, name, "b", "c"), "w"):  # noqa: PTH123
                pass
        scratch._unlock()
        monkeypatch.setattr("sys.argv", ["watchdog", scratch.path])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
        done = []

        def dying(call):
            def instead(*args, **kwargs):
                done.append(call)
                if len(done) == dies_at:
                    raise KeyboardInterrupt
                return call(*args, **kwargs)

            return instead

        with monkeypatch.context() as patch:
            for call in calls:
                patch.setattr(os, call, dying(getattr(os, call)))
            with suppress(KeyboardInterrupt):
                orphan_watchdog.main()
        return len(done)

    for dies_at in range(1, remove(0) + 1):
        remove(dies_at)
        assert os.listdir(temporary)
        remove_abandoned()
        assert not os.listdir(temporary)


@pytest.mark.parametrize("command", ["test", "scan", "collect"])
def test_the_next_run_removes_the_folder_of_a_killed_run(command, temporary, tmp_path, child):
    """Killed as a whole, those that would tidy up included."""
    (tmp_path / "h.json").write_text(HISTORY)
    os.mkfifo(tmp_path / "never.jsonl")
    record = ["--managed", "sqlite", "--transactions"]
    out = ["--out", tmp_path / "out.jsonl", "--force"]
    endless, short = {
        "test": (["test", *record, "1000000"], ["test", *record, "2"]),
        "scan": (["scan", f"@{tmp_path / 'never.jsonl'}"], ["scan", tmp_path / "h.json"]),
        "collect": (["collect", *record, "1000000", *out], ["collect", *record, "2", *out]),
    }[command]
    run = child([*PROGRAM, *endless])
    wait_until(lambda: any(files for *_, files in os.walk(temporary)), run)
    child.kill()
    for keeper in _keepers(temporary):
        with suppress(ProcessLookupError):
            os.kill(keeper, 9)
    wait_until(lambda: not list(_keepers(temporary)))  # who still ends counts as being at work
    assert isocheck(*short).returncode == 0
    wait_until(lambda: not os.listdir(temporary))


def _keepers(temporary):
    """Processes that were started with a folder of ours as their argument."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
                if f"{temporary}/isocheck-run-".encode() in file.read():
                    yield int(pid)
        except OSError:
            continue
