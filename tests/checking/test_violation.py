"""checking/violation: a violation is complete, so every report prints the same conclusion and culprits."""

import html
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from paths import ROOT

import plume_py
from plume_py.checking.result import Ends, Result, Step, Violation
from plume_py.history.builder import HistoryBuilder
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.history.model import INITIAL_ID
from plume_py.levels import NAMES
from plume_py.levels.patterns import PATTERNS, Kind
from plume_py.report import dot, sarif, text
from plume_py.report.html import page_data
from plume_py.report.json import plain

HISTORIES = sorted((ROOT / "histories").rglob("*.json"))
RED = "#FFC9C9"


def results() -> list[Result]:
    return [plume_py.check(plume_py.load(path), NAMES, name=path.name) for path in HISTORIES]


def examples() -> list[tuple[Result, Violation]]:
    return [(replace(result, violations=(v,)), v) for result in results() for v in result.violations]


def culprits(violation: Violation) -> list[tuple[object, str]]:
    """Who did what wrong, in words."""
    members = violation.transactions
    return [(members[t].id, text.operation(members[t].ops[op])) for t, op in violation.culprits]


def words(*lines: str) -> str:
    return " ".join(" ".join(lines).split())


def of_text(result: Result, violation: Violation) -> tuple[str, list[tuple[object, str]]]:
    lines = text.render(result, style=lambda words, **_: words)
    listed = {
        t.id: re.search(rf"(?ms)^    {t.id}(?: at \w+)?  \[.*?(?=^    \w)", lines) for t in violation.transactions
    }
    marked = [
        (name, op)
        for name, found in listed.items()
        for op in re.findall(r"(\w+\([^()]*\))\(!\)", words(found[0] if found else ""))
    ]
    return words(lines), marked


def of_page(result: Result, violation: Violation) -> tuple[str, list[tuple[object, str]]]:
    (example,) = page_data([result])["examples"]
    members = example["transactions"]
    spelled = [(members[t]["id"], "{}({}, {})".format(*members[t]["ops"][op])) for t, op in example["culprits"]]
    return example["conclusion"], spelled


def of_dot(result: Result, violation: Violation) -> tuple[str, list[tuple[object, str]]]:
    picture = dot.render(violation)
    marked = []
    for node, table in re.findall(r"(?m)^\t+(t\d+) \[label=<(.*)> class", picture):
        for cell in re.findall(rf'bgcolor="{RED}"><font[^>]*>([^<]*)<', table):
            marked.append((violation.transactions[int(node[1:])].id, html.unescape(cell)))
    return words(html.unescape(re.sub("<[^>]*>", " ", picture))), marked


def of_json(result: Result, violation: Violation) -> tuple[str, list[tuple[object, str]]]:
    (found,) = plain(result)["violations"]
    ops = {t["id"]: t["ops"] for t in found["transactions"]}
    return found["conclusion"], [
        (c["transaction"], text.operation(ops[c["transaction"]][c["op"]])) for c in found["culprits"]
    ]


def of_sarif(result: Result, violation: Violation) -> tuple[str, list[tuple[object, str]]]:
    found = json.loads(sarif.document([result]))["runs"][0]["results"][0]
    assert found["properties"]["conclusion"] == violation.conclusion
    said = found["message"]["text"].replace("{{", "{").replace("}}", "}")
    return said, [(c["transaction"], c["operation"]) for c in found["properties"]["culprits"]]


@pytest.mark.parametrize("form", [of_text, of_page, of_dot, of_json, of_sarif])
def test_every_format_has_the_same_conclusion_and_culprits(form) -> None:
    for result, violation in examples():
        said, marked = form(result, violation)
        assert violation.conclusion in said, result.history
        assert sorted(map(str, marked)) == sorted(map(str, culprits(violation))), result.history


def test_how_the_steps_end() -> None:
    seen = set()
    for result, violation in examples():
        steps, ends = violation.steps, violation.ends
        seen.add(ends)
        if ends is Ends.CLOSED:
            assert all(a.target == b.source for a, b in zip(steps, (*steps[1:], steps[0]), strict=True)), result.history
        elif ends is Ends.BEFORE_START:
            assert steps[-1].target == INITIAL_ID
        single = violation.pattern.kind in (Kind.READ, Kind.REREAD, Kind.LIST)
        assert single == (ends is Ends.OPEN) == bool(violation.culprits)
    assert seen == set(Ends)


