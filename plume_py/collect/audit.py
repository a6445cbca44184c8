"""Compare the table with the history after a run.

The checker judges only what clients read. Whether confirmed commits are still there at the end follows from the table:

- Each value in the table must come from a transaction that may have committed, and be its last write of the key.
- In a list run every confirmed append must be in the table.
- In a register run the table has only one write of each key. Its transaction must not have ended before another
  transaction began that wrote the key and was confirmed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from plume_py.base.text import display
from plume_py.collect.adapter import INITIAL_REGISTER, Element, Value

# Maximum number of problems that are reported one by one.
PROBLEMS_SHOWN = 5


class _Line(msgspec.Struct):
    ops: list[tuple[str, str, Any]]
    session: int = 0
    status: str = "committed"
    id: str = ""
    start: int | None = None
    end: int | None = None


@dataclass
class Audit:
    """Result of the comparison: it examined ``table_values``, and searched for ``confirmed`` writes."""

    table_values: int = 0
    confirmed: int = 0
    from_unknown: int = 0
    count: int = 0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the table agrees with the history."""
        return self.count == 0

    def add_problem(self, text: str) -> None:
        """Count a problem. Keep the text of the first few."""
        self.count += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems = (*self.problems, text)


@dataclass
class _Write:
    """A write: its transaction, outcome and times, and whether it is the transaction's last write of the key."""

    transaction: str
    status: str
    start: int | None
    end: int | None
    final: bool = True

    def is_before(self, other: "_Write") -> bool:
        """Return whether the transaction ended before that of ``other`` began."""
        return self.end is not None and other.start is not None and self.end < other.start


Writes = dict[str, dict[Element, _Write]]


def audit(path: str, table: Mapping[str, Value]) -> Audit:
    """Compare the history in the file ``path`` with the ``table``."""
    writes = _writes(path)
    result = Audit()
    for key, value in table.items():
        written = writes.pop(key, {})
        if isinstance(value, list):
            _audit_list(result, key, value, written)
        else:
            _audit_register(result, key, value, written)
    for key, written in writes.items():
        if any(write.status == "committed" for write in written.values()):
            result.add_problem(f"{display(key)} was written by a confirmed commit, and is not in the table")
    return result


def _writes(path: str) -> Writes:
    decoder = msgspec.json.Decoder(_Line)
    writes: Writes = {}
    with open(path, "rb") as file:  # noqa: PTH123
        next(file)  # the header
        for text in file:
            line = decoder.decode(text)
            own: dict[str, _Write] = {}
            for kind, key, value in line.ops:
                if kind == "r" or not isinstance(value, int):
                    continue
                if kind == "w" and key in own:
                    own[key].final = False
                own[key] = writes.setdefault(key, {})[value] = _Write(line.id, line.status, line.start, line.end)
    return writes


def _audit_value(result: Audit, key: str, value: Element, written: dict[Element, _Write]) -> None:
    """Check a value that the table contains."""
    result.table_values += 1
    write = written.get(value)
    if write is None:
        result.add_problem(f"{display(key)} has {display(value)}, which no transaction wrote")
    elif write.status == "aborted":
        result.add_problem(f"{display(key)} has {value} of {display(write.transaction)}, which was aborted")
    elif not write.final:
        result.add_problem(f"{display(key)} has {value}, which {display(write.transaction)} itself overwrote")
    elif write.status == "unknown":
        result.from_unknown += 1


def _audit_list(result: Audit, key: str, elements: list[Element], written: dict[Element, _Write]) -> None:
    present = set(elements)
    if len(present) != len(elements):
        result.add_problem(f"the list of {display(key)} has an element twice")
    for element in elements:
        _audit_value(result, key, element, written)
    for value, write in written.items():
        if write.status == "committed":
            result.confirmed += 1
            if value not in present:
                result.add_problem(f"{display(key)} lacks {value} of {display(write.transaction)}, which was committed")


def _audit_register(result: Audit, key: str, value: Element, written: dict[Element, _Write]) -> None:
    confirmed = [write for write in written.values() if write.status == "committed"]
    if value != INITIAL_REGISTER:
        result.confirmed += bool(confirmed)
        _audit_value(result, key, value, written)
        last = written.get(value)
        if last is not None and last.status == "committed":  # the end of an unknown one is not known
            for lost in [write for write in confirmed if last.is_before(write)][-1:]:
                result.add_problem(
                    f"{display(key)} has {value} of {display(last.transaction)}, which had ended before"
                    f" {display(lost.transaction)} began, and that committed a write, too"
                )
    elif confirmed:
        result.confirmed += 1
        result.add_problem(
            f"{display(key)} has its initial value, though {display(confirmed[0].transaction)} committed a write"
        )
