"""Prediction against enumeration of all runs, published traces, and each boundary rule (package predictor)."""

import random
import time
from collections import Counter
from dataclasses import replace

import oracle_mixed
import predict_oracle
import pytest
from oracle import Facts

from plume_py import HistoryBuilder, InputError, check, load
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.predict import LEVELS
from plume_py.reasoning.predict.prediction_files import trace
from plume_py.reasoning.predict.predictor import predictor
from plume_py.reasoning.predict.predictor import recheck as second_opinion
from plume_py.reasoning.predict.predictor.observed_run import observe
from plume_py.reasoning.predict.predictor.prediction import running_order
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.predictor.recheck import PredictionDefectError, recheck
from plume_py.reasoning.predict.report import dangerous_reads, program_of, safe_levels

STRATEGIES = [("strict", True), ("strict", False), ("relaxed", True), ("relaxed", False)]


def build(sessions, initial=0, **kwargs):
    builder = HistoryBuilder(initial, **kwargs)
    for s, session in enumerate(sessions):
        builder.session(s)
        for txn in session:
            status, ops = txn if isinstance(txn[0], str) else ("committed", txn)
            builder.add(s, ops, status=status)
    return builder.build(init_txn="none")


def small(*sessions, **kwargs):
    """A history from sessions like "w(x,1) r(y,0) ; r(x,1)"; transactions are called T1, T2, … in that order."""
    plain = []
    for session in sessions:
        plain.append([])
        for txn in session.split(";"):
            ops = [(op[0], op[2], int(op[4:-1])) for op in txn.split()]
            plain[-1].append(("committed", ops))
    return build(plain, **kwargs)


# The micro-traces of the published tool: (sessions, causal strict, causal relaxed, RC strict, RC relaxed).
MICRO = {
    "always_serial_2s4t": (("w(x,1) ; w(x,2) w(y,1) ; r(y,2)", "w(y,2) r(x,2)"), False, False, True, True),
    "always_serial_3s3t": (("w(x,1)", "w(y,1)", "r(x,1) r(y,1)"), False, False, False, False),
    "always_serial_3s4t": (("w(x,1)", "w(y,1)", "r(x,1) w(x,2) ; r(y,1)"), False, False, False, False),
    "simple_serial_2s3t": (("w(y,1) r(x,0)", "w(x,1) r(y,1)"), True, True, True, True),
    "simple_serial_2s5t": (("w(x,1) ; w(x,2) r(y,1)", "w(y,1) ; w(y,2) ; r(x,2)"), True, True, True, True),
    "simple_causal_2s3t": (("w(y,1) r(x,0)", "w(x,1) r(y,0)"), True, True, True, True),
    "simple_causal_2s4t": (("w(x,1) ; w(x,2) w(y,1) ; r(y,2)", "w(y,2) r(x,1)"), True, True, True, True),
    "simple_causal_2s5t": (("w(x,1) ; w(x,2) r(y,1)", "w(y,1) ; w(y,2) ; r(x,1)"), True, True, True, True),
    "simple_noncausal_2s3t": (("w(y,1) r(x,1)", "w(x,1) r(y,1)"), True, True, True, True),
    "not_readcommitted": (("r(y,0) w(y,1) w(x,1)", "r(x,1) r(y,0)"), False, False, False, True),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MICRO)
def test_published_micro_traces_have_the_published_answers(name: str, exact: bool) -> None:
    sessions, *expected = MICRO[name]
    history = small(*sessions)
    found = [
        predict(history, level, boundary=boundary, exact=exact).ok is False
        for level in ("TCC", "RC")
        for boundary in ("strict", "relaxed")
    ]
    assert found == expected


