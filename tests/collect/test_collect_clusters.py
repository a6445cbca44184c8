"""Clusters of private servers: each forms, is told apart by node, and goes; one that is missing is skipped."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from collecting import lines
from program import PATIENCE, PROGRAM, lines_in, wait_until

from plume_py import check, load
from plume_py.base.errors import IsocheckError
from plume_py.base.processes import marked
from plume_py.collect.adapter import Setup
from plume_py.collect.client import Isolation
from plume_py.collect.clusters import CLUSTERS
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


def test_a_cluster_is_one_database(cluster, tmp_path):
    collected = gather(cluster, tmp_path / "h.jsonl", routing=Routing(roam=True))
    recorded = lines(tmp_path / "h.jsonl")
    names = {node.name for node in cluster.nodes}
    assert set(recorded[0]["collected"]["nodes"]) == names
    assert {line["node"] for line in recorded[1:]} == names
    assert collected.counts["unknown"] == 0
    assert check(load(tmp_path / "h.jsonl"), "RC").ok, "whatever else is stale, nothing is torn"


def test_a_node_is_lost_and_comes_back(cluster, tmp_path):
    """What was confirmed is there in the end, at every node."""
    faults = ["restart", *cluster.faulty_network]
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


def test_nothing_is_left_of_a_cluster_if_isocheck_is_killed(tmp_path, child):
    name = "redis" if _is_installed("redis") else "postgresql-standby"
    if not _is_installed(name):
        pytest.skip("neither Redis nor PostgreSQL is installed")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    options = ["collect", "--managed", name, "--transactions", "100000", "--out", str(tmp_path / "h.jsonl")]
    process = child([*PROGRAM, *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "h.jsonl").exists() and lines_in(tmp_path / "h.jsonl") > 20)
    folders = [str(path) for path in tmp_path.glob("isocheck-run-*")]
    assert len(folders) >= 2 and all(marked(folder) for folder in folders)
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    wait_until(lambda: not any(Path(folder).exists() or marked(folder) for folder in folders))


def _is_installed(name):
    try:
        CLUSTERS[name].find()
    except IsocheckError:
        return False
    return True
