"""times.py: begin and end of transactions in each format, in statistics, and contradictory times."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from plume_py import HistoryBuilder, InputError, check, load
from plume_py.base.errors import ConversionError
from plume_py.cli.main import cli
from plume_py.history.formats.registry import FORMATS
from plume_py.history.stats import TimeStats, stats
from plume_py.history.times import NO_TIME

NANOSECONDS = 10**9


def spans(history):
    """(begin, end) by transaction; None for a time that is not known."""

    def known(times):
        return [None if time == NO_TIME else time for time in times.tolist()]

    return list(zip(known(history.times.begin), known(history.times.end), strict=True))


@pytest.fixture
def read(tmp_path):
    """Loads a history from its text."""

    def load_text(text, name="history.dat"):
        path = tmp_path / name
        path.write_text(text)
        return load(path)

    return load_text


def refusal(read, text, name="history.dat"):
    with pytest.raises(InputError) as caught:
        read(text, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- native JSON and JSON Lines

TXN = '{"ops": [["w", "x", %d]]%s}'
LINE = '{"session": %d, "ops": [["w", "x", %d]]%s}\n'


def document(*fields, head=""):
    """A session per transaction."""
    sessions = ", ".join("[" + TXN % (i, field) + "]" for i, field in enumerate(fields))
    return f'{{{head}"sessions": [{sessions}]}}'


def lines(*fields, head=""):
    return head + "".join(LINE % (i, i, field) for i, field in enumerate(fields))


@pytest.mark.parametrize("spelled", [document, lines])
def test_native_files_take_start_and_end(read, spelled):
    times = (', "start": 5, "end": 9', ', "start": -3', ', "end": 12, "node": "a"', "", ', "start": null, "end": null')
    history = read(spelled(*times))
    assert spans(history) == [(5, 9), (-3, None), (None, 12), (None, None), (None, None)]
    assert history.times.per_second is None


@pytest.mark.parametrize(
    "text",
    [
        document(', "start": 5', head='"ticks_per_second": 1000, '),
        lines(', "start": 5', head='{"ticks_per_second": 1000}\n'),
        lines(', "start": 5', head='{"initial": 0, "ticks_per_second": 1000}\n'),
    ],
)
def test_native_files_may_state_ticks_per_second(read, text):
    assert read(text).times.per_second == 1000


@pytest.mark.parametrize("spelled", [document, lines])
def test_a_file_without_times_has_none(read, spelled):
    assert read(spelled("", ', "status": "aborted"')).times is None
    assert read(spelled(', "end": 3', "")).times is None, "ends alone order nothing"


@pytest.mark.parametrize("value", ["1.5", "1.0", "1e3", '"5"', "true", "[1]", "{}"])
@pytest.mark.parametrize("field", ["start", "end"])
def test_a_time_is_an_integer(read, field, value):
    wrong = f', "{field}": {value}'
    told = refusal(read, document("", wrong))
    assert f"sessions[1][0].{field}" in told and "int" in told and "one clock" in told
    told = refusal(read, lines("", wrong))
    assert f"line 2, {field}" in told and "int" in told and "one clock" in told


@pytest.mark.parametrize("value", [2**63, -(2**63), 10**30])
def test_a_time_has_64_bits(read, value):
    assert "sessions[1][0]: not a time" in refusal(read, document("", f', "start": {value}'))
    assert "line 2: not a time" in refusal(read, lines("", f', "end": {value}'))


@pytest.mark.parametrize("value", ["0", "-1", "1.5", '"1000"', "true"])
def test_ticks_per_second_is_a_positive_integer(read, value):
    assert "ticks_per_second" in refusal(read, document("", head=f'"ticks_per_second": {value}, '))
    told = refusal(read, lines("", head=f'{{"ticks_per_second": {value}}}\n'))
    assert "line 1, ticks_per_second" in told and "one clock" in told


def test_an_unknown_outcome_has_no_end(read):
    history = read(
        document(', "start": 5, "end": 3, "status": "unknown"', ', "start": 1, "end": 2, "status": "aborted"')
    )
    assert spans(history) == [(5, None), (1, 2)]


def test_contradictory_times_are_rejected(read):
    backwards = refusal(read, document("", ', "start": 5, "end": 4'))
    assert "sessions[1][0]" in backwards and "ends (at 4) before it begins (at 5)" in backwards
    two = LINE % (7, 1, ', "start": 5, "end": 9') + "\n" + LINE % (7, 2, ', "start": 8, "end": 12')
    overlap = refusal(read, two, "h.jsonl")
    assert "line 3" in overlap and "(line 1)" in overlap and "begins (at 8)" in overlap


def test_a_transaction_may_begin_with_its_times(read):
    """dbcop's JSON begins with such names, too; there they are dates."""
    assert spans(read('{"start": 1, "end": 2, "session": 0, "ops": []}\n')) == [(1, 2)]
    assert read('{"start": "", "end": "", "data": [[{"events": [], "committed": true}]]}').format == "dbcop-json"


