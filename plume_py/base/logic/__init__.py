"""Boolean formulas and total orders on top of an incremental SAT solver, for the reasoning commands."""

from plume_py.base.logic.formula import FALSE, TRUE, FixedOrder, Formula, Literal, Order, TotalOrder

__all__ = ["FALSE", "TRUE", "FixedOrder", "Formula", "Literal", "Order", "TotalOrder"]
