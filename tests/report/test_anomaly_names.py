"""``report.wording``: Adya's and Jepsen's names of a violation, by pattern, and for cycles by their steps."""

import json

import pytest
from arguments import explained
from paths import HISTORIES
from small_histories import history

from plume_py import HistoryBuilder, check, load
from plume_py.checking.result import Ends, Step, Violation
from plume_py.levels.patterns import PATTERNS
from plume_py.report import junit, sarif
from plume_py.report.html import page_data
from plume_py.report.json import line
from plume_py.report.text import render
from plume_py.report.wording import CYCLES, aliases, bracketed


def names(path, level="TCC"):
    """tap -> aliases of what is found in an example."""
    return {violation.tap: aliases(violation) for violation in check(load(HISTORIES / path), level).violations}


@pytest.mark.parametrize(
    ("letter", "expected"),
    [
        ("a", ("garbage-read",)),
        ("b", ("G1a",)),
        ("c", ("future-read",)),
        ("d", ("internal",)),
        ("e", ("internal",)),
        ("f", ("G1b",)),
        ("g", ("G1c",)),
        ("j", ("internal", "P2")),
    ],
)
def test_patterns_of_single_reads_and_causal_cycles(letter, expected):
    (path,) = HISTORIES.glob(f"*/tap-{letter}-*.json")
    assert names(path.relative_to(HISTORIES))[letter] == expected


def test_patterns_of_lists_have_names():
    assert names("CI/list-duplicate-element.json")["duplicate-element"] == ("duplicate-elements",)
    assert names("CI/list-incompatible-order.json")["incompatible-order"] == ("incompatible-order",)
    assert names("CI/list-version-order-cycle.json")["version-order-cycle"] == ("G0",)
    assert PATTERNS["torn-append"].aliases == ()


def test_sessions_make_a_cycle_one_of_processes():
    assert names("CI+RC/session-misses-its-own-write.json")["k"] == ("G-single-process",)
    assert names("CI+RC/old-then-new.json")["k"] == ("G-single",)
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 1)])
    builder.add("a", [("w", "y", 1)])
    builder.add("b", [("r", "y", 1), ("w", "x", 1)])
    (violation,) = check(builder.build(), "RC").violations
    assert (violation.tap, aliases(violation)) == ("g", ("G1c-process",))


@pytest.mark.parametrize(
    ("sessions", "level", "expected"),
    [
        ((["wx1"], ["rx1 wx2"], ["rx1 wx3"]), "SER", ("lost-update", "P4", "G-single")),
        ((["rx0 ry0 wx1"], ["rx0 ry0 wy1"]), "SER", ("write-skew", "A5B", "G2-item")),
        ((["wx1"], ["wy1"], ["rx1 ry0"], ["rx0 ry1"]), "SER", ("long-fork", "G-nonadjacent")),
        ((["rx0 ry0 wx1"], ["ry0 wy1"], ["rx0 ry1"]), "SER", ("G2-item",)),
        ((["wx1", "ry0"], ["rx0 wy1"]), "SER", ("G2-item-process",)),
        # the argument is a write skew, or else a lost update: no more is said than G2-item
        ((["ry1 wx4"], ["rx2 wx3"], ["wy1 wx2"], ["ry1 wy5 rx3"]), "SER", ("write-skew", "A5B", "G2-item")),
    ],
)
def test_strong_patterns(sessions, level, expected):
    assert aliases(explained(history(*sessions), level)) == expected


def test_a_cycle_without_a_name_is_named_by_its_steps():
    one = explained(history(["rx0 wx1 wy1"], ["ry0 wx2"], ["rx1"], ["rx1 wz1"]), "PSI")
    assert (one.tap, aliases(one)) == ("cycle", ("G-single",))
    step = lambda relation: Step("a", "a", relation)  # noqa: E731
    made = lambda *relations: Violation(  # noqa: E731
        PATTERNS["cycle"], "SER", (), (), tuple(map(step, relations)), Ends.CLOSED, "", ""
    )
    assert aliases(made("WR", "RW", "WW", "RW")) == ("G-nonadjacent",)
    assert aliases(made("RW", "WW", "RW")) == ("G2-item",)
    assert aliases(made("WR", "CM", "RW")) == ()  # a commit order is no dependency
    assert aliases(made()) == ()
    assert bracketed(made()) == ""


def test_names_of_cycles_are_ordered_by_what_they_need():
    known = {name for pattern in PATTERNS.values() for name in pattern.aliases}
    assert set(CYCLES) <= known


def test_every_report_shows_the_names():
    result = check(load(HISTORIES / "SI/write-skew.json"), "SER", name="h.json")
    expected = "[write-skew, A5B, G2-item]"
    assert f"WriteSkew {expected}, forbidden by" in render(result, style=lambda words, **_: words)
    assert json.loads(line(result))["violations"][0]["aliases"] == ["write-skew", "A5B", "G2-item"]
    assert f"WriteSkew {expected}" in junit.document([result])
    document = json.loads(sarif.document([result]))
    (run,) = document["runs"]
    assert run["results"][0]["message"]["text"].startswith(f"WriteSkew {expected}: ")
    rule = next(rule for rule in run["tool"]["driver"]["rules"] if rule["id"] == "write-skew")
    assert "Also called: write-skew, A5B, G2-item." in rule["help"]["text"]
    assert page_data([result])["examples"][0]["aliases"] == ["write-skew", "A5B", "G2-item"]
