"""Tests of ``collect.recorder``: the history is complete at every moment, however the collector ends."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from program import PATIENCE, PROGRAM, isocheck, lines_in, wait_until

from plume_py import check, load
from plume_py.base.errors import InputError
from plume_py.collect.recorder import Recorder
from plume_py.history.formats.jsonl_native import pending_path


def test_commits_in_progress_when_the_collector_is_killed_are_unknown(tmp_path):
    path = str(tmp_path / "h.jsonl")
    recorder = Recorder(path, {"initial": 0})
    one = {"id": "a", "session": 0, "ops": [["w", "x", 1]]}
    two = {"id": "b", "session": 1, "ops": [["r", "x", 1]]}
    recorder.intend(one)
    recorder.intend(two)
    recorder.record({**two, "status": "committed"})  # it read from a, whose own line is not written yet
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


def test_a_kill_in_the_middle_of_a_line_loses_no_transaction(tmp_path):
    """The system writes page by page, and a kill may come between two pages."""
    path = tmp_path / "h.jsonl"
    recorder = Recorder(str(path), {"initial": 0})
    one = {"id": "a", "session": 0, "ops": [["w", "x", 1]]}
    two = {"id": "b", "session": 1, "ops": [["r", "x", 1]]}
    for transaction in (one, two):
        recorder.intend(transaction)
        recorder.record({**transaction, "status": "committed"})
    whole = path.read_bytes()
    for missing in range(1, len(whole.splitlines()[-1]) + 2):
        path.write_bytes(whole[:-missing])
        assert load(path).transactions == 2
    Path(pending_path(str(path))).unlink()
    path.write_bytes(whole[:-5])
    with pytest.raises(InputError, match="cut off"):
        load(path)


def test_a_damaged_hidden_file_prints_one_line(tmp_path):
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


def test_a_full_disk_leaves_only_whole_lines(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_a_usable_history(how, tmp_path, child):
    out = tmp_path / "h.jsonl"
    arguments = ["collect", f"sqlite:///{tmp_path}/t.db", "--transactions", "1000000", "--out", str(out)]
    run = child([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: lines_in(out) >= 200, run)
    run.send_signal(how)
    printed, errors = run.communicate(timeout=PATIENCE)
    assert check(load(out), "SER").ok
    if how == signal.SIGKILL:
        return
    assert out.read_bytes().endswith(b"\n")
    assert run.returncode == 130 and "interrupted" in printed and "agrees with the history" in printed, errors
    assert not Path(pending_path(str(out))).exists()
