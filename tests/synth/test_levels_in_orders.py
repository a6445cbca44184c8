"""Levels with an order between transactions (formulas.py, symbolic_history.py): soundness and completeness."""

import random
from itertools import permutations

import oracle
import pytest
from timed_histories import LEVELS, ORDERS, contents, interval_orders, judged, timed_runs

from plume_py.base.errors import IsocheckError
from plume_py.base.logic import Formula
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import WEAKER
from plume_py.levels.table import LEVELS as TABLE
from plume_py.reasoning.synth import Program, Scope, synthesize
from plume_py.reasoning.synth.comparison import hierarchy, relate
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn, ConcreteView
from plume_py.reasoning.synth.formulas import definition, in_order
from plume_py.reasoning.synth.problem import TRICKS, without, witness_of
from plume_py.reasoning.synth.symbolic_history import IntervalOrder, intervals

EVERY = [(level, order) for level in LEVELS for order in ORDERS]


def named(level, order):
    return in_order(definition(level), order)


def exists(allow, forbid, scope, **how):
    return bool(synthesize([named(*a) for a in allow], [named(*f) for f in forbid], scope, **how).found)


SMALL = (2, 1, True), (2, 2, False), (3, 1, False)


@pytest.mark.parametrize("size", [*SMALL, pytest.param((4, 1, False), marks=pytest.mark.full)], ids=str)
def test_levels_in_orders_agree_with_an_enumeration_of_histories(size):
    """Every level in every order is asked about with some others: found is what some history shows, and only that."""
    txns, keys, rereads = size
    verdicts, _ = judged(txns, keys, rereads)
    scope, rng, answers = Scope(txns, keys, txns + 1, rereads=rereads), random.Random(txns * keys), set()
    questions = [([one], [other]) for one in EVERY for other in rng.sample(EVERY, 4) if one != other]
    questions += [(rng.sample(EVERY, rng.randint(0, 3)), rng.sample(EVERY, rng.randint(1, 3))) for _ in range(60)]
    for allow, forbid in questions:
        if not allow and ("none" not in {order for _, order in forbid}):
            continue  # then nobody reads from the future of his session, which all histories here may do
        expected = any(all(a in v for a in allow) and not any(f in v for f in forbid) for v in verdicts)
        answers.add(expected)
        assert exists(allow, forbid, scope) == expected, (allow, forbid)
    assert answers == {True, False}


def every_concrete(txns, keys):
    """All histories in which nobody reads a key twice, with times, one of each class of isomorphic ones."""
    found = {}
    for reads, writes in contents(txns, keys):
        for way, _, _, times in timed_runs(txns):
            place = {t: (s, at) for s, session in enumerate(way) for at, t in enumerate(session)}
            concrete = ConcreteHistory(
                tuple(ConcreteTxn(place[t][0], reads[t], writes[t], None, place[t][1], times[t]) for t in range(txns))
            )
            found.setdefault(concrete.canonical(), concrete)
    return found


def by_oracle(concrete, level, order):
    rows = concrete.by_session()
    sessions = {}
    for t in rows:
        sessions.setdefault(concrete.txns[t].session, []).append(("committed", concrete.ops(t)))
    times = [concrete.txns[t].span for t in rows]
    return oracle.satisfies(oracle.Facts(list(sessions.values()), 0, True, order, times), level)