def agree(rng, levels, target="SER", unknown=0.0, **shape) -> Counter:
    """Compare with trying everything; counts what was found, and by whom."""
    sessions = predict_oracle.random_observed(rng, **shape)
    if unknown:
        sessions = [[("unknown" if rng.random() < unknown else status, ops) for status, ops in s] for s in sessions]
    history, counts = build(sessions), Counter()
    for boundary in ("strict", "relaxed"):
        cache: dict = {}
        for level in levels:
            expected = predict_oracle.predictable(sessions, level, boundary == "strict", target, cache)
            exact = predict(history, level, target=target, boundary=boundary, exact=True)
            approximate = predict(history, level, target=target, boundary=boundary, exact=False)
            assert (exact.ok is False) == expected, (sessions, level, boundary)
            assert expected or approximate.ok, (sessions, level, boundary)
            counts["compared"] += 1
            counts["predicted"] += expected
            counts["missed by the approximation"] += expected and bool(approximate.ok)
    return counts


def test_predictor_agrees_with_enumeration_of_all_runs() -> None:
    rng = random.Random(1)
    counts = sum((agree(rng, ["RC", "TCC"]) for _ in range(100)), Counter())
    assert counts["compared"] == 400
    assert 50 < counts["predicted"] < 350


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_predictor_agrees_with_enumeration_on_many_histories(part: int) -> None:
    rng = random.Random(1000 + part)
    counts = sum((agree(rng, ["RC", "TCC"]) for _ in range(1000)), Counter())
    print(part, dict(counts))
    assert counts["predicted"] > 500


@pytest.mark.parametrize(
    ("levels", "target"), [(("RA", "PC"), "SER"), (("PSI", "SI"), "SER"), (("RC", "RA", "TCC", "PC"), "SI")]
)
def test_predictor_agrees_with_enumeration_for_other_levels_and_targets(levels, target) -> None:
    rng = random.Random(f"{levels} {target}")
    counts = sum((agree(rng, levels, target, txns=(3, 5)) for _ in range(40)), Counter())
    assert counts["predicted"]


def test_predictor_agrees_with_enumeration_for_unknown_outcomes() -> None:
    rng = random.Random("unknown")
    counts = sum((agree(rng, ["RC", "TCC", "SI"], unknown=0.3, txns=(3, 5)) for _ in range(40)), Counter())
    assert counts["predicted"]


@pytest.mark.parametrize("level", ["TCC", "SI"])
def test_predictor_agrees_with_enumeration_for_repeated_writes_of_a_key(level: str) -> None:
    rng = random.Random(f"again {level}")
    counts = sum((agree(rng, [level], ops=(2, 5), keys=(2, 3), txns=(2, 4), again=True) for _ in range(60)), Counter())
    assert counts["predicted"]


def test_a_write_before_the_boundary_counts_even_if_overwritten_after_it() -> None:
    """T1, cut at its read of c, has written x like T2: first-committer-wins leaves no write skew on a and b."""
    history = small("r(b,0) w(x,1) w(a,1) r(c,0) w(x,2)", "w(x,3) r(x,3) w(b,1) r(a,1)")
    assert predict(history, "SI", exact=True).ok is True
    assert predict(history, "PC").ok is False


def test_a_write_after_the_boundary_can_violate_the_level() -> None:
    """T1, cut at its read of a, goes on to write x like T2: SI lets only one of them commit if T1 misses T2's a."""
    history = small("w(b,1) r(a,1) w(x,1)", "r(b,0) w(a,1) w(x,2)")
    assert predict(history, "PC", exact=True).ok is False
    assert predict(history, "SI", exact=True).ok is True


@pytest.mark.full
@pytest.mark.parametrize(("levels", "target"), [(("RA", "PC", "PSI", "SI"), "SER"), (("RC", "RA", "TCC", "PC"), "SI")])
def test_predictor_agrees_with_enumeration_for_other_levels_on_many_histories(levels, target) -> None:
    rng = random.Random(f"many {levels} {target}")
    for _ in range(1000):
        agree(rng, levels, target, txns=(2, 6), keys=(1, 3))


