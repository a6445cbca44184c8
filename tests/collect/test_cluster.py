"""Tests of ``collect.cluster`` with real clusters. A cluster that is not installed is skipped."""

import os

import pytest
from collecting import lines

from plume_py import check, load
from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.client import Isolation
from plume_py.collect.cluster import CLUSTERS
from plume_py.collect.nodes import Routing, open_nodes
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape


@pytest.fixture(scope="module", params=list(CLUSTERS))
def cluster(request):
    try:
        CLUSTERS[request.param].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with CLUSTERS[request.param]() as cluster:
        yield cluster


def gather(cluster, out, *, routing=Routing(), isolation=None, how=None, **shape):  # noqa: B008
    shape = Shape(**{"sessions": 6, "transactions": 40, "keys": 6, "read_only": 0.4, **shape})
    adapter = open_nodes(
        Setup("", table=f"t{os.urandom(4).hex()}", lists=shape.lists, timeout=20.0), cluster.nodes, routing
    )
    isolation = isolation or next(iter(adapter.isolations))
    plan = Plan(shape, [Isolation(isolation, adapter.isolations[isolation].level)], str(out), **(how or {}))
    collected = collect(adapter, plan, cluster)
    assert collected.audit is not None, collected.audit_problem
    assert collected.audit.ok, collected.audit.problems
    assert not collected.given_up and collected.counts["committed"]
    return collected


def test_a_cluster_behaves_as_one_database(cluster, tmp_path):
    collected = gather(cluster, tmp_path / "h.jsonl", routing=Routing(roam=True))
    recorded = lines(tmp_path / "h.jsonl")
    names = {node.name for node in cluster.nodes}
    assert set(recorded[0]["collected"]["nodes"]) == names
    assert {line["node"] for line in recorded[1:]} == names
    assert collected.counts["unknown"] == 0
    assert check(load(tmp_path / "h.jsonl"), "RC").ok, "whatever else is stale, nothing is torn"


def test_confirmed_writes_survive_the_loss_of_a_node(cluster, tmp_path):
    """At the end every node has all confirmed writes."""
    faults = list(cluster.faulty_network)
    if len(cluster.nodes) < 3 or "delay" in faults:  # a Galera node copies all its data again, which takes a while
        faults.append("restart")
    for seconds in (8.0, 30.0, 90.0):
        how = {"faults": faults, "fault_interval": 0.2, "seconds": seconds, "timeout": 3.0}
        out = tmp_path / f"h{seconds}.jsonl"
        collected = gather(cluster, out, routing=Routing(roam=True), how=how, transactions=100_000, workload="append")
        assert not collected.fault_problem
        if set(collected.faults) == set(faults):
            break
    assert set(collected.faults) == set(faults)
    assert {fault.node for fault in collected.timeline if fault.kind != "delay"} <= set(cluster.members)
    assert any(line.get("during") for line in lines(out)[1:])
