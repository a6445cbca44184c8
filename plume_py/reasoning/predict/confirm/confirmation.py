"""Run a predicted history on a real database, and check what happened.

The command ``confirm`` calls it. Orders of statements that yield the prediction come from the solver (interleaving).
Each attempt creates the table, sends the statements in one order (execution), records a history, and checks it for the
target. The checker's result is the verdict.

The transactions of a program can run instead of the recorded statements. The table has integers, each of which
represents a value that the program wrote.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.base.passwords import without_password
from plume_py.base.version import __version__
from plume_py.checking.check import check
from plume_py.checking.result import Result
from plume_py.collect.adapter import INITIAL_REGISTER, Adapter, Value
from plume_py.collect.client import TICKS_PER_SECOND
from plume_py.collect.recorder import Recorder
from plume_py.collect.table_setup import claim, remove, setting_up
from plume_py.history.load import load
from plume_py.history.model import INITIAL
from plume_py.levels import LEVELS
from plume_py.levels.databases import engine
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl, concurrency_control
from plume_py.reasoning.predict.confirm.execution import Conductor, DoneStatement, ExecutionRecord
from plume_py.reasoning.predict.confirm.interleaving import Interleavings, Step
from plume_py.reasoning.predict.confirm.script import Script
from plume_py.reasoning.predict.confirm.session import READ, Body, Statements
from plume_py.reasoning.predict.store.program import SeededProgram, assertions, step_id
from plume_py.reasoning.predict.store.store import Rollback
from plume_py.report.recording_metadata import with_run

# Number of times that a run is repeated with keys that were missing from the table.
KEYS_ADDED = 20

CONFIRMED, REFUSED, DIVERGED, UNDECIDED = "confirmed", "refused", "diverged", "undecided"


@dataclass
class Attempt:
    """One order of the statements, and what happened."""

    steps: list[Step]
    played: ExecutionRecord
    result: Result  # of checking what happened for the target
    path: str  # of the recorded history
    deviations: list[str] = field(default_factory=list)  # reads that returned something else

    @property
    def verdict(self) -> str:
        """A violation counts, whatever else happened."""
        if self.result.ok is False:
            return CONFIRMED
        if self.result.ok is None:
            return UNDECIDED
        return REFUSED if self.played.refusals else DIVERGED


@dataclass
class Confirmation:
    """All attempts for one prediction."""

    database: str
    isolation: str
    target: str
    script: Script
    attempts: list[Attempt] = field(default_factory=list)
    fits: bool = True  # whether the database's known concurrency control permits the prediction
    unsatisfied: list[str] = field(default_factory=list)  # reads that no order can satisfy
    seconds: float = 0.0

    @property
    def attempt(self) -> Attempt:
        """The decisive attempt: one that confirms, else an undecided or refused one, else the first."""
        rank = (CONFIRMED, UNDECIDED, REFUSED, DIVERGED)
        return min(self.attempts, key=lambda attempt: rank.index(attempt.verdict))

    @property
    def verdict(self) -> str:
        return self.attempt.verdict

    @property
    def as_predicted(self) -> bool:
        """Whether every read returned what was predicted."""
        return not self.attempt.deviations and not self.attempt.played.refusals


@dataclass(frozen=True)
class ConfirmOptions:
    """Options of a confirmation."""

    isolation: str
    target: str
    folder: str  # for recorded histories
    attempts: int = 5
    limits: Limits = field(default_factory=Limits)


def confirm(
    adapter: Adapter, script: Script, options: ConfirmOptions, workload: SeededProgram | None = None
) -> Confirmation:
    """Send the script's statements to the database in suitable orders, until the target is violated.

    With ``workload``, its program runs and the script only defines the order.
    """
    begin = time.monotonic()
    with setting_up(adapter):
        database = f"{adapter.name} {adapter.version()}"
        settings = {**adapter.settings(), **adapter.setup.session_settings}
    found = Confirmation(database, options.isolation, options.target, script)
    how = concurrency_control(engine(adapter.name), options.isolation, settings)
    for number, steps in enumerate(_orders(found, how, options.limits), 1):
        found.attempts.append(_attempt(adapter, script, steps, options, number, workload, KEYS_ADDED))
        if found.verdict == CONFIRMED or number == options.attempts:
            break
    found.seconds = time.monotonic() - begin
    return found


def fitting_isolation(adapter: Adapter, level: str, database: str = "", isolation: str = "") -> str:
    """Return the isolation at which a run of this level, observed on this database, could happen.

    - The observed isolation, if the database is of the same kind and the isolation allows the level.
    - Otherwise, the strongest isolation that allows it, by our table.
    - Otherwise, the default.
    """
    with setting_up(adapter):
        adapter.version()  # some adapters determine their name here
    known = engine(adapter.name)
    if known is None or level not in LEVELS:
        return isolation if isolation in adapter.isolations else next(iter(adapter.isolations))
    own = known.setting_named(isolation) if known is engine(database) else None
    setting = own if own is not None and own.allows(level) else known.runs(level)
    return next(iter(adapter.isolations)) if setting is None else setting.name.lower()


def _orders(found: Confirmation, how: ConcurrencyControl, limits: Limits) -> Iterator[list[Step]]:
    """Yield orders at this concurrency control, else at weaker ones, else an order that gives up the fewest reads."""
    for weaker in how.weaker():
        found.fits = weaker is how
        with Interleavings(found.script, weaker, limits) as orders:
            steps = orders.find()
            while steps is not None:
                yield steps
                steps = orders.find()
        if found.attempts:
            return
    with Interleavings(found.script, weaker, limits) as orders:
        steps = orders.find(all_reads=False)
        assert steps is not None, "without its reads, a script can always be played"
        found.unsatisfied = [_read(found.script, *place) for place in orders.given_up]
        yield steps


def _attempt(
    adapter: Adapter,
    script: Script,
    steps: list[Step],
    options: ConfirmOptions,
    number: int,
    workload: SeededProgram | None,
    again: int,
) -> Attempt:
    """Execute one order.

    If a program accesses keys that are not in the table, repeat with these keys, at most ``again`` times.
    """
    path = os.path.join(options.folder, f"attempt-{number}.jsonl")
    try:
        with setting_up(adapter):
            claim(adapter)
            adapter.create(script.keys)
            recorder = Recorder(path, _header(adapter, script, options), force=True)
        try:
            program = None if workload is None else ProgramTransactions(workload, script)
            bodies = None if program is None else program.bodies
            played = Conductor(adapter, script, options.isolation, recorder, bodies).play(steps)
            if program is not None:
                played.failures += program.failures(adapter.contents(), played.committed)
        finally:
            recorder.close()
        if recorder.problem:
            raise IsocheckError(recorder.problem)
    finally:
        remove(adapter)
    if program is not None and program.missing and again:
        script.add_keys(program.missing)
        return _attempt(adapter, script, steps, options, number, workload, again - 1)
    history = load(path, init_txn="none")
    result = with_run(check(history, options.target, name=path, limits=options.limits), path)
    return Attempt(steps, played, result, path, list(_deviations(script, played)))


def _header(adapter: Adapter, script: Script, options: ConfirmOptions) -> dict[str, Any]:
    about = {
        "database": adapter.name,
        "version": adapter.version(),
        "url": without_password(adapter.setup.url),
        "settings": {**adapter.settings(), **adapter.setup.session_settings},
        "isolation": [options.isolation],
        "workload": {"confirm": f"{len(script.transactions)} transactions", "sessions": len(script.sessions)},
        "timeout": adapter.setup.timeout,
        "sql": adapter.statements(),
        "begin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "by": f"isocheck {__version__}",
    }
    initial: Any = [] if script.lists else INITIAL_REGISTER
    return {"initial": initial, "ticks_per_second": TICKS_PER_SECOND, "collected": about}


def _deviations(script: Script, played: ExecutionRecord) -> Iterator[str]:
    """Yield where transactions did or read something else than scripted."""
    for t, reason in played.gave_up:
        yield f"{script.transactions[t].id} rolled back: {reason}"
    for t, done in played.done.items():
        yield from _deviations_of(script, played, t, done)


def _deviations_of(script: Script, played: ExecutionRecord, t: int, done: list[DoneStatement]) -> Iterator[str]:
    txn = script.transactions[t]
    for number, (statement, did) in enumerate(zip(txn.statements, done, strict=False)):
        if (statement.kind == "r", statement.key) != (did.what == READ, did.key):
            planned, what = (
                f"{'r' if is_read else 'w'}({key})"
                for is_read, key in ((statement.kind == "r", statement.key), (did.what == READ, did.key))
            )
            yield f"{txn.id} did {what}, not {planned}"
            return
        expected = txn.expected.get(number)
        if expected is not None and expected.firm and did.what == READ:
            last = (did.value[-1] if did.value else 0) if isinstance(did.value, list) else did.value
            source = played.writer.get(last, INITIAL) if isinstance(last, int) and last else INITIAL
            if source != expected.source:
                yield f"{_read(script, t, number)}, and read it from {_writer(script, source)}"


def _read(script: Script, t: int, number: int) -> str:
    """Return a description of what a read should return."""
    txn = script.transactions[t]
    return f"{txn.id} should read {txn.statements[number].key} from {_writer(script, txn.expected[number].source)}"


def _writer(script: Script, t: int) -> str:
    return "the initial state" if t == INITIAL else script.transactions[t].id


class ProgramTransactions:
    """The transactions of a program, for one run."""

    def __init__(self, workload: SeededProgram, script: Script) -> None:
        self._workload, self._names = workload, script.names
        steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
        self.values = _Values(workload.program.initial)
        self.missing: list[str] = []  # accessed keys that are not in the table
        self.bodies: dict[int, Body] = {  # transaction of the script -> what the program does in it
            number: _ProgramBody(steps[txn.id].body, self)
            for number, txn in enumerate(script.transactions)
            if txn.id in steps
        }

    def name(self, key: str) -> str | None:
        """Return the key's name in the table. Return None and remember the key if it is missing."""
        if key not in self._names:
            self.missing.append(key)
        return self._names.get(key)

    def failures(self, contents: Mapping[str, Value], committed: Sequence[str]) -> list[str]:
        """Return the program's failed assertions about the end, given the table's final contents."""

        def final(key: str) -> Any:
            number = contents.get(self._names.get(key, ""), 0)
            assert isinstance(number, int)
            return self.values.value(key, number)

        return assertions(self._workload, committed, final)


