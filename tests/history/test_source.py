"""source.py: files that change while they are read, compressed streams, pipes."""

import fcntl
import gzip
import lzma
import os
import sys
import termios
import threading
import time

import pytest

from plume_py.base.errors import InputError
from plume_py.cli.main import main
from plume_py.history import load as load_module
from plume_py.history.source import Source

LINE = b'{"session": 0, "ops": [["w", "x", %d]]}\n'
LINES = b"".join(LINE % i for i in range(1, 5000))


def shrink(path):
    os.truncate(path, 1 << 15)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with path.open("ab") as file:
        file.write(LINE % 9999)


def rewrite(path):
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content[:-3] + b"9" + content[-2:])
    os.utime(path, ns=(0, 1))  # as a clock that has moved on


CHANGES = {shrink: "became shorter", empty: "became shorter", grow: "became longer", rewrite: "was changed"}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("how", ["content", "lines"])
def test_a_file_that_changes_while_it_is_read_is_rejected(tmp_path, change, packed, how):
    path = tmp_path / "h.jsonl"
    path.write_bytes(gzip.compress(LINES * 20, 0) if packed else LINES * 20)
    source = Source(path)
    source.head()
    change(path)
    with pytest.raises(InputError, match=None if packed else CHANGES[change]):
        source.content() if how == "content" else list(source.lines())
    source.close()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("format, text", [
    ("jsonl", LINES),
    ("json", b'{"initial":0,"sessions":[[' + b",".join(LINES.splitlines()) + b"]]}"),
    ("plume", b"".join(b"w(1,%d,0,%d)\n" % (i, i) for i in range(9000))),
])  # fmt: skip
def test_a_changed_file_is_one_line_and_exit_4(tmp_path, monkeypatch, capfd, change, format, text):
    path = tmp_path / "history"
    path.write_bytes(text)
    detect = load_module.detect

    def detect_and_change(source):
        found = detect(source)
        change(path)
        return found

    monkeypatch.setattr(load_module, "detect", detect_and_change)
    monkeypatch.setattr(sys, "argv", ["isocheck", "check", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capfd.readouterr().err
    assert ended.value.code == 4 and said.count("\n") == 1
    assert f"{path}: the file {CHANGES[change]} while it was read" in said


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_bytes(LINES)
    source = Source(path)
    source.head()
    (tmp_path / "new").write_bytes(b"something else")
    os.replace(tmp_path / "new", path)
    assert bytes(source.content()) == LINES


def test_a_file_is_read_whole_with_or_without_a_byte_order_mark(tmp_path):
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "h.jsonl").write_bytes(mark + LINES)
        assert bytes(Source(tmp_path / "h.jsonl").content()) == LINES


FIRST, SECOND = LINES[: len(LINE % 1)], LINES[len(LINE % 1) :]


@pytest.mark.parametrize("gap", [0, 4, 64])
@pytest.mark.parametrize("how", ["content", "lines"])
def test_consecutive_xz_streams_are_all_read(tmp_path, gap, how):
    path = tmp_path / "h.jsonl.xz"
    path.write_bytes(lzma.compress(FIRST) + bytes(gap) + lzma.compress(b"") + lzma.compress(SECOND) + bytes(gap))
    source = Source(path)
    assert b"".join([source.content()] if how == "content" else source.lines()) == LINES


@pytest.mark.parametrize("damage", [
    lambda second: b"x" + second[1:],
    lambda second: second[:7] + b"x" + second[8:],
    lambda second: bytes(3) + second,
    lambda second: gzip.compress(SECOND),
    lambda second: b"something else",
    lambda second: bytes(2),
    lambda second: second[:5],
    lambda second: second[:-3],
])  # fmt: skip
def test_a_damaged_later_xz_stream_is_never_skipped(tmp_path, damage):
    path = tmp_path / "h.jsonl.xz"
    path.write_bytes(lzma.compress(FIRST) + damage(lzma.compress(SECOND)))
    with pytest.raises(InputError, match=r"broken xz data|xz data ends too early"):
        Source(path).content()


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bytes])
def test_a_pipe_may_begin_with_a_single_byte(compress, tmp_path):
    path, content = tmp_path / "pipe", compress(LINES)
    os.mkfifo(path)

    def write():
        with path.open("wb", buffering=0) as pipe:
            pipe.write(content[:1])
            while fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) != bytes(4):  # until it was read
                time.sleep(0.001)
            pipe.write(content[1:])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert load_module.load(path).transactions == 4999
    writer.join()
