"""formats/bulk_parser.py and the grammars of its users: automata give the same histories as the general readers."""

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzz.mutate import BYTES, words

from plume_py import load
from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats import bulk_parser, edn, json_native, plume_text
from plume_py.history.formats.registry import FORMATS
from plume_py.history.model import History
from plume_py.levels import NAMES

READERS = {
    "json": (json_native, "read_sessions"),
    "jsonl": (json_native, "read_lines"),
    "plume": (plume_text, "read_text"),
    "edn": (edn, "read_events"),
}
COLUMNS = "op_kind op_key op_version txn_start txn_session txn_status txn_level txn_line session_start version_key"
QUICK, FULL = 1_000, 10_000
WHOLE, HALVES = 1 << 40, 0  # bytes from which on a text is cut


def described(history: History) -> dict[str, Any]:
    """All there is about a history; keys and values as they are spelled."""
    found: dict[str, Any] = {
        name: None if (column := getattr(history, name)) is None else (column.dtype, column.tolist())
        for name in [*COLUMNS.split(), "version_writer", "txn_index"]
    }
    lists, times = history.lists, history.times
    return found | {
        "keys": [history.key(key) for key in range(len(history.key_code))],
        "values": [history.value(version) for version in range(len(history.version_key))],
        "initial": (history.initial is None, history.initial_value),
        "lists": lists and [lists.ops.tolist(), lists.starts.tolist(), lists.items.tolist()],
        "times": times and [times.begin.tolist(), times.end.tolist(), times.per_second],
        "ids": [history.txn_label[t] for t in range(history.transactions)],
        "made up": (history.txn_label.names is None, history.txn_label.prefix),
        "sessions": [history.session_label[s] for s in range(history.sessions)],
        "rest": (history.init_txn, history.warnings, history.format),
    }


class Both:
    """Reads a text in both ways: by an automaton as a whole, and in halves."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = folder / "history"
        self._patch = monkeypatch
        self.taken = 0
        monkeypatch.setattr(bulk_parser, "_cores", lambda: 2)
        for module, name in set(READERS.values()):
            self._note(module, name)

    def _note(self, module: Any, name: str) -> None:
        reader = getattr(module, name)

        def noted(*arguments: Any) -> Any:
            found = reader(*arguments)
            self.taken += found is not None
            return found

        self._patch.setattr(module, name, noted)

    def outcome(self, content: bytes, format: str) -> dict[str, Any] | str:
        """The history in ``content`` as both ways have it, or what both say is wrong with it."""
        self._path.write_bytes(content)
        by_hand = self._load(format, False)
        for cut_from in (WHOLE, HALVES):
            self._patch.setattr(bulk_parser, "MIN_CUT_SIZE", cut_from)
            assert self._load(format, True) == by_hand, content[:2000]
        return by_hand

    def _load(self, format: str, by_automaton: bool) -> dict[str, Any] | str:
        for module, _ in READERS.values():
            self._patch.setattr(module, "is_large", lambda size: by_automaton)
        try:
            return described(load(self._path, format=format))
        except InputError as error:
            return str(error)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Without compiled kernels: Python notices an index out of range."""
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    dispatch.uncompile(
        *[m for name, m in sys.modules.items() if name.startswith("plume_py.") and name.endswith("_kernels")]
    )
    return Both(tmp_path, monkeypatch)


def drawn(rng: random.Random, *, plain: bool) -> History:
    """A history of integers; ``plain``: such as Plume text can hold."""
    initial = 0 if plain else rng.choice((None, 0, 7, -(2**63) + 1))
    builder = HistoryBuilder(initial, declared=plain or rng.random() < 0.7, per_second=rng.choice((None, 10**9)))
    is_timed, is_named = not plain and rng.random() < 0.5, rng.random() < 0.5
    keys = rng.choice((range(5), range(-3, 2), (1, 10**12, 2**63 - 1)))
    written, now = 0, rng.choice((0, 1_700_000_000_000_000_000))
    seen: dict[int, list[int]] = {key: [] for key in keys}
    for t in range(rng.randrange(1, 12)):
        ops: list[tuple[str, int, Any]] = []
        for _ in range(rng.randrange(0 if not plain else 1, 6)):
            key = rng.choice(tuple(keys))
            is_list = not plain and key == keys[0]
            if rng.random() < 0.5:
                ops.append(("r", key, list(seen[key]) if is_list else rng.choice((initial, *seen[key]))))
            else:
                written += rng.choice((1, 1, 1, 10**15))
                ops.append(("append" if is_list else "w", key, written + 100))
                seen[key].append(written + 100)
        status = rng.choice(("committed", "committed", "aborted") if plain else ("committed", "aborted", "unknown"))
        now += rng.randrange(5)
        times = {"begin": now, "end": now + 1} if is_timed and rng.random() < 0.9 else {}
        id = None if not is_named or (plain and status == "aborted") else rng.choice((t, t)) if plain else f"{{{t}.{t}"
        level = None if plain or rng.random() < 0.9 else rng.choice(NAMES)
        builder.add(rng.randrange(3) * 7, ops, status=status, id=id, level=level, **times)
        now += 1
    return builder.build()


