"""Infer the weakest level of each transaction on a database (``isocheck infer``).

``infer`` answers for each transaction and level: violated, proved, no violation found within bounds, or undecided. A
search looks for counterexamples: symbolic with z3, or explicit without it. Every counterexample is replayed and
shortened before it is reported. With ``--prove`` an unbounded proof is tried where no violation was found.

The invariant and the levels follow "Alone Together" (Kaki et al.). Instead of its rely-guarantee proofs, this program
searches schedules and proves each transaction against arbitrary commits of others that keep the invariant.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from time import monotonic

from plume_py.base.errors import IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.infer.execution.explorer import Explorer
from plume_py.reasoning.infer.execution.replay import Replay, replay
from plume_py.reasoning.infer.execution.schedule import CLAUSE, Counterexample, ReplayError
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.locking_statements import locks_atomically
from plume_py.reasoning.infer.statement_models import ALONE, LevelModel, StoreModel

PROVED, BOUNDED, VIOLATED, UNDECIDED = "proved", "no violation found", "violated", "undecided"
EXPLORED = 2  # rows per table for the explorer, which enumerates all contents
ROW_BY_ROW = "a scan that locks takes one row after the other here, while others change what it looks for"
MISSING = "this needs z3; install it with `pip install z3-solver`, or use --engine explore"


@dataclass
class ReplayedExample:
    """A counterexample that was replayed."""

    example: Counterexample
    replay: Replay


@dataclass
class LevelAnswer:
    """The answer for a transaction at a level. ``note`` states what a bounded answer covers, or why it is undecided."""

    level: LevelModel
    answer: str
    examples: dict[str, ReplayedExample] = field(default_factory=dict)
    proved: tuple[str, ...] = ()
    note: str = ""
    has_no_state: bool = False  # no state satisfies the invariant within the bounds, so the search means nothing


def is_safe(verdict: LevelAnswer) -> bool:
    return verdict.answer in (PROVED, BOUNDED)


@dataclass
class TransactionVerdict:
    """The answers of one transaction at all levels of a store."""

    name: str
    levels: list[LevelAnswer]

    @property
    def weakest(self) -> LevelAnswer | None:
        """The first proved level in the store's order, or the first safe level if none is proved."""
        proved = (verdict for verdict in self.levels if verdict.answer == PROVED)
        return next(proved, self.candidate)

    @property
    def candidate(self) -> LevelAnswer | None:
        """The first level in the store's order at which no violation was found, or None."""
        return next((verdict for verdict in self.levels if is_safe(verdict)), None)


@dataclass
class InferenceResult:
    """The verdicts of a program's transactions on a store, with the bounds of the search."""

    program: ir.Application
    store: StoreModel
    transactions: list[TransactionVerdict]
    rows: int
    steps: int
    engine: str
    seconds: float = 0.0
    others: list[TransactionVerdict] = field(default_factory=list)  # not named, but partners of named transactions
    proves: bool = False  # whether proofs were requested
    joint_answers: dict[str, LevelAnswer] = field(default_factory=dict)  # with partners at their inferred levels
    alone: tuple[str, ...] = ()  # transactions that violate the invariant when they run alone

    @property
    def analysed_program(self) -> ir.Application:
        """The program without the transactions that violate the invariant when they run alone."""
        kept = tuple(txn for txn in self.program.transactions if txn.name not in self.alone)
        return replace(self.program, transactions=kept)

    def headline(self, txn: TransactionVerdict) -> LevelAnswer | None:
        """Return the answer to act on: the joint answer if partners were checked, else the weakest safe level."""
        return self.joint_answers.get(txn.name, txn.weakest)


@dataclass(frozen=True)
class InferOptions:
    """Bounds, engine and time limits of a search."""

    rows: int = 0  # per table at the start; 0 chooses a number that covers the program's counts
    steps: int = 2
    engine: str = "auto"
    prove: bool = False
    seconds: float = 60.0  # per query of the solver, or per search of the explorer
    limits: Limits = field(default_factory=Limits)  # of the whole run


def has_solver() -> bool:
    return find_spec("z3") is not None


