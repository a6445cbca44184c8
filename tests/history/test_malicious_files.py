"""detect.py, source.py and readers: malicious files are read in linear time and within limits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from plume_py.base.errors import InputError
from plume_py.base.memory import control_group_limits
from plume_py.history import assemble_kernels as kernels
from plume_py.history import source
from plume_py.history.builder import HistoryBuilder
from plume_py.history.detect import format_of
from plume_py.history.load import load
from plume_py.history.source import HEAD, Source

# What is quadratic takes minutes on what follows, what is linear hundredths of a second.
CPU_SECONDS = 10

# Beginnings that patterns could take in more than one way.
PIECES = [
    b";\n", b"; \n ", b";;\n", b"#\n", b"# \n\t", b"//\n", b"///\n ", b"---\n", b"--- ", b"-", b"=", b"-\n", b"[",
    b"[ ", b"[;\n", b"{", b"{ ", b"(", b" ", b"\n", b",", b"\r", b"{}", b"{} ", b"} ", b'"', b'""', b'"a"', b'"ops"',
    b'"ops" ', b'{"session" ', b'{"initial" :', b'{"type"', b"a", b"a\t", b"0 ", b"r ", b"r 1 ", b"w(", b"#a",
    b"#a ", b"#a\n", b":a ", b"READ KEY[", b"[[", b"[[]", b'[{"f" ', b"[a", b"\t:ok ", b"\xef\xbb\xbf", b"\x00",
]  # fmt: skip


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < CPU_SECONDS


@pytest.mark.parametrize("start", [b"", b"{", b"[", b'{"a": 1', b";\n[", b"r "])
def test_detection_takes_linear_time(start):
    with soon():
        for piece in PIECES:
            format_of(start + (piece * HEAD)[:HEAD])


def test_a_line_of_many_chunks_is_joined_once(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 1 << 10)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"session": 0, "ops": [], "x": "' + b"y" * (1 << 26) + b'"}')
    with soon():
        assert [len(chunk) for chunk in Source(path).lines()] == [path.stat().st_size]


def test_lines_do_not_depend_on_chunks(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    text = b"a\n\nbb\n" + b"c" * 10 + b"\n\nlast"
    path.write_bytes(text)
    for size in range(1, 12):
        monkeypatch.setattr(source, "CHUNK", size)
        monkeypatch.setattr(source, "HEAD", size)
        chunks = list(Source(path).lines())
        assert b"".join(chunks) == text
        assert all(chunk.endswith(b"\n") for chunk in chunks[:-1])


def test_completions_without_a_process_find_their_invocations(tmp_path):
    path = tmp_path / "homeless.edn"
    asked = [f"{{:type :invoke, :f :txn, :value [[:w :x {i}]]}}" for i in range(30_000)]
    path.write_text("\n".join(asked + ["{:type :info, :f :txn, :value nil}"] * len(asked)))
    with soon():
        assert load(path).transactions == len(asked)


def test_many_ids_that_look_generated_take_linear_time():
    builder = HistoryBuilder()
    builder.add(0, [("w", "x", -1)])
    for quotes in range(2_000):
        builder.add(0, [("w", "x", quotes)], id="T" + "'" * quotes + "1")
    with soon():
        history = builder.build()
    ids = [txn.id for session in history for txn in session]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("groups", "limits", "wanted"),
    [
        ("0::/a/b\n", {"memory.max": "max", "a/memory.max": "5000", "a/b/memory.max": "7000"}, 5000),
        ("0::/\n", {"memory.max": "6000\n"}, 6000),
        ("0::/../../c\n", {"memory.max": "6000\n"}, 6000),
        ("1:cpu:/x\n0::/u\n", {"unified/u/memory.max": "9000"}, 9000),
        (
            "4:memory:/p/q\n0::/\n",
            {"memory/p/memory.limit_in_bytes": "800", "memory/memory.limit_in_bytes": "900"},
            800,
        ),
        ("4:cpu,memory:/docker/1\n", {"memory/memory.limit_in_bytes": "700"}, 700),
        ("4:cpu:/p\n", {"memory/p/memory.limit_in_bytes": "800", "memory.max": "8"}, None),
        ("odd\n\n:::\n", {"memory.max": "nonsense"}, None),
    ],
)
def test_control_groups_limit_the_memory(tmp_path, groups, limits, wanted):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in limits.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert min(control_group_limits(str(tmp_path)), default=None) == wanted


@pytest.mark.parametrize("depth", [100, 600, 3_000, 100_000])
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("h.json", '{"sessions": [[{"ops": [["r", "x", ', "]]}]]}"),
        ("h.jsonl", '{"session": 0, "ops": [["r", "x", ', "]]}"),
        ("h.edn", "{:type :ok, :process 0, :f :txn, :value [[:r ", " nil]]}"),
        ("e.json", '[{"type": "ok", "process": 0, "f": "txn", "value": [["r", ', ", 1]]}]"),
        ("d.json", '[[{"events": [["r", 0, ', ']], "committed": true}]]'),
    ],
)
def test_deep_nesting_is_an_input_error_of_one_line(tmp_path: Path, name, before, after, depth):
    path = tmp_path / name
    path.write_text(before + "[" * depth + "]" * depth + after)
    try:
        load(path)  # a vector can be a key of Jepsen's
    except InputError as error:
        assert "\n" not in str(error)


# Codes that a hash without a secret puts side by side, as far as tables go that have a place for each of them.
_BESIDE, _PLACES = 64, 1 << 16


def flood(count: int) -> list[int]:
    """So many numbers whose hashes lie side by side, whatever the size of the table."""
    found: list[int] = []
    for start in range(0, 1 << 40, 1 << 20):
        codes = np.arange(start, start + (1 << 20), dtype=np.int64) * 1000003
        found += codes[(kernels.hash_code(codes) & (_PLACES - 1)) < _BESIDE].tolist()
        if 2 * len(found) >= count:
            break
    return [code + top for code in found[: count // 2] for top in (0, 1 << 62)]  # that bit does not count


@pytest.mark.parametrize("line", ["w({0},1,0,1)", "w(1,{0},0,1)", "w(1,1,{0},-1)", "w(1,1,0,{0})", "w(01,1,{0},{0})"])
def test_colliding_numbers_cannot_be_constructed(tmp_path, monkeypatch, line):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    path = tmp_path / "flood.txt"
    path.write_text("\n".join(map(line.format, flood(20_000))))
    with soon():
        assert len(load(path, format="plume").op_kind) == 20_000