@pytest.mark.parametrize("some", [oracle_mixed.LEVELS, ("RC", "TCC", "PSI")], ids=" ".join)
def test_predictor_agrees_with_enumeration_for_declared_levels(some) -> None:
    rng, found = random.Random(7), 0
    for _ in range(60):
        sessions = predict_oracle.random_observed(rng, txns=(2, 4))
        history = build(sessions)
        levels = [[rng.choice(some) for _ in session] for session in sessions]
        builder = HistoryBuilder(0)
        for s, session in enumerate(sessions):
            for (_, ops), level in zip(session, levels[s], strict=True):
                builder.add(s, ops, level=level)
        declared = builder.build(init_txn="none")
        assert declared.transactions == history.transactions
        for boundary in ("strict", "relaxed"):
            expected = any(_breaks(*run, levels) for run in predict_oracle.runs(sessions, boundary == "strict"))
            outcome = predict(declared, "declared", boundary=boundary, exact=True)
            assert (outcome.ok is False) == expected, (sessions, levels, boundary)
            found += expected
    assert found > 5


def test_visibility_passes_through_a_read_committed_transaction() -> None:
    """TCC asks for all that is causally before, whatever the levels in between: T3 follows T2, which read from T1."""
    builder = HistoryBuilder(0)
    builder.add(0, [("w", "x", 1), ("w", "y", 1)], level="RC")
    builder.add(1, [("w", "x", 2), ("r", "y", 1)], level="RC")
    builder.add(1, [("r", "y", 1)], level="TCC")
    history = builder.build(init_txn="none")
    for boundary, exact in STRATEGIES:
        assert predict(history, "declared", boundary=boundary, exact=exact).ok is True


def _breaks(run, committed, levels) -> bool:
    """Does the run keep these levels and break SER? What is kept of a session is its beginning, so levels match."""
    facts = Facts(run, 0)
    by_txn = [level for s, session in enumerate(run) for level in levels[s][: len(session)]]
    serial = dict.fromkeys(facts.live, "SER")
    return not oracle_mixed.holds(facts, serial) and oracle_mixed.holds(Facts(committed, 0), dict(enumerate(by_txn)))


def test_two_deposits_lose_an_update() -> None:
    """Figures 1 to 3 of the paper: both see the empty account."""
    outcome = predict(small("r(x,0) w(x,1)", "r(x,1) w(x,2)"), "TCC", boundary="relaxed")
    (prediction,) = outcome.predictions
    assert prediction.violation.name == "LostUpdate"
    (change,) = prediction.changes
    assert (change.txn, change.observed, change.predicted) == (1, 0, -1)


@pytest.mark.parametrize(("boundary", "predicted"), [("strict", False), ("relaxed", True)])
def test_a_withdrawal_between_two_deposits_depends_on_the_boundary(boundary, predicted: bool) -> None:
    """Figure 9: the boundary decides whether the write after a changed read counts."""
    history = small("r(x,0) w(x,1) ; r(x,2) w(x,3)", "r(x,1) w(x,2)")
    outcome = predict(history, "TCC", boundary=boundary, exact=True)
    assert (outcome.ok is False) == predicted


def test_a_read_of_a_constant_key_is_dropped_but_can_be_a_boundary() -> None:
    history = small("r(c,0) w(x,1) r(c,0) r(c,0) w(y,1)", "r(x,1)")
    observed = observe(history, "strict", conflicts=False)
    assert {history.key(read.key) for read in observed.reads} == {"x"}
    assert [len(cuts) for cuts in observed.cuts] == [2, 1]


def test_repeated_prediction_finds_different_anomalies_and_ends() -> None:
    history = small("w(x,1) ; w(x,2) r(y,1)", "w(y,1) ; w(y,2) ; r(x,2)")
    outcome = predict(history, "TCC", count=100)
    shown = [tuple(sorted((c.op, c.predicted) for c in p.changes)) for p in outcome.predictions]
    assert outcome.complete and len(shown) == len(set(shown)) == 4
    assert predict(history, "TCC", count=2).complete is False


