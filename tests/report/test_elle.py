"""``report.elle``: EDN that Elle's users can read, names that fit, and no model ruled out that holds."""

import random

import edn_format
import pytest
from click.testing import CliRunner
from edn_format import Keyword

from plume_py import HistoryBuilder
from plume_py.checking.check import check
from plume_py.checking.result import Ends, LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.cli.main import cli
from plume_py.history.load import load
from plume_py.levels import NAMES
from plume_py.levels.patterns import PATTERNS
from plume_py.report import elle
from plume_py.report.elle import _STRONGER, elle_types, ruled_out


def answer(history, levels=NAMES, **how):
    return parsed(elle.document([check(history, levels, **how)]))


def parsed(text):
    """The EDN, with keywords as strings."""

    def plain(form):
        if isinstance(form, Keyword):
            return f":{form.name}"
        if isinstance(form, dict | edn_format.ImmutableDict):
            return {plain(key): plain(value) for key, value in form.items()}
        if isinstance(form, frozenset | set):
            return {plain(inner) for inner in form}
        if isinstance(form, list | tuple | edn_format.ImmutableList):
            return [plain(inner) for inner in form]
        return form

    return plain(edn_format.loads(text))


def edn(tmp_path, *operations):
    """A history of operations (process, value), all of them ok, with indices 10, 11, …"""
    path = tmp_path / "history.edn"
    lines = (f"{{:index {10 + i} :type :ok :process {p} :f :txn :value {v}}}" for i, (p, v) in enumerate(operations))
    path.write_text("\n".join(lines))
    return load(path)


def test_a_history_without_violations_is_valid(tmp_path):
    assert answer(edn(tmp_path, (0, "[[:w :x 1]]"), (1, "[[:r :x 1]]"))) == {":valid?": True}


def test_an_empty_history_is_unknown(tmp_path):
    for sessions in ((), ((),), (((),),)):
        builder = HistoryBuilder()
        for s, session in enumerate(sessions):
            builder.session(s)
            for ops in session:
                builder.add(s, ops)
        found = answer(builder.build())
        assert found[":valid?"] == ":unknown"
        assert found[":anomaly-types"] == [":empty-transaction-graph"]


def test_a_cycle_has_the_operations_and_their_indices(tmp_path):
    """The example of Elle's README."""
    history = edn(tmp_path, (0, "[[:append :x 1] [:r :y [1]]]"), (1, "[[:append :x 2] [:append :y 1]]"),
                  (2, "[[:r :x [1 2]]]"))  # fmt: skip
    found = answer(history)
    assert (found[":valid?"], found[":anomaly-types"], found[":not"]) == (False, [":G1c"], {":read-committed"})
    assert {":snapshot-isolation", ":serializable", ":strong-session-serializable"} <= found[":also-not"]
    (case,) = found[":anomalies"][":G1c"]
    assert sorted(op[":index"] for op in case[":cycle"][1:]) == [10, 11]
    assert case[":cycle"][0] == case[":cycle"][-1]
    assert sorted(step[":type"] for step in case[":steps"]) == [":wr", ":ww"]
    by_index = {op[":index"]: op for op in case[":cycle"]}
    assert by_index[10][":value"] == [[":append", ":x", 1], [":r", ":y", [1]]]
    assert (by_index[10][":type"], by_index[10][":process"], by_index[10][":f"]) == (":ok", 0, ":txn")


def test_indices_are_counted_where_the_file_has_none(tmp_path):
    path = tmp_path / "h.edn"
    path.write_text(
        "{:type :invoke :process 0 :value [[:r :x nil]]}\n{:type :info :process :nemesis}\n"
        "{:type :ok :process 0 :value [[:r :x 7]]}\n{:type :invoke :process 1 :value [[:w :y 1]]}"
    )
    history = load(path)
    assert history.txn_index is not None
    assert history.txn_index.tolist() == [2, 3]
    ((case,),) = answer(history)[":anomalies"].values()
    assert [op[":index"] for op in case[":ops"]] == [2]