def texts(rng: random.Random, count: int, format: str) -> list[bytes]:
    """Histories in a format, as its writer has them and with other spaces."""
    found = []
    while len(found) < count:
        try:
            history = drawn(rng, plain=format == "plume")
            text = b"".join(FORMATS[format].load_writer()(history).chunks)
        except InputError:
            continue
        except Exception as error:
            if type(error).__name__ != "ConversionError":
                raise
            continue
        found.append(rng.choice((text, text.replace(b"\n", b"\r\n"), _spaced(text, format))))
    return found


def _spaced(text: bytes, format: str) -> bytes:
    if format == "plume":
        return b"# first\n\n" + text.replace(b"\n", b" \t\n\n")
    if format == "edn":
        return (
            b"["
            + text.replace(b" ", b" , ").replace(b"}\n", b"}\n#jepsen.history.Op").removesuffix(b"#jepsen.history.Op")
            + b"]"
        )
    return text.replace(b",", b" , ").replace(b":", b"\t: ").replace(b"[", b"[ ")


EDN = (
    b"{:type :invoke, :process 0, :f :txn, :value [[:append 1 1] [:r 2 nil]], :time 3, :index 0}\n"
    b"{:type :invoke, :process 1, :f :txn, :value [[:append 2 1] [:r 1 nil]], :time 4, :index 1}\n"
    b"{:type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 2 [1]]], :time 5, :index 2}\n"
    b"{:type :info, :process 1, :f :txn, :value [[:append 2 1] [:r 1 nil]], :time 6, :index 3}\n"
    b"{:type :invoke, :process 0, :f :txn, :value [[:append 1 2]], :time 8, :index 4}\n"
    b"{:type :invoke, :process 0, :value [[:r 1 nil]], :time 8}\n"
    b"{:type :fail, :process 3, :value [[:r 1 nil] [:append 2 5] [:r 2 []]]}\n"
)


@pytest.mark.parametrize("format", READERS)
def test_automaton_and_reader_agree_on_random_histories(format: str, both: Both) -> None:
    rng = random.Random(f"columns {format}")
    for text in texts(rng, 150, format):
        assert not isinstance(both.outcome(text, format), str)
    assert both.taken >= 2 * 140


def test_automaton_and_reader_agree_on_jepsen_operations(both: Both) -> None:
    for text in (EDN, b"[" + EDN + b"]", EDN.replace(b":index", b":x"), EDN.replace(b":time", b":index -1 :time -")):
        both.outcome(text, "edn")
    lines = EDN.splitlines(keepends=True)
    rng = random.Random(4)
    for _ in range(200):
        both.outcome(b"".join(rng.choices(lines, k=rng.randrange(1, 9))), "edn")
    assert both.taken >= 2 * 150


def test_the_automaton_accepts_what_collect_records(both: Both) -> None:
    header = b'{"initial":null,"collected":{"run":"x","sql":["SELECT 1"]},"ticks_per_second":1000000000}\n'
    line = b'{"id":"s0.%d","session":0,"level":"SI","isolation":"snapshot","start":%d,"ops":[["w",1,%d]],'
    end = b'"status":"committed","end":%d}\n'
    text = header + b"".join((line + end) % (i, 10 * i, i, 10 * i + 5) for i in range(9))
    assert len(both.outcome(text, "jsonl")["ids"]) == 9
    assert both.taken == 2


