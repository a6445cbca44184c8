"""A strong violation explained from nothing but the fact that there is one."""

from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.counterexample import explain
from plume_py.checking.strong.solver.engine import Decision
from plume_py.checking.strong.solver.unsat_core import Core


def explained(history, level):
    """The violation, found from nothing but the fact that there is one."""
    analysis = Analysis(history)
    participates = tuple(t for t in range(history.transactions) if analysis.reads.participates[t])
    (found,) = explain(analysis, Decision(False, cores=(Core(participates),)), level)
    return found.violation
