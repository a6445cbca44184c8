"""States side by side, and the values that a model of the solver gives them."""

from typing import Any

import z3

from plume_py.reasoning.infer.bounded.symbolic import Frame, Slot, State
from plume_py.reasoning.infer.bounded.terms import Term, Texts, and_, equal, ite, not_, or_
from plume_py.reasoning.infer.program import ir


def state_either(test: Term, then: State, other: State) -> State:
    """One state or the other."""
    return tuple(
        tuple(either(test, a, b) for a, b in zip(slots, others, strict=True))
        for slots, others in zip(then, other, strict=True)
    )


def same_state(left: State, right: State) -> Term:
    """The same rows, slot by slot: an INSERT has the same slot in any order."""
    parts = []
    for slots, others in zip(left, right, strict=True):
        for a, b in zip(slots, others, strict=True):
            columns = and_(*(equal(x, y) for x, y in zip(a.columns, b.columns, strict=True)))
            parts += [equal(a.present, b.present), or_(not_(a.present), columns)]
    return and_(*parts)


def either(test: Term, then: Slot, other: Slot) -> Slot:
    """One slot or the other."""
    if then is other:
        return then
    columns = tuple(ite(test, a, b) for a, b in zip(then.columns, other.columns, strict=True))
    return Slot(ite(test, then.present, other.present), columns)


class ModelValues:
    """Values of terms in a model."""

    def __init__(self, model: z3.ModelRef, texts: Texts) -> None:
        self.model, self.texts = model, texts

    def of(self, term: Term, sort: str) -> Any:
        """The value of a term."""
        if z3.is_expr(term):
            found = self.model.eval(term, model_completion=True)
            term = z3.is_true(found) if z3.is_bool(found) else found.as_long()
        return self.texts.text(term) if sort == "text" and not isinstance(term, str) else term

    def arguments(self, txn: ir.TransactionProgram, frame: Frame) -> dict[str, Any]:
        """The arguments of a call."""
        found: dict[str, Any] = {}
        for param in txn.params:
            if param.fields:
                members = [bound for there, bound in frame[param.name].members if self.of(there, "bool")]
                found[param.name] = tuple(
                    (n, tuple(self.of(c, s) for c, (_, s) in zip(bound.columns, param.fields, strict=True)))
                    for n, bound in enumerate(members, 1)
                )
            else:
                found[param.name] = self.of(frame[param.name], param.sort)
        return found