def test_a_cut_inside_a_record_is_noticed(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id has the bracket at which a document is cut, and an event goes on after its line."""
    cut = []
    monkeypatch.setattr(bulk_parser, "_states_agree", _noted(bulk_parser._states_agree, cut))
    ops = b'"ops": [["w", 1, 1], ["w", 2, 2]]'
    both.outcome(b'{"sessions": [[{%b, "id": "%b"}]]}' % (ops, b"{" * 200), "json")
    both.outcome(b'{"sessions": [[{%b}], [{%b}, {%b}]]}' % (ops, ops.replace(b"w", b"r"), ops), "json")
    both.outcome(EDN.replace(b", ", b",\n"), "edn")
    both.outcome(EDN, "edn")
    assert cut == [False, True, False, True]


def _noted(function: Any, results: list[Any]) -> Any:
    def noted(*arguments: Any) -> Any:
        results.append(function(*arguments))
        return results[-1]

    return noted


UNUSUAL = {
    "json": (
        b'{"sessions": [[{"ops": [["w", "x", 1]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 9223372036854775808]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, -9223372036854775808]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 01]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 1.0]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, [1]]]}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 1]], "ops": []}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 1]], "level": "snapshot isolation"}]]}',
        b'{"sessions": [[{"ops": [["w", 1, 1]], "level": "no"}]]}',
        b'{"sessions": [[{"ops": [], "id": "\\u00e9"}]]}',
        b'{"sessions": [[{"ops": [], "id": "\xff"}]]}',
        b'{"sessions": [[{"ops": []}]]} x',
        b'{"sessions": [[{"ops": []}]], "initial": 3}',
        b'{"sessions": [[]',
        b'{"sessions": [[{"ops": []},]]}',
        b'{"initial": "x", "sessions": [[{"ops": []}]]}',
    ),
    "jsonl": (
        b'{"session": "a", "ops": []}\n',
        b'{"session": 1, "ops": []} {"session": 1, "ops": []}\n',
        b'{"session": 1, "ops":\n []}\n',
        b'{"session": 1}\n',
        b'{"ops": []}\n',
        b'{"session": 1, "ops": [["r", 1, [1, "a"]]]}\n',
        b'{"collected": {}}\n{"session": 1, "ops": [], "start": 0.5}\n',
    ),
    "plume": (
        b"w(1,18446744073709551615,0,0)\n",
        b"w(01,1,0,0)\n",
        b"w(1,1,0,0)\nw(2,1,1,0)\n",
        b"w(1,1,0,0) r(1,1,0,0)\n",
        b"w(1,\t1,0,0)\n",
        b"w(1,1,0,0)\nw(1,1,0,",
        b"w(-,1,0,0)\n",
    ),
    "edn": (
        EDN + b"]",
        b"[" + EDN,
        EDN.replace(b"[:append 1 1]", b"[:append 1 1N]"),
        EDN.replace(b":r 1 nil", b":r 1nil"),
        EDN.replace(b":process 3", b":process :nemesis"),
        EDN.replace(b":process 3", b":process nil"),
        EDN.replace(b":type :fail", b":type :failed"),
        EDN.replace(b"[1]", b"[1 nil]"),
        EDN + b"; the end",
        EDN.replace(b"\n{", b"\n#jepsen.history.Op\n{"),
        b" ",
        b"[]",
    ),
}


@pytest.mark.parametrize(("format", "text"), [(name, text) for name, texts in UNUSUAL.items() for text in texts])
def test_unusual_files_are_left_to_the_reader(format: str, text: bytes, both: Both) -> None:
    both.outcome(text, format)
    assert not both.taken


def agree_on_damage(format: str, count: int, both: Both) -> None:
    rng = random.Random(f"damage {format} {count}")
    seeds = texts(rng, 40, format) + ([EDN, b"[" + EDN + b"]"] if format == "edn" else [])
    for _ in range(count):
        content = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 1, 2))):
            content = rng.choice((*BYTES[:-1], words, words))(content, rng)
        both.outcome(content, format)
    assert 2 * count > both.taken > count // 25  # neither harmless nor hopeless


@pytest.mark.parametrize("format", READERS)
def test_automaton_and_reader_agree_on_damaged_files(format: str, both: Both) -> None:
    agree_on_damage(format, QUICK, both)


@pytest.mark.full
@pytest.mark.parametrize("format", READERS)
def test_automaton_and_reader_agree_on_many_damaged_files(format: str, both: Both) -> None:
    agree_on_damage(format, FULL, both)
