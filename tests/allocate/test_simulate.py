"""Protocols with a level per transaction: right ones keep all levels, wrong ones are caught."""

import pytest

from plume_py import check
from plume_py.allocate.protocols import PROTOCOLS
from plume_py.allocate.simulate import Simulation
from plume_py.allocate.templates import BENCHMARKS, draw
from plume_py.allocate.trial import ALLOCATIONS, in_sessions, levels_for, summary, trials
from plume_py.base.errors import IsocheckError


def contended(name, largest=8, instances=120, seed=1):
    return in_sessions(draw(BENCHMARKS[name], instances, largest, seed), 8, seed)


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_right_protocols_keep_whatever_levels_transactions_have(name, protocol) -> None:
    told = summary(list(trials(contended(name), protocol, "random", 3, seed=5)))
    assert told.broken == {"declared": 0} and told.aborted > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("allocation", [a for a in ALLOCATIONS if a != "random"])
def test_runs_at_a_safe_allocation_are_serializable(protocol, allocation) -> None:
    told = summary(list(trials(contended("smallbank"), protocol, allocation, 3)))
    assert told.broken == {"declared": 0, "SER": 0}


BUGS = [(protocol, bug) for protocol, kind in PROTOCOLS.items() for bug in kind.bugs]


@pytest.mark.parametrize(("protocol", "bug"), BUGS)
def test_bugs_are_caught(protocol, bug) -> None:
    """no-read-check only shows as write skew, for which Courseware has the shape."""
    name = "courseware" if bug == "no-read-check" else "smallbank"
    told = summary(list(trials(contended(name, largest=3), protocol, "random", 12, bug=bug)))
    assert told.broken["declared"] > 0


def test_the_same_seed_gives_the_same_history() -> None:
    workload = contended("tpcc")
    levels = levels_for(workload, "si-s2pl", "random", 3)
    first, second = (Simulation("si-s2pl", levels, workload, 3).run() for _ in range(2))
    assert [list(s) for s in first.history] == [list(s) for s in second.history]
    assert first.throughput == second.throughput > 0


def test_committed_transactions_are_all_there() -> None:
    workload = contended("smallbank")
    outcome = Simulation("pc-si-ser", ["SER"] * 120, workload).run()
    committed = [t for session in outcome.history for t in session if t.status == "committed"]
    assert outcome.committed == len(committed) == 120
    assert outcome.history.transactions == 120 + outcome.aborted
    assert check(outcome.history, "SER").ok


def test_wrong_wishes() -> None:
    workload = contended("smallbank")
    with pytest.raises(IsocheckError, match="si-s2pl has no PC"):
        Simulation("si-s2pl", ["PC"] * 120, workload)
    with pytest.raises(IsocheckError, match="has no bug 'x'; choose unlock-early"):
        Simulation("si-s2pl", ["SI"] * 120, workload, bug="x")
