"""formats/dbcop.py, cobra.py, viper.py, awdit.py, isopredict.py: what their readers read and reject."""

import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.formats import cobra_kernels, dbcop_bincode_kernels
from plume_py.history.load import load
from plume_py.history.model import History
from plume_py.history.times import NO_TIME

INITIAL_WRITE, NULL_WRITE = 0xBEBEEBEE, 0xDEADBEEF

Load = Callable[..., History]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Load ``content``, written to a file, in the format given."""

    def run(content: bytes | str, format: str | None = None, name: str = "h.dat") -> History:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load(path, format=format)

    return run


@pytest.fixture
def loaded_folder(tmp_path: Path) -> Load:
    """Load a folder of logs, given by name."""

    def run(logs: dict[str, bytes], format: str | None = None) -> History:
        folder = tmp_path / "logs"
        folder.mkdir(exist_ok=True)
        for name, content in logs.items():
            (folder / name).write_bytes(content)
        return load(folder, format=format)

    return run


@pytest.fixture(params=["never", "always"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run with plain kernels and with compiled ones."""
    kernels = cobra_kernels, dbcop_bincode_kernels
    dispatch.uncompile(*kernels)
    monkeypatch.setenv("ISOCHECK_COMPILE", request.param)
    yield
    dispatch.uncompile(*kernels)


def plain(history: History) -> list[list[tuple[str, list[tuple]]]]:
    """Sessions of (status, operations)."""
    return [[(txn.status, [tuple(op) for op in txn.ops]) for txn in session] for session in history]


def assert_rejected(action: Callable[[], object], *parts: str) -> None:
    with pytest.raises(InputError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


# dbcop bincode


def bincode(sessions: list[list[tuple[list[tuple[int, int, int, int]], int]]], info: bytes = b"info") -> bytes:
    """Sessions of (events (write, variable, value, success), success), as dbcop dumps them."""
    out = struct.pack("<5Q", 0, len(sessions), 2, 2, 2)
    for text in (info, b"2025-01-01T00:00:00+00:00", b""):
        out += struct.pack("<Q", len(text)) + text
    out += struct.pack("<Q", len(sessions))
    for session in sessions:
        out += struct.pack("<Q", len(session))
        for events, success in session:
            out += struct.pack("<Q", len(events))
            out += b"".join(struct.pack("<BQQB", *event) for event in events) + bytes([success])
    return out


SMALL = bincode([[([(1, 3, 7, 1)], 1), ([], 1)], [], [([(0, 3, 7, 1), (0, 4, 0, 1)], 1), ([(1, 4, 5, 1)], 0)]])


@pytest.mark.usefixtures("both_ways")
class TestDbcopBincode:
    def test_sessions_and_transactions_keep_their_order(self, loaded: Load) -> None:
        history = loaded(SMALL)
        assert history.format == "dbcop"
        assert plain(history) == [
            [("committed", [("w", 3, 7)]), ("committed", [])],
            [],
            [("committed", [("r", 3, 7), ("r", 4, 0)]), ("aborted", [("w", 4, 5)])],
        ]
        assert history.initial_value == 0

    def test_failed_events_are_skipped_unless_they_abort(self, loaded: Load) -> None:
        events = [(0, 1, 1, 0), (1, 1, 2, 0), (1, 1, 3, 1)]
        assert plain(loaded(bincode([[(events, 1), (events[:2], 0)]]))) == [
            [("committed", [("w", 1, 3)]), ("aborted", [("w", 1, 2)])]
        ]

    def test_numbers_use_all_64_bits(self, loaded: Load) -> None:
        big, small = 2**64 - 1, 2**63
        history = loaded(bincode([[([(1, big, small, 1), (0, big, small, 1), (0, 1, 0, 1)], 1)]]))
        assert plain(history) == [[("committed", [("w", big, small), ("r", big, small), ("r", 1, 0)])]]

    def test_a_file_without_sessions_is_read(self, loaded: Load) -> None:
        assert loaded(bincode([])).sessions == 0

    def test_every_truncation_is_rejected(self, loaded: Load) -> None:
        for size in range(len(SMALL)):
            assert_rejected(lambda size=size: loaded(SMALL[:size], "dbcop"), "h.dat")

    def test_trailing_bytes_are_rejected(self, loaded: Load) -> None:
        assert_rejected(lambda: loaded(SMALL + b"\0"), f"byte {len(SMALL)}", "follows the last session")

    @pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**63 - 1, 2**40, 1000])
    def test_huge_lengths_are_rejected(self, loaded: Load, length: int) -> None:
        empty = bincode([], info=b"")
        for at in (40, len(empty) - 8):
            content = empty[:at] + struct.pack("<Q", length) + empty[at + 8 :]
            assert_rejected(lambda content=content: loaded(content, "dbcop"), f"byte {at}", "length")

    def test_a_flag_is_0_or_1(self, loaded: Load) -> None:
        for events, success in (([(2, 1, 1, 1)], 1), ([(1, 1, 1, 9)], 1), ([], 3)):
            content = bincode([[(events, success)]])
            assert_rejected(lambda content=content: loaded(content, "dbcop"), "neither 0 nor 1", "byte ")


