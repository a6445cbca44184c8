"""Tests of synthesis.py and problem.py: a search finds all histories within a scope, and no others."""

import random

import pytest
from synth_histories import every_history, verdicts

from plume_py import check
from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.synth import INITIAL, Program, Scope, level, synthesis, synthesize
from plume_py.reasoning.synth.formulas import definition
from plume_py.reasoning.synth.problem import TRICKS, without
from plume_py.reasoning.synth.recheck import DefectError, recheck
from plume_py.reasoning.synth.report import plain, text

LARGE = [Scope(2, 2, 3), Scope(3, 1, 3)]


def found(allow, forbid, scope, **how):
    return [f.concrete for f in synthesize(allow, forbid, scope, **how).found]


@pytest.mark.parametrize(
    ("allow", "forbid"),
    [
        ((), ("SER",)),
        (("RA",), ("SER",)),
        (("RA",), ("SER@vis",)),
        (("RA@vis",), ("TCC",)),
        (("PC", "PSI@vis"), ("SER",)),
        (("SI",), ()),
        (("PC@vis",), ("SI", "PSI@vis")),
    ],
)
@pytest.mark.parametrize(
    "scope",
    [Scope(2, 2, 2), Scope(3, 1, 4, blind_writes=False), *(pytest.param(s, marks=pytest.mark.full) for s in LARGE)],
    ids=str,
)
def test_enumeration_finds_every_history(allow, forbid, scope):
    """Against all histories, judged by the oracle: nothing is missing, nothing is there twice."""
    expected = {
        form
        for form, concrete in every_history(scope.txns, scope.keys, scope.values, scope.blind_writes).items()
        if all(verdicts(concrete)[name.partition("@")[0]] for name in allow)
        and not any(verdicts(concrete)[name.partition("@")[0]] for name in forbid)
    }
    histories = found(allow, forbid, scope, count=10_000)
    forms = [concrete.canonical() for concrete in histories]
    assert len(forms) == len(set(forms))
    assert set(forms) == expected


@pytest.mark.parametrize("trick", [name for name in TRICKS if name != "incremental"])
def test_enumeration_finds_the_same_without_a_trick(trick):
    everything = {
        form
        for form, concrete in every_history(3, 1, 3).items()
        if verdicts(concrete)["RA"] and not verdicts(concrete)["SI"]
    }
    assert everything
    less = found(["RA"], ["SI@vis"], Scope(3, 1, 3), count=10_000, tricks=without(trick))
    assert {concrete.canonical() for concrete in less} == everything


@pytest.mark.parametrize(("forbid", "scope"), [("RC", Scope(2, 1, 2)), ("TapRC", Scope(2, 2, 2))], ids=str)
def test_a_refuted_order_of_reads_does_not_rule_out_others(forbid, scope):
    """Where only the candidate itself is ruled out, other orders of its reads are still to be tried."""
    plainly = without("learning", "direct", "smart")
    everything = found([], [forbid], scope, count=1000)
    assert everything
    assert len(found([], [forbid], scope, count=1000, tricks=plainly)) == len(everything)


@level
def initial_first(h, w):
    """Who reads from others has read nothing after that."""
    return h.all(-h.read_before(t, u, x, v) for t in h.txns for u in h.txns for x in h.keys for v in (INITIAL, *h.txns))


def test_missing_reads_precede_and_follow_no_read():
    histories = found([], [initial_first], Scope(2, 2, 2), count=1000, limits=Limits(60))
    assert histories
    for history in histories:
        assert any(source != INITIAL for txn in history.txns for _, source in txn.reads[:-1])


def test_a_level_that_contradicts_itself_ends_the_search():
    answers = iter([1, -1] * 1000)

    @level
    def fickle(h, w):
        return next(answers)

    with pytest.raises(IsocheckError, match="level fickle says now this, now that"):
        synthesize([], [fickle], Scope(2, 1, 2), tricks=without("smart", "cross"), limits=Limits(20))