class _Values:
    """Number the values that the program writes. The table holds the numbers; 0 means the key's initial value."""

    def __init__(self, initial: Callable[[str], Any]) -> None:
        self.initial = initial
        self._written: dict[int, Any] = {}
        self._numbers = count(1)

    def number(self, value: Any) -> int:
        number = next(self._numbers)
        self._written[number] = value
        return number

    def value(self, key: str, number: int) -> Any:
        return self.initial(key) if number == 0 else self._written[number]


class _ProgramBody(Body):
    """One transaction of the program."""

    def __init__(self, body: Callable[[Any], None], program: ProgramTransactions) -> None:
        self._body, self._program = body, program

    def __call__(self, statements: Statements) -> None:
        txn = _Transaction(statements, self._program)
        self._body(txn)
        txn.reject_absent()


class _Transaction:
    """The store's transaction interface on a real database, for program code.

    A program may access keys that are not in the table. To learn all of them, the transaction continues as if they held
    their initial values, and then rolls back. It is retried with them.
    """

    def __init__(self, statements: Statements, program: ProgramTransactions) -> None:
        self._statements, self._program = statements, program
        self._absent: dict[str, Any] = {}  # missing key -> the value that it would hold

    def read(self, key: str) -> Any:
        name = self._program.name(key)
        if name is None:
            return self._absent.setdefault(key, self._program.values.initial(key))
        number = self._statements.read(name)
        assert isinstance(number, int)
        return self._program.values.value(key, number)

    def write(self, key: str, value: Any) -> None:
        name = self._program.name(key)
        if name is None:
            self._absent[key] = value
        else:
            self._statements.change(name, self._program.values.number(value))

    def reject_absent(self) -> None:
        """Raise Rollback if the transaction accessed a missing key."""
        if self._absent:
            raise Rollback(f"{next(iter(self._absent))} is not in the table")
