"""Boolean formulas and total orders for a SAT solver: what the reasoning commands are built from."""

from plume_py.base.logic.formula import FALSE, TRUE, FixedOrder, Formula, Literal, Order, TotalOrder

__all__ = ["FALSE", "TRUE", "FixedOrder", "Formula", "Literal", "Order", "TotalOrder"]
