"""Tests of ``collect.nodes``: where transactions run, what the history records, and what reports show."""

import json

import pytest
from click.testing import CliRunner
from collecting import Scripted, ScriptedConnection, lines

from plume_py.base.errors import IsocheckError
from plume_py.checking.check import check
from plume_py.cli.main import cli
from plume_py.collect import nodes as nodes_module
from plume_py.collect.adapter import LostError, Promise, Setup
from plume_py.collect.client import Isolation
from plume_py.collect.nodes import Node, NodesAdapter, Routing, nodes_at, open_nodes
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape
from plume_py.history.formats import json_native
from plume_py.history.load import load
from plume_py.report.dot import render
from plume_py.report.html import page_data
from plume_py.report.json import plain
from plume_py.report.recording_metadata import with_run
from plume_py.report.text import render as text_of

SHAPE = Shape(sessions=4, transactions=20, keys=4, read_only=0.5)


class Replicated(Scripted):
    """Nodes that share one dictionary. Nodes named replica reject writes, and have only a weaker level."""

    isolations = {"serializable": Promise("SER"), "repeatable read": Promise("SI")}  # noqa: RUF012
    shared: dict = {}  # noqa: RUF012

    def __init__(self, setup, name=""):
        super().__init__(setup)
        self.node = name
        self.refuses = False

    def is_replica(self):
        return self.node.startswith("replica")

    def variants(self, isolation):
        return ("repeatable read",) if isolation == "serializable" else ()

    def connect(self):
        if self.refuses:
            raise LostError("nobody at home")
        return NodeConnection(self)

    def create(self, keys):
        self.shared.clear()
        self.shared.update(dict.fromkeys(keys, 0))

    def contents(self):
        return dict(self.shared)


class NodeConnection(ScriptedConnection):
    def begin(self, isolation):
        self.mine, self.written, self.began_at = dict(self.store.shared), {}, isolation

    def write(self, key, value):
        assert not self.store.is_replica(), "a replica was asked to write"
        self.mine[key] = self.written[key] = value

    def commit(self):
        self.store.shared.update(self.written)

    def rollback(self):
        pass


def replicated(names, **routing):
    adapters = {name: Replicated(Setup(f"scripted://{name}"), name) for name in names}
    return NodesAdapter(Setup(""), adapters, Routing(**routing))


def run(adapter, out, isolation="serializable", **how):
    plan = Plan(SHAPE, [Isolation(isolation, "SER")], str(out), force=True, **how)
    return collect(adapter, plan), lines(out)


def where(recorded):
    """Return the nodes of each session."""
    found = {}
    for line in recorded[1:]:
        found.setdefault(line["session"], set()).add(line["node"])
    return found


# --- addresses


def test_addresses_with_several_hosts_are_split_into_nodes():
    assert nodes_at(["etcd://a:1", "etcd://b:2"]) == [Node("a:1", "etcd://a:1"), Node("b:2", "etcd://b:2")]
    several = nodes_at(["postgresql://user:p,w@a:1,b/db?options=x,y"])
    assert [node.url for node in several] == [
        "postgresql://user:p,w@a:1/db?options=x,y",
        "postgresql://user:p,w@b/db?options=x,y",
    ]
    assert [node.name for node in several] == ["a:1", "b"], "without the password"
    assert [node.name for node in nodes_at(["sqlite:///a", "sqlite:///b"])] == ["node 1", "node 2"]
    assert [node.name for node in nodes_at(["redis://a/0", "redis://a/1"])] == ["a (1)", "a (2)"]
    assert nodes_at(["broken:?bug=none"]) == [Node("node 1", "broken:?bug=none")]


def test_nodes_of_different_databases_are_rejected(tmp_path):
    with pytest.raises(IsocheckError, match="different databases"):
        open_nodes(Setup(""), nodes_at([f"sqlite:///{tmp_path}/a", "broken:"]), Routing())
    with pytest.raises(IsocheckError, match="several nodes"):
        open_nodes(Setup(""), nodes_at(["broken:"]), Routing(roam=True))


