"""``stream.follow``: lines of files that grow, are truncated or replaced, and of pipes."""

import os
import threading
import time

import pytest
from program import PATIENCE

from plume_py import InputError
from plume_py.checking.stream import follow
from plume_py.checking.stream.follow import Follower


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(follow, "POLL", 0.005)


class Steps:
    """Follows a path, and does the next step to it each time nothing new came; ends after the last one."""

    def __init__(self, path, *steps):
        self.said, self.steps, self.over = [], list(steps), False
        self.pieces = []
        deadline = time.monotonic() + PATIENCE
        for piece in Follower(str(path), stopped=lambda: self.over, say=self.said.append):
            assert time.monotonic() < deadline
            if piece.text:
                self.pieces.append(piece)
            elif self.steps:
                self.steps.pop(0)()
            else:
                self.over = True

    @property
    def lines(self):
        return [(p.line, p.text) for p in self.pieces if not p.unfinished]

    @property
    def unfinished(self):
        return [(p.line, p.text) for p in self.pieces if p.unfinished]


def appended(path, text):
    def act():
        with path.open("ab") as file:
            file.write(text)

    return act


# files


def test_lines_of_a_growing_file_are_read(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\ntwo\n")
    run = Steps(path, appended(path, b"three\n"), appended(path, b"four\nfive\n"))
    assert run.lines == [(1, b"one\ntwo\n"), (3, b"three\n"), (4, b"four\nfive\n")]
    assert run.said == [] and run.unfinished == []


def test_half_a_line_waits_for_its_other_half(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\ntw")
    run = Steps(path, appended(path, b"o"), appended(path, b"\nthree\nfo"))
    assert run.lines == [(1, b"one\n"), (2, b"two\nthree\n")]
    assert run.unfinished == [(4, b"fo")]


def test_a_file_that_is_truncated_goes_on_at_its_start(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\ntwo\n")
    run = Steps(path, lambda: os.truncate(path, 0), appended(path, b"three\n"))
    assert run.lines == [(1, b"one\ntwo\n"), (1, b"three\n")]
    assert run.said == [f"{path}: {follow.TRUNCATED}"]


def test_a_file_that_is_truncated_and_grows_beyond_its_former_end_between_two_looks(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\n")
    run = Steps(path, lambda: path.write_bytes(b"two\nthree\nfour\n"))
    assert run.lines == [(1, b"one\n"), (1, b"two\nthree\nfour\n")]
    assert run.said == [f"{path}: {follow.TRUNCATED}"]


def test_half_a_line_at_a_truncation_is_handed_over_as_unfinished(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\ntw")
    run = Steps(path, lambda: path.write_bytes(b"2\n"))
    assert [(p.line, p.text, p.unfinished) for p in run.pieces] == [
        (1, b"one\n", False),
        (2, b"tw", True),
        (1, b"2\n", False),
    ]


def test_a_rotated_file_is_read_on(tmp_path):
    path = tmp_path / "h"
    old = tmp_path / "h.1"
    path.write_bytes(b"one\n")
    run = Steps(
        path,
        lambda: path.rename(old),
        lambda: path.write_bytes(b""),
        appended(old, b"two\n"),  # the writer has not turned to the new file yet
        appended(path, b"three\n"),
        appended(path, b"four\n"),
    )
    assert run.lines == [(1, b"one\n"), (2, b"two\n"), (1, b"three\n"), (2, b"four\n")]
    assert run.said == [f"{path}: {follow.GONE}", f"{path}: {follow.REPLACED}"]


def test_the_last_lines_of_a_rotated_file_are_not_lost(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\n")

    def rotate():
        path.rename(tmp_path / "h.1")
        appended(tmp_path / "h.1", b"two\n")()
        path.write_bytes(b"three\n")

    assert Steps(path, rotate).lines == [(1, b"one\n"), (2, b"two\n"), (1, b"three\n")]


def test_a_new_file_that_begins_with_everything_read_is_taken_over_silently(tmp_path):
    path, new = tmp_path / "h", tmp_path / "new"
    path.write_bytes(b"one\ntw")
    new.write_bytes(b"one\ntwo\nthree\n")  # as rsync does it
    run = Steps(path, lambda: new.rename(path), appended(path, b"four\n"))
    assert run.lines[0] == (1, b"one\n") and run.lines[1][0] == 2
    assert b"".join(text for _, text in run.lines[1:]) == b"two\nthree\nfour\n"
    assert run.said == [] and run.unfinished == []


def test_large_content_comes_in_pieces_of_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "CHUNK", 1000)
    lines = [b"x" * (n % 2500) + b"\n" for n in range(0, 30_000, 77)]
    path = tmp_path / "h"
    path.write_bytes(b"".join(lines))
    pieces = list(Follower(str(path), follow=False))
    assert b"".join(p.text for p in pieces) == b"".join(lines)
    done = 0
    for piece in pieces:
        assert piece.text.endswith(b"\n") and piece.line == done + 1
        done += piece.text.count(b"\n")


def test_it_ends_when_idle_but_not_while_lines_come(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\n")
    more = [appended(path, b"two\n"), appended(path, b"three\n")]
    text = b""
    for piece in Follower(str(path), until_idle=0.2):
        text += piece.text
        if not piece.text and more:
            more.pop(0)()
    assert text == b"one\ntwo\nthree\n"


def test_lines_written_before_the_stop_are_read(tmp_path):
    path = tmp_path / "h"
    path.write_bytes(b"one\n")
    run = Steps(path)
    over = []
    text = b""
    for piece in Follower(str(path), stopped=lambda: bool(over)):
        text += piece.text
        if not piece.text and not over:
            appended(path, b"two\n")()
            over.append(True)
    assert text == b"one\ntwo\n" and run.said == []


def test_stopping_far_from_the_end_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "CHUNK", 4)
    path = tmp_path / "h"
    path.write_bytes(b"one\ntwo\nthr\nfou\n")
    said, over = [], []
    for piece in Follower(str(path), stopped=lambda: bool(over), say=said.append):
        over.append(piece)
    assert [p.text for p in over] == [b"one\n", b"two\n"]
    assert said == [f"{path}: stopped 8 bytes before its present end"]


# what cannot be followed


def whole(path, **how):
    return b"".join(p.text for p in Follower(str(path), follow=False, **how))


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b\x08\x00rest", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"\0" * 100 + b'{"session":1}\n', b"\xff\xfe{\0"],
    ids=["gzip", "zstd", "xz", "hole", "utf-16"],
)
def test_binary_input_is_rejected_before_a_line_ends(content, tmp_path):
    (tmp_path / "h").write_bytes(content)
    with pytest.raises(InputError, match="not text, perhaps compressed"):
        list(Follower(str(tmp_path / "h")))


def test_other_bad_paths(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        whole(tmp_path / "none")
    with pytest.raises(InputError, match="a folder cannot be watched"):
        whole(tmp_path)


def test_an_endless_line_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "MAX_LINE", 5000)
    (tmp_path / "h").write_bytes(b"ok\n" + b"x" * 6000)
    with pytest.raises(InputError, match="line 2: a line of more than"):
        whole(tmp_path / "h")


def test_a_byte_order_mark_is_not_content(tmp_path):
    (tmp_path / "h").write_bytes(b"\xef\xbb\xbfone\n")
    assert whole(tmp_path / "h") == b"one\n"


# pipes


def test_a_named_pipe_ends_with_its_writer(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"one\ntw")
            pipe.write(b"o\nthr")

    writer = threading.Thread(target=write)
    pieces = []
    for piece in Follower(str(path)):
        if not writer.ident:
            writer.start()  # it is waited for, as nobody has written yet
        pieces.append(piece)
    writer.join(PATIENCE)
    assert b"".join(p.text for p in pieces) == b"one\ntwo\nthr"
    assert (pieces[-1].text, pieces[-1].unfinished, pieces[-1].line) == (b"thr", True, 3)


def test_following_a_silent_pipe_can_be_stopped(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert whole(tmp_path / "pipe", until_idle=0.02) == b""
