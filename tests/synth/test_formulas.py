"""Tests of formulas.py, definition.py and relation.py against the oracle, which does not use them."""

import random

import oracle
import oracle_mixed
import pytest
from synth_histories import plain, random_concrete, verdicts

from plume_py.base.logic import FALSE, TRUE, Formula
from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn, ConcreteView
from plume_py.reasoning.synth.formulas import DEFINITIONS, checker_level
from plume_py.reasoning.synth.problem import ConcreteWitness, witness_of
from plume_py.reasoning.synth.recheck import _every_witness, _witness_count
from plume_py.reasoning.synth.relation import Relation

KNOWN = [name for name in DEFINITIONS if checker_level(DEFINITIONS[name]) and name != "declared"]


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", KNOWN)
def test_definitions_agree_with_the_oracle(name, count):
    rng = random.Random(count)  # the same histories for each level, so that the oracle is asked once
    level, seen = checker_level(DEFINITIONS[name]), set()
    for _ in range(count):
        concrete = random_concrete(rng)
        expected = verdicts(concrete)[level]
        seen.add(expected)
        assert (witness_of(DEFINITIONS[name], concrete) is not None) == expected, concrete.short()
    assert seen == {True, False}


@pytest.mark.parametrize("name", [name for name, d in DEFINITIONS.items() if d.premise is not None])
def test_saturation_and_solver_agree(name):
    rng = random.Random(name)
    for _ in range(150):
        concrete = random_concrete(rng)
        by_solver = witness_of(DEFINITIONS[name], concrete, polynomial=False)
        assert (witness_of(DEFINITIONS[name], concrete) is None) == (by_solver is None), concrete.short()


def test_declared_levels_agree_with_the_oracle():
    rng, seen = random.Random(5), set()
    for _ in range(400):
        concrete = random_concrete(rng, levels=True)
        facts = oracle.Facts(plain(concrete), 0, True)
        level = dict(zip(facts.live, (concrete.txns[t].level for t in concrete.by_session()), strict=True))
        expected = oracle_mixed.holds(facts, level)
        seen.add(expected)
        assert (witness_of(DEFINITIONS["declared"], concrete) is not None) == expected, concrete.lines()
    assert seen == {True, False}


@pytest.mark.parametrize("name", ["UA", "NLU", "UpdateSer", "UpdateSer@vis", "TapRC", "TapRA", "TapTCC"])
def test_other_levels_agree_with_an_enumeration_of_witnesses(name):
    rng, seen = random.Random(name), set()
    definition = DEFINITIONS[name]
    for _ in range(60):
        concrete = random_concrete(rng, txns=(2, 3))
        with Formula() as formula:
            h = ConcreteView(formula, concrete)
            every = _every_witness(definition, len(concrete.txns))
            expected = any(definition.holds(h, shown.witness(formula)) == TRUE for shown in every)
        seen.add(expected)
        assert (witness_of(definition, concrete) is not None) == expected
    assert seen == {True, False}


def test_the_number_of_witnesses_is_correct():
    for name in ("SER", "UA", "CI"):
        every = list(_every_witness(DEFINITIONS[name], 3))
        assert len(every) == len(set(every)) == _witness_count(DEFINITIONS[name], 3)


LOST_UPDATE = ConcreteHistory((ConcreteTxn(0, ((0, INITIAL),), (0,)), ConcreteTxn(1, ((0, INITIAL),), (0,))))


def test_a_witness_must_be_well_formed():
    """A commit order that contradicts the sessions, or a visibility outside arbitration, shows nothing."""
    chain = ConcreteHistory((ConcreteTxn(0, (), (0,)), ConcreteTxn(0, (), (0,))))
    with Formula() as formula:
        h = ConcreteView(formula, chain)
        assert DEFINITIONS["SER"].holds(h, ConcreteWitness("", (0, 1)).witness(formula)) == TRUE
        assert DEFINITIONS["SER"].holds(h, ConcreteWitness("", (1, 0)).witness(formula)) == FALSE
        assert DEFINITIONS["RA@vis"].holds(h, ConcreteWitness("", (0, 1), frozenset({(0, 1)})).witness(formula)) == TRUE
        assert DEFINITIONS["RA@vis"].holds(h, ConcreteWitness("", (0, 1), frozenset()).witness(formula)) == FALSE
        assert (
            DEFINITIONS["RA@vis"].holds(h, ConcreteWitness("", (1, 0), frozenset({(0, 1)})).witness(formula)) == FALSE
        )


def test_lost_update_by_hand():
    holds = {name: witness_of(definition, LOST_UPDATE) is not None for name, definition in DEFINITIONS.items()}
    assert {"PSI", "PSI@vis", "UA", "NLU", "SI", "SI@vis", "SER", "SER@vis", "UpdateSer"} == {
        name for name, held in holds.items() if not held and name not in ("declared", "UpdateSer@vis")
    }


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_relations_are_sets_of_pairs(size):
    rng = random.Random(size)
    with Formula() as formula:
        for _ in range(30):
            a, b = ({(i, j) for i in range(size) for j in range(size) if rng.random() < 0.3} for _ in range(2))
            ra, rb = (Relation.where(formula, size, lambda i, j, s=s: TRUE if (i, j) in s else FALSE) for s in (a, b))
            joined = {(i, k) for i, j in a for j2, k in b if j == j2}
            closed = set(a)
            while not (more := {(i, k) for i, j in closed for j2, k in closed if j == j2}) <= closed:
                closed |= more
            for found, expected in (
                (ra | rb, a | b), (ra & rb, a & b), (ra - rb, a - b), (ra.then(rb), joined), (ra.closure(), closed),
                (ra.inverse(), {(j, i) for i, j in a}),
            ):  # fmt: skip
                assert {(i, j) for i in range(size) for j in range(size) if found[i, j] == TRUE} == expected
            cyclic = any(i == j for i, j in closed)
            assert ra.inside(rb) == (TRUE if a <= b else FALSE)
            assert ra.closure().irreflexive() == (FALSE if cyclic else TRUE)
            assert (ra.sequence() is None) == cyclic
            assert formula.solve([ra.cyclic()]) == cyclic
            forward = {(i, j) for i, j in a if i < j}
            up = Relation.where(formula, size, lambda i, j, s=forward: TRUE if (i, j) in s else FALSE)
            assert up.closure().inside(ra.closure()) == TRUE
            assert up.closure().then(up.closure()).inside(up.closure()) == TRUE