def test_recordings_with_seconds_are_read_in_microseconds(read):
    """So ``collect`` wrote them before it wrote whole numbers."""
    head = '{"initial": 0, "collected": {"by": "isocheck 0.1.0"}}\n'
    text = lines(', "start": 1794864589.304556, "end": 1794864589.304696', ', "start": 5', head=head)
    history = read(text)
    assert spans(history) == [(1794864589304556, 1794864589304696), (5_000_000, None)]
    assert history.times.per_second == 10**6
    assert "line 2: not a time" in refusal(read, lines(', "start": 1e300', head=head))


def test_a_transaction_that_was_committing_when_the_collector_was_killed_has_a_begin(read, tmp_path):
    path = tmp_path / "h.jsonl"
    (tmp_path / ".h.jsonl.pending").write_text('{"run":"r"}\n{"session": 3, "id": "p", "start": 7, "ops": []}\n')
    path.write_text(lines(', "start": 1, "end": 2', head='{"ticks_per_second": 9, "collected": {"run": "r"}}\n'))
    assert spans(load(path)) == [(1, 2), (7, None)]


def test_the_builder_takes_times():
    builder = HistoryBuilder(per_second=1000)
    builder.add(0, [])
    builder.add(0, [], begin=5, end=9)
    with pytest.raises(InputError, match="not a time"):
        builder.add(0, [], begin=5, end=True)
    builder.add(1, [], begin=6)
    history = builder.build()
    assert spans(history) == [(None, None), (5, 9), (6, None)]
    assert history.times.per_second == 1000
    assert history.times.begin.dtype == np.int64


# --- Jepsen and Elle


def edn(*operations):
    """Each writes its own number to x."""
    maps = (f"{operation}, :f :txn, :value [[:w :x {number}]]" for number, operation in enumerate(operations))
    return "".join(f"{{{one}}}\n" for one in maps)


def test_jepsen_times_are_those_of_invocation_and_completion(read):
    history = read(
        edn(
            ":type :invoke, :process 0, :time 100",
            ":type :invoke, :process 1, :time 150",
            ":type :info, :process :nemesis, :time 160",
            ":type :ok, :process 0, :time 200",
            ":type :fail, :process 1, :time 250",
            ":type :invoke, :process 0, :time 300",
            ":type :info, :process 0, :time 400",
            ":type :invoke, :process 1, :time 500",
            ":type :ok, :process 2, :time 600",
        )
    )
    assert history.times.per_second == NANOSECONDS
    assert [history.session_label[int(s)] for s in history.txn_session] == [0, 0, 1, 1, 2]
    assert spans(history) == [(100, 200), (300, None), (150, 250), (500, None), (None, 600)]


@pytest.mark.parametrize("time", ["", ", :time 0", ", :time -1", ", :time 1.5", ', :time "now"', ", :time nil"])
def test_without_a_clock_the_order_of_lines_gives_the_times(read, time):
    """Indices where they ascend, as people look for them; else places."""
    order = (":type :invoke, :process 0", ":type :ok, :process 0", ":type :invoke, :process 1", ":type :ok, :process 1")
    history = read(edn(*(text + time for text in order)))
    assert spans(history) == [(0, 1), (2, 3)]
    assert history.times.per_second is None
    numbered = [f"{text}, :index {index}{time}" for text, index in zip(order, (10, 11, 20, 21), strict=True)]
    assert spans(read(edn(*numbered))) == [(10, 11), (20, 21)]
    shuffled = [f"{text}, :index {index}{time}" for text, index in zip(order, (10, 11, 5, 6), strict=True)]
    assert spans(read(edn(*shuffled))) == [(0, 1), (2, 3)]


def test_an_operation_without_time_among_others_with_times_has_none(read):
    history = read(
        edn(":type :invoke, :process 0, :time 5", ":type :ok, :process 0", ":type :invoke, :process 1, :time 7")
    )
    assert spans(history) == [(5, None), (7, None)]


def test_completions_alone_order_nothing(read):
    assert read(edn(":type :ok, :process 0, :time 1", ":type :ok, :process 1, :time 2")).times is None