def test_dangerous_reads_are_grouped_by_program() -> None:
    builder = HistoryBuilder(0)
    builder.add("a", [("r", "x", 0), ("w", "x", 1)], id="s1.1 Deposit")
    builder.add("b", [("r", "x", 1), ("w", "x", 2)], id="s2.1 Deposit")
    history = builder.build()
    outcome = predict(history, "TCC", boundary="relaxed")
    (read,) = dangerous_reads(history, outcome.predictions)
    assert (read.who, read.key, read.anomalies) == ("Deposit", "x", {"LostUpdate"})


def test_dangerous_reads_are_counted_by_prediction() -> None:
    """Both reads of T3 change in one prediction, but it is one."""
    history = small("r(x,0) w(x,1) ; w(x,2)", "r(x,2) r(x,2)")
    outcome = predict(history, "RC", boundary="relaxed", count=20)
    assert any(len(prediction.changes) == 2 for prediction in outcome.predictions)
    assert all(read.times <= len(outcome.predictions) for read in dangerous_reads(history, outcome.predictions))


@pytest.mark.parametrize(
    ("id", "name"), [("s2.1 Balance", "Balance"), ("transfer-7", "transfer"), ("T12", None), ("1,0", None), (3, None)]
)
def test_program_names_are_found_in_transaction_ids(id, name) -> None:
    assert program_of(id) == name


def test_safe_levels_are_the_weakest_that_hold() -> None:
    history = small("r(x,0) w(x,1)", "r(x,1) w(x,2)")
    answers = {level: predict(history, level, boundary="relaxed").ok for level in LEVELS}
    assert [level for level, holds in answers.items() if not holds] == ["RC", "RA", "TCC", "PC"]
    assert safe_levels(answers) == ["PSI"]
    assert safe_levels({**answers, "PSI": None}) == ["SI"]


def test_a_prediction_keeps_ids_and_constant_reads_and_replaces_ambiguous_values() -> None:
    """Ids, levels and constant reads are kept; values that do not tell writers apart are replaced."""
    builder = HistoryBuilder(0)
    builder.add("a", [("r", "c", 0), ("r", "x", 0), ("w", "x", 5), ("w", "z", 1)], id="one")
    builder.add("b", [("r", "x", 5), ("w", "x", 6), ("r", "x", 6), ("w", "z", 1)], id="two")
    (prediction,) = predict(builder.build(), "TCC", boundary="relaxed").predictions
    one, two = (session[0] for session in prediction.history)
    assert one.id == "one" and one.ops[:3] == (("r", "c", 0), ("r", "x", 0), ("w", "x", 5))
    assert two.ops[:3] == (("r", "x", 0), ("w", "x", 6), ("r", "x", 6))
    assert one.ops[3] != two.ops[3]


def test_made_up_values_differ_from_recorded_ones() -> None:
    builder = HistoryBuilder(0)
    builder.add("a", [("r", "x", 0), ("w", "x", 1), ("w", "y", 1)], id="A")
    builder.add("b", [("r", "x", 1), ("w", "x", 2), ("w", "y", 1)], id="B")
    builder.add("c", [("w", "y", "A#2")], id="C")
    builder.add("d", [("r", "y", "A#2")], id="D")
    assert predict(builder.build(), "TCC", boundary="relaxed").ok is False


def test_the_reads_of_an_unknown_transaction_may_change() -> None:
    """T2 was read, so it committed; at a weaker level it need not have seen T1, whatever it saw."""
    sessions = [[[("r", "x", 0), ("w", "x", 1)]], [("unknown", [("r", "x", 1), ("w", "x", 2)])], [[("r", "x", 2)]]]
    (prediction,) = predict(build(sessions), "TCC", boundary="relaxed").predictions
    (change,) = prediction.changes
    assert (change.txn, change.observed, change.predicted) == (1, None, -1)
    assert prediction.violation.name == "LostUpdate"


