"""The writers of formats/: a written history is detected and read back unchanged, or is rejected with a reason."""

import gzip
import lzma
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plume_py import load
from plume_py.base.errors import ConversionError, InputError
from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.registry import FORMATS
from plume_py.history.formats.render import session_numbers
from plume_py.history.model import NOBODY, READ, READ_LIST, History
from plume_py.history.times import NO_TIME
from plume_py.levels import NAMES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

WRITABLE = [name for name, fmt in FORMATS.items() if fmt.writer]
COMPRESSIONS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd.compress}
INITIAL = "<initial>"  # no atom of the strategy looks like this

NATURALS = (0, 1, 2, 3, 7, 2**63 - 1, 2**63, 2**64 - 1)
HOSTILE = (
    "",
    "1",
    ":x",
    ":a/b",
    ": x",
    'q"\\',
    "a\nb\r\t",
    "\x00\x1b[31m\x7f",
    "\u202eabc\u2028",
    "é🙂",
    "nil",
    "{}],",
)
ODD = (*NATURALS, *HOSTILE, -1, -(2**63), -(2**63) - 1, 2**64, 10**30)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Small histories; every second one keeps to what all formats can express, or nearly."""
    modest = draw(st.booleans())
    atoms = st.sampled_from(NATURALS if modest else ODD)
    values = atoms if modest else st.one_of(st.none(), atoms)
    keys = draw(st.lists(atoms, min_size=1, max_size=3, unique=True))
    lists = set() if modest else set(draw(st.lists(st.sampled_from(keys), max_size=1)))
    initial = draw(st.sampled_from((0, None)) if modest else values)
    builder = HistoryBuilder(
        initial,
        declared=draw(st.booleans()),
        implicit_initial=modest or draw(st.booleans()),
        per_second=draw(st.sampled_from((None, 7, 10**6, 10**9))),
    )
    is_timed, origin = draw(st.booleans()), draw(st.sampled_from((0, -5, 10**18, 2**62)))
    ids = draw(st.lists(st.sampled_from((None, 3, 4, 5, 10**20, *HOSTILE)), max_size=4))
    statuses = st.sampled_from(("committed", "committed", "aborted") if modest else ("committed", "aborted", "unknown"))
    written: set[object] = set()

    def operation() -> tuple:
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            if key in lists and draw(st.booleans()):
                return "r", key, draw(st.lists(values.filter(lambda value: value != initial), max_size=3))
            return "r", key, initial if key in lists else draw(st.one_of(st.just(initial), values))
        value = draw(values.filter(lambda value: key not in lists or value != initial))
        if (key, value) in written:  # a second writer would make its readers ambiguous
            return "r", key, initial
        written.add((key, value))
        return "append" if key in lists else "w", key, value

    sessions = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    if draw(st.booleans()):  # something like an explicit initial transaction
        ops = [("w", key, draw(values)) for key in keys if key not in lists]
        written.update(op[1:] for op in ops)
        builder.add("first", ops)
    for s, transactions in enumerate(sessions):
        name = draw(st.sampled_from((s, str(s), 2**70 + s)))
        builder.session(name)
        clock = origin
        for _ in range(transactions):
            ops = [operation() for _ in range(draw(st.integers(0 if not modest or draw(st.booleans()) else 1, 3)))]
            level = None if modest else draw(st.sampled_from((None, None, *NAMES)))
            begin, end = clock + draw(st.integers(0, 3)), clock + draw(st.integers(3, 5))
            clock = end
            times = {
                "begin": draw(st.sampled_from((begin, begin, None))),
                "end": draw(st.sampled_from((end, end, None))),
            }
            builder.add(
                name,
                ops,
                status=draw(statuses),
                level=level,
                id=ids.pop() if ids else None,
                **(times if is_timed else {}),
            )
    try:
        return builder.build(init_txn=draw(st.sampled_from(("auto", "auto", "none"))))
    except InputError:  # two equal ids
        assume(False)
        raise


Model = list[list[tuple[str, str | None, list[tuple]]]]


def model(history: History) -> Model:
    """Sessions of (status, level, operations); a read of the initial state says so instead of its value."""
    initial = history.initial_versions

    def spelled(o: int) -> tuple:
        op = history.op(o)
        at_start = history.op_kind[o] == READ and initial[history.op_version[o]]
        return op.kind, op.key, INITIAL if at_start else op.value

    def ops(t: int) -> list[tuple]:
        return [spelled(o) for o in range(history.txn_start[t], history.txn_start[t + 1])]

    bounds = zip(history.session_start, history.session_start[1:], strict=False)
    facts = [history.transaction(t) for t in range(history.transactions)]
    return [[(facts[t].status, facts[t].level, ops(t)) for t in range(*bound)] for bound in bounds]


def without_unjudged_reads(sessions: Model, *values: object) -> Model:
    """Without the reads of ``values`` by transactions that did not commit: nobody ever asks what they saw."""

    def kept(status: str, op: tuple) -> bool:
        return status == "committed" or op[0] != "r" or op[2] not in values

    return [
        [(status, level, [op for op in ops if kept(status, op)]) for status, level, ops in session]
        for session in sessions
    ]


def with_merged_aborts(sessions: Model) -> Model:
    """Plume text has one aborted transaction per session, where the first one was."""
    result = []
    for session in sessions:
        merged: list[tuple[str, str | None, list[tuple]]] = []
        collected = None
        for status, level, ops in session:
            if status != "aborted":
                merged.append((status, level, ops))
            elif ops and collected is None:
                collected = list(ops)
                merged.append((status, level, collected))
            elif ops:
                collected += ops
        result.append(merged)
    return result


Clock = tuple[int | None, list[list[tuple[int | None, int | None]]]]


def clock(history: History) -> Clock | None:
    """The ticks per second, and (begin, end) session by session."""
    if history.times is None:
        return None
    times = [
        (None if begin == NO_TIME else begin, None if end == NO_TIME else end)
        for begin, end in zip(history.times.begin.tolist(), history.times.end.tolist(), strict=True)
    ]
    bounds = zip(history.session_start.tolist(), history.session_start[1:].tolist(), strict=False)
    return history.times.per_second, [times[begin:end] for begin, end in bounds]


def clock_of_jepsen(history: History) -> Clock | None:
    """In nanoseconds from 0 on, if that is possible, and none if it stands still."""
    found = clock(history)
    if found is None:
        return None
    per_second, sessions = found
    known = [time for session in sessions for span in session for time in span if time is not None]
    if len(set(known)) == 1:
        return None
    zero, factor = min(0, *known), 10**9 // (per_second or 10**9)
    if per_second == 7 or (max(known) - zero) * factor >= 2**63:
        factor = 1
    told = [[tuple(t if t is None else (t - zero) * factor for t in span) for span in session] for session in sessions]
    return 10**9, told


def in_session_order(history: History, again: History, sessions: list) -> list:
    """Sessions of Jepsen stand in the order in which they first complete something; here they stand as before."""
    place = {again.session_label[s]: s for s in range(again.sessions)}
    return [sessions[place[number]] for number in session_numbers(history)]


def expected_and_found(name: str, history: History, again: History) -> tuple[Model, Model]:
    expected, found = model(history), model(again)
    if name == "edn":
        found = in_session_order(history, again, found)
    if name == "plume":
        expected = with_merged_aborts(expected)
    if name == "edn" or history.init_txn != NOBODY:
        # EDN has nil for what was not seen; an explicit initial transaction replaces the value of an implicit one
        lost = (None, INITIAL, history.initial_value) if history.init_txn != NOBODY else (None, INITIAL)
        expected, found = without_unjudged_reads(expected, *lost), without_unjudged_reads(found, *lost)
    return expected, found


def expected_and_found_times(name: str, history: History, again: History) -> tuple[Clock | None, Clock | None]:
    expected, found = clock(history), clock(again)
    if name in ("json", "jsonl"):
        return expected, found
    if name == "edn" and expected is not None:
        expected = clock_of_jepsen(history)
        found = None if found is None else (found[0], in_session_order(history, again, found[1]))
        return expected, found
    return None, found


def written(history: History, name: str) -> bytes:
    return b"".join(FORMATS[name].load_writer()(history).chunks)


def labels(history: History) -> list:
    return [history.txn_label[t] for t in range(history.transactions)]


@pytest.mark.parametrize("name", WRITABLE)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_a_written_history_is_read_back_unchanged(name: str, data: st.DataObject, tmp_path: Path) -> None:
    history = data.draw(histories())
    try:
        content = written(history, name)
    except ConversionError as refusal:
        assert len(str(refusal)) > 20
        return
    path = tmp_path / "history.dat"
    path.write_bytes(content)
    again = load(path)
    assert again.format == name
    assert again.init_txn == history.init_txn
    expected, found = expected_and_found(name, history, again)
    assert found == expected
    expected_times, found_times = expected_and_found_times(name, history, again)
    assert found_times == expected_times
    if name in ("json", "jsonl"):
        assert labels(again) == labels(history)
    ending = data.draw(st.sampled_from(list(COMPRESSIONS)))
    path.with_suffix(ending).write_bytes(COMPRESSIONS[ending](content))
    assert model(load(path.with_suffix(ending))) == model(again)


ALL = set(WRITABLE)
WITH_STRINGS = {"json", "jsonl", "edn"}


@pytest.mark.parametrize(
    ("initial", "sessions", "formats"),
    [
        (0, [[[("w", 1, 5)]], [[("r", 1, 5), ("r", 2, 0)]]], ALL),
        (None, [[[("w", 1, 5)]], [[("r", 1, 5), ("r", 2, None)]]], ALL),
        (None, [[[("w", 2**64 - 1, 2**63)]], [[("r", 2**64 - 1, 2**63), ("r", 2, None)]]], ALL),
        ("", [[[("w", 1, 5)]], [[("r", 2, "")]]], ALL),
        (0, [[[("w", "x", 5)], [("r", "y", 0)]]], WITH_STRINGS),
        (0, [[[("w", 1, -5)], [("r", 2, 0)]]], WITH_STRINGS),
        (0, [[[("w", 1, None)], [("r", 2, 0)]]], {"json", "jsonl"} | {"edn"}),
        (None, [[[("append", 1, 5)]], [[("r", 1, []), ("r", 1, [5])]]], WITH_STRINGS),
        (0, [[[("w", 1, 5)], []], [[("r", 2, 0)]]], ALL - {"plume"}),
        (0, [[], [], [[("r", 1, 0)]], [], []], {"json", "dbcop", "dbcop-json"}),
        (0, [[], []], {"json", "dbcop", "dbcop-json"}),
        (0, [], {"json", "jsonl", "dbcop", "dbcop-json"}),
        (5, [[[("r", 1, 0)]]], {"json", "jsonl", "edn"}),  # 0 is thin air
    ],
)
def test_which_formats_can_express_a_history(
    initial: object, sessions: list, formats: set[str], tmp_path: Path
) -> None:
    builder = HistoryBuilder(initial)
    for s, session in enumerate(sessions):
        builder.session(s)
        for ops in session:
            builder.add(s, ops)
    history = builder.build()
    taken = set()
    for name in WRITABLE:
        try:
            (tmp_path / name).write_bytes(written(history, name))
        except ConversionError:
            continue
        taken.add(name)
        assert model(load(tmp_path / name)) == model(history)
    assert taken == formats


@pytest.mark.parametrize(
    ("txn", "formats"),
    [
        ({"status": "unknown"}, {"json", "jsonl", "edn"}),
        ({"status": "aborted"}, ALL),
        ({"level": "SI"}, {"json", "jsonl"}),
    ],
)
def test_which_formats_can_express_a_transaction(txn: dict, formats: set[str], tmp_path: Path) -> None:
    builder = HistoryBuilder(0)
    builder.add(0, [("w", 1, 2), ("r", 3, 4)], **txn)
    builder.add(1, [("r", 3, 0)])
    history = builder.build()
    for name in WRITABLE:
        if name not in formats:
            with pytest.raises(ConversionError, match=r"transaction T1 \(sessions\[0\]\[0\]\) needs it"):
                written(history, name)
        else:
            (tmp_path / name).write_bytes(written(history, name))
            assert model(load(tmp_path / name)) == model(history)


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("choice", ["first", "none"])
def test_a_forced_choice_of_the_initial_transaction_is_kept_or_rejected(name: str, choice: str, tmp_path: Path) -> None:
    """`first` although the initial value was read; `none` although the first transaction writes just that."""
    builder = HistoryBuilder(0)
    builder.add(0, [("w", 1, 9 if choice == "first" else 0)])
    builder.add(1, [("r", 1, 0)])
    history = builder.build(init_txn=choice)
    assert history.init_txn == (0 if choice == "first" else NOBODY)
    if (name, choice) == ("edn", "none"):  # in Jepsen's formats no transaction is ever taken for the initial state
        (tmp_path / "h.edn").write_bytes(written(history, name))
        assert model(load(tmp_path / "h.edn")) == model(history)
        return
    with pytest.raises(ConversionError, match="taken for the initial state"):
        written(history, name)


def test_a_format_without_initial_state_stays_without_one(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("w 0 0\n=\nr 0 0\n")
    history = load(tmp_path / "h", format="awdit")
    for name in ("json", "jsonl"):
        (tmp_path / name).write_bytes(written(history, name))
        assert load(tmp_path / name).init_txn == history.init_txn == NOBODY


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("dbcop", "cobra", "viper")])
def test_a_byte_order_mark_changes_nothing(name: str, tmp_path: Path) -> None:
    texts = {
        "json": '{"sessions":[[{"ops":[["w",1,2]]}]]}',
        "jsonl": '{"session":0,"ops":[["w",1,2]]}\n{"session":0,"ops":[]}\n',
        "plume": "w(1,2,0,0)\n",
        "dbcop-json": '[[{"events":[["w",1,2]],"committed":true}]]',
        "dbcop-hist": "[x:=2]\n",
        "dbcop-yaml": "- - events: []\n    success: true\n",
        "edn": "{:type :ok, :process 0, :value [[:w 1 2]]}\n",
        "jepsen-txt": "0\t:ok\t:txn\t[[:w 1 2]]\n",
        "elle-json": '[{"type":"ok","process":0,"value":[["w",1,2]]}]',
        "awdit": "w 1 2\n",
        "isopredict": "WRITE KEY[x] Txn(1, 0)\n",
    }
    (tmp_path / "h").write_text(texts[name])
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + texts[name].encode())
    assert load(tmp_path / "marked").format == load(tmp_path / "h").format == name
    assert model(load(tmp_path / "marked")) == model(load(tmp_path / "h"))
    (tmp_path / "marked.gz").write_bytes(gzip.compress((tmp_path / "marked").read_bytes()))
    assert model(load(tmp_path / "marked.gz")) == model(load(tmp_path / "h"))


def test_list_reads_are_not_read_as_registers(tmp_path: Path) -> None:
    builder = HistoryBuilder(None)
    builder.add(0, [("append", "x", 1), ("r", "x", [1])])
    builder.add(1, [("r", "x", [])])
    history = builder.build()
    assert [int(kind) for kind in history.op_kind] == [3, READ_LIST, READ_LIST]
    for name in ("json", "jsonl", "edn"):
        (tmp_path / name).write_bytes(written(history, name))
        assert load(tmp_path / name).op_kind.tolist() == history.op_kind.tolist()


ABORTED = {"status": "aborted"}


@pytest.mark.parametrize(
    ("name", "initial", "txns", "reason"),
    [
        # without what the format loses, the first transaction would look like an initial one
        ("plume", 0, [(0, [], ABORTED), (0, [("w", 1, 5)], {}), (1, [("r", 1, 5)], {})], "taken for the initial state"),
        ("plume", 0, [(0, [("w", 1, 5)], {}), (1, [], ABORTED)], "no empty sessions"),
        ("edn", 0, [(0, [("append", 1, None), ("r", 1, [None])], {})], "an element of a list"),
        ("dbcop-json", 0, [(0, [("w", 1, None)], {})], "a value is None"),
        ("plume", None, [(0, [("w", 1, 0)], {}), (1, [("r", 1, None)], {})], "whose initial state was read too"),
    ],
)
def test_a_conversion_that_would_change_the_meaning_is_rejected(
    name: str, initial: object, txns: list, reason: str, tmp_path: Path
) -> None:
    builder = HistoryBuilder(initial, declared=False)
    for session, ops, how in txns:
        builder.add(session, ops, **how)
    history = builder.build()
    with pytest.raises(ConversionError, match=reason):
        written(history, name)
    (tmp_path / "h").write_bytes(written(history, "json"))
    assert model(load(tmp_path / "h")) == model(history)


@pytest.mark.parametrize("names", [(2**70, 2**71), (1.5, "1.5"), ("é", '"\n'), (-1, 0)], ids=str)
@pytest.mark.parametrize("name", WRITABLE)
def test_sessions_stay_separate_under_any_names(name: str, names: tuple, tmp_path: Path) -> None:
    builder = HistoryBuilder(0)
    for i, session in enumerate(names):
        builder.add(session, [("w", i, 5), ("r", 7, 0)])
    history = builder.build()
    (tmp_path / "h").write_bytes(written(history, name))
    assert model(load(tmp_path / "h")) == model(history)


def test_reads_of_aborted_transactions_survive_bincode(tmp_path: Path) -> None:
    builder = HistoryBuilder(0)
    builder.add(0, [("w", 1, 2), ("r", 3, 4)], status="aborted")
    history = builder.build()
    (tmp_path / "h").write_bytes(written(history, "dbcop"))
    assert model(load(tmp_path / "h")) == model(history)
