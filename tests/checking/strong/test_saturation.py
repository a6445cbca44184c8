"""solver/saturation: rounds that derive only changes infer as much as rounds that derive everything."""

import random

import numpy as np
import oracle
import pytest
from small_histories import build

from plume_py.base.limits import Limits
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver import saturation
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import Inference
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.generate import generate

LEVELS = ("PC", "PSI", "SI", "SER")


def in_both_ways(monkeypatch, analysis, level):
    """What is inferred: with the clocks of the round before at hand, and without."""
    found = []
    for width in (2, 1):  # there is room for so many clocks of all sessions
        layout = SolverColumns(analysis, level)
        rows = layout.nodes + (layout.transactions if layout.by_session else 0)
        monkeypatch.setattr(saturation, "CLOCK_BYTES", 4 * width * rows * analysis.history.sessions)
        found.append(Inference(layout, Limits()))
        found[-1].run()
        assert found[-1].whole
    return found


def compare(monkeypatch, history, level):
    analysis = Analysis(history)
    if not WeakLevels(analysis).holds("TCC"):
        return False
    new, everything = in_both_ways(monkeypatch, analysis, level)
    assert new.known.contradiction == everything.known.contradiction
    if not new.known.contradiction:
        assert np.array_equal(new.clock, everything.clock)
        assert new.open_pairs() == everything.open_pairs()
    return not new.known.contradiction and len(new.known.rounds) > 2


def test_small_histories(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    rng = random.Random(11)
    for _ in range(150):
        history = build(oracle.random_history(rng, txns=(4, 9), wild=0.02))
        for level in LEVELS:
            compare(monkeypatch, history, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("distribution", ["uniform", "zipfian"])
def test_histories_that_take_several_rounds(monkeypatch, level, distribution):
    several = 0
    for seed in range(3):
        shape = {"sessions": 8, "transactions": 30, "operations": 6, "keys": 60}
        history = generate("SER", distribution=distribution, seed=seed, **shape)
        several += compare(monkeypatch, history, level)
    assert several