@pytest.mark.parametrize(
    ("allow", "forbid"),
    [("SER@none", "SSER"), ("SER", "StrongSI"), ("RA@none", "TCC@realtime-per-key"), ("StrongRA", "SER@none")],
)
@pytest.mark.parametrize("size", [(2, 2), pytest.param((3, 1), marks=pytest.mark.full)], ids=str)
def test_enumeration_finds_every_history(allow, forbid, size):
    """All histories with all that times can say, none of them twice."""
    txns, keys = size
    orders = frozenset(ORDERS)  # any history, whichever orders are in question
    outcome = synthesize([allow], [forbid], Scope(txns, keys, txns + 1, orders=orders), count=10_000)
    forms = [found.concrete.canonical() for found in outcome.found]
    allowed, forbidden = definition(allow), definition(forbid)
    assert len(forms) == len(set(forms))
    assert outcome.complete
    assert set(forms) == {
        form
        for form, concrete in every_concrete(txns, keys).items()
        if by_oracle(concrete, allowed.level, allowed.order)
        and not by_oracle(concrete, forbidden.level, forbidden.order)
    }


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", ["", "@vis"])
def test_definitions_in_orders_agree_with_the_oracle(order, form):
    rng, seen = random.Random(order), set()
    runs, every = list(timed_runs(3)), list(contents(3, 2))
    for _ in range(80):
        (reads, writes), (way, _, _, times) = rng.choice(every), rng.choice(runs)
        place = {t: (s, at) for s, session in enumerate(way) for at, t in enumerate(session)}
        txns = [ConcreteTxn(place[t][0], reads[t], writes[t], None, place[t][1], times[t]) for t in range(3)]
        concrete = ConcreteHistory(tuple(txns))
        for level in RUNNABLE[1:]:  # RC has one form
            expected = by_oracle(concrete, level, order)
            seen.add(expected)
            assert (witness_of(named(level + form, order), concrete) is not None) == expected, concrete.short()
    assert seen == {True, False}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_times_are_interval_orders(size):
    """The solver's are all there are, and the intervals say the same again."""
    expected = set(interval_orders(size))
    found = set()
    with Formula() as formula:
        times = IntervalOrder(formula, size)
        while formula.solve():
            pairs = frozenset(times.solution())
            given = intervals(size, pairs)
            assert {(a, b) for a, b in permutations(range(size), 2) if given[a][1] < given[b][0]} == pairs
            assert all(begin < end for begin, end in given)
            found.add(pairs)
            every = permutations(range(size), 2)
            formula.require(*(-times.before(*p) if p in pairs else times.before(*p) for p in every))
    assert found == expected


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize(
    ("allow", "forbid", "expected"),
    [
        ("SI", "StrongRA", True),
        ("StrongSI", "SER@vis@realtime", True),
        ("TCC@none", "RA", True),
        ("SSER", "StrongSI@vis", False),
        ("StrongTCC@vis", "TCC@realtime-per-key", False),
        ("SER", "SER@none", False),
    ],
)
def test_tricks_change_no_verdict_in_orders(allow, forbid, expected, trick):
    assert bool(synthesize([allow], [forbid], Scope(2, 2, 3), tricks=without(trick)).found) == expected


@pytest.mark.parametrize("level", RUNNABLE[1:])
@pytest.mark.parametrize("order", ORDERS)
def test_both_forms_of_a_level_agree_in_orders(level, order):
    scope = Scope(4, 2, 4)
    assert relate(named(level, order), named(f"{level}@vis", order), scope).word == "equivalent"


@pytest.mark.parametrize("level", ["RC", "RA", "TCC"])
@pytest.mark.parametrize("order", ORDERS)
def test_our_patterns_are_the_axioms_in_orders(level, order):
    assert relate(named(level, order), named(f"{level}@tap", order), Scope(4, 2, 4)).word == "equivalent"


def test_levels_and_orders_are_a_product():
    """A level in an order implies another one exactly if both the level and the order do, as docs/hierarchy.md says."""
    found = hierarchy([named(level, order) for level in RUNNABLE for order in ORDERS], Scope(4, 2, 4))
    above = {number: {number} for number in range(len(found.classes))}
    for step in sorted(found.steps, key=lambda step: step.above):
        above[step.above] |= above[step.below]
    assert all(len(names) == 1 for names in found.classes)
    levels = [definition(names[0]) for names in found.classes]
    for a, one in enumerate(levels):
        for b, other in enumerate(levels):
            weaker = other.order in (one.order, *WEAKER[one.order])
            implied = weaker and TABLE[one.level].implies(TABLE[other.level])
            assert (b in above[a]) == implied, (one.name, other.name)


