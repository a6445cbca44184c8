"""nodes.py: native formats keep the nodes of transactions; other writers note their loss."""

import json

import pytest
from click.testing import CliRunner

from plume_py.cli.main import cli

# A lost update over two nodes; the third transaction says nothing, and the fourth has no id.
TXNS = [
    {"session": 1, "id": "a", "node": 'n1 "x"', "ops": [["r", "k", 0], ["w", "k", 1]]},
    {"session": 2, "id": "b", "node": "n2", "ops": [["r", "k", 0], ["w", "k", 2]]},
    {"session": 2, "id": "c", "ops": [["w", "y", 1]]},
    {"session": 3, "node": "n3", "ops": [["w", "z", 1]]},
]


def as_lines(path):
    header = {"initial": 0, "collected": {"node": "a machine"}}
    path.write_text("".join(json.dumps(each) + "\n" for each in [header, *TXNS]))
    return str(path)


def as_document(path):
    sessions = [[txn for txn in TXNS if txn["session"] == number] for number in (1, 2, 3)]
    path.write_text(json.dumps({"initial": 0, "sessions": sessions}))
    return str(path)


def nodes_of(path):
    text = path.read_text()
    if path.suffix == ".jsonl":
        txns = [json.loads(line) for line in text.splitlines()[1:]]
    else:
        txns = [txn for session in json.loads(text)["sessions"] for txn in session]
    return [txn.get("node") for txn in txns]


@pytest.mark.parametrize("made", [as_lines, as_document])
@pytest.mark.parametrize("target", ["out.json", "out.jsonl"])
def test_native_formats_keep_nodes(tmp_path, made, target):
    source = made(tmp_path / ("in.jsonl" if made is as_lines else "in.json"))
    ended = CliRunner().invoke(cli, ["convert", source, str(tmp_path / target)])
    assert ended.exit_code == 0, ended.output
    assert "nodes" not in ended.stderr.replace(str(tmp_path), "")
    assert nodes_of(tmp_path / target) == ['n1 "x"', "n2", None, "n3"]


def test_formats_without_nodes_note_their_loss(tmp_path):
    source = as_lines(tmp_path / "in.jsonl")
    ended = CliRunner().invoke(cli, ["convert", source, str(tmp_path / "out.edn")])
    assert ended.exit_code == 0, ended.output
    assert "the nodes of transactions are not kept" in ended.stderr


@pytest.mark.parametrize("made", [as_lines, as_document])
def test_a_minimized_history_keeps_its_nodes(tmp_path, made):
    source = made(tmp_path / ("in.jsonl" if made is as_lines else "in.json"))
    small = tmp_path / "small.json"
    ended = CliRunner().invoke(cli, ["check", source, "--level", "SI", "--minimize", str(small)])
    assert ended.exit_code == 1, ended.output
    assert nodes_of(small) == ['n1 "x"', "n2"]


@pytest.mark.parametrize("node", [{"rack": 3}, 7, None])
def test_node_fields_of_another_type_are_ignored(tmp_path, node):
    line = json.dumps({"session": 1, "id": "a", "node": node, "ops": [["w", "x", 1]]})
    (tmp_path / "in.jsonl").write_text(line + "\n")
    ended = CliRunner().invoke(cli, ["convert", str(tmp_path / "in.jsonl"), str(tmp_path / "out.json")])
    assert ended.exit_code == 0, ended.output
    assert nodes_of(tmp_path / "out.json") == [None]
