"""Tests of user_levels.py: unequal treatment of names is rejected, errors have lines, levels can be combined."""

import pytest
from paths import ROOT

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.logic import FALSE, TRUE, Formula
from plume_py.reasoning.synth import Scope, axiom, definition, level, load_definitions, seen_by, shows, synthesize
from plume_py.reasoning.synth.comparison import relate
from plume_py.reasoning.synth.formulas import DEFINITIONS
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.user_levels import require_equal_treatment

MINE = str(ROOT / "docs" / "my_levels.py")
IMPORT = "from plume_py.reasoning.synth import *\n"


def loaded(tmp_path, source):
    path = tmp_path / "mine.py"
    path.write_text(IMPORT + source)
    return load_definitions(str(path))


@level
def first_key_only(h, w):
    return h.all(-h.writes(t, 0) for t in h.txns)


@level
def from_the_second_key_on(h, w):
    return h.all(h.any((-h.writes(t, x), -h.wr[t, u])) for t in h.txns for u in h.txns for x in h.keys[1:])


@level
def serializable_but_for_one_key(h, w):
    return axiom(h, w.co, lambda t1, t2, t3, x: w.co[t2, t3] if x else h.so[t2, t3])


@level
def first_transaction(h, w):
    return h.updates(0)


@level
def by_number(h, w):
    return axiom(h, w.co, lambda t1, t2, t3, x: TRUE if t2 < t3 else FALSE)


@level(form="vis")
def last_sees_all(h, w):
    return h.all(w.vis[t, len(h.txns) - 1] for t in h.txns[:-1])


@level(form="history")
def two_in_a_row(h, w):
    return h.all(-h.so[t, t + 1] for t in h.txns[:-1])


@level(form="axiom")
def odd_readers(h):
    return lambda t1, t2, t3, x: h.so[t2, t3] if t3 % 2 else FALSE


KEYS = [first_key_only, from_the_second_key_on, serializable_but_for_one_key]
TRANSACTIONS = [first_transaction, by_number, last_sees_all, two_in_a_row, odd_readers]


@pytest.mark.parametrize("unfair", KEYS + TRANSACTIONS, ids=lambda level: level.name)
def test_unequal_treatment_of_names_is_rejected(unfair):
    what = "keys" if unfair in KEYS else "transactions"
    for search in (lambda: synthesize([unfair], ["RA"], Scope(2)), lambda: synthesize(["RA"], [unfair], Scope(2))):
        with pytest.raises(
            IsocheckError, match=f"test_user_levels.py, line [0-9]+: .* treats {what} unequally"
        ) as told:
            search()
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("order", ["", "@none", "@realtime", "@realtime-per-key"])
def test_equal_treatment_of_names_is_accepted(order):
    mine = load_definitions(MINE)
    for name in mine:
        require_equal_treatment(definition(name + order, mine))


def test_built_in_levels_treat_names_equally():
    """Also those that nobody tests as a rule: as if a user had written them."""
    from dataclasses import replace

    from plume_py.reasoning.synth.definition import SourceLine

    for found in DEFINITIONS.values():
        require_equal_treatment(replace(found, defined_at=SourceLine("here", 1)))


def test_variables_outside_history_and_witness_are_rejected():
    @level
    def free(h, w):
        return h.formula.variable()

    with pytest.raises(IsocheckError, match="neither true nor false"):
        synthesize([free], [], Scope(2))


@pytest.mark.parametrize(
    ("source", "where", "message"),
    [
        ("\n\nx = 1 / 0\n", "line 4", "division by zero"),
        ("def f():\n    g()\ndef g():\n    raise KeyError(3)\nf()\n", "line 5", "KeyError"),
        ("x = 1\n\n@level\ndef SI(h, w):\n    return 1", "line 4", "the name of a level already"),
        ("@level\ndef a(h, w):\n    return 1\n@level(name='a')\ndef b(h, w):\n    return 1", "line 5", "twice"),
        ("@level(name='a b')\ndef b(h, w):\n    return 1", "line 2", "is no name"),
        ("x = (\n", "line 2", "SyntaxError"),
    ],
)
def test_errors_in_a_file_have_a_line(tmp_path, source, where, message):
    with pytest.raises(InputError, match=f"mine.py, {where}: .*{message}"):
        loaded(tmp_path, source)


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("@level\ndef m(h, w):\n    x = 1\n    return h.nothing", 5, "no attribute"),
        ("@level\ndef m(h, w):\n    return h.all(\n        w.vis[a, a] for a in h.txns)", 5, 'form="vis"'),
        ("@level\ndef m(h, w):\n    return True", 2, "is no formula"),
        ("@level(form='axiom')\ndef m(h):\n    return h.so", 2, "is no premise"),
        ("@level(form='axiom')\ndef m(h):\n    return lambda *_:\\\n        True", 2, "is no formula"),
        ("@level(form='axiom')\ndef m(h):\n    return lambda *_: h.so['a']", 4, "ValueError"),
        ("@level\ndef m(h, w):\n    return shows(h, w, 'UA')", 4, "is about visibility"),
        ("@level\ndef m(h, w):\n    return shows(h, w, 'XYZ')", None, "unknown level 'XYZ'"),
    ],
)
def test_errors_in_a_level_have_a_line(tmp_path, source, line, message):
    mine = loaded(tmp_path, source)["m"]
    with pytest.raises(IsocheckError) as told:
        synthesize([mine], ["RA"], Scope(2))
    assert message in str(told.value)
    if line is not None:
        assert f"mine.py, line {line}: level m: " in str(told.value)


