"""A slice of benchmarks/advice.py: random programs at advised levels on a simulator of the engines, and the simulator
itself against servers."""

import random

import pytest

from benchmarks import advice
from benchmarks.advice_sim.generate import col, equal, random_app, random_setting, var
from benchmarks.advice_sim.programs import App, If, Insert, Select, Table, Transaction, Update
from benchmarks.advice_sim.schedules import ENGINES, Choices, Serializable, begin
from plume_py.base.errors import IsocheckError

ACCOUNT = Table("t", ("id", "g", "v"), "id")
OTHER = Table("u", ("id", "w"), "id")


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setattr(advice, "WORK", tmp_path)


def anomalies(app, store, levels, seed=0, settings=30, runs=40):
    """Does some run at these levels, in a few settings, look like no serial one?"""
    rng = random.Random(seed)
    for _ in range(settings):
        setting = random_setting(rng, app)
        judge = Serializable(app, setting)
        for _ in range(runs):
            run = begin(app, store, levels, setting)
            run.drive(Choices(rng))
            outcome = run.outcome()
            if outcome is not None and not judge.allows(run, *outcome):
                return True
    return False


def skew(lock):
    """Two that look for what the other brings."""
    bodies = [
        (
            Select(("q",), (col(mine),), one.name, equal("id", var("i")), lock),
            If(("isnull", var("q")), (Insert(two.name, (var("i"), 1, 1)[: len(two.columns)]),)),
        )
        for one, two, mine in ((ACCOUNT, OTHER, "v"), (OTHER, ACCOUNT, "w"))
    ]
    return App(
        (ACCOUNT, OTHER), tuple(Transaction(n, ("i",), b) for n, b in zip("PQ", bodies, strict=True)), (), "null"
    )


@pytest.mark.parametrize("store", ENGINES)
@pytest.mark.parametrize("lock", [False, True])
def test_a_missing_row_is_not_locked_but_at_serializable(store, lock, tmp_path) -> None:
    app = skew(lock)
    weakest = ENGINES[store].levels[0]
    assert anomalies(app, store, {"P": weakest, "Q": weakest})
    assert not anomalies(app, store, {"P": "SER", "Q": "SER"})
    assert not anomalies(app, store, advice.allocated(advice.written(app, "skew"), store))


def test_a_lost_update_is_seen() -> None:
    lost = (
        Select(("q",), (col("v"),), "t", equal("id", var("i"))),
        Update("t", (("v", ("+", var("q"), 1)),), equal("id", var("i"))),
    )
    app = App((ACCOUNT,), (Transaction("P", ("i",), lost),))
    found = {(s, level): anomalies(app, s, {"P": level}) for s, engine in ENGINES.items() for level in engine.levels}
    assert {key for key, wrong in found.items() if wrong} == {("postgresql", "RC"), ("mysql", "RC"), ("mysql", "RR")}


def test_serializable_is_so_in_the_simulator() -> None:
    for seed in range(12):
        app = random_app(random.Random(seed), nulls=bool(seed % 2))
        levels = {txn.name: "SER" for txn in app.transactions}
        assert not any(anomalies(app, store, levels, seed, 3, 15) for store in ENGINES)


def test_allocate_is_right_about_random_programs() -> None:
    rows, _ = advice.attack_allocate(30, settings=3, runs=10)
    for counts in rows.values():
        assert counts["programs"] == 30 and counts["some below SERIALIZABLE"] and not counts["wrong"]


def test_infer_is_right_about_random_programs() -> None:
    rows, _ = advice.attack_infer(4, runs=60)
    for counts in rows.values():
        assert counts["programs"] == 4 and not any(name.startswith("wrong") for name in counts)


@pytest.mark.parametrize("store", ENGINES)
def test_the_simulator_does_what_servers_do(store) -> None:
    from benchmarks.advice_sim.servers import KINDS, served
    from plume_py.collect.managed import SERVERS

    try:
        SERVERS[KINDS[store]].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with served(store) as server:
        counts, _ = advice.compare(store, 15, server)
    assert counts["stepped runs"] == 15 and counts["with a wait"] and not counts["outside"]
