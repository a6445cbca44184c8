"""Simulated protocols: correct ones satisfy all levels, and bugs are detected (modules simulate, protocols, trial)."""

import pytest

from plume_py import check
from plume_py.base.errors import IsocheckError
from plume_py.reasoning.allocate.driver import BENCHMARKS, draw
from plume_py.reasoning.allocate.protocols import PROTOCOLS
from plume_py.reasoning.allocate.simulate import DEFAULT_COST_MODEL, Simulation, parse_cost_model
from plume_py.reasoning.allocate.trial import ALLOCATIONS, in_sessions, levels_for, summarize, trials
from plume_py.reasoning.allocate.workload import Program, Workload, read, write


def contended(name, largest=8, instances=120, seed=1):
    return in_sessions(draw(BENCHMARKS[name], instances, largest, seed), 8, seed)


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_correct_protocols_satisfy_all_levels_of_transactions(name, protocol) -> None:
    told = summarize(list(trials(contended(name), protocol, "random", 3, seed=5)))
    assert told.broken == {"declared": 0} and told.aborted > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("allocation", [a for a in ALLOCATIONS if a != "random"])
def test_runs_at_a_safe_allocation_are_serializable(protocol, allocation) -> None:
    told = summarize(list(trials(contended("smallbank"), protocol, allocation, 3)))
    assert told.broken == {"declared": 0, "SER": 0}


BUGS = [(protocol, bug) for protocol, kind in PROTOCOLS.items() for bug in kind.bugs]


@pytest.mark.parametrize(("protocol", "bug"), BUGS)
def test_the_checker_detects_every_bug(protocol, bug) -> None:
    """no-read-check only shows as write skew, for which Courseware has the shape; early-timestamp in first reads, and
    those of SmallBank are of what nobody writes."""
    name = {"no-read-check": "courseware", "early-timestamp": "tpcc"}.get(bug, "smallbank")
    told = summarize(list(trials(contended(name, largest=3), protocol, "random", 12, bug=bug)))
    assert told.broken["declared"] > 0


def test_the_same_seed_gives_the_same_history() -> None:
    workload = contended("tpcc")
    levels = levels_for(workload, "si-s2pl", "random", 3)
    first, second = (Simulation("si-s2pl", levels, workload, 3).run() for _ in range(2))
    assert [list(s) for s in first.history] == [list(s) for s in second.history]
    assert first.throughput == second.throughput > 0


def test_every_instance_commits_once() -> None:
    workload = contended("smallbank")
    outcome = Simulation("pc-si-ser", ["SER"] * 120, workload).run()
    committed = [t for session in outcome.history for t in session if t.status == "committed"]
    assert outcome.committed == len(committed) == 120
    assert outcome.history.transactions == 120 + outcome.aborted
    assert check(outcome.history, "SER").ok


def test_invalid_options_are_rejected() -> None:
    workload = contended("smallbank")
    with pytest.raises(IsocheckError, match="si-s2pl has no PC"):
        Simulation("si-s2pl", ["PC"] * 120, workload)
    with pytest.raises(IsocheckError, match="has no bug 'x'; choose unlock-early"):
        Simulation("si-s2pl", ["SI"] * 120, workload, bug="x")


MODELS = (
    "data=spread,nodes=4,begin=1,validation=together,waiting=true",
    "data=replicated,nodes=4,local=0.001,validation=each",
    "data=replicated,nodes=4,validation=together,exclusive=SI+SER",
)


@pytest.mark.parametrize("model", MODELS)
def test_costs_change_the_time_and_not_the_transactions(model) -> None:
    told = summarize(list(trials(contended("smallbank"), "pc-si-ser", "random", 2, costs=parse_cost_model(model))))
    assert told.broken == {"declared": 0}
    assert parse_cost_model(str(parse_cost_model(model))) == parse_cost_model(model) != DEFAULT_COST_MODEL


def test_only_validated_keys_cost_round_trips() -> None:
    """All at one server, one node each: at SER there is a round trip more than at PC, and the rest is the same."""
    workload = in_sessions(draw(BENCHMARKS["tpcc"], 40, 10_000, 1), 4, 1)
    costs = parse_cost_model("low=1,high=1,validation=together")
    at = {level: Simulation("pc-si-ser", [level] * 40, workload, costs=costs).run() for level in ("PC", "SER")}
    assert at["PC"].aborted == at["SER"].aborted == 0
    assert at["SER"].latency == pytest.approx(at["PC"].latency + 1)


def test_a_critical_section_admits_one_transaction_at_a_time() -> None:
    workload = in_sessions(draw(BENCHMARKS["courseware"], 40, 10_000, 1), 10, 1)
    costs = parse_cost_model("low=1,high=1,data=replicated,nodes=10,exclusive=SER")
    assert Simulation("pc-si-ser", ["SER"] * 40, workload, costs=costs).run().seconds == pytest.approx(40, rel=0.05)
    assert Simulation("pc-si-ser", ["SI"] * 40, workload, costs=costs).run().seconds == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("speed=3", "one of low, high, local"),
        ("nodes=x", "nodes=x is no number"),
        ("nodes=0", "one node at least"),
        ("data=cloud", "choose server, spread, replicated"),
        ("low=1", "low must not exceed high"),
        ("exclusive=SER+X", "X is no level"),
        ("waiting=yes", "choose true, false"),
    ],
)
def test_invalid_costs_are_rejected(text, told) -> None:
    with pytest.raises(IsocheckError, match=told):
        parse_cost_model(text)


def test_waiting_readers_need_a_protocol_without_locks() -> None:
    with pytest.raises(IsocheckError, match="locks that readers wait for"):
        Simulation("si-s2pl", ["SI"] * 120, contended("smallbank"), costs=parse_cost_model("waiting=true"))
    assert parse_cost_model("") == DEFAULT_COST_MODEL


def test_a_timestamp_taken_before_the_locks_lets_a_reader_see_two_values() -> None:
    """MixIso's example E.1: T takes its commit time, T' begins and reads k, T installs, T' reads k again."""
    writer = Program("T", ("k",), (write("x", "k"),))
    reader = Program("T'", ("k",), (read("x", "k"), read("x", "k")))
    before = Program("before", (), ())
    workload = Workload.of_sessions([[writer(1)], [before(), reader(1)]])
    seen = set()
    for seed in range(30):
        outcome = Simulation("si-s2pl", ["SI"] * 3, workload, seed, "early-timestamp").run()
        seen |= {violation.pattern.name for violation in check(outcome.history, "declared").violations}
        right = Simulation("si-s2pl", ["SI"] * 3, workload, seed).run()
        assert check(right.history, "declared").ok
    assert "NonRepeatableRead" in seen