# dbcop JSON

WRAPPED = """{"params": {"id": 0, "n_node": 2}, "info": "x", "start": "", "end": "", "data": [
 [{"events": [{"Write": {"variable": 0, "version": 1}}], "committed": true}], [],
 [{"events": [{"Read": {"variable": 0, "version": 1}}, ["r", 1, null], ["r", 2, 0]], "committed": false},
  {"events": [], "committed": true}]]}"""


def test_dbcop_json_wrapped(loaded: Load) -> None:
    history = loaded(WRAPPED)
    assert history.format == "dbcop-json"
    assert plain(history) == [
        [("committed", [("w", 0, 1)])],
        [],
        [("aborted", [("r", 0, 1), ("r", 1, 0), ("r", 2, 0)]), ("committed", [])],
    ]
    assert history.initial_value == 0


def test_dbcop_json_bare(loaded: Load) -> None:
    history = loaded('[[{"events":[["w",18446744073709551615,1],["r","x",null]],"committed":true}]]\r\n')
    assert plain(history) == [[("committed", [("w", 2**64 - 1, 1), ("r", "x", 0)])]]
    assert loaded("[]", "dbcop-json").sessions == 0


def test_dbcop_json_null_is_not_a_written_zero(loaded: Load) -> None:
    events = '[["w",0,0],["r",0,null],["r",0,0],["r",1,0],["w",1,5]]'
    history = loaded(f'[[{{"events":{events},"committed":true}}]]')
    assert history.initial_value is None
    assert plain(history) == [[("committed", [("w", 0, 0), ("r", 0, None), ("r", 0, 0), ("r", 1, None), ("w", 1, 5)])]]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "ends too early"),
        (WRAPPED[:-20], "ends too early"),
        ("{}", "data"),
        ('{"data":[[{"events":[{}],"committed":true}]]}', "data[0][0]"),
        ('[[{"events":[]}]]', "committed"),
        ('[[{"events":[["w",0,null]],"committed":true}]]', "without a version"),
        ('[[{"events":[["w",0,-1]],"committed":true}]]', "[0][0]"),
        ('[[{"events":[["w",0,1.5]],"committed":true}]]', "[0][0]"),
        ('[[{"events":[["x",0,1]],"committed":true}]]', "[0][0]"),
        ('[[{"events":[{}],"committed":true}]]', "either a Read or a Write"),
        ('[[{"events":[{"Read":{"variable":1},"Write":{"variable":1}}],"committed":true}]]', "either"),
        ('[[{"events":[["w",0,' + "9" * 9000 + ']],"committed":true}]]', ""),
        ("[" * 100_000, ""),
        ("[[\xff", "line 1"),
    ],
)
def test_dbcop_json_rejects(loaded: Load, content: str, part: str) -> None:
    assert_rejected(lambda: loaded(content.encode("latin-1"), "dbcop-json"), part)


# dbcop text


def test_dbcop_hist(loaded: Load) -> None:
    history = loaded("// first\n[x:=1 y:=1] [x==1 z==?]\n[y:=3]!\n---\n-\n [ y == 1\tz==0 ] // done\n[]", name="h.hist")
    assert history.format == "dbcop-hist"
    assert plain(history) == [
        [
            ("committed", [("w", "x", 1), ("w", "y", 1)]),
            ("committed", [("r", "x", 1), ("r", "z", 0)]),
            ("aborted", [("w", "y", 3)]),
        ],
        [],
        [("committed", [("r", "y", 1), ("r", "z", 0)]), ("committed", [])],
    ]
    assert [history.place(t) for t in (1, 2, 3)] == ["line 2", "line 3", "line 6"]