def test_rereads_are_searched_beside_levels_per_transaction():
    programs = [Program(level="RA")] * 2
    (history,) = found([], ["CI", "declared"], Scope(2, 1, 2), fixed=programs)
    assert any(len(txn.reads) == 2 for txn in history.txns)


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize(
    ("allow", "forbid", "txns"),
    [("TCC", "PC@vis", 3), ("PSI", "SI@vis", 4), ("PC", "PC@vis", 3), ("TapRA", "RA", 2), ("SER@vis", "SI", 3)],
)
def test_tricks_change_no_verdict(allow, forbid, txns, trick):
    scope = Scope(txns, 2, 3)
    verdict = bool(synthesize([allow], [forbid], scope).found)
    assert verdict == ((allow, txns) in {("PSI", 4), ("TapRA", 2)})
    assert bool(synthesize([allow], [forbid], scope, tricks=without(trick)).found) == verdict


@pytest.mark.parametrize(
    ("allow", "forbid", "scope", "history"),
    [
        ("SI", "SER", Scope(3, 2, 3), "r(y,0) w(x,1) | r(x,0) w(y,1)"),
        ("PC", "SI", Scope(3, 2, 3), "r(x,0) w(x,1) | r(x,0) w(x,2)"),
        ("TapRA", "RA", Scope(3, 2, 3), "w(x,1) ; r(x,0)"),
        ("TapRC", "RC", Scope(3, 2, 3), "w(x,1) | r(x,1) r(x,0)"),
        ("RC", "CI", Scope(3, 2, 3), "w(x,1) | r(x,0) r(x,1)"),
        ("CI", "RC", Scope(3, 2, 3), "w(x,1) w(y,1) | r(y,1) r(x,0)"),
    ],
)
def test_smallest_histories(allow, forbid, scope, history):
    assert [c.short() for c in found([allow], [forbid], scope, minimal=True)] == [history]


def test_plumes_read_atomic_misses_isoldes_history():
    (history,) = found(["TapRA"], ["RA"], Scope(2, 1, 2, blind_writes=False), minimal=True)
    assert history.short() == "r(x,0) w(x,1) ; r(x,0)"


def test_the_read_only_anomaly():
    (history,) = found(["SI", "UpdateSer"], ["SER"], Scope(3, 2, 2), minimal=True)
    assert any(not txn.writes for txn in history.txns)
    assert check(history.history(), "SER").violations[0].tap == "read-only-anomaly"


def test_no_lost_update_is_weaker_than_update_atomic():
    assert found(["NLU"], ["UA"], Scope(3, 2, 4))
    assert not found(["UA"], ["NLU"], Scope(8, 3, 4))


@pytest.mark.parametrize("level", ["CI", "RC", "RA", "TCC"])
def test_our_patterns_are_the_axioms(level):
    scope = Scope(5, 2, 4)
    assert not found([f"{level}@tap"], [level], scope, up_to=True)
    assert not found([f"{level}@tap"], [level], scope, up_to=True, tricks=without("direct", "polynomial"))
    assert not found([level], [f"{level}@tap"], scope, up_to=True)


@pytest.mark.parametrize("level", ["RA", "TCC", "PC", "PSI", "SI", "SER"])
def test_both_forms_of_a_level_agree(level):
    scope = Scope(6, 3, 4)
    assert not found([level], [f"{level}@vis"], scope)
    assert not found([f"{level}@vis"], [level], scope)
    small = Scope(4, 2, 3)
    plainly = without("cross", "smart", "direct", "polynomial")
    assert not found([level], [f"{level}@vis"], small, up_to=True, tricks=plainly)
    assert not found([f"{level}@vis"], [level], small, up_to=True, tricks=plainly)