@pytest.mark.parametrize(
    ("operations", "types", "weakest"),
    [
        ([(0, "[[:r :x 7]]")], ["garbage-read"], {"read-committed"}),
        ([(0, "[[:r :x 1] [:w :x 1]]")], ["future-read"], {"read-committed"}),
        ([(0, "[[:w :x 1] [:r :x nil]]")], ["internal"], {"read-atomic"}),
        ([(0, "[[:w :x 1] [:w :x 2]]"), (1, "[[:r :x 1]]")], ["G1b"], {"read-committed"}),
        ([(0, "[[:append :x 1]]"), (1, "[[:r :x [1 1]]]")], ["duplicate-elements"], {"read-uncommitted"}),
        ([(0, "[[:w :x 1] [:r :y 1]]"), (1, "[[:w :y 1] [:r :x 1]]")], ["G1c"], {"read-committed"}),
        (
            [(0, "[[:r :x 1]]"), (0, "[[:w :y 1]]"), (1, "[[:r :y 1]]"), (1, "[[:w :x 1]]")],
            ["G1c-process"],
            {"strong-session-read-committed"},
        ),
        # a fractured read
        (
            [(0, "[[:w :x 1] [:w :y 1]]"), (1, "[[:r :x nil] [:r :y 1]]")],
            ["G-single-item"],
            {"consistent-view", "read-atomic", "repeatable-read"},
        ),
        # a session that does not see its own write
        (
            [(0, "[[:w :x 1]]"), (0, "[[:r :x nil]]")],
            ["G-single-item-process"],
            {"strong-session-snapshot-isolation"},
        ),
        # a lost update
        (
            [(0, "[[:r :x nil] [:w :x 1]]"), (1, "[[:r :x nil] [:w :x 2]]")],
            ["G-single-item", "lost-update"],
            {"cursor-stability", "update-atomic"},
        ),
        # a long fork
        (
            [(0, "[[:w :x 1]]"), (1, "[[:w :y 1]]"), (2, "[[:r :x 1] [:r :y nil]]"), (3, "[[:r :x nil] [:r :y 1]]")],
            ["G-nonadjacent-item"],
            {"prefix", "repeatable-read"},
        ),
        # a write skew
        (
            [(0, "[[:r :x nil] [:r :y nil] [:w :x 1]]"), (1, "[[:r :x nil] [:r :y nil] [:w :y 1]]")],
            ["G2-item"],
            {"repeatable-read"},
        ),
    ],
)  # fmt: skip
def test_names_of_anomalies_and_models(tmp_path, operations, types, weakest):
    found = answer(edn(tmp_path, *operations))
    assert found[":valid?"] is False
    assert found[":anomaly-types"] == [f":{name}" for name in types]
    assert found[":not"] == {f":{name}" for name in weakest}
    assert not found[":not"] & found[":also-not"]


def test_orders_that_contradict_each_other(tmp_path):
    operations = (0, "[[:append :x 1]]"), (1, "[[:append :x 2]]"), (2, "[[:r :x [1 2]]]"), (3, "[[:r :x [2 1]]]")
    found = answer(edn(tmp_path, *operations))
    assert ":incompatible-order" in found[":anomaly-types"]
    assert ":read-committed" in found[":not"] | found[":also-not"]


def test_every_pattern_has_a_name():
    step = Step("T1", "T2", "RW", "x")
    for tap in [*PATTERNS, "torn-append"]:
        for level in (*NAMES, "declared"):
            for steps in ((), (step,), (step, Step("T2", "T1", "SO")), (Step("T1", "T2", "CM"),)):
                violation = Violation(PATTERNS[tap], level, (), (), steps, Ends.CLOSED if steps else Ends.OPEN, "", "")
                assert elle_types(violation)
                weakest, above = ruled_out([violation])
                assert weakest | above <= _STRONGER.keys()
                assert bool(weakest) == (level != "declared")


def test_undecided_and_unreadable():
    results = [
        Result("a", operations=1, levels={"SER": LevelVerdict(None, reason='time "limit"')}),
        Result("b", error="b: not \n a history"),
    ]
    one, other = parsed(elle.document(results))
    assert (one[":history"], one[":valid?"], one[":anomaly-types"]) == ("a", ":unknown", [":cycle-search-timeout"])
    assert one[":anomalies"][":cycle-search-timeout"] == [{":undecided": {"SER": 'time "limit"'}}]
    assert other == {":history": "b", ":valid?": ":unknown", ":error": "b: not \n a history"}