def test_nodes_that_do_not_share_the_table_are_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes_module, "AGREED_WITHIN", 0.1)
    adapter = open_nodes(Setup(""), nodes_at([f"sqlite:///{tmp_path}/a", f"sqlite:///{tmp_path}/b"]), Routing())
    with pytest.raises(IsocheckError, match="did not arrive at node 2"):
        run(adapter, tmp_path / "h.jsonl")


# --- where transactions go


def test_sessions_are_spread_over_nodes_and_stay_there(tmp_path):
    same = [f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/./a.db"]  # a file as two nodes
    collected, recorded = run(open_nodes(Setup(""), nodes_at(same), Routing()), tmp_path / "h.jsonl")
    assert collected.audit.ok and not collected.given_up
    assert where(recorded) == {0: {"node 1"}, 1: {"node 2"}, 2: {"node 1"}, 3: {"node 2"}}
    assert set(recorded[0]["collected"]["nodes"]) == {"node 1", "node 2"}
    assert check(load(tmp_path / "h.jsonl"), "SER").ok


def test_a_history_of_one_node_records_no_nodes(tmp_path):
    _, recorded = run(open_nodes(Setup(""), nodes_at(["broken:"]), Routing()), tmp_path / "h.jsonl")
    assert "nodes" not in recorded[0]["collected"] and all("node" not in line for line in recorded)


def test_roaming_sessions_use_all_nodes(tmp_path):
    _, recorded = run(replicated("abc", roam=True), tmp_path / "h.jsonl")
    assert all(nodes == set("abc") for nodes in where(recorded).values())


@pytest.mark.parametrize("roam", [False, True])
def test_writes_go_to_nodes_that_accept_them(roam, tmp_path):
    _, recorded = run(replicated(["primary", "replica1"], roam=roam), tmp_path / "h.jsonl")
    writers = {line["node"] for line in recorded[1:] if any(op[0] == "w" for op in line["ops"])}
    assert writers == {"primary"} and "replica1" in set.union(*where(recorded).values())


def test_read_only_transactions_run_on_replicas(tmp_path):
    adapter = replicated(["primary", "replica1", "replica2"], read_from="replicas")
    _, recorded = run(adapter, tmp_path / "h.jsonl")
    readers = {line["node"] for line in recorded[1:] if all(op[0] == "r" for op in line["ops"])}
    assert readers == {"replica1", "replica2"}


def test_without_replicas_the_first_node_serves_writes_and_the_others_reads(tmp_path):
    _, recorded = run(replicated("abc", read_from="replicas"), tmp_path / "h.jsonl")
    by_kind = {True: set(), False: set()}
    for line in recorded[1:]:
        by_kind[any(op[0] == "w" for op in line["ops"])].add(line["node"])
    assert by_kind == {True: {"a"}, False: {"b", "c"}}


def test_the_history_records_the_level_that_a_replica_uses_instead(tmp_path):
    _, recorded = run(replicated(["primary", "replica1"], read_from="replicas"), tmp_path / "h.jsonl")
    told = {(line["node"], line["isolation"], line["level"]) for line in recorded[1:]}
    assert told == {("primary", "serializable", "SER"), ("replica1", "repeatable read", "SI")}


def test_a_set_of_replicas_without_a_primary_is_rejected():
    with pytest.raises(IsocheckError, match="the primary, too"):
        replicated(["replica1", "replica2"]).create(["x"])


def test_a_roaming_session_skips_a_node_that_is_down(tmp_path):
    adapter = replicated("ab", roam=True)
    adapter.adapters["b"].refuses = True
    collected, recorded = run(adapter, tmp_path / "h.jsonl")
    assert set.union(*where(recorded).values()) == {"a"} and collected.counts["aborted"] == 0


def test_a_session_waits_until_its_home_node_is_back(tmp_path):
    adapter = replicated("ab")
    adapter.adapters["b"].refuses = True
    with pytest.raises(LostError, match="b: nobody at home"):
        adapter.connect_session(1)
    adapter.connect_session(0)


def test_the_audit_reports_nodes_that_differ_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(nodes_module, "AGREED_WITHIN", 0.1)
    adapter = replicated("ab")
    monkeypatch.setattr(adapter.adapters["b"], "contents", lambda: dict(adapter.first.shared, x0=-1))
    collected, _ = run(adapter, tmp_path / "h.jsonl")
    assert not collected.audit.ok and "b still has -1 in x0" in collected.audit.problems[0]


# --- reports

LOST_UPDATE = [
    {"session": 1, "id": "a", "node": "n1", "during": "partition of n2", "ops": [["r", "x", 0], ["w", "x", 1]]},
    {"session": 2, "id": "b", "node": "n<2>", "ops": [["r", "x", 0], ["w", "x", 2]]},
]


def lost_update(tmp_path, roams=False):
    header = {"initial": 0, "ticks_per_second": 10**9, "collected": {"database": "d", "nodes": {"n1": "u1"}}}
    txns = [dict(line, start=i, end=i + 5, status="committed") for i, line in enumerate(LOST_UPDATE)]
    if roams:
        txns += [{"session": 1, "id": "c", "node": "n3", "start": 9, "end": 9, "ops": [["r", "x", 0]]}]
    path = tmp_path / "h.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *txns]))
    return with_run(check(load(path), "SI" if not roams else "RA"), str(path))


def test_reports_show_nodes_and_faults(tmp_path):
    result = lost_update(tmp_path)
    shown = {txn.id: txn for txn in result.violations[0].transactions}
    assert (shown["a"].node, shown["b"].node) == ("n1", "n<2>") and shown["a"].during == "partition of n2"
    words = text_of(result)
    assert "[session 1 on n1, line 2]" in words and "during partition of n2" in words
    picture = render(result.violations[0])
    assert "on n1" in picture and "on n&lt;2&gt;" in picture and "n<2>" not in picture
    document = plain(result)["violations"][0]["transactions"]
    assert [txn.get("node") for txn in document] == [txn.node for txn in result.violations[0].transactions]
    data = page_data([result])["examples"][0]
    assert data["homes"] == ["n1", "n<2>"] and "on n1" in data["transactions"][0]["place"]


def test_pictures_show_the_node_of_each_transaction_of_a_roaming_session(tmp_path):
    result = lost_update(tmp_path, roams=True)
    session = [txn for txn in result.violations[0].transactions if txn.session == 1]
    assert {txn.node for txn in session} == {"n1", "n3"}
    picture = render(result.violations[0])
    assert "on n1" in picture and "on n3" in picture


def test_native_json_keeps_nodes(tmp_path):
    sessions = [[{"id": line["id"], "node": line["node"], "ops": line["ops"]}] for line in LOST_UPDATE]
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"initial": 0, "sessions": sessions}))
    result = with_run(check(load(path), "SI"), str(path))
    assert {txn.node for txn in result.violations[0].transactions} == {"n1", "n<2>"}


def test_pictures_of_check_show_nodes(tmp_path):
    lost_update(tmp_path)
    out = tmp_path / "pictures"
    run = CliRunner().invoke(cli, ["check", str(tmp_path / "h.jsonl"), "--level", "SI", "--out", str(out)])
    assert run.exit_code == 1
    assert "on n1" in next(out.glob("*.dot")).read_text()


def test_the_bulk_reader_reads_files_with_nodes():
    line = b'{"session":1,"id":"a","node":"n1","during":"kill of n2","isolation":"x","ops":[["r",1,0]]}\n'
    assert json_native.read_lines(line * 3, 1, 0) is not None