def test_contradictory_jepsen_times_are_rejected(read):
    told = refusal(
        read,
        edn(
            ":type :invoke, :process 0, :time 5",
            ":type :ok, :process 0, :time 9",
            ":type :invoke, :process 0, :time 7",
            ":type :ok, :process 0, :time 12",
        ),
    )
    assert "line 4" in told and "(line 2)" in told


def test_equal_invocations_without_processes_begin_with_the_first(read):
    """Which of them completed is not known: a later beginning might be a lie."""
    types = (":invoke", ":invoke", ":ok", ":ok", ":invoke", ":ok")
    maps = (f":type {name}, :f :txn, :value [[:r :x nil]], :time {time}" for time, name in enumerate(types, 1))
    history = read("".join(f"{{{one}}}\n" for one in maps))
    assert spans(history) == [(1, 3), (1, 4), (5, 6)]


def test_a_completion_without_operations_makes_begins_uncertain(read):
    history = read(
        "{:type :invoke, :value [[:w :z 1]], :time 1}\n{:type :ok, :value [[:w :z 1]], :time 2}\n"
        "{:type :invoke, :value [[:w :x 1]], :time 3}\n{:type :invoke, :value [[:w :y 1]], :time 4}\n"
        "{:type :info, :value nil, :time 5}\n{:type :ok, :value [[:w :y 1]], :time 6}\n"
    )
    assert spans(history) == [(1, 2), (None, None), (None, 6)]


def test_elle_json_and_history_txt(read):
    operations = [
        {"type": "invoke", "process": 0, "value": [["w", "x", 1]], "time": 10},
        {"type": "ok", "process": 0, "value": [["w", "x", 1]], "time": 20},
    ]
    array, by_line = json.dumps(operations), "".join(json.dumps(one) + "\n" for one in operations)
    for text in (array, by_line):
        assert spans(read(text)) == [(10, 20)]
        assert read(text).times.per_second == NANOSECONDS
    text = "0\t:invoke\t:txn\t[[:w :x 1]]\n1\t:invoke\t:txn\t[[:w :x 2]]\n0\t:ok\t:txn\t[[:w :x 1]]\n"
    assert spans(read(text)) == [(0, 2), (1, None)]


def test_times_do_not_change_todays_verdicts(read):
    """A stale read is fine in session order, whatever the clock says."""
    text = edn(":type :invoke, :process 0, :time 1", ":type :ok, :process 0, :time 2") + (
        "{:type :invoke, :process 1, :value [[:r :x nil]], :time 3}\n"
        "{:type :ok, :process 1, :value [[:r :x nil]], :time 4}\n"
    )
    assert check(read(text), "SER").ok


# --- writers


def timed(per_second=None, spans=((0, 10), (5, 20)), status="committed"):
    """A session for each span; each writes, and the second reads what the first wrote."""
    builder = HistoryBuilder(initial=0, per_second=per_second)
    for s, (begin, end) in enumerate(spans):
        ops = [("w", 1, 1)] if s == 0 else [("r", 1, 1), ("w", 2, s + 1)]
        builder.add(s, ops, status=status, begin=begin, end=end)
    return builder.build()


def written(history, name):
    rendered = FORMATS[name].load_writer()(history)
    return b"".join(rendered.chunks).decode(), rendered.notes


def test_native_writers_keep_times():
    text, notes = written(timed(1000), "json")
    assert notes == []
    assert json.loads(text)["ticks_per_second"] == 1000
    assert [txn[0]["end"] for txn in json.loads(text)["sessions"]] == [10, 20]
    head, first, *_ = written(timed(1000), "jsonl")[0].splitlines()
    assert json.loads(head) == {"initial": 0, "ticks_per_second": 1000}
    assert json.loads(first) == {"session": 0, "start": 0, "end": 10, "ops": [["w", 1, 1]]}
    assert "ticks_per_second" not in written(timed(), "json")[0]


def test_jepsen_lines_are_written_in_the_order_of_time():
    """Elle and others go by that."""
    text, notes = written(timed(1000), "edn")
    assert notes == []
    assert text.splitlines() == [
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:w 1 1]], :time 0}",
        "{:index 1, :type :invoke, :process 1, :f :txn, :value [[:r 1 nil] [:w 2 2]], :time 5000000}",
        "{:index 2, :type :ok, :process 0, :f :txn, :value [[:w 1 1]], :time 10000000}",
        "{:index 3, :type :ok, :process 1, :f :txn, :value [[:r 1 1] [:w 2 2]], :time 20000000}",
    ]


