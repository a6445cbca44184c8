"""A history that is still to be found: variables for its reads, writes and sessions, and what makes it well-formed.

Transactions are numbered in an order in which sessions and reads only go forward; one exists in every history that has
no causal cycle, so nothing is lost. Where some level does without session order, only reads go forward, and sessions
have an order of their own; where real time counts, who had ended before whom began is unknown, too. Where one of the
wanted commit orders is fixed to the numbering, the names of transactions are no longer interchangeable, which is what
makes the search small.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import pairwise, permutations

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, TotalOrder
from plume_py.base.override import override
from plume_py.history.model import INITIAL
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, NONE, TIMED
from plume_py.reasoning.synth.concrete_history import Concrete, ConcreteTxn
from plume_py.reasoning.synth.history_terms import NO_TIMES, View
from plume_py.reasoning.synth.scope import Program, Scope
from plume_py.reasoning.synth.times import UnknownTimes, spans


class Unknown(View):
    """Variables for a history within a scope."""

    def __init__(
        self,
        formula: Formula,
        scope: Scope,
        programs: Sequence[Program] | None = None,
        *,
        rereads: bool = False,
        symmetry: bool = True,
        orders: Collection[str] = (DEFAULT_ORDER,),
    ) -> None:
        """``orders`` between transactions: those that count for some level in question."""
        super().__init__(formula, scope.txns, scope.keys)
        self.scope, self.programs = scope, programs
        self._writes = {(t, x): formula.variable() for t in self.txns for x in self.keys}
        self._reads = {(t, x, u): formula.variable() for t in self.txns for x in self.keys for u in range(INITIAL, t)}
        self._orders: dict[int, _ReadOrder] = {}
        self._well_formed(rereads)
        self._sessions = _Sessions(self, symmetry)
        self._times = UnknownTimes(formula, scope.txns) if not TIMED.isdisjoint(orders) else None
        self._sequence = self._order_sessions() if NONE in orders else None
        if self._times is not None:
            self._keep_time(self._times)
        if programs is not None:
            self._place = [[formula.variable() for _ in programs] for _ in self.txns]
            self._run(programs)
        elif symmetry:
            self._order_keys()

    # -- the vocabulary ------------------------------------------------------------------------------------------

    @override
    def writes(self, t: int, x: int) -> Literal:
        return self._writes[t, x]

    def reads(self, t: int, x: int, source: int) -> Literal:
        """A variable; nobody reads from later ones."""
        return self._reads.get((t, x, source), FALSE)

    def session(self, a: int, b: int) -> Literal:
        """By the sessions of both, and the numbering, or the order of sessions if there is one."""
        if self._sequence is not None:
            return self.all((self._sessions.same(a, b), self._sequence(a, b)))
        return self._sessions.same(a, b) if a < b else FALSE

    @override
    def realtime(self, a: int, b: int) -> Literal:
        if self._times is None:
            raise ValueError(NO_TIMES)
        return self._times.before(a, b)

    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """By an order of the reads of t, which comes into being when it is first asked for."""
        if (y, u) == (x, source) or FALSE in (self.reads(t, y, u), self.reads(t, x, source)):
            return FALSE
        if t not in self._orders:
            self._orders[t] = _ReadOrder(self, t)
        both = self.reads(t, y, u), self.reads(t, x, source)
        return self.all((*both, self._orders[t].before((y, u), (x, source))))

    def at(self, t: int, level: str) -> Literal:
        """By the programs, or by free choice."""
        return self._levels[t].get(level, FALSE)

    @cached_property
    def _levels(self) -> list[dict[str, Literal]]:
        """A level for each transaction, once it is asked for."""
        given = {program.level for program in self.programs or ()}
        names = [level for level in RUNNABLE if level in given] if given and None not in given else RUNNABLE
        chosen = [{level: self.formula.variable() for level in names} for _ in self.txns]
        for t, levels in enumerate(chosen):
            _exactly_one(self.formula, list(levels.values()))
            for p, program in enumerate(self.programs or ()):
                if program.level is not None:
                    self.formula.require(-self._place[t][p], levels[program.level])
        return chosen

    # -- what makes it a history ---------------------------------------------------------------------------------

    def _well_formed(self, rereads: bool) -> None:
        require = self.formula.require
        for t in self.txns:
            require(*(self._writes[t, x] for x in self.keys), *(r for (s, _, _), r in self._reads.items() if s == t))
            for x in self.keys:
                sources = [self._reads[t, x, u] for u in range(INITIAL, t)]
                if not rereads:
                    self.formula.at_most_one(sources)
                if not self.scope.blind_writes:
                    require(-self._writes[t, x], *sources)
                for u in range(t):
                    require(-self._reads[t, x, u], self._writes[u, x])
        if self.scope.values - 1 < len(self.txns):
            for x in self.keys:
                self.formula.at_most(self.scope.values - 1, [self._writes[t, x] for t in self.txns])

    def _order_sessions(self) -> Callable[[int, int], Literal]:
        """How sessions go, if not by number: as time does, if there is one."""
        return TotalOrder(self.formula, len(self.txns)).before if self._times is None else self._times.before

    def _keep_time(self, times: UnknownTimes) -> None:
        """In a session, who comes first has ended before the next begins."""
        for b in self.txns:
            for a in range(b):
                later = (times.before(b, a),) if self._sequence is not None else ()
                self.formula.require(-self._sessions.same(a, b), times.before(a, b), *later)

    def _run(self, programs: Sequence[Program]) -> None:
        """Each transaction runs one of the programs, and each program runs once."""
        formula = self.formula
        for t in self.txns:
            _exactly_one(formula, self._place[t])
        for p in range(len(programs)):
            _exactly_one(formula, [self._place[t][p] for t in self.txns])
        for a in self.txns:
            for b in range(a + 1, len(self.txns)):
                self._seat(a, b, programs)
        for t in self.txns:
            for x in self.keys:
                reads = self.any(self.reads(t, x, u) for u in range(INITIAL, t))
                for p, program in enumerate(programs):
                    for given, literal in ((program.writes, self._writes[t, x]), (program.reads, reads)):
                        if given is not None:
                            formula.require(-self._place[t][p], literal if x in given else -literal)

    def _seat(self, a: int, b: int, programs: Sequence[Program]) -> None:
        """Two transactions, a before b, whose programs have given sessions: in one session only in its order."""
        for p, first in enumerate(programs):
            for q, second in enumerate(programs):
                if p != q and first.session is not None and second.session is not None:
                    here = (-self._place[a][p], -self._place[b][q])
                    if first.session != second.session:
                        self.formula.require(*here, -self._sessions.same(a, b))
                    else:
                        self.formula.require(*here, self.session(a, b) if p < q else self.session(b, a))

    def _order_keys(self) -> None:
        """Keys are interchangeable: those that are used more, compared transaction by transaction, come first."""
        columns = [
            [
                literal
                for t in self.txns
                for literal in (self._writes[t, x], *(self._reads[t, x, u] for u in range(INITIAL, t)))
            ]
            for x in self.keys
        ]
        for x in range(len(columns) - 1):
            equal = TRUE  # so far
            for a, b in zip(columns[x], columns[x + 1], strict=True):
                self.formula.require(-equal, a, -b)
                equal = self.all((equal, self.formula.same(a, b)))

    # -- what was found ------------------------------------------------------------------------------------------

    def solution(self) -> Concrete:
        """The history in the last solution."""
        value = self.formula.value
        txns, names = [], []
        times = [None] * len(self.txns) if self._times is None else spans(len(self.txns), self._times.solution())
        for t in self.txns:
            reads = [(x, u) for x in self.keys for u in range(INITIAL, t) if value(self._reads[t, x, u])]
            if t in self._orders:
                reads = self._orders[t].solution(reads)
            writes = tuple(x for x in self.keys if value(self._writes[t, x]))
            level, name = self._origin(t)
            session, place = self._sessions.solution(t), self._place_in_session(t)
            txns.append(ConcreteTxn(session, tuple(reads), writes, level, place, times[t]))
            names.append(name)
        return Concrete(tuple(txns), tuple(names) if self.programs is not None else ())

    def _place_in_session(self, t: int) -> int | None:
        """Of t in the last solution, where it is not by number; asked of variables, as gates may be newer than that."""
        if self._sequence is None:
            return None
        session = self._sessions.solution
        return sum(session(a) == session(t) and self.formula.value(self._sequence(a, t)) for a in self.txns)

    def _origin(self, t: int) -> tuple[str | None, str]:
        """Level and name of t in the last solution."""
        value = self.formula.value
        level, name = None, ""
        if self.programs is not None:
            p = next(p for p, literal in enumerate(self._place[t]) if value(literal))
            level, name = self.programs[p].level, f"T{p + 1}"
        if "_levels" in self.__dict__:
            level = next(chosen for chosen, literal in self._levels[t].items() if value(literal))
        return level, name

    def structure(self, concrete: Concrete) -> list[Literal]:
        """Literals that are all true exactly if this is the history: reads, writes, session order and real time."""
        literals = []
        for (t, x), literal in self._writes.items():
            literals.append(literal if x in concrete.txns[t].writes else -literal)
        for (t, x, u), literal in self._reads.items():
            literals.append(literal if (x, u) in concrete.txns[t].reads else -literal)
        for a, b in permutations(self.txns, 2):
            literals.append(self.so[a, b] if concrete.precedes(a, b) else -self.so[a, b])
            if self._times is not None:
                early = self._times.before(a, b)
                literals.append(early if concrete.ended_before(a, b) else -early)
        if "_levels" in self.__dict__:
            literals += [self._levels[t][str(txn.level)] for t, txn in enumerate(concrete.txns)]
        return literals

    def order_of_reads(self, concrete: Concrete) -> list[Literal]:
        """Literals that are all true exactly if what is read is read in the order that it has in this history."""
        return [
            self.read_earlier(t, *earlier, *later)
            for t, txn in enumerate(concrete.txns)
            for earlier, later in pairwise(txn.reads)
        ]

    def operations(self, key: int | None = None) -> list[Literal]:
        """A literal per possible operation, or only those on one key."""
        every = (*self._writes.items(), *self._reads.items())
        return [literal for place, literal in every if key is None or place[1] == key]


def _exactly_one(formula: Formula, literals: list[Literal]) -> None:
    formula.require(*literals)
    formula.at_most_one(literals)


class _Sessions:
    """A session for each transaction. The numbers of sessions mean nothing, so new ones come in their order."""

    def __init__(self, view: Unknown, symmetry: bool) -> None:
        self.formula, most = view.formula, view.scope.sessions or len(view.txns)
        self._of = [[self.formula.variable() for _ in range(min(t + 1, most) if symmetry else most)] for t in view.txns]
        for t, choices in enumerate(self._of):
            _exactly_one(self.formula, choices)
            for s in range(1, len(choices) if symmetry else 0):
                self.formula.require(-choices[s], *(self._of[u][s - 1] for u in range(s - 1, t)))

    def same(self, a: int, b: int) -> Literal:
        """Are a and b of one session?"""
        return self.formula.any_of(self.formula.all_of(pair) for pair in zip(self._of[a], self._of[b], strict=False))

    def solution(self, t: int) -> int:
        """Its session in the last solution."""
        return next(s for s, literal in enumerate(self._of[t]) if self.formula.value(literal))


class _ReadOrder:
    """In which order t reads; no version is read twice."""

    def __init__(self, view: Unknown, t: int) -> None:
        self.formula = view.formula
        self._number = {(x, u): at for at, (x, u) in enumerate((x, u) for x in view.keys for u in range(INITIAL, t))}
        self._order = TotalOrder(view.formula, len(self._number))

    def before(self, a: tuple[int, int], b: tuple[int, int]) -> Literal:
        """Does the read a, as (key, writer), come before the read b?"""
        return self._order.before(self._number[a], self._number[b])

    def solution(self, reads: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The reads in the order of the last solution."""
        place = {number: at for at, number in enumerate(self._order.solution())}
        return sorted(reads, key=lambda read: place[self._number[read]])
