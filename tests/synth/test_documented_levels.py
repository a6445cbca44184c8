"""The claims of docs/levels.md and docs/hierarchy.md, checked on all histories within a scope (comparison.py)."""

import re

import oracle
import pytest
from paths import ROOT
from synth_histories import plain

from plume_py.levels import LEVELS, RUNNABLE, weaker_levels
from plume_py.reasoning.synth import Program, Scope, definition, level, load_definitions, synthesize
from plume_py.reasoning.synth.comparison import USUAL, USUAL_IN_ORDERS, hierarchy, in_all_orders, relate

SCOPE = Scope(4, 2, 4)


def none(allow, forbid, scope=SCOPE, **how):
    return not synthesize([allow], [forbid], scope, up_to=True, **how).found


@pytest.mark.parametrize("stronger", LEVELS)
def test_the_lattice(stronger):
    below = weaker_levels(stronger)
    for weaker in LEVELS:
        if weaker == stronger:
            continue
        assert none(stronger, weaker) == (weaker in below), (stronger, weaker)


@level
def ser_graph(h, w):
    return (h.base | (w.co & h.conflict) | h.overwrites(w.co)).closure().irreflexive()


@level
def si_graph(h, w):
    """No cycle without two RW in a row."""
    known = h.base | (w.co & h.conflict)
    return (known | known.then(h.overwrites(w.co))).closure().irreflexive()


@level
def pc_graph(h, w):
    """No cycle in which each RW comes right after SO or WR."""
    return (h.base | (w.co & h.conflict) | h.base.then(h.overwrites(w.co))).closure().irreflexive()


@level
def psi_graph(h, w):
    """No cycle with one RW or none."""
    known = (h.base | (w.co & h.conflict)).closure()
    return h.all((known.irreflexive(), known.then(h.overwrites(w.co)).irreflexive()))


@pytest.mark.parametrize(
    ("name", "graph"), [("SER", ser_graph), ("SI", si_graph), ("PC", pc_graph), ("PSI", psi_graph)]
)
def test_the_strong_levels_read_as_graphs(name, graph):
    scope = Scope(4, 2, 4, rereads=False)
    assert relate(name, graph, scope).word == "equivalent"


@pytest.mark.parametrize("name", RUNNABLE)
def test_one_level_for_all_transactions_is_that_level(name):
    for txns in (2, 3, 4):
        programs = [Program(level=name)] * txns
        scope = Scope(txns, 2, 4)
        assert none("declared", name, scope, fixed=programs)
        assert none(name, "declared", scope, fixed=programs)


def test_the_documented_hierarchy_is_correct():
    """The steps of docs/hierarchy.md are those that are found now; each history tells its two levels apart."""
    text = (ROOT / "docs" / "hierarchy.md").read_text()
    text = text.partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (\w+) \| `([^`]+)` \|", text, re.M)
    now = hierarchy(USUAL, SCOPE)
    assert {(weaker, stronger) for weaker, stronger, _ in rows} == {
        (now.name(step.below), now.name(step.above)) for step in now.steps
    }
    for weaker, stronger, history in rows:
        verdicts = oracle.verdicts(_parsed(history.replace("\\", "")))
        for name, expected in ((weaker, True), (stronger, False)):
            if name in LEVELS:
                assert verdicts[name] == expected, (history, name)
    for step in now.steps:
        verdicts = oracle.verdicts(plain(step.separation.found[0].concrete))
        assert all(verdicts[name] for name in now.classes[step.below] if name in LEVELS)
        assert not any(verdicts[name] for name in now.classes[step.above] if name in LEVELS)


def test_the_documented_hierarchy_with_orders_is_correct():
    """The steps of docs/hierarchy.md between levels in several orders, against what is found now, and the oracle."""
    text = (ROOT / "docs" / "hierarchy.md").read_text()
    text = text.partition("## Which order counts")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\S+) \| (\S+) \| `([^`]+)` \|", text, re.M)
    now = hierarchy(in_all_orders(USUAL_IN_ORDERS), SCOPE)
    assert {(weaker, stronger) for weaker, stronger, _ in rows} == {
        (now.name(step.below), now.name(step.above)) for step in now.steps
    }
    shown = [(weaker, stronger, history.replace("\\", "")) for weaker, stronger, history in rows]
    shown += [(now.name(s.below), now.name(s.above), s.separation.found[0].concrete.short()) for s in now.steps]
    for weaker, stronger, history in shown:
        times = [(int(begin), int(end)) for begin, end in re.findall(r"\[(\d+),(\d+)\]", history)]
        for name, expected in ((weaker, True), (stronger, False)):
            asked = definition(name)
            facts = oracle.Facts(_parsed(history), 0, True, asked.order, times)
            assert oracle.satisfies(facts, asked.level) == expected, (history, name)


def _parsed(history):
    return [
        [
            ("committed", [(kind, x, int(value)) for kind, x, value in re.findall(r"(\w)\((\w),(\d+)\)", txn)])
            for txn in session.split(" ; ")
        ]
        for session in history.split(" | ")
    ]


def test_the_levels_defined_in_the_documentation():
    mine = load_definitions(str(ROOT / "docs" / "my_levels.py"))
    assert relate(mine["ReadYourWrites"], "RA", SCOPE).word == "weaker"
    assert relate(mine["MonotonicReads"], "RA", SCOPE).word == "stronger"
    assert relate(mine["MonotonicReads"], "TCC", SCOPE).word == "weaker"
    assert relate(mine["SerByGraph"], "SER", SCOPE).word == "equivalent"
    assert relate(mine["FewReaders"], "SER", SCOPE).word == "incomparable"
