"""dbcop YAML, only in the shape in which serde dumps a list of sessions:

    - - events:
        - write: true
          variable: 0
          value: 1
          success: true
        success: true

``- - events:`` begins a session, ``  - events:`` a further transaction of it; ``[]`` stands for no events or no
transactions. Any other YAML is turned down. What failed is treated as in dbcop's binary format.
"""

import re

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.formats.dbcop_common import DbcopTxn, surviving, to_columns
from plume_py.history.formats.reading import excerpt, natural, numbered_lines
from plume_py.history.source import Source

HINT = "only dbcop's own dump of sessions, transactions and events is read; convert other YAML to JSON"

# All of these are for lines without space at their end.
_NO_CONTENT = re.compile(r"\s*#.*|---|")
_EMPTY_HISTORY = re.compile(r"\[\s*\]")
_EMPTY_SESSION = re.compile(r"- \[\s*\]")
_TXN = re.compile(r"(- |  )- events:(\s*\[\s*\])?")
_TXN_SUCCESS = re.compile(r"    success:\s+(true|false)")
# The lines of an event, in the order of its fields.
_FIELDS = (
    re.compile(r"    - write:\s+(true|false)"),
    re.compile(r"      variable:\s+([0-9]+)"),
    re.compile(r"      value:\s+([0-9]+)"),
    re.compile(r"      success:\s+(true|false)"),
)


def read(source: Source) -> RawColumns:
    """The raw columns of a dbcop YAML file."""
    parser = _Parser()
    for number, line in numbered_lines(source):
        line = line.rstrip()
        if not _NO_CONTENT.fullmatch(line):
            parser.take(line, number)
    return parser.finish()


class _Parser:
    """Takes line by line; ``begun`` is the line of the open transaction, 0 between transactions."""

    def __init__(self) -> None:
        self.sessions = 0
        self.txns: list[DbcopTxn] = []
        self.begun = 0
        self.events: list[tuple[bool, int, int, bool]] = []
        self.fields: list[int] = []  # of the open event

    def take(self, line: str, number: int) -> None:
        taken = self._in_txn(line, number) if self.begun else self._between_txns(line, number)
        if not taken:
            raise InputError(f"not expected here: {excerpt(line)}", where=f"line {number}", hint=HINT)

    def finish(self) -> RawColumns:
        if self.begun:
            raise InputError("the file ends inside a transaction", where=f"line {self.begun}", hint="it was cut off")
        return to_columns(self.sessions, self.txns)

    def _between_txns(self, line: str, number: int) -> bool:
        if _EMPTY_HISTORY.fullmatch(line):
            return not self.sessions
        if _EMPTY_SESSION.fullmatch(line):
            self.sessions += 1
            return True
        match = _TXN.fullmatch(line)
        if match is None or (match[1] == "  " and not self.sessions):
            return False
        self.sessions += match[1] == "- "
        self.begun = number
        return True

    def _in_txn(self, line: str, number: int) -> bool:
        match = _FIELDS[len(self.fields)].fullmatch(line)
        if match is not None:
            self.fields.append(match[1] == "true" if match[1] in ("true", "false") else natural(match[1], number))
            if len(self.fields) == len(_FIELDS):
                write, variable, value, success = self.fields
                self.events.append((bool(write), variable, value, bool(success)))
                self.fields = []
            return True
        match = None if self.fields else _TXN_SUCCESS.fullmatch(line)
        if match is None:
            return False
        committed = match[1] == "true"
        self.txns.append(DbcopTxn(self.sessions - 1, surviving(self.events, committed), committed, self.begun))
        self.begun, self.events = 0, []
        return True