def test_dbcop_hist_line_ends(loaded: Load) -> None:
    assert plain(loaded("\ufeff[x:=1]\r\n---\r\n[x==1]\r\n")) == plain(loaded("[x:=1]\n---\n[x==1]"))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[x:=1", "line 1"),
        ("[x:=1]\n[x==]", "line 2"),
        ("[x:=1y:=2]", "not an event"),
        ("[x:=?]", "not an event"),
        ("[x=1]", "not an event"),
        ("[x:=-1]", "not an event"),
        ("[[x:=1]]", "not a transaction"),
        ("[x:=1]!!", "not a transaction"),
        ("[x:=1]\nhello", "line 2"),
        ("[x:=18446744073709551616]", "64 bits"),
        ("[x:=" + "1" * 100_000 + "]", "64 bits"),
    ],
)
def test_dbcop_hist_rejects(loaded: Load, text: str, part: str) -> None:
    assert_rejected(lambda: loaded(text, "dbcop-hist"), part)


# dbcop YAML


def yaml_event(write: bool, variable: int, value: int, success: bool = True) -> str:
    words = str(write).lower(), str(success).lower()
    return (
        f"    - write:    {words[0]}\n      variable: {variable}\n      value:    {value}\n      success:  {words[1]}\n"
    )


YAML = (
    "---\n- - events:\n" + yaml_event(True, 0, 1) + "    success:    true\n"
    "  - events: []\n    success: false\n- []\n"
    "- - events:\n" + yaml_event(False, 0, 0) + yaml_event(True, 0, 2, False) + "    success:    true\n"
)


def test_dbcop_yaml(loaded: Load) -> None:
    for text in (YAML, YAML.replace("\n", "\r\n"), YAML.rstrip()):
        history = loaded(text)
        assert history.format == "dbcop-yaml"
        assert plain(history) == [
            [("committed", [("w", 0, 1)]), ("aborted", [])],
            [],
            [("committed", [("r", 0, 0)])],
        ]
        assert history.place(2) == "line 11"
    assert loaded("[]\n", "dbcop-yaml").sessions == 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("hello: 1", "line 1"),
        ("  - events:\n    success: true", "line 1"),
        ("- - events:\n", "inside a transaction"),
        ("- - events:\n    - write: true\n      variable: 0\n    success: true", "line 4"),
        ("- - events:\n    - write: maybe", "line 2"),
        ("- - events:\n    - write: true\n      variable: -1", "line 3"),
        ("- - events: &a\n    success: true", "line 1"),
        ("- - events:\n    - write: true\n      variable: 99999999999999999999", "64 bits"),
        ("- []\n[]", "line 2"),
    ],
)
def test_dbcop_yaml_rejects(loaded: Load, text: str, part: str) -> None:
    assert_rejected(lambda: loaded(text, "dbcop-yaml"), part)


# Cobra


def begin(txn: int) -> bytes:
    return b"S" + struct.pack(">q", txn)


def commit(txn: int) -> bytes:
    return b"C" + struct.pack(">q", txn)


def abort(txn: int) -> bytes:
    return b"A" + struct.pack(">q", txn)


def stamped(mark: bytes, time: int) -> bytes:
    return mark + struct.pack(">q", time)


def write(write_id: int, key: int) -> bytes:
    return b"W" + struct.pack(">3q", write_id, key, 99)


def read(txn: int, write_id: int, key: int) -> bytes:
    return b"R" + struct.pack(">4q", txn, write_id, key, 99)


COBRA = {
    "T10.log": begin(21) + read(11, 7, -5) + read(INITIAL_WRITE, INITIAL_WRITE, 6) + commit(21) + begin(22),
    "T2.log": begin(11) + write(7, -5) + commit(11) + begin(12) + commit(12) + begin(13) + write(8, 6) + abort(13),
    "T3.log": b"",
    "notes.txt": b"not a log",
}


