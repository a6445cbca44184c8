"""Tests of ``collect.workload``, ``benchmarks`` and ``run`` on SQLite and on the store with bugs."""

import re
from pathlib import Path

import pytest
from collecting import Scripted, gather, lines
from program import isocheck

from plume_py import check, load
from plume_py.base.errors import IsocheckError
from plume_py.collect.adapter import Promise
from plume_py.collect.client import Isolation
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape, Workload, workload_names
from plume_py.history.formats.jsonl_native import pending_path


def test_each_kind_of_benchmark_transaction_has_its_own_level(tmp_path):
    out = tmp_path / "h.jsonl"
    by_kind = {"balance": Isolation("serializable", "PC")}
    gather("broken:?bug=none", out, workload="smallbank", how={"by_kind": by_kind})
    for line in lines(out)[1:]:
        reads_only = all(op[0] == "r" for op in line["ops"])
        assert line["status"] != "committed" or (line["level"] == "PC") == reads_only
    wrong = isocheck("test", "broken:?bug=none", "--workload", "smallbank", "--levels", "balanse=SER")
    assert wrong.returncode == 2 and "no kind 'balanse'; use balance, deposit" in wrong.stderr
    assert isocheck("test", "broken:?bug=none", "--levels", "balance").returncode == 2


@pytest.mark.parametrize("workload", workload_names())
def test_sqlite_is_serializable_with_every_workload(workload, tmp_path):
    out = tmp_path / "h.jsonl"
    collected = gather(f"sqlite:///{tmp_path}/t.db", out, workload=workload)
    assert collected.audit is not None and collected.audit.ok and collected.audit.confirmed
    assert collected.counts["committed"] and not collected.counts["unknown"] and not collected.given_up
    history = load(out)
    assert history.transactions == collected.transactions == 120
    assert check(history, "SER").ok
    assert not Path(pending_path(str(out))).exists()


# bug -> satisfied levels, violated levels
BUGS = {
    "none": (["SSER"], []),
    "stale-snapshot": (["SER"], ["SSER"]),
    "write-skew": (["SI"], ["SER"]),
    "lost-update": (["PC"], ["PSI", "SI"]),
    "lost-causality": (["RA"], ["TCC"]),
    "lost-session-order": (["RC", "CI"], ["RA"]),
    "fractured-commits": ([], ["RC"]),
    "stale-reads": ([], ["RC"]),
    "dirty-reads": ([], ["RC"]),
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_of_the_broken_store_violates_the_documented_level(bug, tmp_path):
    holds, breaks = BUGS[bug]
    found = {}
    for seed in range(5):  # thread schedules vary: the levels must hold in every run
        gather(
            f"broken:?bug={bug}&seed={seed}", tmp_path / "h.jsonl",
            sessions=6, transactions=40, keys=5, pause=0.2, seed=seed,
        )  # fmt: skip
        result = check(load(tmp_path / "h.jsonl"), [*holds, *breaks])
        assert all(result.levels[level].ok for level in holds)
        found = {level: result.levels[level].ok for level in breaks}
        if False in found.values() or not breaks:
            break
    assert not any(found.values())


def test_the_audit_reports_a_lost_append(tmp_path):
    collected = gather("broken:?bug=lost-update", tmp_path / "h.jsonl", workload="append", pause=0.2, keys=2)
    assert collected.audit is not None and not collected.audit.ok
    assert "lacks" in collected.audit.problems[0] and "which was committed" in collected.audit.problems[0]


def test_the_header_names_the_database_and_the_options(tmp_path):
    out = tmp_path / "h.jsonl"
    gather(f"sqlite:///{tmp_path}/t.db", out, seed=7, transactions=3)
    header, *transactions = lines(out)
    about = header["collected"]
    assert header["initial"] == 0 and about["database"] == "SQLite" and about["workload"]["seed"] == 7
    assert about["settings"]["journal_mode"] == "wal" and re.match(r"3\.", about["version"])
    for transaction in transactions:
        assert transaction["start"] <= transaction["end"] and transaction["level"] == "SER"
    ids = [transaction["id"] for transaction in transactions]
    assert len(ids) == len(set(ids)) == 12


def test_each_value_is_written_once(tmp_path):
    gather("broken:?bug=none", tmp_path / "h.jsonl", how={"retries": 3}, pause=0.1)
    written = [op[2] for line in lines(tmp_path / "h.jsonl")[1:] for op in line["ops"] if op[0] == "w"]
    assert len(written) == len(set(written)) > 0


def test_plans_depend_only_on_the_seed():
    def plans(seed):
        workload = Workload(Shape(seed=seed, distribution="zipfian", rotate=5))
        return [[plan for plan, _ in zip(workload.plans(s), range(20), strict=False)] for s in range(8)]

    assert plans(1) == plans(1) != plans(2)


@pytest.mark.parametrize("workload", workload_names())
def test_plans_access_only_existing_keys(workload):
    shape = Shape(workload=workload, sessions=3, transactions=50, keys=4, rotate=7, distribution="hotspot")
    made = Workload(shape)
    keys = made.keys
    assert len(keys) == len(set(keys))
    used = {key for s in range(3) for plan, _ in zip(made.plans(s), range(60), strict=False) for _, key in plan}
    assert used <= set(keys)


def test_shares_of_read_only_and_write_only_transactions_are_met():
    workload = Workload(Shape(read_only=0.5, write_only=0.5, operations=(3, 3)))
    kinds = {tuple(kind for kind, _ in plan) for plan, _ in zip(workload.plans(0), range(50), strict=False)}
    assert kinds == {("r",) * 3, ("w",) * 3}
    with pytest.raises(IsocheckError):
        Workload(Shape(read_only=0.6, write_only=0.5))


def test_a_mix_of_isolation_levels_records_a_level_per_transaction(tmp_path):
    adapter = Scripted(isolations={"read committed": Promise("RC"), "serializable": Promise("SER")})
    plan = Plan(
        Shape(sessions=2, transactions=40), [Isolation("read committed", "RC", 3), Isolation("serializable", "SER")],
        str(tmp_path / "h.jsonl"),
    )  # fmt: skip
    collect(adapter, plan)
    header, *transactions = lines(tmp_path / "h.jsonl")
    assert header["collected"]["mix"] == {"read committed": 3, "serializable": 1}
    levels = [transaction["level"] for transaction in transactions]
    assert levels.count("RC") > levels.count("SER") > 0
    assert check(load(tmp_path / "h.jsonl"), "declared").ok
