"""Predictions as databases run levels, against enumeration of runs and orders (module statement_schedule)."""

import random
from collections import Counter

import predict_oracle
import pytest
from test_interleaving import can_be_done
from test_predictor import build, small

from plume_py.levels.databases import MYSQL, POSTGRESQL
from plume_py.reasoning.predict.confirm.concurrency_control import concurrency_control
from plume_py.reasoning.predict.confirm.script import script
from plume_py.reasoning.predict.predictor.predictor import predict

AS = {
    ("RC", "postgresql"): concurrency_control(POSTGRESQL, "read committed"),
    ("TCC", "postgresql"): concurrency_control(POSTGRESQL, "read committed"),
    ("SI", "postgresql"): concurrency_control(POSTGRESQL, "repeatable read"),
    ("PC", "mysql"): concurrency_control(MYSQL, "repeatable read"),
}


def predictable(sessions, level, strict, engine, cache):
    return any(
        not predict_oracle._holds(run, "SER", cache)
        and predict_oracle._holds(committed, level, cache)
        and can_be_done(script(build(committed)), engine)
        for run, committed in predict_oracle.runs(sessions, strict)
    )


def agree(rng, level, engine) -> Counter:
    sessions, counts = predict_oracle.random_observed(rng, txns=(2, 4), keys=(2, 2), sessions=(2, 2)), Counter()
    for boundary in ("strict", "relaxed"):
        expected = predictable(sessions, level, boundary == "strict", engine, {})
        found = predict(build(sessions), level, boundary=boundary, engine=engine)
        assert (found.ok is False) == expected, (sessions, boundary)
        counts["predicted"] += expected
        counts["not as it runs"] += predict(build(sessions), level, boundary=boundary).ok is False and not expected
    return counts


@pytest.mark.parametrize(("level", "database"), AS)
def test_schedules_agree_with_enumeration_of_runs_and_orders(level, database) -> None:
    rng = random.Random(f"{level} {database}")
    counts = sum((agree(rng, level, AS[level, database]) for _ in range(60)), Counter())
    assert counts["predicted"]
    assert counts["not as it runs"] or level != "RC"


@pytest.mark.full
@pytest.mark.parametrize(("level", "database"), AS)
def test_schedules_agree_with_enumeration_on_many_histories(level, database) -> None:
    rng = random.Random(f"many {level} {database}")
    counts = sum((agree(rng, level, AS[level, database]) for _ in range(1000)), Counter())
    print(level, database, dict(counts))


def test_a_session_sees_its_own_commit() -> None:
    history = small("w(x,1) ; r(x,1) r(y,1)", "w(y,1) w(x,2)")
    assert predict(history, "RC").ok is False
    assert predict(history, "RC", engine=AS["RC", "postgresql"]).ok is True


def test_write_skew_is_still_predicted() -> None:
    history = small("r(x,0) r(y,0) w(x,1)", "r(x,1) r(y,0) w(y,1)")
    for level, database in AS:
        assert predict(history, level, boundary="relaxed", engine=AS[level, database]).ok is False