@pytest.mark.usefixtures("both_ways")
class TestCobra:
    def test_sessions_in_natural_order(self, loaded_folder: Load) -> None:
        history = loaded_folder(COBRA)
        assert history.format == "cobra" and history.times is None
        assert plain(history) == [
            [("committed", [("w", 2**64 - 5, 7)]), ("committed", []), ("aborted", [("w", 6, 8)])],
            [],
            [("committed", [("r", 2**64 - 5, 7), ("r", 6, 0)]), ("unknown", [])],
        ]
        assert [history.session_label[s] for s in range(3)] == ["T2", "T3", "T10"]
        assert [history.txn_label[t] for t in range(5)] == [11, 12, 13, 21, 22]

    def test_both_initial_write_ids(self, loaded_folder: Load) -> None:
        log = begin(1) + read(NULL_WRITE, NULL_WRITE, 5) + read(INITIAL_WRITE, INITIAL_WRITE, 5) + commit(1)
        assert plain(loaded_folder({"a.log": log})) == [[("committed", [("r", 5, 0), ("r", 5, 0)])]]

    def test_write_id_zero_is_not_initial(self, loaded_folder: Load) -> None:
        log = begin(1) + write(0, 5) + commit(1) + begin(2) + read(NULL_WRITE, NULL_WRITE, 5) + commit(2)
        history = loaded_folder({"a.log": log})
        assert history.initial_value == INITIAL_WRITE
        assert plain(history)[0][1] == ("committed", [("r", 5, INITIAL_WRITE)])

    def test_a_lost_end_is_unknown(self, loaded_folder: Load) -> None:
        log = begin(1) + write(1, 5) + begin(2) + commit(2)
        assert plain(loaded_folder({"a.log": log})) == [[("unknown", [("w", 5, 1)]), ("committed", [])]]

    def test_repeated_ids_are_not_used_as_names(self, loaded_folder: Load) -> None:
        history = loaded_folder({"a.log": begin(1) + commit(1), "b.log": begin(1) + commit(1)})
        assert [history.txn_label[t] for t in range(2)] == ["T1", "T2"]

    def test_timestamps_are_times(self, loaded_folder: Load) -> None:
        log = stamped(begin(1), 1700000000) + write(7, 5) + stamped(commit(1), 1700000003)
        log += stamped(begin(2), 1700000003) + stamped(abort(2), 1700000004) + stamped(begin(3), 1700000009)
        history = loaded_folder({"T1.log": log, "T2.log": begin(4) + read(1, 7, 5) + commit(4)})
        assert plain(history) == [
            [("committed", [("w", 5, 7)]), ("aborted", []), ("unknown", [])],
            [("committed", [("r", 5, 7)])],
        ]
        assert history.times.begin.tolist() == [1700000000, 1700000003, 1700000009, NO_TIME]
        assert history.times.end.tolist() == [1700000003, 1700000004, NO_TIME, NO_TIME]
        assert history.times.per_second is None

    def test_extreme_numbers(self, loaded_folder: Load) -> None:
        log = begin(-(2**63)) + write(2**63 - 1, -(2**63)) + commit(-(2**63))
        assert plain(loaded_folder({"a.log": log})) == [[("committed", [("w", 2**63, 2**63 - 1)])]]

    @pytest.mark.parametrize(
        ("log", "parts"),
        [
            (stamped(begin(1), 17) + commit(1), ("byte 17", "cut off")),
            (begin(1) + commit(1) + stamped(begin(1), 17) + stamped(commit(1), 19), ("byte 27", "timestamps")),
            (begin(1) + write(1, 1) + b"x", ("byte 34", "not a record")),
            (b"hello", ("byte 0", "not a record")),
            (write(1, 1), ("byte 0", "outside")),
            (commit(1), ("byte 0", "outside")),
            (begin(1) + commit(1) + commit(1), ("byte 18", "outside")),
            (begin(1) + commit(2), ("byte 9", "another transaction")),
            ((begin(1) + write(1, 1))[:-1], ("byte 9", "cut off")),
            (b"S", ("byte 0", "cut off")),
        ],
    )
    def test_damaged_logs_are_rejected(self, loaded_folder: Load, log: bytes, parts: tuple[str, ...]) -> None:
        assert_rejected(lambda: loaded_folder({"T1.log": begin(7) + commit(7), "T2.log": log}), "T2.log", *parts)


def test_cobra_needs_a_folder_of_regular_files(tmp_path: Path) -> None:
    assert_rejected(lambda: load(tmp_path, format="cobra"), "no *.log")
    (tmp_path / "file").write_bytes(begin(1))
    assert_rejected(lambda: load(tmp_path / "file", format="cobra"), "not a folder")
    os.mkfifo(tmp_path / "pipe.log")
    assert_rejected(lambda: load(tmp_path, format="cobra"), "pipe.log", "regular file")


# Viper

