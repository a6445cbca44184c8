"""Damaged files of every format end in a history or in an input error of one line, soon and without eating memory."""

import random
import re
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plume_py import load
from plume_py.base import accel
from plume_py.base.errors import InputError
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.registry import FORMATS
from plume_py.history.model import History

FOLDERS = {"cobra": "T1.log", "viper": "J1.log"}
SECONDS = 5
MEGABYTES = 400
QUICK, FULL = 2_000, 20_000


def seeds() -> dict[str, bytes]:
    """One small file of each format."""
    builder = HistoryBuilder(0)
    builder.add(0, [("w", 1, 5), ("w", 2, 6), ("r", 3, 0)])
    builder.add(1, [("r", 1, 5), ("w", 3, 7)])
    builder.add(1, [("w", 4, 8), ("r", 1, 5)], status="aborted")
    builder.add(2, [("r", 3, 7), ("r", 2, 6)])
    plain = builder.build()
    builder = HistoryBuilder(None)
    builder.add("a", [("w", "x", 1), ("append", ":l", 2), ("r", 'q"\n', None)], id="t1")
    builder.add("b", [("r", "x", 1), ("r", ":l", [2, 3])], status="unknown")
    builder.add("b", [("append", ":l", 3), ("r", ":m", [])])
    rich = builder.build()
    files = {
        name: b"".join(FORMATS[name].load_writer()(rich if name in ("json", "jsonl", "edn") else plain).chunks)
        for name, fmt in FORMATS.items()
        if fmt.writer
    }
    invoke = b'{"type":"invoke","process":0,"f":"txn","value":[["append","x",1],["r","y",null]],"index":0}'
    ok = b'{"type":"ok","process":0,"f":"txn","value":[["append","x",1],["r","y",[3]]],"index":1}'
    event = b"    - write: true\n      variable: 1\n      value: 2\n      success: true\n"
    begin, end = b"S" + struct.pack(">q", 1), b"C" + struct.pack(">q", 1)
    return files | {
        "dbcop-hist": b"// first\n[x:=1 y:=1] [x==1 z==?]\n[y:=3]!\n---\n[y==1]\n",
        "dbcop-yaml": b"---\n- - events:\n" + event * 2 + b"    success: true\n- []\n",
        "elle-json": b"[" + invoke + b",\n" + ok + b"]",
        "awdit": b"w 0 1\nr 1 0\n-----\nr 0 1\n=====\nw 1 2\n",
        "isopredict": b"WRITE KEY[x] Txn(1, 0)\nREAD KEY[x] Txn(2, 1) From(1, 0)\nREAD KEY[y] Txn(2, 0) From(0, 0)\n",
        "cobra": begin + b"W" + struct.pack(">3q", 7, -5, 9) + b"R" + struct.pack(">4q", 1, 7, -5, 9) + end,
        "viper": b'{"value":[["w",5,1,true],["r",6,0,false]]}\n{"value":[["r",5,1],["w",6,2,false]]}\n',
    }


SEEDS = seeds()
NUMBERS = (
    b"0",
    b"-1",
    b"9223372036854775808",
    b"18446744073709551616",
    b"1e400",
    b"0.5",
    b"9" * 5000,
    b"-" + b"9" * 300,
)
NESTING = (b"[", b"{", b"(", b'{"a":', b"[[{", b"#_", b"- ")
PIECES = (
    b"null",
    b"nil",
    b"true",
    b'"',
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\x00",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b",",
    b":",
)


def spot(content: bytes, rng: random.Random) -> tuple[int, int]:
    one, other = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
    return min(one, other), max(one, other)


def flip(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content or b"x")
    for _ in range(rng.randint(1, 4)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def duplicate(content: bytes, rng: random.Random) -> bytes:
    begin, end = spot(content, rng)
    return content[:end] + content[begin:end] * rng.choice((1, 1, 2, 40)) + content[end:]


def delete(content: bytes, rng: random.Random) -> bytes:
    begin, end = spot(content, rng)
    return content[:begin] + content[min(end, begin + rng.randint(1, 20)) :]


def splice(content: bytes, rng: random.Random) -> bytes:
    other = rng.choice(list(SEEDS.values()))
    return content[: spot(content, rng)[0]] + other[spot(other, rng)[0] :]


def insert(content: bytes, rng: random.Random) -> bytes:
    at, _ = spot(content, rng)
    return content[:at] + rng.choice((*PIECES, rng.randbytes(3))) + content[at:]


def blow_up(content: bytes, rng: random.Random) -> bytes:
    found = list(re.finditer(rb"-?\d+", content))
    if not found:
        return flip(content, rng)
    one = rng.choice(found)
    return content[: one.start()] + rng.choice(NUMBERS) + content[one.end() :]


def nest(content: bytes, rng: random.Random) -> bytes:
    at, _ = spot(content, rng)
    return content[:at] + rng.choice(NESTING) * rng.choice((3, 70, 3000)) + content[at:]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...]
MUTATIONS = flip, truncate, duplicate, delete, splice, insert, blow_up, nest


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
        content = SEEDS[seed]
        for _ in range(rng.choice((1, 1, 2, 3))):
            content = rng.choice(MUTATIONS)(content, rng)
        read += survives(folder, content, seed, rng.choice((None, seed)))
    assert 0 < read < count  # neither harmless nor hopeless


@pytest.fixture(autouse=True)
def plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage finds an index out of range only where Python checks it."""
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    loaded = [m for name, m in sys.modules.items() if name.startswith("plume_py.") and name.endswith("_kernels")]
    accel.release(*loaded)


@pytest.mark.parametrize("format", SEEDS)
def test_the_seed_itself_is_a_history(format: str, tmp_path: Path) -> None:
    assert survives(tmp_path, SEEDS[format], format, None)


@pytest.mark.parametrize("format", SEEDS)
def test_damaged_files_are_read_or_turned_down(format: str, tmp_path: Path) -> None:
    damage_all(format, -(-QUICK // len(SEEDS)), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("format", SEEDS)
def test_many_damaged_files_are_read_or_turned_down(format: str, tmp_path: Path) -> None:
    damage_all(format, -(-FULL // len(SEEDS)), tmp_path)


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


@pytest.mark.parametrize("format", SEEDS)
def test_every_reader_gets_every_other_format(format: str, tmp_path: Path) -> None:
    for content in SEEDS.values():
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
