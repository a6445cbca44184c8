"""Prediction in windows, extended to the whole run (module windows)."""

import random

import predict_oracle
import pytest
from test_predictor import build, small

from plume_py import HistoryBuilder, check
from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.predictor.recheck import recheck
from plume_py.reasoning.predict.predictor.windows import predict_in_windows


@pytest.mark.parametrize("level", ["RC", "TCC", "SI"])
@pytest.mark.parametrize("boundary", ["strict", "relaxed"])
def test_one_window_over_everything_equals_a_prediction_without_windows(level: str, boundary) -> None:
    rng = random.Random(f"{level} {boundary}")
    predicted = 0
    for _ in range(30):
        sessions = predict_oracle.random_observed(rng, txns=(3, 6), sessions=(2, 4))
        sessions = [[("unknown" if rng.random() < 0.1 else status, ops) for status, ops in s] for s in sessions]
        history = build(sessions)
        whole = predict(history, level, boundary=boundary)
        windows = predict_in_windows(history, level, size=10, boundary=boundary)
        assert windows.ok == whole.ok, sessions
        predicted += windows.ok is False
    assert level == "SI" or predicted


@pytest.mark.parametrize("boundary", ["strict", "relaxed"])
@pytest.mark.parametrize("level", ["RC", "TCC", "PC"])
def test_predictions_of_windows_are_valid_in_the_whole_run(level: str, boundary) -> None:
    rng = random.Random(f"windows {level} {boundary}")
    found = 0
    for _ in range(15):
        history = build(predict_oracle.random_observed(rng, txns=(8, 12), keys=(2, 3), sessions=(3, 4), again=True))
        for prediction in predict_in_windows(history, level, size=4, boundary=boundary, count=3).predictions:
            assert recheck(history, prediction.run) == []
            assert check(prediction.history, level).ok is True
            assert check(prediction.history, "SER").ok is False
            found += 1
    assert found


def test_transactions_before_a_window_are_its_initial_state() -> None:
    """The deposits are the last two of six transactions: the second need not see the first, but sees all others."""
    before = " ; ".join(f"r(x,{i}) w(x,{i + 1})" for i in range(4))
    history = small(before, "r(x,4) w(x,5)", "r(x,5) w(x,6)")
    outcome = predict_in_windows(history, "TCC", size=2, boundary="relaxed", count=10)
    assert outcome.complete and outcome.window == 2
    assert [(change.txn, change.observed, change.predicted) for p in outcome.predictions for change in p.changes] == [
        (4, 3, 2),
        (5, 4, 3),
    ]


def test_a_long_history_is_searched_in_windows() -> None:
    history = small(*(" ; ".join(f"r({key},{i}) w({key},{i + 1})" for i in range(200)) for key in "xy"))
    assert "--window" in str(predict(history, "TCC").reason)
    assert predict_in_windows(history, "TCC", size=10).ok is True


def test_windows_respect_declared_levels() -> None:
    builder = HistoryBuilder(0)
    for i in range(4):
        builder.add(i, [("r", "x", i), ("w", "x", i + 1)], level="SI" if i < 2 else "TCC")
    history = builder.build(init_txn="none")
    predictions = predict_in_windows(history, "declared", size=2, boundary="relaxed", count=5).predictions
    assert [change.txn for prediction in predictions for change in prediction.changes] == [2, 3]


def test_a_history_that_violates_the_target_cannot_be_windowed() -> None:
    with pytest.raises(IsocheckError, match="does not hold"):
        predict_in_windows(small("r(x,0) w(x,1)", "r(x,0) w(x,2)"), "TCC", size=2)


def test_a_limit_leaves_windows_undecided() -> None:
    outcome = predict_in_windows(small("r(x,0) w(x,1)", "r(x,1) w(x,2)"), "TCC", size=2, limits=Limits(timeout=0))
    assert outcome.ok is None and "stopped" in str(outcome.reason)