def test_failed_transactions_are_ignored_and_unknown_ones_assumed_committed() -> None:
    """What aborted takes no part; what is of unknown outcome and was read is assumed to commit, its reads are not."""
    sessions = [
        [[("r", "x", 0), ("w", "x", 1)]],
        [("aborted", [("w", "x", 9)]), ("unknown", [("r", "x", 9), ("w", "x", 2)])],
        [[("r", "x", 2), ("w", "x", 3)]],
    ]
    outcome = predict(build(sessions), "TCC", boundary="relaxed", exact=True)
    assert outcome.ok is False and "unknown outcome" in outcome.notes[0]
    assert all(op.value != 9 for p in outcome.predictions for s in p.history for t in s for op in t.ops)


def test_an_explicit_initial_transaction_is_the_initial_state() -> None:
    builder = HistoryBuilder(None, declared=False)
    builder.add("setup", [("w", "x", 100)])
    builder.add("a", [("r", "x", 100), ("w", "x", 101)])
    builder.add("b", [("r", "x", 101), ("w", "x", 102)])
    history = builder.build()
    assert history.init_txn == 0
    (prediction,) = predict(history, "TCC", boundary="relaxed").predictions
    assert prediction.history.transactions == 2


def test_lists_are_taken_as_registers() -> None:
    builder = HistoryBuilder([])
    builder.add("a", [("r", "x", []), ("append", "x", 1)])
    builder.add("b", [("r", "x", [1]), ("append", "x", 2)])
    outcome = predict(builder.build(), "TCC", boundary="relaxed")
    assert outcome.ok is False and "registers" in outcome.notes[0]


def test_unreadable_reads_are_rejected() -> None:
    with pytest.raises(InputError, match="ThinAirRead"):
        predict(small("r(x,7)"), "TCC")
    with pytest.raises(InputError, match="carry no level"):
        predict(small("w(x,1) ; r(x,1)"), "declared")
    with pytest.raises(ValueError, match="cannot predict"):
        predict(small("r(x,0)"), "SI", target="SI")


def test_a_limit_leaves_the_prediction_undecided() -> None:
    history = small("r(x,0) w(x,1)", "r(x,1) w(x,2)")
    outcome = predict(history, "TCC", limits=Limits(timeout=0))
    assert outcome.ok is None and "stopped" in str(outcome.reason)


