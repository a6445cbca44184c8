"""A history to be found by the solver: variables for reads, writes, sessions and times, and their constraints.

Transactions are numbered so that writers precede their readers, and sessions follow the numbering. Every history
without a causal cycle has such a numbering, so no history is lost. If a commit order of an allowed level is fixed to
the numbering (problem.py), transactions cannot be interchanged, which makes the search small. Two exceptions:

- If some level ignores session order ("none"), only reads follow the numbering; sessions have a separate order.
- If real time matters, an interval order says which transactions ended before others began.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import combinations, pairwise, permutations

from plume_py.base.logic import FALSE, TRUE, Formula, Literal, TotalOrder
from plume_py.base.override import override
from plume_py.history.model import INITIAL
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, NONE, TIMED
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn
from plume_py.reasoning.synth.history_terms import NO_TIMES, View
from plume_py.reasoning.synth.scope import Program, Scope


class SymbolicHistory(View):
    """Solver variables for a history within a scope, and the constraints that make it well-formed."""

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
        """Add the variables and constraints. ``orders`` are the orders between transactions that the levels use.

        With ``symmetry``, keys and sessions are numbered in one way only.
        """
        super().__init__(formula, scope.txns, scope.keys)
        self.scope, self.programs = scope, programs
        self._writes = {(t, x): formula.variable() for t in self.txns for x in self.keys}
        self._reads = {(t, x, u): formula.variable() for t in self.txns for x in self.keys for u in range(INITIAL, t)}
        self._read_orders: dict[int, _ReadOrder] = {}
        self._constrain_operations(rereads)
        self._sessions = _Sessions(self, symmetry)
        self._times = IntervalOrder(formula, scope.txns) if not TIMED.isdisjoint(orders) else None
        self._session_sequence = self._free_session_sequence() if NONE in orders else None
        if self._times is not None:
            self._constrain_times(self._times)
        if programs is not None:
            self._runs = [[formula.variable() for _ in programs] for _ in self.txns]  # transaction t runs program p
            self._constrain_programs(programs)
        elif symmetry:
            self._order_keys()

    # -- terms ---------------------------------------------------------------------------------------------------

    @override
    def writes(self, t: int, x: int) -> Literal:
        return self._writes[t, x]

    @override
    def reads(self, t: int, x: int, source: int) -> Literal:
        return self._reads.get((t, x, source), FALSE)

    @override
    def session(self, a: int, b: int) -> Literal:
        if self._session_sequence is not None:
            return self.all((self._sessions.same(a, b), self._session_sequence(a, b)))
        return self._sessions.same(a, b) if a < b else FALSE

    @override
    def realtime(self, a: int, b: int) -> Literal:
        if self._times is None:
            raise ValueError(NO_TIMES)
        return self._times.before(a, b)

    @override
    def read_earlier(self, t: int, y: int, u: int, x: int, source: int) -> Literal:
        """Compare by an order of t's reads, whose variables are created at the first call."""
        if (y, u) == (x, source) or FALSE in (self.reads(t, y, u), self.reads(t, x, source)):
            return FALSE
        if t not in self._read_orders:
            self._read_orders[t] = _ReadOrder(self, t)
        both = self.reads(t, y, u), self.reads(t, x, source)
        return self.all((*both, self._read_orders[t].before((y, u), (x, source))))

    @override
    def at(self, t: int, level: str) -> Literal:
        return self._levels[t].get(level, FALSE)

    @cached_property
    def _levels(self) -> list[dict[str, Literal]]:
        """A variable per transaction and level, created when a definition asks for the level of a transaction."""
        given = {program.level for program in self.programs or ()}
        names = [level for level in RUNNABLE if level in given] if given and None not in given else RUNNABLE
        chosen = [{level: self.formula.variable() for level in names} for _ in self.txns]
        for t, levels in enumerate(chosen):
            _exactly_one(self.formula, list(levels.values()))
            for p, program in enumerate(self.programs or ()):
                if program.level is not None:
                    self.formula.require(-self._runs[t][p], levels[program.level])
        return chosen

    # -- constraints ---------------------------------------------------------------------------------------------

    def _constrain_operations(self, rereads: bool) -> None:
        """Require nonempty transactions, writers for all reads, and the bounds of the scope."""
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

    def _free_session_sequence(self) -> Callable[[int, int], Literal]:
        """Return the order of sessions that need not follow the numbering: real time if there is one."""
        return TotalOrder(self.formula, len(self.txns)).before if self._times is None else self._times.before

    def _constrain_times(self, times: "IntervalOrder") -> None:
        """Require that a transaction ends before the next one of its session begins."""
        for b in self.txns:
            for a in range(b):
                backwards = (times.before(b, a),) if self._session_sequence is not None else ()
                self.formula.require(-self._sessions.same(a, b), times.before(a, b), *backwards)

    def _constrain_programs(self, programs: Sequence[Program]) -> None:
        """Require that each transaction runs one program, each program runs once, and their properties hold."""
        formula = self.formula
        for t in self.txns:
            _exactly_one(formula, self._runs[t])
        for p in range(len(programs)):
            _exactly_one(formula, [self._runs[t][p] for t in self.txns])
        for a in self.txns:
            for b in range(a + 1, len(self.txns)):
                self._constrain_program_sessions(a, b, programs)
        for t in self.txns:
            for x in self.keys:
                reads = self.any(self.reads(t, x, u) for u in range(INITIAL, t))
                for p, program in enumerate(programs):
                    for given, literal in ((program.writes, self._writes[t, x]), (program.reads, reads)):
                        if given is not None:
                            formula.require(-self._runs[t][p], literal if x in given else -literal)

    def _constrain_program_sessions(self, a: int, b: int, programs: Sequence[Program]) -> None:
        """Require the given sessions of the programs that a and b run, and their order in a session; a < b."""
        for p, first in enumerate(programs):
            for q, second in enumerate(programs):
                if p != q and first.session is not None and second.session is not None:
                    unless = (-self._runs[a][p], -self._runs[b][q])
                    if first.session != second.session:
                        self.formula.require(*unless, -self._sessions.same(a, b))
                    else:
                        self.formula.require(*unless, self.session(a, b) if p < q else self.session(b, a))

    def _order_keys(self) -> None:
        """Break the symmetry of keys: their columns of uses, transaction by transaction, descend lexicographically."""
        columns = [
            [
                literal
                for t in self.txns
                for literal in (self._writes[t, x], *(self._reads[t, x, u] for u in range(INITIAL, t)))
            ]
            for x in self.keys
        ]
        for x in range(len(columns) - 1):
            equal_so_far = TRUE
            for a, b in zip(columns[x], columns[x + 1], strict=True):
                self.formula.require(-equal_so_far, a, -b)
                equal_so_far = self.all((equal_so_far, self.formula.same(a, b)))

    # -- solutions -----------------------------------------------------------------------------------------------

    def solution(self) -> ConcreteHistory:
        """Return the history in the last solution."""
        value = self.formula.value
        txns, names = [], []
        times = [None] * len(self.txns) if self._times is None else intervals(len(self.txns), self._times.solution())
        for t in self.txns:
            reads = [(x, u) for x in self.keys for u in range(INITIAL, t) if value(self._reads[t, x, u])]
            if t in self._read_orders:
                reads = self._read_orders[t].solution(reads)
            writes = tuple(x for x in self.keys if value(self._writes[t, x]))
            level, name = self._level_and_name(t)
            session, position = self._sessions.solution(t), self._position_in_session(t)
            txns.append(ConcreteTxn(session, tuple(reads), writes, level, position, times[t]))
            names.append(name)
        return ConcreteHistory(tuple(txns), tuple(names) if self.programs is not None else ())

    def _position_in_session(self, t: int) -> int | None:
        """Return the position of t in its session in the last solution, or None if sessions follow the numbering.

        Reads variables only: gates that were created after the solution have no value in it.
        """
        if self._session_sequence is None:
            return None
        session = self._sessions.solution
        return sum(session(a) == session(t) and self.formula.value(self._session_sequence(a, t)) for a in self.txns)

    def _level_and_name(self, t: int) -> tuple[str | None, str]:
        value = self.formula.value
        level, name = None, ""
        if self.programs is not None:
            p = next(p for p, literal in enumerate(self._runs[t]) if value(literal))
            level, name = self.programs[p].level, f"T{p + 1}"
        if "_levels" in self.__dict__:
            level = next(chosen for chosen, literal in self._levels[t].items() if value(literal))
        return level, name

    def equals(self, concrete: ConcreteHistory) -> list[Literal]:
        """Return literals that are all true exactly for this history, up to the order of reads."""
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

    def equal_read_orders(self, concrete: ConcreteHistory) -> list[Literal]:
        """Return literals that are all true exactly if each transaction reads in the same order as in ``concrete``."""
        return [
            self.read_earlier(t, *earlier, *later)
            for t, txn in enumerate(concrete.txns)
            for earlier, later in pairwise(txn.reads)
        ]

    def operations(self, key: int | None = None) -> list[Literal]:
        """Return the literal of each possible operation, or only of those on one key."""
        every = (*self._writes.items(), *self._reads.items())
        return [literal for index, literal in every if key is None or index[1] == key]