def infer(
    program: ir.Application,
    store: StoreModel,
    names: tuple[str, ...] = (),
    options: InferOptions = InferOptions(),
    progress: Callable[[str], None] = lambda _: None,
    with_others: bool = False,
) -> InferenceResult:
    """Return the weakest level of each named transaction, or of all transactions if ``names`` is empty.

    ``with_others`` also analyses the transactions that were not named, since they are partners of the named ones. A
    transaction that violates the invariant alone is removed as a partner: with it, every other one would look unsafe.
    """
    engine = options.engine if options.engine != "auto" else "z3" if has_solver() else "explore"
    if (engine == "z3" or options.prove) and not has_solver():
        raise IsocheckError(MISSING)
    begin = monotonic()
    rows = options.rows or (rows_for(program) if engine == "z3" else EXPLORED)
    options = replace(options, rows=rows)
    alone = _violations_alone(_search(engine, program, options), program, store, options)
    result = InferenceResult(program, store, [], rows, options.steps, engine, proves=options.prove, alone=tuple(alone))
    judged = result.analysed_program
    search = _search(engine, judged, options) if alone else _search(engine, program, options)
    for txn in program.transactions:
        is_asked = not names or txn.name in names
        if not is_asked and not with_others:
            continue
        verdicts = []
        for level in store.levels:
            progress(f"{txn.name} at {level.name}")
            if txn.name in alone:
                verdicts.append(LevelAnswer(level, VIOLATED, alone[txn.name].examples))
            else:
                verdicts.append(_verdict(search, judged, txn.name, level, options))
        (result.transactions if is_asked else result.others).append(TransactionVerdict(txn.name, verdicts))
    result.seconds = monotonic() - begin
    return result


def _search(engine: str, program: ir.Application, options: InferOptions) -> "SymbolicSearch | ExplicitSearch":
    return SymbolicSearch(program, options) if engine == "z3" else ExplicitSearch(program, options)


def _violations_alone(
    search: "SymbolicSearch | ExplicitSearch", program: ir.Application, store: StoreModel, options: InferOptions
) -> dict[str, LevelAnswer]:
    """Return the transactions that violate the invariant when they run alone, with examples."""
    serial = next((level for level in store.levels if level.is_serial), ALONE)
    unproved = replace(options, prove=False)
    answers = {txn.name: _verdict(search, program, txn.name, serial, unproved) for txn in program.transactions}
    return {name: verdict for name, verdict in answers.items() if verdict.answer == VIOLATED}


def _verdict(
    search: "SymbolicSearch | ExplicitSearch",
    program: ir.Application,
    name: str,
    level: LevelModel,
    options: InferOptions,
) -> LevelAnswer:
    """Return the answer for one level; UNDECIDED if a limit ends the search or the bounds are too small."""
    try:
        options.limits.check()
        verdict = search.verdict(name, level)
    except LimitError as error:
        return LevelAnswer(level, UNDECIDED, note=str(error))
    counted = largest_count_compared(program)
    if verdict.answer == BOUNDED and not level.is_serial and options.rows < counted:
        note = f"{verdict.note}; but {counted} rows are counted, so this says little; raise --rows, or use --prove"
        verdict = replace(verdict, answer=UNDECIDED, note=note)
    if verdict.answer == BOUNDED and level.row_by_row and not locks_atomically(program.transaction(name), program):
        return replace(verdict, answer=UNDECIDED, note=f"{verdict.note}; but {ROW_BY_ROW}")
    if options.prove and verdict.answer != VIOLATED and not verdict.has_no_state:
        try:
            return with_proof(verdict, program, name, options)
        except LimitError as error:
            if verdict.answer == BOUNDED:
                verdict.note += f"; not proved: {error}"
    return verdict


def with_proof(verdict: LevelAnswer, program: ir.Application, name: str, options: InferOptions) -> LevelAnswer:
    """Return the answer PROVED if all clauses can be proved; otherwise add the open clauses to the note."""
    from plume_py.reasoning.infer.proof.prove import prove

    outcome = prove(program, name, verdict.level, options.seconds, options.limits)
    verdict.proved = outcome.proved
    if outcome.is_complete:
        return replace(
            verdict, answer=PROVED, note="for any number of rows, and of other transactions that keep the invariant"
        )
    verdict.note += f"; not proved: {', '.join(outcome.open)}"
    return verdict


