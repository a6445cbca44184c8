"""``confirm``: does the database do what was predicted? The verdict is that of the checker on what really happened."""

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
from plume_py.reasoning.predict.confirm.concurrency_control import Discipline, discipline
from plume_py.reasoning.predict.confirm.execution import Conductor, Done, Played
from plume_py.reasoning.predict.confirm.interleaving import Interleavings, Step
from plume_py.reasoning.predict.confirm.script import Script
from plume_py.reasoning.predict.confirm.session import READ, Body, Statements
from plume_py.reasoning.predict.store.program import SeededProgram, assertions, step_id
from plume_py.reasoning.predict.store.store import Rollback
from plume_py.report.recording_metadata import with_run

# How often a run begins again because a program came to a key that nobody had come to before.
KEYS_ADDED = 20

CONFIRMED, REFUSED, DIVERGED, UNDECIDED = "confirmed", "refused", "diverged", "undecided"


@dataclass
class Attempt:
    """One order of the statements, and what the database made of it."""

    steps: list[Step]
    played: Played
    result: Result  # of checking what happened for the target
    path: str  # the history of it
    deviations: list[str] = field(default_factory=list)  # reads that saw something else

    @property
    def verdict(self) -> str:
        """Broken is broken, whatever else happened."""
        if self.result.ok is False:
            return CONFIRMED
        if self.result.ok is None:
            return UNDECIDED
        return REFUSED if self.played.refusals else DIVERGED


@dataclass
class Confirmation:
    """What came of it; ``attempt`` is the one that says most."""

    database: str
    isolation: str
    target: str
    script: Script
    attempts: list[Attempt] = field(default_factory=list)
    fits: bool = True  # is there an order in which the database, as it is known, does what was predicted?
    unsatisfied: list[str] = field(default_factory=list)  # reads that see what they should in no order
    seconds: float = 0.0

    @property
    def attempt(self) -> Attempt:
        """One that confirms, else one that was refused, else the first."""
        rank = (CONFIRMED, UNDECIDED, REFUSED, DIVERGED)
        return min(self.attempts, key=lambda attempt: rank.index(attempt.verdict))

    @property
    def verdict(self) -> str:
        """That of the attempt."""
        return self.attempt.verdict

    @property
    def as_predicted(self) -> bool:
        """Did every read see what was predicted?"""
        return not self.attempt.deviations and not self.attempt.played.refusals


@dataclass(frozen=True)
class Asked:
    """What is to be tried, and for how long."""

    isolation: str
    target: str
    folder: str  # for what is recorded
    attempts: int = 5
    limits: Limits = field(default_factory=Limits)


def confirm(adapter: Adapter, script: Script, asked: Asked, workload: SeededProgram | None = None) -> Confirmation:
    """Send the script's statements to the database of ``adapter``, in orders that fit, until the target is broken.

    With ``workload`` the program itself runs, and the script only says in which order.
    """
    begin = time.monotonic()
    with setting_up(adapter):
        database = f"{adapter.name} {adapter.version()}"
        settings = {**adapter.settings(), **adapter.setup.session_settings}
    found = Confirmation(database, asked.isolation, asked.target, script)
    how = discipline(engine(adapter.name), asked.isolation, settings)
    for number, steps in enumerate(_orders(found, how, asked.limits), 1):
        found.attempts.append(_attempt(adapter, script, steps, asked, number, workload, KEYS_ADDED))
        if found.verdict == CONFIRMED or number == asked.attempts:
            break
    found.seconds = time.monotonic() - begin
    return found


def fitting_isolation(adapter: Adapter, level: str, database: str = "", isolation: str = "") -> str:
    """The isolation at which a run of this level, observed on this database, could happen.

    The observed one, on the same kind of database and if it is no more than the level; else the strongest that is not;
    else the default.
    """
    with setting_up(adapter):
        adapter.version()  # by which some adapters learn their name
    known = engine(adapter.name)
    if known is None or level not in LEVELS:
        return isolation if isolation in adapter.isolations else next(iter(adapter.isolations))
    own = known.setting_named(isolation) if known is engine(database) else None
    setting = own if own is not None and own.allows(level) else known.runs(level)
    return next(iter(adapter.isolations)) if setting is None else setting.name.lower()