class Tired(Limits):
    """Time is up when the limits are looked at for the n-th time."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def check(self, progress=str) -> None:
        self.left -= 1
        if self.left <= 0:
            raise LimitError("stopped")


@pytest.mark.parametrize("level", ["RC", "TCC", "SI"])
def test_limits_are_checked_while_the_formula_is_built(level: str) -> None:
    sessions = [[[("r", "x", max(0, i - 1)), ("w", "x", i)] for i in range(1, 80)]]
    outcome = predict(build(sessions), level, limits=Tired(4))
    assert outcome.reason == "stopped" and 0 < outcome.sizes["clauses"] < 50_000


def test_a_history_that_is_too_large_is_undecided() -> None:
    sessions = [[[("r", "x", max(0, i - 1)), ("w", "x", i)] for i in range(1, 400)]]
    outcome = predict(build(sessions), "TCC")
    assert outcome.ok is None and "too large" in str(outcome.reason)


@pytest.mark.parametrize(("transactions", "reads"), [(1, 40_000), (6_000, 1)])
def test_irrelevant_transactions_and_reads_cost_linear_time(transactions: int, reads: int) -> None:
    """Time in proportion to the history: its square would be a minute here."""
    constant = [[("r", "c", 0)] * reads] * transactions
    start = time.process_time()
    history = build([constant, [[("r", "x", 0), ("w", "x", 1)]], [[("r", "x", 1), ("w", "x", 2)]]])
    (prediction,) = predict(history, "TCC", boundary="relaxed").predictions
    assert len(running_order(history, prediction.run)) == transactions + 2
    assert time.process_time() - start < 30


def test_sessions_with_equal_names_stay_separate() -> None:
    builder = HistoryBuilder(0)
    builder.add(1, [("r", "x", 0), ("w", "x", 1)])
    builder.add("1", [("r", "x", 1), ("w", "x", 2)])
    (prediction,) = predict(builder.build(), "TCC", boundary="relaxed").predictions
    assert prediction.history.sessions == 2


def test_a_limit_keeps_the_predictions_found_before(monkeypatch) -> None:
    history = small("r(x,0) w(x,1)", "r(x,1) w(x,2)")

    def tired(self, simpler):
        raise LimitError("stopped")

    monkeypatch.setattr(predictor.Predictor, "_change_less", tired)
    outcome = predict(history, "TCC", boundary="relaxed")
    assert outcome.ok is False


@pytest.mark.parametrize("seed", range(30))
def test_recheck_rejects_altered_runs(seed: int) -> None:
    """The second look accepts every prediction, and finds fault with each after it was tampered with."""
    rng = random.Random(seed)
    history = build(predict_oracle.random_observed(rng, txns=(3, 5)))
    for boundary in ("strict", "relaxed"):
        for prediction in predict(history, "RC", boundary=boundary, count=3).predictions:
            run = prediction.run
            assert recheck(history, run) == []
            t = rng.choice(list(run.prefix))
            missing = replace(run, prefix={s: end for s, end in run.prefix.items() if s != t})
            later = [s for s in run.prefix if s > t and history.txn_session[s] == history.txn_session[t]]
            if later or t in run.sources.values():
                assert recheck(history, missing)
            assert recheck(history, replace(run, prefix={**run.prefix, t: run.prefix[t] - 1}))
            if prediction.changes:
                unbounded = replace(run, ends=(-1,) * len(run.ends))
                assert recheck(history, unbounded)


def test_a_rejected_prediction_raises_a_defect_error(monkeypatch) -> None:
    monkeypatch.setattr(second_opinion, "recheck", lambda history, run: ["it is wrong"])
    with pytest.raises(PredictionDefectError, match="it is wrong"):
        predict(small("r(x,0) w(x,1)", "r(x,1) w(x,2)"), "TCC", boundary="relaxed")


def test_traces_can_be_loaded_as_histories(tmp_path) -> None:
    again = _read_again(tmp_path, small("r(x,0) w(x,1) w(x,3)", "r(x,3) w(x,2) r(x,2) r(y,0)"))
    assert again.format == "isopredict" and again.operations == 5
    assert check(again, "SER").ok is False and check(again, "TCC").ok is True


def test_keys_of_traces_are_escaped() -> None:
    builder = HistoryBuilder(0)
    builder.add("a", [("r", "a]\n[é", 0), ("w", "a]\n[é", 1)])
    builder.add("b", [("r", "a]\n[é", 1), ("w", "a]\n[é", 2)])
    history = builder.build()
    (prediction,) = predict(history, "TCC", boundary="relaxed").predictions
    assert b"KEY[a%5D%0A%5B%C3%A9] " in b"".join(trace(history, prediction.run))


def _read_again(tmp_path, history):
    (prediction,) = predict(history, "TCC", boundary="relaxed").predictions
    file = tmp_path / "run.txt"
    file.write_bytes(b"".join(trace(history, prediction.run)))
    return load(str(file))


def test_keys_of_traces_with_equal_text_stay_separate(tmp_path) -> None:
    builder = HistoryBuilder(0)
    builder.add("a", [("r", 1, 0), ("w", 1, 1), ("r", "1", 0)])
    builder.add("b", [("r", 1, 1), ("w", 1, 2), ("r", "1", 0), ("w", "1", 3)])
    again = _read_again(tmp_path, builder.build())
    assert {op.key for session in again for txn in session for op in txn.ops} == {"1", "%31"}
    assert again.operations == 7


def test_traces_leave_out_the_reads_of_unknown_transactions(tmp_path) -> None:
    """What such a transaction read is not known, and not part of the prediction."""
    sessions = [
        [[("r", "x", 0), ("w", "x", 2)], ("unknown", [("r", "x", 2), ("w", "x", 3)])],
        [[("r", "x", 3), ("w", "x", 4)]],
    ]
    again = _read_again(tmp_path, build(sessions))
    assert check(again, "TCC").ok is True and check(again, "SER").ok is False