def test_histories_have_times_only_if_real_time_matters():
    (found,) = synthesize(["SER@none"], ["SER"], Scope(2, 1, 2), minimal=True).found
    assert found.concrete.short() == "w(x,1) ; r(x,0)"
    with Formula() as formula, pytest.raises(ValueError, match="no real time"):
        definition("SSER").holds(ConcreteView(formula, found.concrete), None)


def test_a_violation_in_two_orders_is_shown_once():
    (found,) = synthesize(["SER@none"], ["SI", "StrongRA"], Scope(2, 1, 2), minimal=True).found
    assert len(found.rechecked.result.violations) == 1


@pytest.mark.parametrize(
    ("spelled", "name", "order"),
    [
        ("SSER", "SSER", "realtime"),
        ("strict-serializable", "SSER", "realtime"),
        ("ser@realtime", "SSER", "realtime"),
        ("strong-snapshot-isolation", "StrongSI", "realtime"),
        ("SI@vis@realtime", "StrongSI@vis", "realtime"),
        ("StrongSI@vis", "StrongSI@vis", "realtime"),
        ("strong-session-SI", "StrongSessionSI", "session"),
        ("SI@session", "SI", "session"),
        ("RA@tap@none", "RA@tap@none", "none"),
        ("UA@realtime", "UA@realtime", "realtime"),
        ("TCC@realtime-per-key", "TCC@realtime-per-key", "realtime-per-key"),
    ],
)
def test_levels_are_found_by_names_with_orders(spelled, name, order):
    found = definition(spelled)
    assert (found.name, found.order) == (name, order)


@pytest.mark.parametrize(
    ("spelled", "message"),
    [("SSER@none", "says its order twice"), ("SER@realtim", "unknown level"), ("@none", "unknown level")],
)
def test_wrong_names_with_orders_are_rejected(spelled, message):
    with pytest.raises(IsocheckError, match=message):
        definition(spelled)


def test_a_level_per_transaction_in_real_time():
    """A counter that is raised and read, both at SER: in real time, nobody misses what was over."""
    x = frozenset({0})
    programs = [Program(x, x, level="SER"), Program(x, frozenset(), level="SER")]
    scope = Scope(2, 1, 2)
    (stale,) = synthesize(["declared"], ["declared@realtime"], scope, fixed=programs).found
    assert stale.concrete.timed
    assert not synthesize(["declared@realtime"], ["SSER"], scope, fixed=programs).found


def test_programs_of_a_session_keep_their_order_without_one():
    programs = [Program(frozenset(), frozenset({0}), session=1), Program(frozenset({0}), frozenset(), session=1)]
    (found,) = synthesize(["SER@none"], ["RA"], Scope(2, 1, 2), fixed=programs).found
    assert found.concrete.short() == "w(x,1) ; r(x,0)"
    swapped = synthesize(["SER@none"], ["RA"], Scope(2, 1, 2), fixed=programs[::-1]).found
    assert swapped[0].concrete.short() == "r(x,1) ; w(x,1)"


@pytest.mark.parametrize("allow", ["CI", "UpdateSer@none"])
@pytest.mark.parametrize("forbid", ["RC@none", "RA@none", "TCC@none"])
def test_positions_in_sessions_agree_with_times_if_no_level_uses_session_order(allow, forbid):
    """Then no gate speaks of session order when the solution is read; times must agree with it all the same."""
    scope = Scope(2, 2, 4, sessions=1, orders=frozenset(ORDERS))
    (found,) = synthesize([allow], [forbid], scope).found
    first, second = found.concrete.by_session()
    assert found.concrete.precedes(first, second)
    assert found.concrete.ended_before(first, second)