HOSTILE = ['"', "\\", '\\"', "a\nb", "\x1b[2J", "\u202e", "} {:valid? true", ":x} {", ":é\u202e", "1/0", ":a/", "[1 2]",
           '["a" :b 1.5]', '["\\u202e"]', "[1 2] 3", "##NaN", '"1.5"', "\ud800", "😀", "\U000e0001", "", "nil",
           "0" * 100, "[" * 200]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names(text):
    """Whatever keys, values, sessions and ids are called, the answer is one form, and harmless on a terminal."""
    txn = ShownTransaction(text, text, text, 1, "committed", (("r", text, (text, 1)), ("w", text, text)))
    step = Step(text, text, "WR", text, because=text, value=text)
    violation = Violation(PATTERNS["g"], "RC", (text,), (txn,), (step,), Ends.CLOSED, text, text)
    result = Result(text, operations=2, levels={"RC": LevelVerdict(False, ("g",))}, violations=(violation,))
    document = elle.document([result, result])
    assert document.replace("\n", "").isprintable()
    first, second = parsed(document)
    assert first == second
    (case,) = first[":anomalies"][":G1c"]
    assert case[":cycle"][0][":value"][1][0] == ":w"
    if text not in ("[1 2]", '["a" :b 1.5]', "\ud800", '"1.5"', "\U000e0001"):  # a half of a character is none
        assert case[":cycle"][0][":value"][1][1:] == [text, text]


def test_huge_numbers():
    txn = ShownTransaction("T1", 2**70, "", 1, "aborted", (("r", -(2**63), 2**63), ("w", None, 5)), 3)
    violation = Violation(PATTERNS["b"], "RC", (), (txn,), (), Ends.OPEN, "why.", "why", ((0, 0),))
    found = parsed(
        elle.document([Result("", operations=1, levels={"RC": LevelVerdict(False)}, violations=(violation,))])
    )
    assert found[":anomalies"][":G1a"][0][":ops"] == [
        {":type": ":fail", ":process": 2**70, ":f": ":txn", ":id": "T1", ":hidden-ops": 3,
         ":value": [[":r", -(2**63), 2**63], [":w", None, 5]]}
    ]  # fmt: skip


def test_on_the_command_line(tmp_path):
    good, bad, broken = tmp_path / "good.edn", tmp_path / "bad.edn", tmp_path / "broken.edn"
    good.write_text("{:type :ok :process 0 :value [[:w 1 1]]}")
    bad.write_text("{:type :ok :process 0 :value [[:r 1 1]]}")
    broken.write_text("{:type")
    one = CliRunner().invoke(cli, ["check", str(bad), "--format", "elle"])
    assert (one.exit_code, parsed(one.stdout)[":valid?"]) == (1, False)
    several = CliRunner().invoke(
        cli, ["check", *map(str, (good, bad, broken)), "--format", "elle", "--max-examples", "0"]
    )
    answers = parsed(several.stdout)
    assert several.exit_code == 4
    assert [found[":history"] for found in answers] == [str(path) for path in (good, bad, broken)]
    assert [found[":valid?"] for found in answers] == [True, False, ":unknown"]


# --- no model is ruled out that holds

LEVEL_OF = {"read-atomic": "RA", "causal-cerone": "TCC", "prefix": "PC", "parallel-snapshot-isolation": "PSI",
            "snapshot-isolation": "SI", "serializable": "SER"}  # fmt: skip
WITH_SESSIONS = {"strong-session-snapshot-isolation": "SI", "strong-session-serializable": "SER"}


def random_sessions(rng):
    sessions = [[] for _ in range(rng.randint(1, 4))]
    written = {"x": [None], "y": [None]}
    txns = [[] for _ in range(rng.randint(2, 6))]
    for t, ops in enumerate(txns):
        for key in "xy":
            if rng.random() < 0.5:
                written[key].append(10 * t)
                ops.append(("w", key, 10 * t))
    for ops in txns:
        for _ in range(rng.randint(0, 2)):
            key = rng.choice("xy")
            ops.insert(0, ("r", key, rng.choice(written[key])))
        rng.choice(sessions).append(ops)
    return sessions


def built(sessions):
    builder = HistoryBuilder()
    for s, session in enumerate(sessions):
        for ops in session:
            builder.add(s, ops)
    return builder.build(init_txn="none")


@pytest.mark.parametrize("seed", range(8))
def test_only_violated_models_are_ruled_out(seed):
    """A plain model knows no sessions: it must be broken without them, too."""
    rng = random.Random(seed)
    for _ in range(50):
        sessions = random_sessions(rng)
        found = answer(built(sessions), max_examples=3)
        if found[":valid?"] is True:
            continue
        out = {model[1:] for model in found[":not"] | found[":also-not"]}
        alone = check(built([[ops] for session in sessions for ops in session]), NAMES)
        together = check(built(sessions), NAMES)
        assert all(alone.levels[level].ok is False for model, level in LEVEL_OF.items() if model in out), sessions
        assert all(together.levels[level].ok is False for model, level in WITH_SESSIONS.items() if model in out)
        assert ("strong-session-serializable" in out) == (together.levels["SER"].ok is False)
