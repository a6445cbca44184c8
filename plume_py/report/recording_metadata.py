"""Add the recording's metadata to a result: database, workload, times and SQL.

``isocheck collect`` writes them into the header of the history and next to each transaction. They are read from the
file again, so that a later report of the file alone shows the same. None of it is trusted: texts are shortened and
escaped.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from plume_py.base.errors import IsocheckError
from plume_py.base.text import one_line, shorten
from plume_py.checking.result import Result, ShownTransaction, Violation
from plume_py.history.nodes import placed_in
from plume_py.history.source import Source

# Longest text in characters, and most SQL statements shown per transaction.
WORDS, STATEMENTS = 500, 200
# Larger JSON documents, in bytes, are not read again for their nodes.
MAX_DOCUMENT = 1 << 26
# Fields of the header that reports show, in this order.
_SHOWN_FIELDS = (
    *("database", "version", "url", "nodes", "isolation", "mix", "levels", "settings", "workload"),
    *("retries", "timeout", "faults", "begin", "node", "by"),
)


class _Line(msgspec.Struct):
    """A recorded transaction."""

    ops: list[tuple[str, Any, Any]]
    start: int | float | None = None
    end: int | float | None = None
    isolation: str = ""
    node: str = ""
    during: str = ""
    status: str = "committed"


class _RunInfo(msgspec.Struct):
    """The SQL templates in the header."""

    sql: dict[str, str] = {}


class _Header(msgspec.Struct):
    """The header. Times are seconds if ``ticks_per_second`` is missing."""

    collected: dict[str, Any]
    ticks_per_second: int | None = None

    def seconds(self, time: int | float | None) -> float | None:
        """Return a time in seconds, rounded to microseconds."""
        return time if time is None or self.ticks_per_second is None else round(time / self.ticks_per_second, 6)


_lines, _headers = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Header)


def with_run(result: Result, path: str) -> Result:
    """Return ``result`` with the metadata of the file at ``path``, if that is a recorded history."""
    if result.format == "json" and result.violations:
        return _with_nodes(result, path)
    if result.format != "jsonl" or result.error is not None:
        return result
    wanted = {txn.line for violation in result.violations for txn in violation.transactions if txn.line}
    try:
        header, lines = _read(path, wanted)
    except (IsocheckError, OSError, msgspec.MsgspecError):
        return result
    about = header.collected
    if not about:
        return result
    try:
        sql = msgspec.convert(about, _RunInfo).sql
    except msgspec.ValidationError:
        sql = {}
    fields = {name: _text_of(about[name]) for name in _SHOWN_FIELDS if about.get(name) not in (None, "", [], {})}
    return replace(result, run=fields, violations=tuple(_with_lines(v, header, lines, sql) for v in result.violations))


def _with_nodes(result: Result, path: str) -> Result:
    """Add the nodes that a JSON document names, its only metadata."""
    placed = placed_in(path, "json", MAX_DOCUMENT).values()
    nodes = {txn.id: _safe(txn.node) for txn in placed if txn.node and txn.id is not None}
    if not nodes:
        return result
    violations = []
    for violation in result.violations:
        transactions = tuple(replace(txn, node=nodes.get(txn.id, "")) for txn in violation.transactions)
        violations.append(replace(violation, transactions=transactions))
    return replace(result, violations=tuple(violations))


def _read(path: str, wanted: set[int]) -> tuple[_Header, dict[int, _Line]]:
    """Return the header, and the lines with these numbers."""
    header = _Header({})
    found: dict[int, _Line] = {}
    source = Source(path, path)
    try:
        for number, line in enumerate(_numbered(source), 1):
            if not header.collected:
                header = _headers.decode(line)
            elif number in wanted:
                found[number] = _lines.decode(line)
            if header.collected and len(found) == len(wanted):
                break
    finally:
        source.close()
    return header, found


def _numbered(source: Source) -> Iterator[bytes]:
    for chunk in source.lines():
        yield from bytes(chunk).split(b"\n")[: -1 if chunk.endswith(b"\n") else None]


def _with_lines(violation: Violation, header: _Header, lines: dict[int, _Line], sql: dict[str, str]) -> Violation:
    transactions = tuple(
        _with_line(txn, header, lines[txn.line], sql) if txn.line in lines else txn for txn in violation.transactions
    )
    return replace(violation, transactions=transactions)


def _with_line(txn: ShownTransaction, header: _Header, line: _Line, sql: dict[str, str]) -> ShownTransaction:
    start, end = header.seconds(line.start), header.seconds(line.end)
    fields = tuple(_statements(line, sql))[:STATEMENTS]
    return replace(txn, start=start, end=end, node=_safe(line.node), during=_safe(line.during), sql=fields)


def _statements(line: _Line, sql: dict[str, str]) -> Iterator[str]:
    """Yield the statements that the adapter sent. Reads have their result as a comment."""
    if not sql:
        return
    begin = sql.get(f"begin {line.isolation}", sql.get("begin"))
    if begin is not None:
        yield _safe(begin.replace(":isolation", line.isolation.upper())) + ";"
    for kind, key, value in line.ops:
        if kind in sql:
            shown = f"',{value}'" if kind == "append" else str(value)
            statement = sql[kind].replace(":value", shown).replace(":key", _quoted(key))
            yield f"{_safe(statement)};" + (f"  -- {_safe(_text_of(value))}" if kind == "r" else "")
    yield {"committed": "COMMIT;", "unknown": "COMMIT;  -- no answer"}.get(line.status, "ROLLBACK;")


def _quoted(key: object) -> str:
    return "'" + str(key).replace("'", "''") + "'"


def _safe(words: str) -> str:
    return shorten(one_line(words[: 2 * WORDS]), WORDS)


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return _safe(", ".join(f"{name}={_text_of(inner)}" for name, inner in value.items()))
    if isinstance(value, list):
        return _safe(", ".join(map(str, value)))
    return _safe(str(value))