VIPER = {
    "J10.log": b'{"value":[["r",5,1,true],["r",6,0,false],["r",7,null]]}\r\n\r\n{"value":[]}',
    "J2.log": b'{"value":[["w",5,1,true]],"time":3}\n{"value":[["w",6,2,false],["r",5,1,false]]}\n',
    "J3.log": b"",
}


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("format", [None, "viper"])
def test_viper(tmp_path: Path, inner: bool, format: str | None) -> None:
    folder = tmp_path / "json" if inner else tmp_path
    folder.mkdir(exist_ok=True)
    for name, content in VIPER.items():
        (folder / name).write_bytes(content)
    history = load(tmp_path, format=format)
    assert history.format == "viper"
    assert plain(history) == [
        [("committed", [("w", 5, 1)]), ("aborted", [("w", 6, 2), ("r", 5, 1)])],
        [],
        [("committed", [("r", 5, 1), ("r", 6, 0), ("r", 7, 0)]), ("committed", [])],
    ]
    assert [history.session_label[s] for s in range(3)] == ["J2", "J3", "J10"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"value":[["range","nil","nil",[],[]]]}', "'range' is not supported"),
        ('{"value":[["d",5,1]]}', "'d' is not supported"),
        ('{"value":[["r",5]]}', "not an operation"),
        ('{"value":[[]]}', "not an operation"),
        ('{"value":[[["r"],5,1]]}', "not an operation"),
        ('{"value":[["r",5,1.5]]}', "not an operation"),
        ('{"value":[["r",true,1]]}', "not an operation"),
        ('{"value":[["w",5,null]]}', "without a value"),
        ('{"value":7}', "expected"),
        ("{}", "value"),
        ('{"value":[["r",', "ends too early"),
        ("hello", "malformed"),
        ("[" * 100_000, "J1.log"),
        ('{"value":[["r",5,' + "9" * 9000 + "]]}", "J1.log"),
        ("\udcff", "UTF-8"),
    ],
)
def test_viper_rejects(loaded_folder: Load, line: str, part: str) -> None:
    content = b'{"value":[]}\n' + line.encode(errors="surrogateescape") + b"\n"
    assert_rejected(lambda: loaded_folder({"J1.log": content}, "viper"), "J1.log, line 2", part)


def test_viper_needs_a_folder(tmp_path: Path) -> None:
    assert_rejected(lambda: load(tmp_path, format="viper"), "no J*.log")
    (tmp_path / "J1.log").mkdir()
    assert_rejected(lambda: load(tmp_path, format="viper"), "regular file")


# AWDIT


def test_awdit(loaded: Load) -> None:
    text = "w 0 1\nr 1  0\n-----\n\nr 0 1\n=====\n-=-\nw 1 18446744073709551615\n"
    for content in (text, text.replace("\n", "\r\n"), text + "====\n", "\n" + text.rstrip()):
        history = loaded(content)
        assert history.format == "awdit"
        assert plain(history) == [
            [("committed", [("w", 0, 1), ("r", 1, 0)]), ("committed", [("r", 0, 1)])],
            [("committed", [("w", 1, 2**64 - 1)])],
        ]
        assert history.initial is None
    assert [loaded(text).place(t) for t in range(3)] == ["line 1", "line 5", "line 8"]


def test_awdit_has_no_initial_transaction(loaded: Load) -> None:
    assert loaded("w 0 0\n=\nr 0 0\n").init_txn == -1
    assert loaded("", "awdit").sessions == 0


@pytest.mark.parametrize("line", ["w 0", "w 0 1 2", "x 0 1", "w 0 x", "r 0 -1", "w 0 1.5", "w 0 18446744073709551616"])
def test_awdit_rejects(loaded: Load, line: str) -> None:
    assert_rejected(lambda: loaded(f"w 0 1\n{line}\n", "awdit"), "line 2")


# IsoPredict

TRACE = """WRITE KEY[x] Txn(0, 0)
READ KEY[x] Txn(2, 1) From(0, 0)

WRITE KEY[a b] Txn(1, 0)
READ KEY[x] Txn(2, 0) From(1, 0)
WRITE KEY[x] Txn(1, 0)"""


def test_isopredict(loaded: Load) -> None:
    for text in (TRACE, TRACE.replace("\n", "\r\n") + "\r\n\r\n"):
        history = loaded(text)
        assert history.format == "isopredict"
        assert plain(history) == [
            [("committed", [("r", "x", "1,0")]), ("committed", [("r", "x", None)])],
            [("committed", [("w", "a b", "1,0"), ("w", "x", "1,0")])],
        ]
        assert [history.txn_label[t] for t in range(3)] == ["2,0", "2,1", "1,0"]
        assert [history.session_label[s] for s in range(2)] == [2, 1]
        assert [history.place(t) for t in range(3)] == ["line 5", "line 2", "line 4"]