class SymbolicSearch:
    """Answers of the bounded symbolic engine. Small bounds are tried first, since they give short counterexamples."""

    def __init__(
        self, program: ir.Application, options: InferOptions, partners: dict[str, LevelModel] | None = None
    ) -> None:
        self.program, self.options, self.partners = program, options, partners
        self._has_states: bool | None = None

    def verdict(self, name: str, level: LevelModel) -> LevelAnswer:
        rows, steps = self.options.rows, self.options.steps
        bounds = [(1, min(1, steps)), (rows, steps)]
        if level.is_serial:
            bounds = [(1, 0), (rows, 0)]
        open_clauses = _clauses_to_check(self.program)
        found = LevelAnswer(level, BOUNDED)
        try:
            for k, b in dict.fromkeys(bounds):
                open_clauses = self._search_clauses(name, level, k, b, open_clauses, found)
            if found.examples:
                self._shorten(name, level, found)
            elif not found.note and not self.has_states():
                return _empty(level, rows)
        except LimitError as error:  # violations found before the limit remain valid
            found.note = str(error)
        if found.examples:
            found.answer = VIOLATED
        elif found.note:
            found.answer = UNDECIDED
        else:
            others = ", alone" if level.is_serial else f" and {steps} environment step{'s' if steps != 1 else ''}"
            found.note = f"no violation up to {rows} row{'s' if rows != 1 else ''}{others}"
        return found

    def has_states(self) -> bool:
        """Return whether some state within the bounds satisfies the invariant."""
        from plume_py.reasoning.infer.bounded.bounded_search import BoundedSearch
        from plume_py.reasoning.infer.bounded.terms import solve

        if self._has_states is None:
            nothing = replace(self.program, transactions=(ir.TransactionProgram("", (), ()),))
            seconds, limits = self.options.seconds, self.options.limits
            formula = BoundedSearch(nothing, "", ALONE, self.options.rows, 0, seconds, limits)
            answer = solve(formula.solver, limits.at_most(seconds))
            limits.check()
            self._has_states = str(answer) != "unsat"
        return self._has_states

    def _shorten(self, name: str, level: LevelModel, verdict: LevelAnswer) -> None:
        """Search again with one commit of others and all rows, for the clauses whose example needed several commits."""
        long = [
            clause
            for clause in self.program.invariant
            if clause.name in verdict.examples
            and sum(event is not None for event in verdict.examples[clause.name].example.events) > 1
        ]
        self._search_clauses(name, level, self.options.rows, 1, long, verdict)

    def _search_clauses(
        self, name: str, level: LevelModel, rows: int, steps: int, clauses: list[ir.Clause], verdict: LevelAnswer
    ) -> list[ir.Clause]:
        from plume_py.reasoning.infer.bounded.bounded_search import UNKNOWN, BoundedSearch

        if not clauses:
            return []
        seconds, limits = self.options.seconds, self.options.limits
        limits.check()
        formula = BoundedSearch(self.program, name, level, rows, steps, seconds, limits, self.partners)
        left, verdict.note = [], ""
        for clause in clauses:
            limits.check()
            answer = formula.search(clause)
            if answer.example is not None:
                verdict.examples[clause.name] = replay_and_shrink(self.program, answer.example)
                continue
            left.append(clause)
            if answer.outcome == UNKNOWN:
                limits.check()
                verdict.note = f"the solver gave up on {clause.name} ({answer.reason})"
        return left


class ExplicitSearch:
    """Answers of the explicit-state explorer."""

    def __init__(self, program: ir.Application, options: InferOptions) -> None:
        self.program, self.options = program, options
        self.explorer = Explorer(program, options.rows, options.steps, options.seconds, options.limits)

    def verdict(self, name: str, level: LevelModel) -> LevelAnswer:
        result = self.explorer.explore(name, level, tuple(clause.name for clause in _clauses_to_check(self.program)))
        shown = {clause: replay_and_shrink(self.program, example) for clause, example in result.examples.items()}
        if shown:
            return LevelAnswer(level, VIOLATED, shown)
        if result.complete and not result.states:
            return _empty(level, self.options.rows)
        others = "" if level.is_serial else f" and {self.options.steps} environment steps"
        if result.complete:
            note = f"no violation from {result.states:,} small states, up to {self.options.rows} rows{others}"
            return LevelAnswer(level, BOUNDED, note=note)
        why = f"no violation from {result.states:,} small states, but there are more than could be tried"
        return LevelAnswer(level, UNDECIDED, note=why)