def _orders(found: Confirmation, how: Discipline, limits: Limits) -> Iterator[list[Step]]:
    """Orders at this discipline; where there is none, at weaker ones; at last, those that fail the fewest reads."""
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
    asked: Asked,
    number: int,
    workload: SeededProgram | None,
    again: int,
) -> Attempt:
    """Play one order; ``again``, up to so many times, if a program comes to keys that are not in the table."""
    path = os.path.join(asked.folder, f"attempt-{number}.jsonl")
    try:
        with setting_up(adapter):
            claim(adapter)
            adapter.create(script.keys)
            recorder = Recorder(path, _header(adapter, script, asked), force=True)
        try:
            cast = None if workload is None else ProgramTransactions(workload, script)
            bodies = None if cast is None else cast.bodies
            played = Conductor(adapter, script, asked.isolation, recorder, bodies).play(steps)
            if cast is not None:
                played.failures += cast.failures(adapter.contents(), played.committed)
        finally:
            recorder.close()
        if recorder.problem:
            raise IsocheckError(recorder.problem)
    finally:
        remove(adapter)
    if cast is not None and cast.missing and again:
        script.add_keys(cast.missing)
        return _attempt(adapter, script, steps, asked, number, workload, again - 1)
    history = load(path, init_txn="none")
    result = with_run(check(history, asked.target, name=path, limits=asked.limits), path)
    return Attempt(steps, played, result, path, list(_deviations(script, played)))


def _header(adapter: Adapter, script: Script, asked: Asked) -> dict[str, Any]:
    about = {
        "database": adapter.name,
        "version": adapter.version(),
        "url": without_password(adapter.setup.url),
        "settings": {**adapter.settings(), **adapter.setup.session_settings},
        "isolation": [asked.isolation],
        "workload": {"confirm": f"{len(script.transactions)} transactions", "sessions": len(script.sessions)},
        "timeout": adapter.setup.timeout,
        "sql": adapter.statements(),
        "begin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "by": f"isocheck {__version__}",
    }
    initial: Any = [] if script.lists else INITIAL_REGISTER
    return {"initial": initial, "ticks_per_second": TICKS_PER_SECOND, "collected": about}


def _deviations(script: Script, played: Played) -> Iterator[str]:
    """Where transactions did or saw something else than they should."""
    for t, reason in played.gave_up:
        yield f"{script.transactions[t].id} rolled back: {reason}"
    for t, done in played.done.items():
        yield from _deviations_of(script, played, t, done)


def _deviations_of(script: Script, played: Played, t: int, done: list[Done]) -> Iterator[str]:
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
    """What a read should see."""
    txn = script.transactions[t]
    return f"{txn.id} should read {txn.statements[number].key} from {_writer(script, txn.expected[number].source)}"


def _writer(script: Script, t: int) -> str:
    return "the initial state" if t == INITIAL else script.transactions[t].id


# From program_adapter.py: Transactions of a program on a real database, whose table has integers: each stands for
# what was written.
class ProgramTransactions:
    """The transactions of a program, for one run."""

    def __init__(self, workload: SeededProgram, script: Script) -> None:
        self._workload, self._names = workload, script.names
        steps = {step_id(s, i, step): step for s, steps in enumerate(workload.plan()) for i, step in enumerate(steps)}
        self.values = _Values(workload.program.initial)
        self.missing: list[str] = []  # keys that it came to and that are not in the table
        self.bodies: dict[int, Body] = {  # transaction of the script -> what the program does in it
            number: _ProgramBody(steps[txn.id].body, self)
            for number, txn in enumerate(script.transactions)
            if txn.id in steps
        }

    def name(self, key: str) -> str | None:
        """Of a key in the table; None if it is not there, which is remembered."""
        if key not in self._names:
            self.missing.append(key)
        return self._names.get(key)

    def failures(self, contents: Mapping[str, Value], committed: Sequence[str]) -> list[str]:
        """Of the program's assertions about the end, with what the table has then."""

        def final(key: str) -> Any:
            number = contents.get(self._names.get(key, ""), 0)
            assert isinstance(number, int)
            return self.values.value(key, number)

        return assertions(self._workload, committed, final)


class _Values:
    """What the integers stand for."""

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

    def __init__(self, body: Callable[[Any], None], cast: ProgramTransactions) -> None:
        self._body, self._cast = body, cast

    def __call__(self, statements: Statements) -> None:
        txn = _Transaction(statements, self._cast)
        self._body(txn)
        txn.reject_absent()


class _Transaction:
    """As the store's, for the bodies of programs.

    A program may come to keys that nobody had come to before. To know all of them it goes on as if they were there, and
    is rolled back; then it is tried again with them.
    """

    def __init__(self, statements: Statements, cast: ProgramTransactions) -> None:
        self._statements, self._cast = statements, cast
        self._absent: dict[str, Any] = {}  # keys that are not in the table, and what they would hold

    def read(self, key: str) -> Any:
        """What the database shows."""
        name = self._cast.name(key)
        if name is None:
            return self._absent.setdefault(key, self._cast.values.initial(key))
        number = self._statements.read(name)
        assert isinstance(number, int)
        return self._cast.values.value(key, number)

    def write(self, key: str, value: Any) -> None:
        """Seen by others after the commit."""
        name = self._cast.name(key)
        if name is None:
            self._absent[key] = value
        else:
            self._statements.change(name, self._cast.values.number(value))

    def reject_absent(self) -> None:
        """Nothing of it may count if it came to keys that are not there."""
        if self._absent:
            raise Rollback(f"{next(iter(self._absent))} is not in the table")
