"""Every reader rejects a name or key that occurs twice in one object or map, with its position."""

import json

import pytest

from plume_py import load
from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.history.formats import edn, json_native
from plume_py.verify import read_claim

TXN = '{"ops":[["w","x",1]]}'
CASES = {
    "a.json": ('{"sessions":[[{"ops":[["w","x",1]],\n"ops":[["w","x",2]]}]]}', "line 2, column 1"),
    "b.json": ('{"initial":0,"initial":1,"sessions":[]}', "line 1, column 14"),
    "c.json": (f'{{"sessions":[[{TXN}]],"note":{{"a":"::","\\u0061":1}}}}', "'a' is given twice"),
    "d.json": ('{"sessions":[[{"status":"aborted","ops":[],"status":"committed"}]]}', "'status'"),
    "a.jsonl": ('{"initial":0}\n\n{"session":0,"ops":[],"session":1}\n', "line 3, column 23"),
    "b.jsonl": ('{"initial":0,"initial":1}\n{"session":0,"ops":[]}\n', "line 1, column 14"),
    "a.dbcop": ('[[{"events":[],"committed":true,"committed":false}]]', "'committed'"),
    "b.dbcop": ('{"data":[],"info":"a:b","data":[]}', "'data'"),
    "c.dbcop": ('[[{"events":[{"Write":{"variable":0,"version":1,"version":2}}],"committed":true}]]', "'version'"),
    "a.elle": ('[{"type":"ok","process":0,"value":[],"value":[["w",1,1]]}]', "column 38"),
    "b.elle": ('{"type":"ok","process":0,"value":[]}\n\n{"type":"ok","type":"fail","process":0,"value":[]}', "line 3"),
    "a.edn": (
        "{:type :ok, :process 0, :value []}\n{:type :ok, :process 0, :process 1, :value []}",
        "line 2, column 25",
    ),
    "b.edn": ("{:type :ok, #_ :x :process 0, #a :process 0, :value []}", "line 1, column 34"),
    "c.edn": ('{:type :ok, :process 0, :value [], :error {"a" 1 "a" 2}}', "column 50"),
    "d.edn": (
        "{:type :ok, :process 0, :value [] " + " ".join(f":k{i} 1" for i in range(70)) + "}",
        "more than 64 keys",
    ),
}
FORMATS = {"dbcop": "dbcop-json", "elle": "elle-json"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", ["never", "always"])
def test_histories(tmp_path, monkeypatch, name, compiled):
    text, where = CASES[name]
    (tmp_path / name).write_text(text)
    monkeypatch.setenv("ISOCHECK_COMPILE", compiled)
    with pytest.raises(InputError, match=where):
        load(tmp_path / name, format=FORMATS.get(name.partition(".")[2]))


def test_viper(tmp_path):
    (tmp_path / "J0.log").write_text('{"value":[]}\n{"value":[["w",1,1]],"value":[]}\n')
    with pytest.raises(InputError, match="line 2, column 22"):
        load(tmp_path)


def test_names_of_different_objects_may_be_equal(tmp_path):
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"id": 1, "note": [{"a": 1}, {"a": ":"}], "sessions": [[{"ops": [], "id": "a:b"}]]}))
    assert load(path).transactions == 1
    path = tmp_path / "h.edn"
    path.write_text('{:type :ok, :process 0, :value [], "type" 1, type 2, :error {:type 1}}')
    assert load(path).transactions == 1


def test_automata_do_not_accept_repeated_names():
    assert json_native.read_sessions(b'[{"ops":[],"ops":[]}]]}', 0, 0) is None
    assert edn.read_events(b"{:type :ok :type :ok :process 0 :value []}") is None


def test_reports():
    with pytest.raises(InputError, match="line 2, column 16"):
        read_claim(b'{"level":"RC",\n"order":["T1"],"order":[]}')


def test_large_texts_in_pieces(monkeypatch):
    monkeypatch.setattr("plume_py.base.json_names.PIECE", 7)
    text = json.dumps([{"name": i, "note": "a: b"} for i in range(40)]).encode()
    reject_same_names(text, 80)
    with pytest.raises(InputError, match="'name' is given twice"):
        reject_same_names(text.replace(b"note", b"name"), 40)