def _exactly_one(formula: Formula, literals: list[Literal]) -> None:
    formula.require(*literals)
    formula.at_most_one(literals)


class _Sessions:
    """Variables for the session of each transaction. With ``symmetry``, sessions are numbered by first appearance."""

    def __init__(self, history: SymbolicHistory, symmetry: bool) -> None:
        self.formula, most = history.formula, history.scope.sessions or len(history.txns)
        self._of = [
            [self.formula.variable() for _ in range(min(t + 1, most) if symmetry else most)] for t in history.txns
        ]
        for t, choices in enumerate(self._of):
            _exactly_one(self.formula, choices)
            for s in range(1, len(choices) if symmetry else 0):
                self.formula.require(-choices[s], *(self._of[u][s - 1] for u in range(s - 1, t)))

    def same(self, a: int, b: int) -> Literal:
        return self.formula.any_of(self.formula.all_of(pair) for pair in zip(self._of[a], self._of[b], strict=False))

    def solution(self, t: int) -> int:
        return next(s for s, literal in enumerate(self._of[t]) if self.formula.value(literal))


class _ReadOrder:
    """A total order of the reads that transaction t can do; each (key, writer) is read at most once."""

    def __init__(self, history: SymbolicHistory, t: int) -> None:
        reads = ((x, u) for x in history.keys for u in range(INITIAL, t))
        self._number = {read: at for at, read in enumerate(reads)}
        self._order = TotalOrder(history.formula, len(self._number))

    def before(self, a: tuple[int, int], b: tuple[int, int]) -> Literal:
        """Return a literal: the read a, as (key, writer), precedes the read b."""
        return self._order.before(self._number[a], self._number[b])

    def solution(self, reads: list[tuple[int, int]]) -> list[tuple[int, int]]:
        position = {number: at for at, number in enumerate(self._order.solution())}
        return sorted(reads, key=lambda read: position[self._number[read]])


