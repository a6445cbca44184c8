"""Transaction programs from a log of statements: grouped by session, without their values, each program once.

Which values are the same is guessed: two places of a program have one parameter if they had the same value in every
run that was seen. A transaction that failed or rolled back has left nothing, and is left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from plume_py.base.errors import InputError
from plume_py.base.sql.log_entries import HINT, Entry, entries
from plume_py.base.sql.log_statements import Shape, given_values, shape, type_of

MOST_PROGRAMS = 200
MOST_STATEMENTS = 1000  # of one transaction
MOST_SESSIONS = 100_000  # that are open at once
LONGEST_BLOCK = 6  # statements that may be repeated, as for each line of an order

_LOGGED = re.compile(r"(?:statement|execute (?!fetch from )[^:]{0,200}): (.*)", re.DOTALL)
_GIVEN = re.compile(r"[Pp]arameters: (.*)", re.DOTALL)
_ENDS = ("ERROR", "FATAL", "PANIC")
# About the session or the server, not about rows.
_ASIDE = {
    "SET", "RESET", "SHOW", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN", "NOTIFY", "ANALYZE", "VACUUM", "CHECKPOINT",
    "REINDEX", "COMMENT", "GRANT", "REVOKE", "SAVEPOINT", "RELEASE",
}  # fmt: skip
_OF_SERVER = re.compile(r"(?:CREATE|ALTER|DROP)\s+(?:SYSTEM|ROLE|USER|DATABASE|EXTENSION|SCHEMA)\b", re.IGNORECASE)
_SCHEMA = re.compile(r"(?:CREATE|ALTER|DROP)\b", re.IGNORECASE)
_SOURCE = re.compile(r'\b(?:FROM|JOIN)\s+("?[\w.]+"?)', re.IGNORECASE)
_OF_SYSTEM = re.compile(r'"?(?:pg_catalog\.|information_schema\.|pg_)', re.IGNORECASE)
_NOTHING = re.compile(
    r"SELECT\s+(?:1|(?:pg_catalog\.)?(?:version|current_schema|current_database|set_config|pg_\w+)\s*\([^()]*\))",
    re.IGNORECASE,
)
_WRITES = re.compile(r'(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?"?(?:\w+"?\."?)?(\w+)', re.IGNORECASE)


@dataclass(frozen=True)
class _Logged:
    """A statement and the line where the log has it."""

    line: int
    shape: Shape

    @property
    def text(self) -> str:
        return " … ".join(self.shape.pieces).strip()

    @property
    def word(self) -> str:
        return self.text[:40].split(" ")[0].upper()


@dataclass
class _Session:
    pending: list[_Logged] = field(default_factory=list)  # it is not known yet whether these have failed
    done: list[_Logged] = field(default_factory=list)  # of the transaction that is under way
    is_open: bool = False  # after BEGIN
    failed: bool = False


@dataclass
class LogProgram:
    """A program, and in how many runs it was seen. ``group`` says which places have the same parameter."""

    statements: tuple[tuple[int, tuple[str, ...]], ...]  # line in the log, and the text around the values
    runs: int
    group: list[int]
    seen: list[set[str]]  # of each place: types of the values
    first: list[str]  # the values of the first run
    name: str = ""

    def see(self, values: Sequence[str]) -> None:
        """Another run of it."""
        self.runs += 1
        numbers: dict[tuple[int, str], int] = {}
        self.group = [numbers.setdefault(pair, len(numbers)) for pair in zip(self.group, values, strict=True)]
        for types, value in zip(self.seen, values, strict=True):
            types.add(type_of(value))


@dataclass
class Log:
    """What a log has in it."""

    programs: list[LogProgram]
    counts: Counter[str]
    schema: list[tuple[int, str]]  # statements that make tables, with their lines


def read_log(path: str, fold: bool) -> Log:
    """The programs of a log. ``fold``: of statements that are repeated more than twice in a row, two are enough."""
    try:
        return _Reading(fold).of(entries(path))
    except InputError as error:
        raise error.in_source(path) from None


class _Reading:
    def __init__(self, fold: bool) -> None:
        self.fold = fold
        self.sessions: dict[str, _Session] = {}
        self.programs: dict[tuple[tuple[str, ...], ...], LogProgram] = {}
        self.counts: Counter[str] = Counter()
        self.schema: dict[str, int] = {}

    def of(self, found: Iterable[Entry]) -> Log:
        """All entries, and what is left when there are no more."""
        for entry in found:
            try:
                self._take(entry)
            except InputError as error:
                raise (
                    error if error.where else InputError(error.problem, where=f"line {entry.line}", hint=error.hint)
                ) from None
        for session in self.sessions.values():
            self._settle(session)
            self.counts["not ended"] += session.is_open
        if not self.programs:
            raise InputError("no transaction that has committed", hint=HINT)
        programs = list(self.programs.values())
        _name(programs)
        return Log(programs, self.counts, [(line, text) for text, line in self.schema.items()])

    def _take(self, entry: Entry) -> None:
        session = self.sessions.get(entry.session)
        if entry.severity in _ENDS:
            if session is not None:
                self._fail(session, gone=entry.severity != "ERROR")
        elif entry.severity == "DETAIL":
            given = _GIVEN.fullmatch(entry.message)
            if given is not None and session is not None and session.pending:
                session.pending = [_filled(stmt, given_values(given[1])) for stmt in session.pending]
        elif entry.severity == "LOG" and (logged := _LOGGED.fullmatch(entry.message)):
            if session is None:
                if len(self.sessions) == MOST_SESSIONS:
                    raise InputError(f"more than {MOST_SESSIONS:,} sessions", hint="take a part of the log")
                session = self.sessions[entry.session] = _Session()
            self._settle(session)
            session.pending = [_Logged(entry.line, Shape((logged[1],), ()))]

    def _settle(self, session: _Session) -> None:
        """What was logged last has not failed. Several statements in one are a transaction, without BEGIN, too."""
        for stmt in session.pending:
            for part in _parts(stmt):
                self._execute(session, part)
        session.pending = []
        if not session.is_open:
            self._commit(session)

    def _execute(self, session: _Session, stmt: _Logged) -> None:
        word, text = stmt.word, stmt.text
        if word == "BEGIN" or text[:17].upper() == "START TRANSACTION":
            self.counts["not ended"] += session.is_open
            if session.is_open:
                session.done, session.failed = [], False
            session.is_open = True
        elif word in ("COMMIT", "END") and "CHAIN" not in text.upper():
            self._commit(session)
        elif word in ("ROLLBACK", "ABORT") and " TO " not in f"{text.upper()} ":
            self.counts["rolled back"] += session.is_open and not session.failed
            self.counts["failed"] += session.failed
            session.is_open, session.failed, session.done = False, False, []
        elif word in ("COMMIT", "END", "ROLLBACK", "ABORT"):
            if not session.failed:
                raise InputError(f"{text[:40]} is not understood", where=f"line {stmt.line}", hint=_AGAIN)
        elif word in _ASIDE or _OF_SERVER.match(text) or _is_about_system(text):
            self.counts["left aside"] += 1
        elif _SCHEMA.match(text):
            self.schema.setdefault(_whole(stmt), stmt.line)
        else:
            if len(session.done) == MOST_STATEMENTS:
                raise InputError(f"a transaction of more than {MOST_STATEMENTS} statements", where=f"line {stmt.line}")
            session.done.append(stmt)

    def _fail(self, session: _Session, gone: bool) -> None:
        """The statement that was logged last has failed, and with it its transaction."""
        if session.is_open and not gone:
            ended = any(part.word in ("COMMIT", "END") for stmt in session.pending for part in _parts(stmt))
            session.failed = True
            session.pending = []
            if ended:
                self._commit(session)
            return
        self.counts["failed"] += bool(session.pending or session.done or session.is_open)
        session.pending, session.done, session.is_open, session.failed = [], [], False, False

    def _commit(self, session: _Session) -> None:
        done, failed = session.done, session.failed
        session.is_open, session.failed, session.done = False, False, []
        if failed:
            self.counts["failed"] += 1
        elif done:
            self._keep(_folded(done) if self.fold else done)

    def _keep(self, done: Sequence[_Logged]) -> None:
        self.counts["committed"] += 1
        key = tuple(stmt.shape.pieces for stmt in done)
        values = list(chain.from_iterable(stmt.shape.values for stmt in done))
        program = self.programs.get(key)
        if program is None:
            if len(self.programs) == MOST_PROGRAMS:
                hint = "take a part of the log, or of the application"
                raise InputError(
                    f"more than {MOST_PROGRAMS} different programs", where=f"line {done[0].line}", hint=hint
                )
            lines = tuple((stmt.line, stmt.shape.pieces) for stmt in done)
            program = LogProgram(lines, 0, [0] * len(values), [set() for _ in values], values)
            self.programs[key] = program
        program.see(values)


_AGAIN = "leave it out of the log, and write the transaction by hand: see docs/sql.md"


def _filled(stmt: _Logged, given: dict[int, str | None]) -> _Logged:
    try:
        return _Logged(stmt.line, shape(stmt.shape.pieces[0], given)) if not stmt.shape.values else stmt
    except InputError as error:
        raise InputError(error.problem, where=f"line {stmt.line}", hint=error.hint) from None


def _parts(stmt: _Logged) -> Iterator[_Logged]:
    """The statements of one entry; a statement whose parameters were not told has none."""
    whole = stmt.shape if stmt.shape.values else _filled(stmt, {}).shape
    pieces: list[str] = [""]
    values: list[str] = []
    left = iter(whole.values)
    for place, piece in enumerate(whole.pieces):
        if place:
            values.append(next(left))
            pieces.append("")
        first, *others = piece.split(";")
        pieces[-1] += first
        for other in others:
            yield from _one(stmt.line, pieces, values)
            pieces, values = [other], []
    yield from _one(stmt.line, pieces, values)


def _one(line: int, pieces: list[str], values: list[str]) -> Iterator[_Logged]:
    if values or pieces[0].strip():
        yield _Logged(line, Shape(tuple(piece.strip() for piece in pieces), tuple(values)))


def _is_about_system(text: str) -> bool:
    sources = _SOURCE.findall(text)
    if text[:6].upper() != "SELECT":
        return False
    return all(_OF_SYSTEM.match(name) for name in sources) if sources else bool(_NOTHING.fullmatch(text))


def _whole(stmt: _Logged) -> str:
    """A statement with its values in their places, as numbers or texts."""
    parts = [stmt.shape.pieces[0]]
    for value, piece in zip(stmt.shape.values, stmt.shape.pieces[1:], strict=True):
        quoted = value if type_of(value) in ("INT", "DECIMAL") else "'" + value.replace("'", "''") + "'"
        parts += [quoted, piece]
    return " ".join(parts)


def _folded(done: Sequence[_Logged]) -> list[_Logged]:
    """Without what is repeated in a row more than twice."""
    kept: list[_Logged] = []
    at = 0
    while at < len(done):
        for length in range(1, LONGEST_BLOCK + 1):
            times = _times(done, at, length)
            if times > 2:
                kept += done[at : at + 2 * length]
                at += times * length
                break
        else:
            kept.append(done[at])
            at += 1
    return kept


def _times(done: Sequence[_Logged], at: int, length: int) -> int:
    block = [stmt.shape.pieces for stmt in done[at : at + length]]
    times = 1
    while block and [s.shape.pieces for s in done[at + times * length : at + (times + 1) * length]] == block:
        times += 1
    return times


def _name(programs: Sequence[LogProgram]) -> None:
    """After what they write first, or else after what they do first."""
    taken: Counter[str] = Counter()
    for program in programs:
        texts = [" ".join(pieces) for _, pieces in program.statements]
        found = next((match for text in texts if (match := _WRITES.match(text))), None)
        if found is not None:
            plain = f"{found[1].split()[0].lower()}_{found[2].lower()}"
        else:
            source = _SOURCE.search(texts[0])
            plain = "read" + (f"_{re.sub(r'[^a-z0-9_]', '', source[1].lower().split('.')[-1])}" if source else "")
        taken[plain] += 1
        program.name = plain if taken[plain] == 1 else f"{plain}_{taken[plain]}"