def test_isopredict_sets(loaded: Load) -> None:
    events = (
        "INSERT[k] to Set[s] Txn(1, 0)",
        "CONTAINS[k] in Set[s] From(1, 0) Txn(2, 0)",
        "DELETE[k] from Set[s] Txn(2, 0)",
        "CONTAINS[j] in Set[s] From(0, 0) Txn(2, 0)",
    )
    history = loaded("\n".join(events))
    assert history.format == "isopredict"
    assert plain(history) == [
        [("committed", [("w", "Set(s:k)", "1,0")])],
        [("committed", [("r", "Set(s:k)", "1,0"), ("w", "Set(s:k)", "2,0"), ("r", "Set(s:j)", None)])],
    ]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("READ KEY[x] Txn(1, 0)", "From"),
        ("WRITE KEY[x] Txn(1, 0) From(0, 0)", "From"),
        ("READ KEY[x] Txn(0, 0) From(1, 0)", "initial state"),
        ("WRITE KEY[x] Txn(1)", "not an event"),
        ("WRITE KEY[x Txn(1, 0)", "not an event"),
        ("WRITE KEY[x] Txn(1, KEY[x] Txn(1, 0)", "not an event"),
        ("INSERT[k] to Set[s] From(2, 0) Txn(1, 0)", "From"),
        ("CONTAINS[k] in Set[s] Txn(1, 0)", "From"),
        ("CONTAINS[k] in Set[s] From(1, 0) Txn(0, 0)", "initial state"),
        ("INSERT[k] from Set[s] Txn(1, 0)", "not an event of a set"),
        ("DELETE KEY[k] From Set(s) Txn(1, 0)", "not an event of a set"),
        ("WRITE KEY[x] Txn(1, 99999999999999999999)", "64 bits"),
        ("\udcff", "UTF-8"),
    ],
)
def test_isopredict_rejects(loaded: Load, line: str, part: str) -> None:
    content = b"WRITE KEY[y] Txn(1, 0)\n" + line.encode(errors="surrogateescape") + b"\n"
    assert_rejected(lambda: loaded(content, "isopredict"), "line 2", part)


# All of them


@pytest.mark.parametrize("format", ["dbcop-hist", "dbcop-yaml", "awdit", "isopredict"])
@pytest.mark.parametrize(
    "start", ["", "[x", "[x:=1", "[x:=1]", "- - events:", "    - write:", "w", "w 1", "WRITE KEY[x]", "INSERT[k] to"]
)
@pytest.mark.parametrize("filler", [" ", "-", "1", "] ", "[", "1 "])
def test_long_lines_take_no_quadratic_time(loaded: Load, format: str, start: str, filler: str) -> None:
    try:
        loaded(start + filler * 500_000 + "x", format)
    except InputError as error:
        assert len(str(error)) < 400


SAMPLES = {
    "dbcop": SMALL,
    "dbcop-json": WRAPPED.encode(),
    "dbcop-hist": b"// first\n[x:=1 y:=1] [x==1 z==?]\n[y:=3]!\n---\n[y==1]\n",
    "dbcop-yaml": YAML.encode(),
    "awdit": b"w 0 1\nr 1 0\n-----\nr 0 1\n=====\nw 1 2\n",
    "isopredict": TRACE.encode(),
    "cobra": COBRA["T2.log"],
    "viper": VIPER["J2.log"],
}


def damage(content: bytes, rng: random.Random) -> bytes:
    at, end = sorted((rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)))
    return rng.choice(
        [
            content[:at],
            content[:at] + content[end:],
            content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[at:],
            content[:at] + rng.randbytes(1) + content[at + 1 :],
            content[:end] + content[at:],
        ]
    )


@pytest.mark.parametrize("format", SAMPLES)
def test_damaged_input_is_read_or_rejected(tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    dispatch.uncompile(cobra_kernels, dbcop_bincode_kernels)
    rng = random.Random(format)
    is_folder = format in ("cobra", "viper")
    path = tmp_path / "J1.log"
    for _ in range(300):
        path.write_bytes(damage(SAMPLES[format], rng))
        try:
            load(tmp_path if is_folder else path, format=format)
        except InputError as error:
            assert "\n" not in str(error)