class IntervalOrder:
    """Variables for "a ended before b began", one per pair of transactions.

    If a ended before b began and c before d, then the one of a and c that ended first ended before both b and d began.
    A relation with this property and without loops is an interval order: intervals exist for it, see ``intervals``.
    Times therefore need no variables.
    """

    def __init__(self, formula: Formula, size: int) -> None:
        self.formula = formula
        self._pairs = {pair: formula.variable() for pair in permutations(range(size), 2)}
        for (a, b), (c, d) in combinations(self._pairs, 2):
            formula.require(-self._pairs[a, b], -self._pairs[c, d], self.before(a, d), self.before(c, b))

    def before(self, a: int, b: int) -> Literal:
        return self._pairs.get((a, b), FALSE)

    def solution(self) -> list[tuple[int, int]]:
        return [pair for pair, literal in self._pairs.items() if self.formula.value(literal)]


def intervals(size: int, before: Collection[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the smallest begin and end times for which exactly the pairs in ``before`` are ordered.

    In an interval order, the sets of transactions that ended before some transaction began form a chain by inclusion.
    The position in this chain is the begin time.
    """
    ended = [frozenset(a for a, later in before if later == b) for b in range(size)]
    positions = {earlier: at for at, earlier in enumerate(sorted(set(ended), key=len))}
    begin = [positions[earlier] for earlier in ended]
    end = [min((begin[b] for first, b in before if first == a), default=len(positions)) - 1 for a in range(size)]
    return [(2 * first, 2 * last + 1) for first, last in zip(begin, end, strict=True)]
