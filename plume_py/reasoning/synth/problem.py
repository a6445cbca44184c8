"""One synthesis problem as a formula: a history, a witness for each allowed level, and none for a forbidden one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, TRUE, FixedOrder, Formula, Literal, TotalOrder
from plume_py.base.logic.sat import RefutationSearch
from plume_py.levels import WEAKEST
from plume_py.levels.orders import NONE
from plume_py.reasoning.synth.concrete_history import Concrete, ConcreteView
from plume_py.reasoning.synth.definition import Definition, Witness, forced
from plume_py.reasoning.synth.formulas import VISIBILITY, declared_visibility
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.scope import Program, Scope
from plume_py.reasoning.synth.structures import Value, Variables, constants, from_order, orders
from plume_py.reasoning.synth.symbolic_history import Unknown

# What a refuted candidate teaches: a requirement on every history.
Lesson = Callable[[Unknown], Literal]
# Orders inside formulas of allowed levels that are tried as witnesses of forbidden ones; each makes the formula larger.
MOST_INNER = 3


@dataclass(frozen=True)
class Tricks:
    """What makes the search fast; each can be turned off, which changes nothing but the time."""

    fixed: bool = True  # one commit order is the numbering of the transactions
    smart: bool = True  # the witness of an allowed level must fail to show a forbidden one of the same form
    cross: bool = True  # and, translated, a forbidden one of the other form
    direct: bool = True  # a forbidden weak level is required to be broken by a cycle of forced edges
    polynomial: bool = True  # a candidate is checked against a weak level without a solver
    symmetry: bool = True  # keys and sessions are interchangeable
    incremental: bool = True  # the solver is kept from candidate to candidate
    learning: bool = True  # a refuted candidate rules out more than itself


TRICKS = tuple(Tricks.__dataclass_fields__)


def without(*names: str) -> Tricks:
    """All tricks but these."""
    return replace(Tricks(), **dict.fromkeys(names, False))


@dataclass(frozen=True)
class ConcreteWitness:
    """How a level shows itself in a history: transactions in commit order, and for visibility the pairs."""

    level: str
    order: tuple[int, ...]  # the numbering, if the level declares what its witness consists of
    sees: frozenset[tuple[int, int]] | None = None
    declared: tuple[tuple[str, str, Value], ...] = ()  # name, kind and value of each part of such a witness

    def for_keys(self, keys: int) -> "ConcreteWitness":
        """The same for a history with more keys: their versions in any order."""
        declared = []
        for name, kind, value in self.declared:
            known = tuple(map(tuple, orders(value, kind))) if kind == "versions" else ()
            more = (self.order,) * (keys - len(known))
            declared.append((name, kind, known + more if kind == "versions" else value))
        return replace(self, declared=tuple(declared))

    def witness(self, formula: Formula) -> Witness:
        """As constants."""
        size = len(self.order)
        if self.declared:
            return Witness(None, declared=constants(formula, size, self.declared))
        co = Relation.of_order(formula, size, FixedOrder(self.order))
        if self.sees is None:
            return Witness(co)
        sees = self.sees
        return Witness(co, Relation.where(formula, size, lambda a, b: TRUE if (a, b) in sees else FALSE))


class Block:
    """Variables for the witness of a level."""

    def __init__(self, definition: Definition, h: View, fixed: bool = False) -> None:
        formula, size = h.formula, len(h.txns)
        self.definition, self.formula, self.fixed, self.size = definition, formula, fixed, size
        self.variables: Variables | None = None
        if definition.form == "own":
            self.variables = Variables(formula, size, len(h.keys), definition.structure)
            self.witness = Witness(None, declared=self.variables.declared)
            return
        self.order: FixedOrder | TotalOrder = FixedOrder(range(size)) if fixed else TotalOrder(formula, size)
        co = Relation.of_order(formula, size, self.order, "AR" if definition.form == "vis" else "CM")
        self.witness = Witness(co)
        if definition.form == "vis":
            seen = [[FALSE if co[a, b] == FALSE else formula.variable() for b in range(size)] for a in range(size)]
            self.witness = Witness(co, Relation(formula, seen, "VIS"))

    def solution(self) -> ConcreteWitness:
        """The witness in the last solution."""
        if self.variables is not None:
            everyone = tuple(range(self.size))
            return ConcreteWitness(self.definition.name, everyone, declared=self.variables.solution())
        order = self.order.sequence if isinstance(self.order, FixedOrder) else self.order.solution()
        sees = None
        if self.definition.form == "vis":
            pairs = ((a, b) for a in order for b in order)
            sees = frozenset((a, b) for a, b in pairs if self.formula.value(self.witness.vis[a, b]))
        return ConcreteWitness(self.definition.name, tuple(order), sees)


class Problem:
    """Histories within a scope that ``allow`` allow and ``forbid`` forbid."""

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
        self.orders = scope.orders or orders_in_question((*allow, *forbid))
        self.ordered = self._ordered()
        self.rereads = self._rereads() if scope.rereads is None else scope.rereads
        if any(level.one_source for level in allow):  # a history with one is not allowed anyway
            self.rereads = False
        self.candidates = 0
        self._lessons: list[Lesson] = []
        self._refuted: set[Concrete] = set()
        self._build()
        self.initial_clauses = self.formula.clauses  # before any candidate

    def _ordered(self) -> bool:
        """Can some level in question tell one read of a key from two, or one order of reads from another?"""
        programs = self.programs or ()
        committed = not programs or any(program.level in (None, WEAKEST) for program in programs)
        return any(level.ordered or (level.level == "declared" and committed) for level in (*self.allow, *self.forbid))

    def _rereads(self) -> bool:
        """May a key be read twice? Not if programs say what is read: that is a set of keys."""
        return self.ordered and all(program.reads is None for program in self.programs or ())

    def _build(self) -> None:
        """The formula, from nothing."""
        self.formula = formula = Formula(self.limits)
        self.history = Unknown(
            formula,
            self.scope,
            self.programs,
            rereads=self.rereads,
            symmetry=self.tricks.symmetry,
            orders=self.orders,
        )
        self.blocks: list[Block] = []
        for definition in self.allow:
            if definition.form == "history":
                formula.require(definition.holds(self.history, Witness(None)))
                continue
            fixed = self.tricks.fixed and definition.form != "own" and not any(block.fixed for block in self.blocks)
            block = Block(definition, self.history, fixed)
            self.blocks.append(block)
            formula.require(definition.holds(self.history, block.witness))
        self._known = self._known_witnesses()
        for definition in self.forbid:
            self._forbid(definition)
        for lesson in self._lessons:
            formula.require(lesson(self.history))

    def _known_witnesses(self) -> list[Witness]:
        """Those of the allowed levels, the orders that they declare and those by which their graphs have no cycle.

        If there are none: the numbering, a commit order of every history in which sessions go forward.
        """
        size, formula = self.scope.txns, self.formula
        orders = [order for _, order in formula.orders.values() if order.size == size][:MOST_INNER]
        known = [block.witness for block in self.blocks]
        for block in self.blocks:
            known += [Witness(part.parts[0]) for part in block.witness.declared.values() if part.kind == "order"]
        known += [Witness(Relation.of_order(formula, size, order)) for order in orders]
        if any(witness.order is not None for witness in known):
            return known
        return [*known, Witness(Relation.of_order(formula, size, FixedOrder(range(size))))]

    # -- what can be required of a history beforehand ---------------------------------------------------------------

    def _forbid(self, definition: Definition) -> None:
        require, h = self.formula.require, self.history
        if definition.form == "history":
            require(-definition.holds(h, Witness(None)))
            return
        if definition.premise is not None and self.tricks.direct:
            require(broken(h, definition))
        for witness in self._known:
            for translated in self._translated(definition, witness):
                require(-definition.holds(h, translated))

    def _translated(self, definition: Definition, witness: Witness) -> list[Witness]:
        """Witnesses of the form of ``definition`` that can be read off another one; it must not be shown by any."""
        if definition.form == "own":
            return self._declared_by(definition, witness)
        if witness.order is None:
            return []
        same = witness.visibility is not None if definition.form == "vis" else witness.visibility is None
        found = [witness] if same and self.tricks.smart else []
        if not self.tricks.cross:
            return found
        if definition.form == "co":
            return found if same else [Witness(witness.co)]
        return found + [Witness(witness.co, visible) for visible in visibilities(self.history, definition, witness.co)]

    def _declared_by(self, definition: Definition, witness: Witness) -> list[Witness]:
        """The same of a level that declares its witness: read off one that declares the same, or a commit order."""
        if witness.order is None:
            mine = tuple((name, part.kind) for name, part in witness.declared.items())
            return [witness] if self.tricks.smart and mine == definition.structure else []
        if not self.tricks.cross:
            return []
        pairs = [witness.co]
        if any(kind == "relation" for _, kind in definition.structure):
            views = [self.history.in_order(order) for order in dict.fromkeys((NONE, definition.order))]
            pairs = [visible(h, witness.co) for h in views for visible in VISIBILITY.values()]
        keys, structure = len(self.history.keys), definition.structure
        return [Witness(None, declared=from_order(structure, keys, witness.co, seen)) for seen in pairs]

    # -- the search ----------------------------------------------------------------------------------------------

    def next(self, assumptions: Sequence[Literal] = ()) -> "tuple[Concrete, list[ConcreteWitness]] | None":
        """A history, with the witnesses of the allowed levels; None if there is none, or no more."""

        def propose() -> Concrete | None:
            return self.history.solution() if self.formula.solve(assumptions, self.limits) else None

        search = RefutationSearch[Concrete, Lesson](propose, self._refute, self._learn, self.candidates)
        try:
            found = search.run(self.limits)
        finally:
            self.candidates = search.proposals
        return None if found is None else (found, [block.solution() for block in self.blocks])

    def _refute(self, candidate: Concrete) -> list[Lesson]:
        lessons = []
        for definition in self.forbid:
            shown = witness_of(definition, candidate, self.tricks.polynomial, self.limits)
            if shown is not None:
                lessons += self._lessons_of(definition, shown, candidate)
                if candidate in self._refuted:  # what was learnt from it does not rule it out: this would never end
                    raise IsocheckError(f"level {definition.name} says now this, now that of {candidate.short()}")
        if lessons:
            self._refuted.add(candidate)
        return lessons

    def _lessons_of(self, definition: Definition, witness: ConcreteWitness, candidate: Concrete) -> list[Lesson]:
        """The witness must not show the level; it may do so by not being one, of another history."""
        if not self.tricks.learning:
            return [_not_this(candidate, ordered=self.ordered)]
        witness = witness.for_keys(len(self.history.keys))
        lessons: list[Lesson] = [lambda h: -definition.holds(h, witness.witness(h.formula))]
        if definition.form == "vis" and self.tricks.cross:

            def translated(h: Unknown) -> Literal:
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

    def exclude(self, concrete: Concrete) -> None:
        """No more of this history, nor of those that differ from it in numbers only."""
        images = {image.txns: self._in_order(image) for image in map(concrete.renumbered, concrete.forward_orders())}
        for image in images.values():
            lesson = _not_this(image)
            self._lessons.append(lesson)
            self.formula.require(lesson(self.history))

    def _in_order(self, concrete: Concrete) -> Concrete:
        """The keys in the only order in which the formula admits them."""
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
        place = {x: at for at, x in enumerate(sorted(columns, key=columns.__getitem__, reverse=True))}
        return concrete.with_keys(place)

    def close(self) -> None:
        """Free the solver."""
        self.formula.close()


def _not_this(concrete: Concrete, ordered: bool = False) -> Lesson:
    return lambda h: -h.all((*h.structure(concrete), *(h.order_of_reads(concrete) if ordered else ())))


def broken(h: View, definition: Definition) -> Literal:
    """A weak level is broken: what it forces is cyclic together with session order and reads-from, or impossible."""
    assert definition.premise is not None
    h = h.in_order(definition.order)
    edges, impossible = forced(h, definition.premise(h))
    side = TRUE if definition.side is None else definition.side(h)
    return h.any((-side, impossible, (h.base | edges).cyclic()))


def orders_in_question(levels: Sequence[Definition]) -> frozenset[str]:
    """Between transactions; a level that declares its witness may do without any."""
    found = frozenset(level.order for level in levels)
    return found | {NONE} if any(level.form == "own" for level in levels) else found


def visibilities(h: View, definition: Definition, co: Relation) -> list[Relation]:
    """What transactions see at least under some level, given the commit order; for a known level, under that one."""
    h = h.in_order(definition.order)
    if definition.level == "declared":
        ascending = all(co[a, b] == TRUE for b in h.txns for a in range(b))
        return [declared_visibility(h, co)] if ascending else []
    own = definition.level.removesuffix("@vis")
    return [VISIBILITY[own](h, co)] if own in VISIBILITY else [visible(h, co) for visible in VISIBILITY.values()]


def witness_of(
    definition: Definition, concrete: Concrete, polynomial: bool = True, limits: Limits | None = None
) -> ConcreteWitness | None:
    """A witness that shows the level in a given history, or None if it is broken."""
    with Formula() as formula:
        h = ConcreteView(formula, concrete).in_order(definition.order)
        size = len(concrete.txns)
        if definition.form == "history":
            held = definition.holds(h, Witness(None))
            return ConcreteWitness(definition.name, tuple(range(size))) if held == TRUE else None
        if polynomial and definition.premise is not None:
            edges, impossible = forced(h, definition.premise(h))
            side = TRUE if definition.side is None else definition.side(h)
            sequence = (h.base | edges).sequence()
            bad = impossible == TRUE or side == FALSE or sequence is None
            return None if bad or sequence is None else ConcreteWitness(definition.name, tuple(sequence))
        block = Block(definition, h)
        formula.require(definition.holds(h, block.witness))
        return block.solution() if formula.solve(limits=limits) else None
