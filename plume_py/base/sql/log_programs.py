"""Derive transaction programs from a log of statements, and return them as a SQL file with its tables.

1. Entries are grouped by session and split into transactions.
2. Transactions that differ only in values are runs of one program.
3. Two values of a program become one parameter if they were equal in every run (a guess).

A transaction that wrote and did not commit is skipped, because it left no trace. A transaction that only read counts as
committed however it ended, because the application may use the values. The exception is a serialization failure or a
deadlock: the database rejects the reads, and the application must run the transaction again.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from plume_py.base.errors import InputError
from plume_py.base.sql.files import MAX_BYTES, load, parse
from plume_py.base.sql.log_entries import HINT, Entry, Shape, entries, given_values, shape, type_of
from plume_py.base.sql.model import File
from plume_py.base.sql.syntax import engine, statement

MOST_PROGRAMS = 200
MOST_STATEMENTS = 1000  # of one transaction
MOST_SESSIONS = 100_000  # open at the same time
LONGEST_BLOCK = 6  # statements that are recognised as repeated, as for each line of an order

_LOGGED = re.compile(
    r"(?P<after>duration: [\d.]{1,20} ms  )?(?:statement|execute (?!fetch from )[^:]{0,200}): (?P<text>.*)", re.DOTALL
)
_GIVEN = re.compile(r"[Pp]arameters: (.*)", re.DOTALL)
_PREPARED = re.compile(r"prepare: PREPARE\s.*?\sAS\s(.*)", re.DOTALL | re.IGNORECASE)
_EXECUTE = re.compile(r'EXECUTE\s+(?:\w+|"[^"]*")\s*(?:\((.*)\))?\s*;?\s*', re.DOTALL | re.IGNORECASE)
_TWO_PHASES = re.compile(r"PREPARE\s+TRANSACTION\b", re.IGNORECASE)
_PREPARE = re.compile(r"\s*PREPARE\s+(?!TRANSACTION\b)", re.IGNORECASE)
_CHAIN = re.compile(r"(?<!\bNO)\s+CHAIN\b", re.IGNORECASE)  # the next transaction starts immediately
_CURSOR = re.compile(r'DECLARE\s+(?:\w+|"[^"]*")\s[^;]*?\bFOR\s+(?=SELECT\b|WITH\b|VALUES\b)', re.IGNORECASE)
_ENDS = ("ERROR", "FATAL", "PANIC")
_ABOUT_ERROR = ("DETAIL", "HINT", "CONTEXT", "QUERY", "LOCATION")
# After these errors the application must not use what it read. In a log in another language, they are not recognised.
_REJECTED = re.compile(
    r"could not serialize access|deadlock detected|canceling statement due to conflict with recovery"
)
# Statements about the session or the server, not about rows.
_ABOUT_SESSION = {
    "SET", "RESET", "SHOW", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN", "NOTIFY", "ANALYZE", "VACUUM", "CHECKPOINT",
    "REINDEX", "COMMENT", "GRANT", "REVOKE", "FETCH", "MOVE", "CLOSE", "CLUSTER",
}  # fmt: skip
_READS = ("SELECT", "WITH", "VALUES", "TABLE")
_DATA_WORD = re.compile(r"(?<!FOR )(?<!FOR NO KEY )\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_SAVEPOINT = re.compile(r'(SAVEPOINT|RELEASE|ROLLBACK|ABORT)\b(?:.*\bTO\b)?(?:\s+SAVEPOINT\b)?\s+(\w+|"[^"]*")', re.I)
_OF_SERVER = re.compile(r"(?:CREATE|ALTER|DROP)\s+(?:SYSTEM|ROLE|USER|DATABASE|EXTENSION|SCHEMA)\b", re.IGNORECASE)
_SCHEMA = re.compile(r"(?:CREATE|ALTER|DROP)\b", re.IGNORECASE)
_SOURCE = re.compile(r'\b(?:FROM|JOIN|USING)\s+("?[\w.]+"?)', re.IGNORECASE)
_OF_SYSTEM = re.compile(r'"?(?:pg_catalog\.|information_schema\.|pg_)', re.IGNORECASE)
# Statements that contain a query.
_COPIED = re.compile(r'COPY\s+((?:"?\w+"?\.)?"?\w+"?)\s*(?:\(([^()]*)\))?\s+TO\b', re.IGNORECASE)
_COPIED_QUERY = re.compile(r"COPY\s*\(\s*(?=\(?\s*(?:SELECT|WITH)\b)", re.IGNORECASE)
_COPIED_TO = re.compile(r"\)\s*TO(?:\s+(?:STDOUT|PROGRAM)\b|\s*$)", re.IGNORECASE)
_TEMPORARY = re.compile(
    r"CREATE\s+(?:(?:GLOBAL|LOCAL)\s+)?TEMP(?:ORARY)?\s+TABLE\s+[^()]*?(?:\([\w\s,\"]*\)[^()]*?)?\bAS\s+(?=\(*\s*(?:SELECT|WITH)\b)",
    re.IGNORECASE,
)
_MADE_OF = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:\w+\s+){0,2}TABLE\b.*?\bAS\s*\(*\s*(?:SELECT|WITH|TABLE|VALUES|EXECUTE)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"SELECT\s+(?:1|(?:pg_catalog\.)?(?:version|current_schema|current_database|set_config|pg_\w+)\s*\([^()]*\))",
    re.IGNORECASE,
)
_WRITES = re.compile(r'(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?"?(?:\w+"?\."?)?(\w+)', re.IGNORECASE)
_LINE = re.compile(r"line (\d+)")
# Characters of an example value that are shown.
_SHOWN = 40
_AGAIN = "leave it out of the log, and write the transaction by hand: see docs/sql.md"


@dataclass(frozen=True)
class _Logged:
    """A statement and its line of the log."""

    line: int
    shape: Shape

    @property
    def text(self) -> str:
        return " … ".join(self.shape.pieces).strip()

    @property
    def word(self) -> str:
        return self.text[:40].split(" ")[0].upper()

    @property
    def only_reads(self) -> bool:
        """Whether it is a query without a part that writes."""
        return self.text.lstrip("( ")[:8].split(" ")[0].upper() in _READS and _DATA_WORD.search(self.text) is None


@dataclass
class _Session:
    pending: list[_Logged] = field(default_factory=list)  # the next entries show whether these have failed
    raw: str = ""  # the text of the pending statement
    succeeded: bool = False  # the pending statement was logged after its end, with its duration
    error: str | None = None  # an error of a statement that is not known yet
    done: list[_Logged] = field(default_factory=list)  # statements of the current transaction
    is_open: bool = False  # after BEGIN
    failed: bool = False
    rejected: bool = False  # by a serialization failure or a deadlock
    savepoints: list[tuple[str, int]] = field(default_factory=list)  # names, and the number of statements before them

    def end(self) -> list[_Logged]:
        """End the transaction and return what it did."""
        done = self.done
        self.done, self.savepoints = [], []
        self.is_open = self.failed = self.rejected = False
        return done


@dataclass
class LogProgram:
    """A program and the number of its runs. Values with the same number in ``group`` have one parameter."""

    statements: tuple[tuple[int, tuple[str, ...]], ...]  # line in the log, and the text around the values
    runs: int
    group: list[int]
    seen: list[set[str]]  # by value: the types in all runs
    first: list[str]  # the values of the first run
    name: str = ""

    def see(self, values: Sequence[str]) -> None:
        """Add a run with these values."""
        self.runs += 1
        numbers: dict[tuple[int, str], int] = {}
        self.group = [numbers.setdefault(pair, len(numbers)) for pair in zip(self.group, values, strict=True)]
        for types, value in zip(self.seen, values, strict=True):
            types.add(type_of(value))


@dataclass
class Log:
    """The content of a log."""

    programs: list[LogProgram]
    counts: Counter[str]
    schema: list[tuple[int, str]]  # statements that create tables, with their lines


@dataclass(frozen=True)
class LogFile:
    """The programs of a log as a SQL file and as text, with a summary."""

    file: File
    path: str
    listing: tuple[str, ...]  # the text; notes refer to its lines
    summary: str
    lines: tuple[int, ...]  # by line of the listing: the line of the log

    @contextmanager
    def located_errors(self) -> Iterator[None]:
        """Replace lines of the listing by lines of the log in errors inside the block."""
        with _errors_in_log(self.path, self.lines):
            yield


def load_log(path: str, schema: str | None, any_query: bool = False, fold: bool = False) -> LogFile:
    """Read a log, and the tables from the file ``schema`` or from statements of the log.

    ``any_query``: see ``files.load``; ``fold``: see ``read_log``.
    """
    given = load(schema, any_query, functions=False) if schema is not None else None
    log = read_log(path, fold, [table.name for table in given.tables] if given is not None else ())
    written = [line for program in log.programs for line in _written(program)]
    places = tuple(place for place, _ in written)
    # example values in comments are not parsed
    text = "\n".join("" if line.startswith("-- seen ") else line for _, line in written)
    if len(text) > MAX_BYTES:
        raise InputError(f"programs of more than {MAX_BYTES} bytes", hint="take a part of the log").in_source(path)
    with _errors_in_log(path, places):
        file = parse(text, Path(path).stem, any_query)
    base = given if given is not None else _tables(log, path)
    both = replace(base, transactions=(*base.transactions, *file.transactions), name=file.name)
    return LogFile(both, path, tuple(line for _, line in written[:-1]), _summary(log, schema), places)


def _tables(log: Log, path: str) -> File:
    """Return the tables that statements of the log create."""
    text = "\n".join(f"{' '.join(text.split())};" for _, text in log.schema)
    with _errors_in_log(path, tuple(line for line, _ in log.schema)):
        return parse(text, Path(path).stem)


@contextmanager
def _errors_in_log(path: str, lines: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        found = _LINE.fullmatch(error.where)
        if found is not None and 0 < int(found[1]) <= len(lines):
            error.where = f"line {lines[int(found[1]) - 1]}"
        raise error.in_source(path) from None
    except RecursionError:
        raise InputError("nested too deeply").in_source(path) from None


def _written(program: LogProgram) -> Iterator[tuple[int, str]]:
    """Yield the lines of a program, each with its line of the log."""
    first = program.statements[0][0]
    number = {group: f"p{n}" for n, group in enumerate(dict.fromkeys(program.group), 1)}
    types: dict[int, set[str]] = {}
    example: dict[int, str] = {}
    for group, seen, value in zip(program.group, program.seen, program.first, strict=True):
        types.setdefault(group, set()).update(seen)
        example.setdefault(group, value)
    listed = ", ".join(f"{name} {_common_type(types[group])}" for group, name in number.items())
    yield first, f"-- transaction: {program.name}({listed})"
    shown = ", ".join(f"{name} as {_example(example[group])}" for group, name in number.items())
    times = "once" if program.runs == 1 else f"{program.runs:,} times, first"
    yield first, f"-- seen {times} in line {first}" + (f": {shown}" if shown else "")
    names = iter([number[group] for group in program.group])
    for line, pieces in program.statements:
        text = pieces[0]
        for piece in pieces[1:]:
            text += f" :{next(names)} {piece}"
        yield line, f"{' '.join(text.split())};"
    yield first, ""


def _common_type(types: set[str]) -> str:
    """Return a type for all values: DECIMAL for INT and DECIMAL, TEXT for other mixtures."""
    if types <= {"INT", "DECIMAL"}:
        return "DECIMAL" if "DECIMAL" in types else "INT"
    return types.copy().pop() if len(types) == 1 else "TEXT"


def _example(value: str) -> str:
    plain = " ".join(value.split())
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"


def _summary(log: Log, schema: str | None) -> str:
    counts = log.counts
    left = [f"{counts[kind]:,} {kind}" for kind in ("rolled back", "failed", "not ended") if counts[kind]]
    if counts["left aside"]:
        left.append(f"{_counted(counts['left aside'], 'statement')} about the session or the system")
    if log.schema and schema is not None:
        left.append(f"{_counted(len(log.schema), 'statement')} about tables, which --schema has")
    summary = f"{_counted(counts['committed'], 'transaction')} of {_counted(len(log.programs), 'program')}"
    if counts["only read"]:
        summary += f", {counts['only read']:,} of which only read and did not commit"
    summary += f"; left out: {', '.join(left)}" if left else ""
    if not counts["begun"] and counts["committed"] > 1:
        summary += (
            "; no BEGIN: each statement counts as a transaction of its own, which is wrong if statements are missing, "
            "as with log_statement = 'mod' or log_min_duration_statement above 0"
        )
    return summary


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def read_log(path: str, fold: bool, tables: Collection[str] = ()) -> Log:
    """Return the programs of a log. ``fold``: shorten repetitions of statements to two.

    ``tables``: names of known tables of the application.
    """
    try:
        return _LogReader(fold, tables).of(entries(path))
    except InputError as error:
        raise error.in_source(path) from None


class _LogReader:
    def __init__(self, fold: bool, tables: Collection[str]) -> None:
        self.fold, self.tables = fold, tables
        self.sessions: dict[str, _Session] = {}
        self.programs: dict[tuple[tuple[str, ...], ...], LogProgram] = {}
        self.counts: Counter[str] = Counter()
        self.schema: dict[str, int] = {}

    def of(self, found: Iterable[Entry]) -> Log:
        """Return the programs of these entries."""
        for entry in found:
            try:
                self._take(entry)
            except InputError as error:
                raise (
                    error if error.where else InputError(error.problem, where=f"line {entry.line}", hint=error.hint)
                ) from None
        for session in self.sessions.values():
            self._apply_error(session)
            self._execute_pending(session)
            if session.is_open:
                self._end_without_commit(session, "not ended")
        if not self.programs:
            raise InputError("no transaction that has committed", hint=HINT)
        programs = list(self.programs.values())
        _name_programs(programs)
        return Log(programs, self.counts, [(line, text) for text, line in self.schema.items()])

    def _take(self, entry: Entry) -> None:
        session = self.sessions.get(entry.session)
        if session is not None and session.error is not None:
            if entry.severity in _ABOUT_ERROR:
                return
            self._apply_error(session, entry.message if entry.severity == "STATEMENT" else None)
        if entry.severity in _ENDS:
            if session is not None and entry.severity == "ERROR":
                session.error = entry.message
            elif session is not None:
                self._lose(session)
        elif entry.severity == "DETAIL":
            if session is None or not session.pending:
                return
            if given := _GIVEN.fullmatch(entry.message):
                session.pending = [_filled(stmt, given_values(given[1])) for stmt in session.pending]
            elif prepared := _PREPARED.fullmatch(entry.message):
                session.pending = [_executed(stmt, prepared[1]) for stmt in session.pending]
        elif entry.severity == "LOG" and (logged := _LOGGED.fullmatch(entry.message)):
            if session is None:
                if len(self.sessions) == MOST_SESSIONS:
                    raise InputError(f"more than {MOST_SESSIONS:,} sessions", hint="take a part of the log")
                session = self.sessions[entry.session] = _Session()
            self._execute_pending(session)
            if _PREPARE.match(logged["text"]):  # its EXECUTE is logged with the statement
                self.counts["left aside"] += 1
                return
            session.pending = [_Logged(entry.line, Shape((logged["text"],), ()))]
            session.raw, session.succeeded = logged["text"], logged["after"] is not None

    def _execute_pending(self, session: _Session) -> None:
        """Execute the pending statements, which did not fail; several in one entry are a transaction without BEGIN."""
        for stmt in session.pending:
            for part in _split_at_semicolons(stmt):
                self._execute(session, part)
        session.pending = []
        if not session.is_open:
            self._commit(session)

    def _execute(self, session: _Session, stmt: _Logged) -> None:
        word, text = stmt.word, stmt.text
        if word == "BEGIN" or text[:17].upper() == "START TRANSACTION":
            if session.is_open:  # a new session with the number of a closed one
                self._end_without_commit(session, "not ended")
            session.is_open = True
            self.counts["begun"] += 1
        elif word in ("COMMIT", "END") or _TWO_PHASES.match(text):
            self._commit(session)
            session.is_open = _CHAIN.search(text) is not None
        elif word in ("SAVEPOINT", "RELEASE") or (word in ("ROLLBACK", "ABORT") and " TO " in f"{text.upper()} "):
            self._savepoint(session, stmt)
        elif word in ("ROLLBACK", "ABORT"):
            if session.is_open:
                self._end_without_commit(session, "failed" if session.failed else "rolled back")
            session.is_open = _CHAIN.search(text) is not None
        elif word in _ABOUT_SESSION or _OF_SERVER.match(text) or _is_about_system(text, self.tables):
            self.counts["left aside"] += 1
        elif (read := _read_of(stmt)) is not None:
            session.done.append(read)
        elif _SCHEMA.match(text) and _MADE_OF.match(text) is None:
            self.schema.setdefault(_with_values(stmt), stmt.line)
        else:
            if len(session.done) >= MOST_STATEMENTS:
                raise InputError(f"a transaction of more than {MOST_STATEMENTS} statements", where=f"line {stmt.line}")
            session.done.append(stmt)

    def _savepoint(self, session: _Session, stmt: _Logged) -> None:
        """Set, release or roll back to a savepoint; writes since then are undone, reads remain."""
        self.counts["left aside"] += 1
        found = _SAVEPOINT.match(stmt.text)
        name = found[2].strip('"').lower() if found is not None else ""
        if stmt.word == "SAVEPOINT":
            session.savepoints.append((name, len(session.done)))
            return
        place = next((i for i, (known, _) in reversed([*enumerate(session.savepoints)]) if known == name), None)
        if stmt.word == "RELEASE":
            del session.savepoints[len(session.savepoints) if place is None else place :]
            return
        if place is None:
            raise InputError(f"{stmt.text[:40]} is not understood", where=f"line {stmt.line}", hint=_AGAIN)
        begin = session.savepoints[place][1]
        del session.savepoints[place + 1 :]
        session.done[begin:] = [read for done in session.done[begin:] for read in _reads_of(done)]
        session.failed = session.rejected = False

    def _lose(self, session: _Session) -> None:
        """End a session after its connection was lost; its last statement counts as executed."""
        self._execute_pending(session)
        if session.is_open:
            self._end_without_commit(session, "failed")

    def _apply_error(self, session: _Session, statement: str | None = None) -> None:
        """Apply an error to the pending statement, or to one that was not logged before."""
        message, session.error = session.error, None
        if message is None:
            return
        if session.succeeded or (statement is not None and statement.split() != session.raw.split()):
            self._execute_pending(session)
        parts = [part for stmt in session.pending for part in _split_at_semicolons(stmt)]
        session.pending = []
        if not session.is_open:
            self.counts["failed"] += bool(parts)
            return
        session.failed = True
        session.rejected = session.rejected or _REJECTED.search(message) is not None
        if session.savepoints:  # the transaction may roll back to one and continue, knowing that this statement failed
            session.done += [read for part in parts if _WRITES.match(part.text) for read in _reads_of(part)]
        if any(part.word in ("COMMIT", "END") for part in parts):
            self._end_without_commit(session, "failed")

    def _commit(self, session: _Session) -> None:
        if session.failed:
            self._end_without_commit(session, "failed")
        elif done := session.end():
            self.counts["committed"] += 1
            self._keep(_without_repetitions(done) if self.fold else done)

    def _end_without_commit(self, session: _Session, how: str) -> None:
        """End a transaction that did not commit; if it only read, it counts as committed."""
        rejected = session.rejected
        done = session.end()
        if done and not rejected and all(stmt.only_reads for stmt in done):
            self.counts["committed"] += 1
            self.counts["only read"] += 1
            self._keep(_without_repetitions(done) if self.fold else done)
        else:
            self.counts[how] += 1

    def _keep(self, done: Sequence[_Logged]) -> None:
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


def _reads_of(stmt: _Logged) -> list[_Logged]:
    """Return the reads of a statement after its writes are undone: the query itself, or all tables of a change."""
    if stmt.only_reads or _WRITES.match(stmt.text) is None:
        return [stmt]
    names = [match[2] for match in _WRITES.finditer(stmt.text)]
    names += [name for name in _SOURCE.findall(stmt.text) if not _OF_SYSTEM.match(name)]
    tables = dict.fromkeys(name.replace('"', "").split(".")[-1] for name in names)
    return [_Logged(stmt.line, Shape((f"SELECT * FROM {name}",), ())) for name in tables]  # noqa: S608 - not sent


def _executed(stmt: _Logged, text: str) -> _Logged:
    """Return the prepared statement ``text`` with the arguments of the EXECUTE ``stmt``."""
    called = _EXECUTE.fullmatch(stmt.shape.pieces[0])
    if called is None:
        return stmt
    given: dict[int, str | None] = {}
    for number, part in enumerate(re.findall(r"(?:'(?:[^']|'')*+'|[^',])++", called[1] or ""), 1):
        value = part.strip()
        if value.upper() == "NULL":
            given[number] = None
        elif found := re.fullmatch(r"[+-]?[\d.]+|'(?:[^']|'')*+'", value):
            given[number] = found[0][1:-1].replace("''", "'") if value[0] == "'" else value
        else:
            raise InputError(f"cannot read the argument {value[:40]!r}", where=f"line {stmt.line}", hint=_AGAIN)
    return _filled(_Logged(stmt.line, Shape((text,), ())), given)


def _filled(stmt: _Logged, given: dict[int, str | None]) -> _Logged:
    try:
        return _Logged(stmt.line, shape(stmt.shape.pieces[0], given)) if not stmt.shape.values else stmt
    except InputError as error:
        raise InputError(error.problem, where=f"line {stmt.line}", hint=error.hint) from None


def _split_at_semicolons(stmt: _Logged) -> Iterator[_Logged]:
    """Yield the statements of one entry."""
    whole = stmt.shape if stmt.shape.values else _filled(stmt, {}).shape
    pieces: list[str] = [""]
    values: list[str] = []
    left = iter(whole.values)
    for index, piece in enumerate(whole.pieces):
        if index:
            values.append(next(left))
            pieces.append("")
        piece = _CURSOR.sub("", piece) if index == 0 else piece
        first, *others = piece.split(";")
        pieces[-1] += first
        for other in others:
            yield from _statement(stmt.line, pieces, values)
            pieces, values = [other], []
    yield from _statement(stmt.line, pieces, values)


def _statement(line: int, pieces: list[str], values: list[str]) -> Iterator[_Logged]:
    if values or pieces[0].strip():
        yield _Logged(line, Shape(tuple(piece.strip() for piece in pieces), tuple(values)))


def _is_about_system(text: str, tables: Collection[str]) -> bool:
    """Return whether it is a query of system tables only; ``tables`` are names of the application."""
    sources = _SOURCE.findall(text)
    if text[:6].upper() != "SELECT":
        return False
    if not sources:
        return _NOTHING.fullmatch(text) is not None
    if not all(_OF_SYSTEM.match(name) and name.strip('"').lower() not in tables for name in sources):
        return False
    try:  # FROM a, b names more
        tree = statement(text.replace(" … ", " NULL "), 1, any_function=True)
    except InputError:
        return True
    named = [(f"{table.db}." if table.db else "") + str(table.name) for table in tree.find_all(engine().exp.Table)]
    views = {str(view.alias) for view in tree.find_all(engine().exp.CTE)}
    return all(not name or name in views or _OF_SYSTEM.match(name) for name in named)


def _read_of(stmt: _Logged) -> _Logged | None:
    """Return the query in COPY TO or in the creation of a temporary table, or None."""
    pieces = [*stmt.shape.pieces]
    if copied := _COPIED.match(stmt.text):
        return _Logged(stmt.line, Shape((f"SELECT {copied[2] or '*'} FROM {copied[1]}",), ()))  # noqa: S608 - not sent
    begins = _COPIED_QUERY.match(pieces[0]) or _TEMPORARY.match(pieces[0])
    if begins is None:
        return None
    pieces[0] = pieces[0][begins.end() :]
    if stmt.word == "COPY":
        last = next((at for at, piece in enumerate(pieces) if _COPIED_TO.search(piece)), None)
        if last is None:
            return None
        pieces = [*pieces[:last], _COPIED_TO.split(pieces[last])[0]]
    return _Logged(stmt.line, Shape(tuple(pieces), stmt.shape.values[: len(pieces) - 1]))


def _with_values(stmt: _Logged) -> str:
    """Return the text of a statement with its values, as numbers or strings."""
    parts = [stmt.shape.pieces[0]]
    for value, piece in zip(stmt.shape.values, stmt.shape.pieces[1:], strict=True):
        quoted = value if type_of(value) in ("INT", "DECIMAL") else "'" + value.replace("'", "''") + "'"
        parts += [quoted, piece]
    return " ".join(parts)


def _without_repetitions(done: Sequence[_Logged]) -> list[_Logged]:
    """Return the statements, with every block that is repeated more than twice shortened to two repetitions."""
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


def _name_programs(programs: Sequence[LogProgram]) -> None:
    """Name each program after its first write, or else after its first statement."""
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
