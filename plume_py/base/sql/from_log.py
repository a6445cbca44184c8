"""A log as a SQL file: its programs, with parameters in place of values, below the tables."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from plume_py.base.errors import InputError
from plume_py.base.sql.files import MAX_BYTES, load, parse
from plume_py.base.sql.log_programs import Log, LogProgram, read_log
from plume_py.base.sql.model import File

_LINE = re.compile(r"line (\d+)")
# How many values of a parameter are shown, and how much of each.
_SHOWN = 40


@dataclass(frozen=True)
class LogFile:
    """The programs of a log: as a file, as text for people, and what else is to be said."""

    file: File
    path: str
    listing: tuple[str, ...]  # its lines are those that notes speak of
    summary: str
    lines: tuple[int, ...]  # of each line of the listing: where the log has it

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Inside, errors are about the programs: the line is told where the log has it."""
        with _in_log(self.path, self.lines):
            yield


def load_log(path: str, schema: str | None, any_query: bool = False, fold: bool = False) -> LogFile:
    """Read a log, and the tables from another file, or else from the statements of the log that make them."""
    given = load(schema, any_query, functions=False) if schema is not None else None
    log = read_log(path, fold, [table.name for table in given.tables] if given is not None else ())
    written = [line for program in log.programs for line in _written(program)]
    places = tuple(place for place, _ in written)
    # what a comment quotes of the log is for people only
    text = "\n".join("" if line.startswith("-- seen ") else line for _, line in written)
    if len(text) > MAX_BYTES:
        raise InputError(f"programs of more than {MAX_BYTES} bytes", hint="take a part of the log").in_source(path)
    with _in_log(path, places):
        file = parse(text, Path(path).stem, any_query)
    base = given if given is not None else _tables(log, path)
    both = replace(base, transactions=(*base.transactions, *file.transactions), name=file.name)
    return LogFile(both, path, tuple(line for _, line in written[:-1]), _summary(log, schema), places)


def _tables(log: Log, path: str) -> File:
    """The tables that the log has seen made."""
    text = "\n".join(f"{' '.join(text.split())};" for _, text in log.schema)
    with _in_log(path, tuple(line for line, _ in log.schema)):
        return parse(text, Path(path).stem)


@contextmanager
def _in_log(path: str, lines: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        told = _LINE.fullmatch(error.where)
        if told is not None and 0 < int(told[1]) <= len(lines):
            error.where = f"line {lines[int(told[1]) - 1]}"
        raise error.in_source(path) from None
    except RecursionError:
        raise InputError("nested too deeply").in_source(path) from None


def _written(program: LogProgram) -> Iterator[tuple[int, str]]:
    """The lines of a program, each with the line of the log that it comes from."""
    first = program.statements[0][0]
    number = {group: f"p{n}" for n, group in enumerate(dict.fromkeys(program.group), 1)}
    types: dict[int, set[str]] = {}
    example: dict[int, str] = {}
    for group, seen, value in zip(program.group, program.seen, program.first, strict=True):
        types.setdefault(group, set()).update(seen)
        example.setdefault(group, value)
    listed = ", ".join(f"{name} {_type(types[group])}" for group, name in number.items())
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


def _type(types: set[str]) -> str:
    """One for all values: of two kinds of numbers the wider, and else a text."""
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
        left.append(f"{_several(counts['left aside'], 'statement')} about the session or the system")
    if log.schema and schema is not None:
        left.append(f"{_several(len(log.schema), 'statement')} about tables, which --schema has")
    told = f"{_several(counts['committed'], 'transaction')} of {_several(len(log.programs), 'program')}"
    if counts["only read"]:
        told += f", {counts['only read']:,} of which only read and did not commit"
    told += f"; left out: {', '.join(left)}" if left else ""
    if not counts["begun"] and counts["committed"] > 1:
        told += (
            "; no BEGIN: each statement counts as a transaction of its own, which is wrong if statements are missing, "
            "as with log_statement = 'mod' or log_min_duration_statement above 0"
        )
    return told


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