def test_built_in_levels_inside_user_levels():
    @level
    def also_ser(h, w):
        return h.all((shows(h, w, "RA"), shows(h, w, "SER")))

    @level(form="vis")
    def by_arbitration(h, w):
        return shows(h, w, "SER")  # a level by a commit order: arbitration is one

    @level(form="vis")
    def twice(h, w):
        return shows(h, w, by_arbitration)

    for mine in (also_ser, by_arbitration, twice):
        assert relate(mine, "SER", Scope(4, 2, 3)).word == "equivalent"
    causal = load_definitions(MINE)["CausalNLU"]
    assert relate(causal, "NLU", Scope(3, 2, 3)).word == "stronger"
    assert relate(causal, "TCC", Scope(3, 2, 3)).word == "stronger"
    assert relate(causal, "PSI", Scope(4, 2, 4)).word in ("weaker", "equivalent")


def test_a_level_inside_another_uses_the_order_of_the_outer_one():
    @level
    def mine(h, w):
        return shows(h, w, "SER")

    @level
    def strict(h, w):
        return shows(h, w, "SSER")

    mine_in = {"Mine": mine}
    for order, same in (("none", "SER@none"), ("session", "SER"), ("realtime", "SSER")):
        assert relate(definition(f"Mine@{order}", mine_in), same, Scope(3, 2, 3)).word == "equivalent"
    orders = frozenset(("session", "realtime"))
    assert relate(strict, "SSER", Scope(3, 2, 3, orders=orders)).word == "equivalent"


def test_an_axiom_about_the_history_needs_no_search():
    @level
    def searched(h, w):
        return axiom(h, w.co, seen_by(h.so))

    mine = load_definitions(MINE)["ReadYourWrites"]
    assert relate(mine, searched, Scope(4, 2, 3)).word == "equivalent"
    assert synthesize(["RA"], [mine], Scope(12, 2, 4)).candidates == 0


@pytest.mark.parametrize("form", ["SER", "SER@vis"])
def test_a_level_as_a_graph_needs_no_candidate(form):
    """An order by which the graph has no cycle is a commit order: tried beforehand, it leaves nothing to propose."""
    graph = load_definitions(MINE)["SerByGraph"]
    for allow, forbid in ((graph, form), (form, graph)):
        outcome = synthesize([allow], [forbid], Scope(10, 2, 4))
        assert not outcome.found
        assert outcome.candidates == 0


def test_acyclic_is_exact_for_symbolic_relations():
    """``acyclic`` is right whichever way it is asked."""
    for size in (2, 3):
        pairs = [(a, b) for a in range(size) for b in range(size)]
        for chosen in range(2 ** len(pairs)):
            with Formula() as formula:
                rows = [[formula.variable() for _ in range(size)] for _ in range(size)]
                literal = Relation(formula, rows).closure().irreflexive()
                given = [rows[a][b] if chosen >> at & 1 else -rows[a][b] for at, (a, b) in enumerate(pairs)]
                edges = Relation.where(
                    formula, size, lambda a, b, c=chosen, p=pairs: TRUE if c >> p.index((a, b)) & 1 else FALSE
                )
                expected = edges.sequence() is not None
                assert formula.solve([*given, literal]) == expected
                assert formula.solve([*given, -literal]) != expected


def test_hierarchy_includes_the_levels_of_a_file(capfd, monkeypatch):
    from plume_py.cli.main import cli

    def run(*arguments):
        cli.main(["hierarchy", *arguments, "--txns", "2"], standalone_mode=False)
        return capfd.readouterr()

    monkeypatch.setattr("plume_py.reasoning.synth.comparison.USUAL", ("RA", "SER"))
    told = run("--define", MINE)
    for name in load_definitions(MINE):
        assert name in told.out
    assert "CausalNLU" not in run("RA", "SER").out
    assert "none of ReadYourWrites" in run("RA", "SER", "--define", MINE).err
