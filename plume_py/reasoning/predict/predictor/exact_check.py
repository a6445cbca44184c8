"""Does a run break the target? Exactly, by proposing and refuting.

A run that keeps the level is proposed. If some commit order shows that it keeps the target, that order serves as a
lemma: no run for which this order is good need be looked at again. When no run is left, there is no prediction.
"""

from collections.abc import Sequence

from plume_py.base.limits import Limits
from plume_py.base.logic import FixedOrder, Formula, Literal, TotalOrder
from plume_py.base.logic.sat import RefutationSearch
from plume_py.reasoning.predict.predictor.axioms import contradictions
from plume_py.reasoning.predict.predictor.observed_run import Observed, Read
from plume_py.reasoning.predict.predictor.run_encoding import Runs


class OrderFinder:
    """Finds commit orders that show the target, for one proposed run after another.

    It has a formula of its own, in which who reads from whom and who takes part are assumptions.
    """

    def __init__(self, observed: Observed, target: str, formula: Formula) -> None:
        self.observed, self.formula = observed, formula
        self._selects = {(r.number, w): self.formula.variable() for r in observed.reads for w in r.writers}
        self._writes = {(node, x): self.formula.variable() for node, kept in enumerate(observed.writes) for x in kept}
        self._takes_part = [self.formula.variable() for _ in observed.txns]
        self.order = TotalOrder(self.formula, observed.size)
        for parts in contradictions(self, [target] * observed.size, self.order):
            self.formula.require(*(-part for part in parts))

    def selects(self, read: Read, writer: int) -> Literal:
        """An assumption."""
        return self._selects[read.number, writer]

    def writes(self, node: int, key: int) -> Literal:
        """An assumption."""
        return self._writes[node, key]

    def takes_part(self, node: int) -> Literal:
        """An assumption."""
        return self._takes_part[node]

    def orders_for(self, runs: Runs) -> list[list[int]]:
        """A commit order that shows the target for the run in the last solution of ``runs``, if there is one."""
        value = runs.formula.value
        given = [
            self.selects(read, writer) if value(runs.selects(read, writer)) else -self.selects(read, writer)
            for read, writer, _ in runs.choices()
        ]
        given += [v if value(runs.writes(*where)) else -v for where, v in self._writes.items()]
        given += [v if value(runs.takes_part(node)) else -v for node, v in enumerate(self._takes_part)]
        return [self.order.solution()] if self.formula.solve(given) else []


class RunRefuter:
    """Proposes runs, and learns from the orders that refute them."""

    def __init__(self, runs: Runs, target: str, limits: Limits) -> None:
        self.runs, self.target, self._limits = runs, target, limits
        self._formula = Formula(limits)
        try:
            self._judge = OrderFinder(runs.observed, target, self._formula)
        except BaseException:
            self.close()
            raise

    def find(self, assumptions: Sequence[Literal]) -> bool:
        """Is there a run that keeps the level and breaks the target? It is then the last solution of the formula."""
        solve = self.runs.formula.solve
        search = RefutationSearch(
            lambda: self.runs if solve(assumptions) else None, self._judge.orders_for, self._learn
        )
        return search.run(self._limits) is not None

    def _learn(self, orders: Sequence[list[int]]) -> None:
        """None of these orders must show the target for any run to come."""
        levels = [self.target] * self.runs.observed.size
        formula = self.runs.formula
        for order in orders:
            broken = contradictions(self.runs, levels, FixedOrder(order))
            formula.require(*(formula.all_of(parts) for parts in broken))

    def close(self) -> None:
        """Free the judge."""
        self._formula.close()
