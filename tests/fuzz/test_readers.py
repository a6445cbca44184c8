"""Damaged files of every format end in a history or in an input error of one line, soon and without eating memory."""

import random
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fuzz.mutate import BYTES
from fuzz.seeds import FOLDERS, HISTORIES
from plume_py import load
from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.formats.registry import FORMATS
from plume_py.history.model import History

SECONDS = 5
MEGABYTES = 400
QUICK, FULL = 2_000, 20_000


@contextmanager
def bounded(what: object) -> Iterator[None]:
    """Fail if the body takes longer than SECONDS, or if the process has grown by more than MEGABYTES."""

    def give_up(*_: object) -> None:
        pytest.fail(f"takes too long: {what!r:.300}")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < MEGABYTES, repr(what)[:300]


def survives(folder: Path, content: bytes, seed: str, format: str | None) -> bool:
    """Is it a history? Anything but that or a one-line input error fails the test."""
    path = folder / FOLDERS.get(seed, "history")
    path.write_bytes(content)
    try:
        with bounded(content):
            history = load(folder if seed in FOLDERS else path, format=format)
            assert isinstance(history, History)
            history.transaction(history.transactions - 1) if history.transactions else None
        return True
    except InputError as error:
        assert len(str(error)) < 2_000 + len(str(folder))
        return False


def damage_all(seed: str, count: int, folder: Path) -> None:
    rng = random.Random(f"{seed} {count}")
    read = 0
    for _ in range(count):
        content = HISTORIES[seed]
        for _ in range(rng.choice((1, 1, 2, 3))):
            content = rng.choice(BYTES)(content, rng)
        read += survives(folder, content, seed, rng.choice((None, seed)))
    assert 0 < read < count  # neither harmless nor hopeless


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage finds an index out of range only where Python checks it."""
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    loaded = [m for name, m in sys.modules.items() if name.startswith("plume_py.") and name.endswith("_kernels")]
    dispatch.uncompile(*loaded)


@pytest.mark.parametrize("format", HISTORIES)
def test_the_seed_itself_is_a_history(format: str, tmp_path: Path) -> None:
    assert survives(tmp_path, HISTORIES[format], format, None)


@pytest.mark.parametrize("format", HISTORIES)
def test_damaged_files_are_read_or_turned_down(format: str, tmp_path: Path) -> None:
    damage_all(format, -(-QUICK // len(HISTORIES)), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("format", HISTORIES)
def test_many_damaged_files_are_read_or_turned_down(format: str, tmp_path: Path) -> None:
    damage_all(format, -(-FULL // len(HISTORIES)), tmp_path)


GARBAGE = {
    "nothing": b"",
    "a newline": b"\n",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "noise": random.Random(1).randbytes(4096),
    "deep lists": b"[" * 50_000,
    "deep maps": b'{"sessions":' * 20_000,
    "deep tags": b"#_" * 50_000,
    "dashes": b"-" * 50_000 + b"x",
    "equal signs": b"= - " * 20_000 + b"x",
    "comments": b"// # ; " * 5_000 + b"x",
    "comment lines": b"//\n" * 20_000 + b"x",
    "spaces": b" \n" * 30_000 + b"x",
    "braces": b"{ } " * 10_000,
    "quotes": b'{"type" ' * 5_000,
    "another language": "これは履歴ではありません\n".encode("shift-jis") * 100,
    "wide text": '{"sessions": []}'.encode("utf-16"),
}


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("format", [None, *FORMATS])
def test_garbage_is_turned_down_whatever_it_is_called(format: str | None, garbage: str, tmp_path: Path) -> None:
    for seed in (format, "cobra") if format in FOLDERS else ("json",):
        survives(tmp_path, GARBAGE[garbage], str(seed), format)


@pytest.mark.parametrize("format", HISTORIES)
def test_every_reader_gets_every_other_format(format: str, tmp_path: Path) -> None:
    for content in HISTORIES.values():
        survives(tmp_path, content, format, format)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("jsonl", b'{"initial":0}\n{"session":1,\n"ops":[]}\n'),
        ("elle-json", b'{"type":"ok",\n"process":1,"value":[]}\n'),
    ],
)
def test_records_that_span_lines_are_turned_down(format: str, text: bytes, tmp_path: Path) -> None:
    (tmp_path / "h").write_bytes(text)
    with pytest.raises(InputError, match="goes on after its line"):
        load(tmp_path / "h", format=format)
