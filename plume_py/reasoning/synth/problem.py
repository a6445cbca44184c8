"""The search for one history: allowed by some levels, forbidden by others, with exactly the transactions of the scope.

"Some witness satisfies each allowed level" is a formula. "No witness satisfies a forbidden level" is not, so the search
proposes and refutes (CEGIS): the solver finds a history that is allowed; if a witness satisfies a forbidden level in
it, the lesson "this witness does not satisfy the level" is added for all histories; then the solver continues. Most of
the speed comes from requirements that are added before the first candidate, see ``Tricks``.

The algorithm is Isolde's (section 4.2), on a SAT solver instead of Kodkod. The tricks "fixed" and "smart" are Isolde's
(sections 4.3.2 and 4.3.3); the others are ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, FixedOrder, Formula, Literal
from plume_py.base.logic.sat import RefutationSearch
from plume_py.levels import WEAKEST
from plume_py.levels.orders import NONE
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteView
from plume_py.reasoning.synth.definition import (
    ConcreteWitness,
    Definition,
    Structure,
    Witness,
    WitnessPart,
    WitnessVariables,
    forced,
)
from plume_py.reasoning.synth.formulas import VISIBILITY, declared_visibility
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.scope import Program, Scope
from plume_py.reasoning.synth.symbolic_history import SymbolicHistory

# A requirement on all histories, learned from a refuted candidate.
Lesson = Callable[[SymbolicHistory], Literal]
# The number of orders inside the formulas of allowed levels that are tried as witnesses of forbidden levels. Each one
# enlarges the formula.
MOST_INNER = 3


@dataclass(frozen=True)
class Tricks:
    """Optimizations of the search. Each one can be turned off, which changes only the running time."""

    fixed: bool = True  # the commit order of one allowed level is the numbering of the transactions
    smart: bool = True  # the witness of an allowed level must not satisfy a forbidden level of the same form
    cross: bool = True  # translated to the other form, it must not satisfy a forbidden level of that form
    direct: bool = True  # a forbidden weak level must be violated by a cycle of forced edges
    polynomial: bool = True  # a candidate is checked against a weak level without a solver
    symmetry: bool = True  # keys and sessions are numbered in one way only
    incremental: bool = True  # one solver serves all candidates
    learning: bool = True  # a refuted candidate excludes all histories that its witness refutes


TRICKS = tuple(Tricks.__dataclass_fields__)


def without(*names: str) -> Tricks:
    return replace(Tricks(), **dict.fromkeys(names, False))


class Problem:
    """Search for histories within a scope that ``allow`` allow and ``forbid`` forbid."""

    def __init__(
        self,
        allow: Sequence[Definition],
        forbid: Sequence[Definition],
        scope: Scope,
        programs: Sequence[Program] | None = None,
        tricks: Tricks | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.allow, self.forbid, self.scope, self.programs = allow, forbid, scope, programs
        self.tricks, self.limits = tricks or Tricks(), limits or Limits()
        self.orders = scope.orders or orders_of_levels((*allow, *forbid))
        self.uses_read_order = self._uses_read_order()
        self.rereads = self._rereads() if scope.rereads is None else scope.rereads
        if any(level.forbids_two_sources for level in allow):  # such histories are not allowed anyway
            self.rereads = False
        self.candidates = 0
        self._lessons: list[Lesson] = []
        self._refuted: set[ConcreteHistory] = set()
        self._build()
        self.initial_clauses = self.formula.clauses  # before the first candidate

    def _uses_read_order(self) -> bool:
        """Return whether the order of reads, or reading a key twice, matters to some level and is left open."""
        programs = self.programs or ()
        some_at_weakest = not programs or any(program.level in (None, WEAKEST) for program in programs)
        return any(
            level.uses_read_order or (level.level == "declared" and some_at_weakest)
            for level in (*self.allow, *self.forbid)
        )

    def _rereads(self) -> bool:
        """Return whether to allow reads of a key from several writers; programs list keys, so they exclude it."""
        return self.uses_read_order and all(program.reads is None for program in self.programs or ())

    def _build(self) -> None:
        """Create the formula with all lessons learned so far."""
        self.formula = formula = Formula(self.limits)
        self.history = SymbolicHistory(
            formula,
            self.scope,
            self.programs,
            rereads=self.rereads,
            symmetry=self.tricks.symmetry,
            orders=self.orders,
        )
        self._witnesses: list[WitnessVariables] = []
        for definition in self.allow:
            if definition.form == "history":
                formula.require(definition.holds(self.history, Witness(None)))
                continue
            fixed = self.tricks.fixed and definition.form != "own" and not any(w.fixed for w in self._witnesses)
            variables = WitnessVariables(definition, self.history, fixed)
            self._witnesses.append(variables)
            formula.require(definition.holds(self.history, variables.witness))
        self._reusable = self._reusable_witnesses()
        for definition in self.forbid:
            self._forbid(definition)
        for lesson in self._lessons:
            formula.require(lesson(self.history))

    def _reusable_witnesses(self) -> list[Witness]:
        """Return witnesses that exist in the formula and that must not satisfy a forbidden level.

        They are the witnesses of the allowed levels, the orders that these declare, and the orders by which their
        graphs are acyclic. If none of them is a commit order, the numbering is added: it is a commit order of every
        history in which sessions follow the numbering.
        """
        size, formula = self.scope.txns, self.formula
        orders = [order for _, order in formula.orders.values() if order.size == size][:MOST_INNER]
        found = [variables.witness for variables in self._witnesses]
        for variables in self._witnesses:
            parts = variables.witness.declared.values()
            found += [Witness(part.relations[0]) for part in parts if part.kind == "order"]
        found += [Witness(Relation.of_order(formula, size, order)) for order in orders]
        if any(witness.order is not None for witness in found):
            return found
        return [*found, Witness(Relation.of_order(formula, size, FixedOrder(range(size))))]

    # -- requirements before the first candidate --------------------------------------------------------------------

    def _forbid(self, definition: Definition) -> None:
        require, h = self.formula.require, self.history
        if definition.form == "history":
            require(-definition.holds(h, Witness(None)))
            return
        if definition.premise is not None and self.tricks.direct:
            require(violated(h, definition))
        for witness in self._reusable:
            for translated in self._translated(definition, witness):
                require(-definition.holds(h, translated))

    def _translated(self, definition: Definition, witness: Witness) -> list[Witness]:
        """Return the witnesses of the form of ``definition`` that can be derived from another witness."""
        if definition.form == "own":
            return self._translated_to_declared(definition, witness)
        if witness.order is None:
            return []
        same = witness.visibility is not None if definition.form == "vis" else witness.visibility is None
        found = [witness] if same and self.tricks.smart else []
        if not self.tricks.cross:
            return found
        if definition.form == "co":
            return found if same else [Witness(witness.co)]
        return found + [Witness(witness.co, visible) for visible in visibilities(self.history, definition, witness.co)]

    def _translated_to_declared(self, definition: Definition, witness: Witness) -> list[Witness]:
        """Return witnesses with declared parts, derived from the same declaration or from a commit order."""
        structure = definition.structure
        if witness.order is None:
            declared = tuple((name, part.kind) for name, part in witness.declared.items())
            return [witness] if self.tricks.smart and declared == structure else []
        if not self.tricks.cross:
            return []
        pairs = [witness.co]
        if any(kind == "relation" for _, kind in structure):
            views = [self.history.in_order(order) for order in dict.fromkeys((NONE, definition.order))]
            pairs = [visible(h, witness.co) for h in views for visible in VISIBILITY.values()]
        keys = len(self.history.keys)
        return [Witness(None, declared=_parts_from_order(structure, keys, witness.co, visible)) for visible in pairs]

    # -- the search ----------------------------------------------------------------------------------------------

    def next(self, assumptions: Sequence[Literal] = ()) -> "tuple[ConcreteHistory, list[ConcreteWitness]] | None":
        """Return a history with the witnesses of the allowed levels, or None after the last one."""

        def propose() -> ConcreteHistory | None:
            return self.history.solution() if self.formula.solve(assumptions, self.limits) else None

        search = RefutationSearch[ConcreteHistory, Lesson](propose, self._refute, self._learn, self.candidates)
        try:
            found = search.run(self.limits)
        finally:
            self.candidates = search.proposals
        return None if found is None else (found, [variables.solution() for variables in self._witnesses])

    def _refute(self, candidate: ConcreteHistory) -> list[Lesson]:
        lessons = []
        for definition in self.forbid:
            witness = witness_of(definition, candidate, self.tricks.polynomial, self.limits)
            if witness is not None:
                lessons += self._lessons_of(definition, witness, candidate)
                if candidate in self._refuted:  # its lesson did not exclude it, so the search would never end
                    raise IsocheckError(f"level {definition.name} says now this, now that of {candidate.short()}")
        if lessons:
            self._refuted.add(candidate)
        return lessons

    def _lessons_of(self, definition: Definition, witness: ConcreteWitness, candidate: ConcreteHistory) -> list[Lesson]:
        """Return the lessons: the witness does not satisfy the level (for example, because it is not well-formed)."""
        if not self.tricks.learning:
            return [_not_this(candidate, with_read_order=self.uses_read_order)]
        witness = witness.for_keys(len(self.history.keys))
        lessons: list[Lesson] = [lambda h: -definition.holds(h, witness.witness(h.formula))]
        if definition.form == "vis" and self.tricks.cross:

            def translated(h: SymbolicHistory) -> Literal:
                co = witness.witness(h.formula).co
                return -h.any(definition.holds(h, Witness(co, visible)) for visible in visibilities(h, definition, co))

            lessons.append(translated)
        return lessons

    def _learn(self, lessons: Sequence[Lesson]) -> None:
        self._lessons += lessons
        if not self.tricks.incremental:
            self.formula.close()
            self._build()
            return
        for lesson in lessons:
            self.formula.require(lesson(self.history))

    def exclude(self, concrete: ConcreteHistory) -> None:
        """Exclude this history and all that differ from it only in the numbers of transactions and keys."""
        renumbered = map(concrete.renumbered, concrete.forward_orders())
        for image in {image.txns: self._with_ordered_keys(image) for image in renumbered}.values():
            lesson = _not_this(image)
            self._lessons.append(lesson)
            self.formula.require(lesson(self.history))

    def _with_ordered_keys(self, concrete: ConcreteHistory) -> ConcreteHistory:
        """Return the history with its keys in the only order that the formula allows."""
        if not self.tricks.symmetry or self.programs is not None:
            return concrete
        columns = {
            x: tuple(
                used
                for t, txn in enumerate(concrete.txns)
                for used in (x in txn.writes, *((x, u) in txn.reads for u in range(-1, t)))
            )
            for x in self.history.keys
        }
        return concrete.with_keys(
            {x: at for at, x in enumerate(sorted(columns, key=columns.__getitem__, reverse=True))}
        )

    def close(self) -> None:
        self.formula.close()


def _not_this(concrete: ConcreteHistory, with_read_order: bool = False) -> Lesson:
    return lambda h: -h.all((*h.equals(concrete), *(h.equal_read_orders(concrete) if with_read_order else ())))


def _parts_from_order(structure: Structure, keys: int, co: Relation, pairs: Relation) -> dict[str, WitnessPart]:
    """Return declared parts in which every order is ``co`` and every relation is ``pairs``."""
    relations = {"order": (co,), "versions": (co,) * keys, "relation": (pairs,)}
    return {name: WitnessPart(kind, relations[kind]) for name, kind in structure}


def orders_of_levels(levels: Sequence[Definition]) -> frozenset[str]:
    """Return the orders between transactions that matter. A level that declares its witness may ignore sessions."""
    found = frozenset(level.order for level in levels)
    return found | {NONE} if any(level.form == "own" for level in levels) else found


def visibilities(h: View, definition: Definition, co: Relation) -> list[Relation]:
    """Return candidate visibility relations: the least one of the level, or of each level if it is user-defined."""
    h = h.in_order(definition.order)
    if definition.level == "declared":
        ascending = all(co[a, b] == TRUE for b in h.txns for a in range(b))
        return [declared_visibility(h, co)] if ascending else []
    name = definition.level.removesuffix("@vis")
    return [VISIBILITY[name](h, co)] if name in VISIBILITY else [visible(h, co) for visible in VISIBILITY.values()]


def violated(h: View, definition: Definition) -> Literal:
    """Return a literal to require: a weak level is violated.

    The edges that its axiom forces, with session order and reads-from, have a cycle, or one of them is impossible.
    """
    required, impossible, side = _weak_level_terms(h.in_order(definition.order), definition)
    return h.in_order(definition.order).any((-side, impossible, required.cyclic()))


def _weak_level_terms(h: View, definition: Definition) -> tuple[Relation, Literal, Literal]:
    """Return the order that a weak level requires, whether it is impossible, and the side condition."""
    assert definition.premise is not None
    edges, impossible = forced(h, definition.premise(h))
    side = TRUE if definition.side is None else definition.side(h)
    return h.base | edges, impossible, side


def witness_of(
    definition: Definition, concrete: ConcreteHistory, polynomial: bool = True, limits: Limits | None = None
) -> ConcreteWitness | None:
    """Return a witness that satisfies the level in a given history, or None if there is none.

    With ``polynomial``, weak levels are decided by their forced edges instead of a solver.
    """
    with Formula() as formula:
        h = ConcreteView(formula, concrete).in_order(definition.order)
        size = len(concrete.txns)
        if definition.form == "history":
            holds = definition.holds(h, Witness(None))
            return ConcreteWitness(definition.name, tuple(range(size))) if holds == TRUE else None
        if polynomial and definition.premise is not None:
            required, impossible, side = _weak_level_terms(h, definition)
            order = required.sequence()
            violates = impossible == TRUE or side == FALSE or order is None
            return None if violates or order is None else ConcreteWitness(definition.name, tuple(order))
        variables = WitnessVariables(definition, h)
        formula.require(definition.holds(h, variables.witness))
        return variables.solution() if formula.solve(limits=limits) else None
