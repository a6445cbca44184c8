"""Levels that declare the parts of their witness (definition.py, user_levels.py): Adya's, Crooks', and errors."""

import pytest
from paths import ROOT

from plume_py import HistoryBuilder
from plume_py.base.errors import IsocheckError
from plume_py.reasoning.synth import (
    Scope,
    axiom,
    definition,
    judge,
    level,
    load_definitions,
    seen_by,
    shows,
    synthesize,
)
from plume_py.reasoning.synth.comparison import relate
from plume_py.reasoning.synth.user_levels import require_equal_treatment

OTHERS = load_definitions(str(ROOT / "docs" / "other_levels.py"))
# As docs/synth.md says.
PROVED = [
    ("PL-3", "SER@none", "equivalent"),
    ("PL-2.99", "PL-3", "equivalent"),
    ("PL-SI", "SI@none", "equivalent"),
    ("PL-2", "RC@none", "weaker"),
    ("PL-1", "PL-2", "equivalent"),
    ("CrooksSER", "SER@none", "equivalent"),
    ("CrooksSI", "SI@none", "equivalent"),
    ("CrooksRA", "RA@none", "equivalent"),
    ("CrooksRC", "PL-2", "equivalent"),
    ("PL-3", "SER", "weaker"),
    ("PL-SI", "SER@none", "weaker"),
    ("CrooksSI", "TCC@none", "stronger"),
]


@pytest.mark.parametrize(("a", "b", "word"), PROVED)
@pytest.mark.parametrize("txns", [3, pytest.param(4, marks=pytest.mark.full)])
def test_levels_of_adya_and_crooks_relate_to_ours_as_documented(a, b, word, txns):
    assert relate(definition(a, OTHERS), definition(b, OTHERS), Scope(txns, 2, txns)).word == word


@pytest.mark.parametrize("name", OTHERS)
def test_declared_witnesses_treat_names_equally(name):
    require_equal_treatment(OTHERS[name])


def test_unequal_treatment_in_declared_witnesses_is_rejected():
    @level(witness={"v": "versions"})
    def first_key(h, w):
        return h.all(w.v[0][a, b] for a in h.txns for b in h.txns if a < b)

    @level(witness={"s": "relation"})
    def first_txn(h, w):
        return w.s[0, 1]

    @level(witness={"v": "versions"})
    def all_but_one(h, w):
        return h.all(w.v[x][a, b] for x in h.keys[1:] for a, b in [(0, 1)])

    for unfair in (first_key, first_txn, all_but_one):
        with pytest.raises(IsocheckError, match="unequally"):
            synthesize([unfair], [], Scope(2))


@pytest.mark.parametrize(
    ("witness", "form", "message"),
    [
        ({"v": "verzions"}, "co", "not a kind of witness"),
        ({"co": "order"}, "co", "no name for a part"),
        ({"declared": "order"}, "co", "no name for a part"),
        ({"a b": "order"}, "co", "no name for a part"),
        ({}, "co", "a witness of nothing"),
        ({"v": "versions"}, "vis", "has a witness of its own"),
    ],
)
def test_invalid_declarations_are_rejected(witness, form, message):
    with pytest.raises(ValueError, match=message):
        level(form=form, witness=witness)


def test_undeclared_parts_are_rejected():
    @level(witness={"v": "versions"})
    def mine(h, w):
        return w.u[0, 0]

    with pytest.raises(IsocheckError, match=r"w\.u is not declared"):
        synthesize([mine], [], Scope(2))

    @level
    def other(h, w):
        return shows(h, w, mine)

    with pytest.raises(IsocheckError, match="declares a witness of its own"):
        synthesize([other], [], Scope(2))


def test_levels_that_declare_the_same_can_be_reused():
    @level(witness={"v": "versions"})
    def again(h, w):
        return shows(h, w, OTHERS["PL-3"])

    assert relate(again, "SER@none", Scope(3, 2, 3)).word == "equivalent"


def test_a_declared_order_need_not_contain_session_order():
    @level(witness={"e": "order"})
    def sessionless(h, w):
        return h.all((h.wr.inside(w.e), axiom(h, w.e, seen_by(w.e))))

    @level(witness={"e": "order"})
    def with_sessions(h, w):
        return h.all((h.base.inside(w.e), axiom(h, w.e, seen_by(w.e))))

    assert relate(sessionless, "SER@none", Scope(3, 2, 3)).word == "equivalent"
    assert relate(with_sessions, "SER", Scope(3, 2, 3)).word == "equivalent"
    assert relate(sessionless, with_sessions, Scope(3, 2, 3)).word == "weaker"


def built(*txns):
    builder = HistoryBuilder(initial=0)
    for session, ops in enumerate(txns):
        builder.add(session, ops)
    return builder.build(init_txn="none")


def test_declared_witnesses_are_printed_and_explained():
    skew = built([("r", "x", 0), ("w", "y", 1)], [("r", "y", 0), ("w", "x", 1)])
    broken = judge(skew, OTHERS["PL-3"])
    assert [reason.words.partition(":")[0] for reason in broken.reasons] == ["T1 -RW-> T2", "T2 -RW-> T1"]
    kept = judge(skew, OTHERS["PL-SI"])
    assert kept.ok
    assert {name for name, _, _ in kept.witness.declared} == {"v", "s"}


def test_lists_give_the_order_of_versions():
    builder = HistoryBuilder(initial=[])
    builder.add(0, [("append", "x", 1), ("append", "y", 1)])
    builder.add(1, [("append", "x", 2), ("append", "y", 2)])
    builder.add(2, [("r", "x", [1, 2])])
    builder.add(3, [("r", "y", [2, 1])])
    history = builder.build()
    for name in ("PL-1", "PL-2", "PL-3", "CrooksSER"):
        judged = judge(history, OTHERS[name])
        assert judged.ok is False
        assert any("as lists show" in reason.words for reason in judged.reasons)


def test_histories_with_unreadable_reads_are_undecided():
    assert judge(built([("r", "x", 7)]), OTHERS["PL-1"]).ok is None


def test_declared_witnesses_on_the_command_line(isocheck, tmp_path):
    path = tmp_path / "skew.json"
    path.write_text(
        '{"initial":0,"sessions":[[{"ops":[["r","x",0],["w","y",1]]}],[{"ops":[["r","y",0],["w","x",1]]}]]}'
    )
    others = ROOT / "docs" / "other_levels.py"
    code, out, _ = isocheck(path, "--define", others, "-l", "PL-SI", "-l", "PL-3", "--out", tmp_path / "drawn")
    assert code == 1
    assert "PL-3 violated: no witness as it declares one keeps all of this" in out
    assert "PL-SI holds" in out
    (drawn,) = (tmp_path / "drawn").glob("*PL-SI.dot")
    assert "PL-SI holds" in drawn.read_text()
    code, out, _ = isocheck("synth", "-a", "PL-SI", "-f", "PL-3", "--define", others, "--minimal", "--format", "json")
    assert (code, '"witness":"by v of each key' in out) == (0, True)