def _empty(level: LevelModel, rows: int) -> LevelAnswer:
    note = f"no state of up to {rows} row{'s' if rows != 1 else ''} per table satisfies the invariant; raise --rows"
    return LevelAnswer(level, UNDECIDED, note=note, has_no_state=True)


def _clauses_to_check(program: ir.Application) -> list[ir.Clause]:
    """Return the clauses to check: the serial-order clause if present, else all clauses of the invariant."""
    asked = [clause for clause in program.invariant if clause.name == CLAUSE]
    return asked or list(program.invariant)


def replay_and_shrink(program: ir.Application, example: Counterexample) -> ReplayedExample:
    """Replay a counterexample, then remove rows and commits as long as it remains one."""
    current = ReplayedExample(example, replay(program, example))
    shrinking = True
    while shrinking:
        shrinking = False
        for smaller in _reductions(current.example):
            try:
                current = ReplayedExample(smaller, replay(program, smaller))
            except ReplayError:
                continue
            shrinking = True
            break
    return current


def _reductions(example: Counterexample) -> list[Counterexample]:
    found = []
    for place, event in enumerate(example.events):
        if event is not None:
            fewer_events = example.events[:place] + example.events[place + 1 :]
            found.append(replace(example, events=fewer_events, begun=example.begun - (place < example.begun)))
    for table, rows in enumerate(example.initial):
        for place in range(len(rows)):
            fewer = (*example.initial[:table], rows[:place] + rows[place + 1 :], *example.initial[table + 1 :])
            found.append(replace(example, initial=fewer))
    return found


def infer_serial(
    program: ir.Application, store: StoreModel, names: tuple[str, ...], options: InferOptions
) -> InferenceResult:
    """Return the weakest level of each transaction at which its effect equals that of some serial order."""
    if options.prove:
        raise IsocheckError("--prove is about invariants; leave it out with --serializability")
    if options.engine == "explore" or not has_solver():
        if options.engine == "z3":
            raise IsocheckError(MISSING)
        options = replace(options, engine="explore")
    clause = ir.Clause(CLAUSE, ir.TRUE, 0, "The rows are what some serial order of these transactions leaves.")
    return infer(replace(program, invariant=(*program.invariant, clause)), store, names, options)


# Rows per table at the start: the bounds follow the constants of the program. ``--rows`` may exceed MOST.
FEWEST, MOST = 3, 8
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")


def rows_for(program: ir.Application) -> int:
    """Return the number of rows per table: every count that the program compares with a constant can be reached."""
    return min(max(FEWEST, largest_count_compared(program)), MOST)


def largest_count_compared(program: ir.Application) -> int:
    """Return the largest constant that a number of rows is compared with."""
    clauses = [clause.condition for clause in (*program.invariant, *program.enforced)]
    found = [0, *(c for clause in clauses for c in _counted(clause, set()))]
    for txn in program.transactions:
        body = list(ir.statements(txn.body))
        counts = _names_of_counts(body)
        found += (c for stmt in body for c in _counted(stmt, counts))
    return max(found)


def _names_of_counts(body: list[ir.Stmt]) -> set[str]:
    """Return the variables whose values depend on a number of rows."""
    names: set[str] = set()
    while True:
        more = {
            name
            for stmt in body
            if isinstance(stmt, ir.Let)
            for name, value in zip(stmt.names, stmt.values, strict=True)
            if _is_count(value, names)
        }
        if more <= names:
            return names
        names |= more


def _is_count(expr: ir.Expr | ir.Stmt, counts: set[str]) -> bool:
    return any(
        (isinstance(node, ir.Query) and node.kind == "count") or (isinstance(node, ir.Local) and node.name in counts)
        for node in ir.walk(expr)
    )


def _counted(node: ir.Expr | ir.Stmt, counts: set[str]) -> Iterator[int]:
    for part in ir.walk(node):
        if isinstance(part, ir.Operation) and part.op in _COMPARISONS and _is_count(part, counts):
            for constant in ir.walk(part):
                if isinstance(constant, ir.Const) and type(constant.value) is int:
                    yield abs(constant.value)
