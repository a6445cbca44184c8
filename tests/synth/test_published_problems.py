"""The 46 published problems of Isolde, and larger scopes of the tests in test_synthesis.py."""

import pytest
from synth_histories import every_history, verdicts

from benchmarks.synth_problems import TASKS
from plume_py.reasoning.synth import Scope, synthesize
from plume_py.reasoning.synth.problem import without

LARGE = [(3, True), (4, False), (5, True), (5, False), (7, True), (7, False)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize(
    ("txns", "blind"),
    [(4, True), (3, False), *(pytest.param(*scope, marks=pytest.mark.full) for scope in LARGE)],
)
def test_published_verdicts(task, txns, blind):
    """Found histories are judged again by check and verify on the way."""
    outcome = synthesize(task.allow, [task.forbid], Scope(txns, 5, 5, blind_writes=blind))
    assert bool(outcome.found) == task.expected(txns)


@pytest.mark.full
@pytest.mark.parametrize("level", ["RA", "TCC", "PC", "SI", "SER", "PSI"])
def test_both_forms_agree_on_ten_transactions(level):
    assert not synthesize([level], [f"{level}@vis"], Scope(10, 5, 5)).found
    assert not synthesize([f"{level}@vis"], [level], Scope(10, 5, 5)).found


@pytest.mark.full
@pytest.mark.parametrize("level", ["CI", "RC", "RA", "TCC"])
def test_our_patterns_are_the_axioms_on_seven_transactions(level):
    scope = Scope(7, 5, 5)
    assert not synthesize([f"{level}@tap"], [level], scope, up_to=True).found
    assert not synthesize([level], [f"{level}@tap"], scope, up_to=True).found
    plainly = without("direct", "polynomial")  # by commit orders alone
    assert not synthesize([f"{level}@tap"], [level], Scope(6, 3, 4), up_to=True, tricks=plainly).found


@pytest.mark.full
@pytest.mark.parametrize(("allow", "forbid"), [("PSI", "SER@vis"), ("RA@vis", "SI"), ("TCC", "PSI@vis")])
def test_enumeration_finds_every_history_of_three_transactions(allow, forbid):
    expected = {
        form
        for form, concrete in every_history(3, 2, 2).items()
        if verdicts(concrete)[allow.partition("@")[0]] and not verdicts(concrete)[forbid.partition("@")[0]]
    }
    outcome = synthesize([allow], [forbid], Scope(3, 2, 2), count=100_000)
    assert {found.concrete.canonical() for found in outcome.found} == expected
    assert len(outcome.found) == len(expected)
    assert outcome.complete