def test_programs_keep_their_keys_sessions_and_levels():
    """Two withdrawals that each look at both accounts: safe at SER, a write skew if one runs at SI and one at RA."""
    both = frozenset({0, 1})
    programs = [
        Program(both, frozenset({0}), level="SI"),
        Program(both, frozenset({1}), level="SI"),
        Program(both, frozenset(), session=7, level="SER"),
        Program(frozenset(), frozenset({0}), session=7, level="SER"),
    ]
    (history,) = found(["declared"], ["SER"], Scope(4, 2, 4), fixed=programs)
    by_name = {history.name(t): (t, txn) for t, txn in enumerate(history.txns)}
    for number, program in enumerate(programs, 1):
        _, txn = by_name[f"T{number}"]
        assert {x for x, _ in txn.reads} == program.reads
        assert set(txn.writes) == program.writes
        assert txn.level == program.level
    assert by_name["T3"][1].session == by_name["T4"][1].session
    assert by_name["T3"][0] < by_name["T4"][0]
    serial = [Program(p.reads, p.writes, p.session, "SER") for p in programs]
    assert not found(["declared"], ["SER"], Scope(4, 2, 4), fixed=serial)


def test_levels_of_transactions_can_be_left_open():
    (history,) = found(["declared"], ["RA"], Scope(2, 1, 2))
    assert "RC" in {txn.level for txn in history.txns}


def test_sessions_and_values_bound_a_history():
    rng = random.Random(1)
    for _ in range(5):
        scope = Scope(rng.randint(3, 5), 2, rng.randint(2, 4), sessions=rng.randint(1, 2))
        for history in found(["RC"], ["TCC"], scope, count=3):
            assert len({txn.session for txn in history.txns}) <= scope.sessions
            assert all(sum(x in txn.writes for txn in history.txns) < scope.values for x in range(2))


def test_a_search_stops_at_its_time_limit():
    with pytest.raises(LimitError):
        synthesize(["SI"], ["SER"], Scope(8, 5, 5), limits=Limits(1e-9))


def test_histories_found_before_the_time_limit_are_returned(monkeypatch):
    class Three(Limits):
        """Time for three histories."""

        left = 3

        def check(self, progress=str):
            if self.left == 0:
                raise LimitError("stopped")

    def judged(*args, **how):
        checked = recheck(*args, **how)
        Three.left -= 1
        return checked

    monkeypatch.setattr(synthesis, "recheck", judged)
    outcome = synthesize(["RA"], ["TCC"], Scope(3, 2, 2), count=10, limits=Three())
    assert len(outcome.found) == 3
    assert outcome.stopped == "stopped"
    assert not outcome.complete
    assert text(outcome).endswith("\nundecided: are there others? stopped")
    assert plain(outcome)["found"] is True
    assert plain(outcome)["reason"] == "stopped"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["UpdateSr"], []), "unknown level 'UpdateSr'. Did you mean UpdateSer"),
        ((["SI"], [], Scope(2, 1, 2)), "programs do not fit"),
        ((["SI"], [], Scope(1, 1, 2)), "key number 1 is outside"),
    ],
)
def test_invalid_problems_are_rejected(arguments, message):
    programs = [Program(reads=frozenset({1}))] if len(arguments) > 2 else None
    with pytest.raises(IsocheckError, match=message):
        synthesize(*arguments, fixed=programs)


def test_a_scope_has_bounds():
    with pytest.raises(IsocheckError, match="0 keys cannot be searched"):
        Scope(2, 0, 2)


@pytest.mark.parametrize(("allow", "forbid"), [("SER", "CI"), ("RA", "SI"), ("UpdateSer", "PC"), ("SI", "UA")])
def test_the_recheck_detects_wrong_answers(allow, forbid):
    """Write skew, said to be allowed by or to break what it does not."""
    (skew,) = synthesize(["SI"], ["SER"], Scope(2, 2, 2), minimal=True).found
    with pytest.raises(DefectError):
        recheck(skew.concrete, [definition(allow)], [definition(forbid)], ())