def test_at_one_moment_jepsen_lines_begin_before_others_complete():
    """Who ends when another begins does not come before it."""
    types = [line.split()[3] for line in written(timed(spans=((0, 5), (5, 9))), "edn")[0].splitlines()]
    assert types == [":invoke,", ":invoke,", ":ok,", ":ok,"]
    builder = HistoryBuilder()
    for begin, end in ((0, 5), (5, 5), (5, 9)):
        builder.add("one session", [("w", begin, end)], begin=begin, end=end)
    types = [line.split()[3] for line in written(builder.build(), "edn")[0].splitlines()]
    assert types == [":invoke,", ":ok,"] * 3


def test_an_unknown_outcome_stays_without_an_end_in_jepsen_lines():
    lines = written(timed(10**9, status="unknown"), "edn")[0].splitlines()
    assert [":time" in line for line in lines if ":info" in line] == [False, False]


@pytest.mark.parametrize(
    ("per_second", "spans", "note"),
    [
        (None, ((0, 10), (5, 20)), "takes them for nanoseconds"),
        (7, ((0, 10), (5, 20)), "takes them for nanoseconds"),
        (10**12, ((0, 10), (5, 20)), "takes them for nanoseconds"),
        (1, ((0, 10), (5, 2**62)), "takes them for nanoseconds"),
        (10**9, ((-5, 10), (5, 20)), "none before 0"),
        (10**9, ((5, 5), (5, 5)), "stands still"),
    ],
)
def test_lost_jepsen_times_are_noted(per_second, spans, note):
    assert any(note in told for told in written(timed(per_second, spans), "edn")[1])


def test_times_too_far_apart_for_jepsen_are_rejected():
    with pytest.raises(ConversionError, match="further apart"):
        written(timed(10**9, ((-(2**62), 0), (0, 2**62))), "edn")


@pytest.mark.parametrize("name", ["plume", "dbcop", "dbcop-json"])
def test_formats_without_times_note_their_loss(name):
    lost = "the times of transactions are not kept: this format has none"
    assert lost in written(timed(), name)[1]
    assert lost not in written(timed(spans=((None, None), (None, None))), name)[1]


# --- statistics


def test_stats_of_times():
    """One alone, two that overlap, one that ends as another begins: then, too, neither is known to come first."""
    spans = ((0, 10), (20, 40), (30, 50), (50, 60), (70, None), (None, 80))
    found = stats(timed(1000, spans)).times
    assert (found.ticks_per_second, found.begun, found.ended, found.timed) == (1000, 5, 5, 4)
    assert (found.shortest, found.median, found.longest) == (10, 10, 20)
    assert (found.overlapping, found.most_at_once, found.mean_at_once) == (3, 2, 1.0)
    assert stats(timed(spans=((None, None),))).times is None


def test_stats_of_times_without_a_pair_or_a_span():
    assert stats(timed(spans=((5, None),))).times == TimeStats(None, 1, 0, 0, None, None, None, 0, 0, 0.0)
    still = stats(timed(spans=((5, 5), (5, 5)))).times
    assert (still.overlapping, still.most_at_once, still.mean_at_once) == (2, 2, 2.0)


def test_stats_of_the_longest_times_do_not_overflow():
    found = stats(timed(spans=((1 - 2**63, 2**63 - 1),))).times
    assert (found.longest, found.mean_at_once) == (2**64 - 2, 1.0)


@pytest.mark.parametrize(
    ("per_second", "spans", "expected"),
    [
        (10**9, ((0, 1_500_000), (2_000_000, 2_000_700)), "700 ns to 1.5 ms long, median 700 ns"),
        (10**6, ((0, 25), (20, 4_980_020)), "25 µs to 4.98 s long, median 25 µs; at most 2 at one time"),
        (1, ((0, 86400),), "86,400 s to 86,400 s long"),
        (10**9, ((0, 999_900), (0, 99_960)), "100 µs to 1,000 µs long"),
        (None, ((0, 1), (2, 12_000)), "1 tick to 11,998 ticks long"),
        (None, ((0, None), (5, None)), "of 2 transactions their beginning, of 0 their end, of none both"),
    ],
)
def test_stats_show_times(per_second, spans, expected, tmp_path):
    path = tmp_path / "h.json"
    path.write_text(written(timed(per_second, spans), "json")[0])
    assert expected in " ".join(CliRunner().invoke(cli, ["stats", str(path)]).stdout.split())
    (result,) = json.loads(CliRunner().invoke(cli, ["stats", str(path), "--format", "json"]).stdout)["results"]
    assert result["stats"]["times"]["ticks_per_second"] == per_second


def test_numbers_of_thousands_of_digits_are_rejected(read):
    digits = "9" * 6000
    assert "sessions[0][0]" in refusal(read, document(f', "start": {digits}'))
    assert "ticks_per_second" in refusal(read, document(head=f'"ticks_per_second": {digits}, '))