def every_step(steps: tuple[Step, ...]) -> list[Step]:
    inner = [(*([] if s.question is None else [s.question]), *s.evidence) for s in steps]
    return [*steps, *(deeper for each in inner for deeper in every_step(each))]


def check_places(violation: Violation) -> None:
    """The operations of a step are the ones that it speaks of."""
    ops = {t.id: t.ops for t in violation.transactions}
    for step in every_step(violation.steps):
        source = None if step.source_op is None else ops[step.source][step.source_op]
        target = None if step.target_op is None else ops[step.target][step.target_op]
        if step.relation == "SO" or not step.has_key:
            assert source is None and target is None
            continue
        for end, op, reads in (
            (step.source, source, step.relation == "RW"),
            (step.target, target, step.relation == "WR"),
        ):
            assert (op is None) == (end == INITIAL_ID), violation
            assert op is None or (op[1] == step.key and (op[0] == "r") == reads), violation
        if step.relation == "WR" and source is not None:
            assert source[2] == step.value
            assert step.value in target[2] if isinstance(target[2], tuple) else step.value == target[2]
        if step.reader is not None:
            assert step.reader_op is not None and ops[step.reader][step.reader_op][:2] == ("r", step.key)
    for t, op in violation.culprits:
        assert violation.transactions[t].ops[op][0] == "r"


def test_steps_know_their_operations() -> None:
    for _, violation in examples():
        check_places(violation)


@pytest.mark.parametrize("level", ["RC", "RA", "TCC", "SI"])
def test_steps_know_their_operations_in_random_histories(level) -> None:
    """Also where several violations share transactions, so that the later ones are found in what the earlier leave."""
    found = 0
    for seed in range(6):
        base = generate(level, sessions=5, transactions=60, operations=6, keys=8, seed=seed)
        recipes = dict.fromkeys(random.Random(seed).sample("abcdefghijklmn", 3), 2)
        for history in (base, inject(base, recipes, seed)[0]):
            for violation in plume_py.check(history, NAMES, max_examples=3).violations:
                check_places(violation)
                found += 1
    assert found > 20


def test_lists_are_tied_to_their_appends() -> None:
    builder = HistoryBuilder()
    builder.add(0, [("append", "l", 1), ("append", "l", 2)], id="a")
    builder.add(1, [("append", "l", 3), ("append", "l", 4), ("append", "k", 1)], id="b")
    builder.add(2, [("r", "l", []), ("r", "l", [1, 2, 3, 4])], id="c")
    builder.add(3, [("append", "k", 2), ("r", "l", [])], id="d")
    builder.add(0, [("append", "k", 3)], id="e")
    builder.add(4, [("r", "k", [1, 3])], id="f")
    builder.add(5, [("r", "k", [3, 1])], id="g")
    result = plume_py.check(builder.build(), ["RC"])
    cycle = next(v for v in result.violations if v.tap == "version-order-cycle")
    for violation in result.violations:
        check_places(violation)
    by_ends = {(s.source, s.target, s.relation): s for s in cycle.steps}
    assert all(s.reader_op is not None for s in by_ends.values() if s.relation == "WW")


def test_an_operation_that_a_step_touches_is_shown_however_many_there_are() -> None:
    builder = HistoryBuilder(0)
    builder.add(0, [("w", "x", n) for n in range(1, 100)])
    builder.add(1, [("r", "x", 70)])
    (violation,) = plume_py.check(builder.build(), ["RC"]).violations
    writer = violation.transactions[0]
    assert writer.ops[violation.steps[0].source_op] == ("w", "x", 70)
    assert len(writer.ops) + writer.hidden_ops == 99


def test_labels_are_spelled_in_one_place() -> None:
    """``TAP-k`` comes from the table of patterns."""
    package = Path(plume_py.__file__).parent
    spelled = [p for p in package.rglob("*.py") if re.search(r'"TAP-\{|\.startswith\(.TAP-', p.read_text())]
    assert [p.name for p in spelled] == ["patterns.py"]
    assert PATTERNS["k"].title == "TAP-k FracturedReadCO" and PATTERNS["lost-update"].title == "LostUpdate"
