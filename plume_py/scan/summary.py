"""Summing up: one pass over the results, with counters only, so that the length of the file does not matter."""

import heapq
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plume_py.levels.orders import in_lattice_order
from plume_py.scan.results import ResultLine
from plume_py.scan.settings import OUTCOMES, UNDECIDED, UNREADABLE

SLOWEST = 20
EXAMPLES = 5  # paths named per group
LISTED = 200  # unreadable and undecided histories that are named
FOLDERS = 500  # more are summed up by the folders above them
SHAPES = 5_000

# What a run leaves behind that died, and by which words our readers tell.
REMAINS = {"empty": ("is empty",), "cut off": ("cut off", "ends too early", "ends inside")}

Counts = dict[str, int]


class ExampleTransaction(msgspec.Struct):
    """A transaction of an example."""

    id: Any
    session: Any
    place: str
    ops: list[tuple[Any, Any, Any]]


class ExampleStep(msgspec.Struct):
    """A step of an example."""

    because: str


class Example(msgspec.Struct):
    """What is shown of a violation."""

    tap: str
    transactions: list[ExampleTransaction]
    steps: list[ExampleStep]
    explanation: str
    conclusion: str = ""  # which the results of earlier versions do not have


_decoder = msgspec.json.Decoder(Example)


@dataclass
class Group:
    """Histories that show the same shape of violation."""

    shape: str
    text: str
    histories: int = 0
    examples: list[str] = field(default_factory=list)
    violation: Example | None = None  # of the smallest history
    smallest: tuple[int, str] = (1 << 62, "")

    @property
    def tap(self) -> str:
        """The pattern: shapes are named after it."""
        return self.shape.rpartition("-")[0]

    def add(self, line: ResultLine) -> None:
        """One more history; the examples are the first by name, whatever the order of the lines."""
        self.histories += 1
        self.examples = sorted([*self.examples, line.history])[:EXAMPLES]
        if (line.operations, line.history) < self.smallest:
            self.smallest = (line.operations, line.history)
            self.violation = _violation(line, self.tap)


def _violation(line: ResultLine, tap: str) -> Example | None:
    for raw in line.violations:
        with suppress(msgspec.DecodeError, RecursionError):
            violation = _decoder.decode(raw)
            if violation.tap == tap:
                return violation
    return None


class Folders:
    """Outcomes by folder. Where there are too many, the deepest are summed up by those above them."""

    def __init__(self) -> None:
        self.rows: dict[str, Counts] = {}
        self._depth = 1 << 30

    def add(self, path: str, outcome: str) -> None:
        """One more history."""
        folder = self._cut(os.path.dirname(path) or ".")
        row = self.rows.setdefault(folder, dict.fromkeys(OUTCOMES, 0))
        row[outcome] += 1
        while len(self.rows) > FOLDERS:
            self._climb()

    def _cut(self, folder: str) -> str:
        return "/".join(folder.split("/")[: self._depth])

    def _climb(self) -> None:
        self._depth = max(folder.count("/") for folder in self.rows)
        merged: dict[str, Counts] = {}
        for folder, row in self.rows.items():
            into = merged.setdefault(self._cut(folder), dict.fromkeys(OUTCOMES, 0))
            for outcome, count in row.items():
                into[outcome] += count
        self.rows = merged


@dataclass
class Summary:
    """What a file of results says as a whole."""

    histories: int = 0
    transactions: int = 0
    operations: int = 0
    size: int = 0
    seconds: float = 0.0
    outcomes: Counts = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    levels: dict[str, Counts] = field(default_factory=dict)
    taps: dict[str, Counts] = field(default_factory=dict)
    lowest: Counts = field(default_factory=dict)
    reasons: Counts = field(default_factory=dict)
    undecided: list[tuple[str, str]] = field(default_factory=list)  # (history, reason)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    remains: Counts = field(default_factory=dict)  # unreadable ones such as a run leaves behind that died: CUT, EMPTY
    groups: dict[str, Group] = field(default_factory=dict)
    ungrouped: int = 0  # histories whose shapes are too many to tell
    slowest: list[tuple[float, str, int]] = field(default_factory=list)  # (seconds, history, operations)
    folders: Folders = field(default_factory=Folders)

    def add(self, line: ResultLine) -> None:
        """One more history."""
        self.histories += 1
        self.transactions += line.transactions
        self.operations += line.operations
        self.size += line.size
        self.seconds += line.total_seconds
        self.outcomes[line.outcome] += 1
        self.folders.add(line.history, line.outcome)
        self._add_levels(line)
        self._add_shapes(line)
        self._add_time(line)
        if line.outcome == UNDECIDED:
            self.reasons[line.reason] = self.reasons.get(line.reason, 0) + 1
            _list(self.undecided, line.history, line.reason)
        elif line.outcome == UNREADABLE:
            error = (line.error or "").removeprefix(line.history).lstrip(":, ")
            _list(self.unreadable, line.history, error)
            if what := next((what for what, words in REMAINS.items() if any(w in error for w in words)), ""):
                self.remains[what] = self.remains.get(what, 0) + 1

    def _add_levels(self, line: ResultLine) -> None:
        words = {True: "holds", False: "violated", None: "undecided"}
        for level, verdict in line.levels.items():
            row = self.levels.setdefault(level, dict.fromkeys(words.values(), 0))
            row[words[verdict.ok]] += 1
        if line.lowest is not None:
            self.lowest[line.lowest] = self.lowest.get(line.lowest, 0) + 1
        for tap, count in line.counts.items():
            found = self.taps.setdefault(tap, {"histories": 0, "instances": 0})
            found["histories"] += 1
            found["instances"] += count

    def _add_shapes(self, line: ResultLine) -> None:
        for shape, text in line.shapes.items():
            if shape not in self.groups and len(self.groups) >= SHAPES:
                self.ungrouped += 1
                continue
            self.groups.setdefault(shape, Group(shape, text)).add(line)

    def _add_time(self, line: ResultLine) -> None:
        if line.seconds:
            entry = (line.total_seconds, line.history, line.operations)
            push = heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop
            push(self.slowest, entry)

    def finish(self) -> "Summary":
        """Put everything in order."""
        levels = in_lattice_order(self.levels)
        self.levels = {level: self.levels[level] for level in levels}
        self.lowest = {level: self.lowest[level] for level in levels if level in self.lowest}
        order = _pattern_order()
        self.taps = {tap: self.taps[tap] for tap in sorted(self.taps, key=lambda t: (order.get(t, len(order)), t))}
        self.reasons = dict(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0])))
        self.groups = {g.shape: g for g in sorted(self.groups.values(), key=lambda g: (-g.histories, g.shape))}
        self.slowest.sort(reverse=True)
        self.undecided = sorted(self.undecided)[:LISTED]
        self.unreadable = sorted(self.unreadable)[:LISTED]
        self.folders.rows = dict(sorted(self.folders.rows.items()))
        return self


def _list(names: list[tuple[str, str]], history: str, why: str) -> None:
    """Keep the first by name, so that the order of the lines does not show."""
    names.append((history, why))
    if len(names) >= 2 * LISTED:
        names.sort()
        del names[LISTED:]


def _pattern_order() -> dict[str, int]:
    from plume_py.levels.patterns import PATTERNS

    return {letter: i for i, letter in enumerate(PATTERNS)}


def summed_up(lines: Iterable[ResultLine]) -> Summary:
    """The summary of results."""
    summary = Summary()
    for line in lines:
        summary.add(line)
    return summary.finish()


def pattern(tap: str) -> tuple[str, str]:
    """(name, weakest level that forbids it), as far as the pattern is a known one."""
    from plume_py.levels.patterns import PATTERNS

    return (PATTERNS[tap].name, PATTERNS[tap].level) if tap in PATTERNS else ("", "")


def told_remains(summary: Summary) -> str:
    """How many of the unreadable are what a crashed run leaves; "" if none."""
    counts = ", ".join(f"{summary.remains[what]:,} {what}" for what in REMAINS if what in summary.remains)
    return f"{counts}, as a run leaves them that crashed" if counts else ""


def plain(summary: Summary) -> dict[str, Any]:
    """The summary as JSON objects."""
    return {
        "histories": summary.histories,
        "transactions": summary.transactions,
        "operations": summary.operations,
        "bytes": summary.size,
        "seconds": round(summary.seconds, 3),
        "outcomes": summary.outcomes,
        "levels": summary.levels,
        "lowest": summary.lowest,
        "taps": {
            tap: {"name": pattern(tap)[0], "level": pattern(tap)[1], **counts} for tap, counts in summary.taps.items()
        },
        "shapes": [
            {"shape": g.shape, "tap": g.tap, "text": g.text, "histories": g.histories, "examples": g.examples}
            for g in summary.groups.values()
        ],
        "folders": summary.folders.rows,
        "slowest": [{"history": h, "seconds": round(s, 3), "operations": n} for s, h, n in summary.slowest],
        "reasons": summary.reasons,
        "undecided": [{"history": history, "reason": reason} for history, reason in summary.undecided],
        "unreadable": [{"history": history, "error": error} for history, error in summary.unreadable],
        "remains": {what: summary.remains.get(what, 0) for what in REMAINS},
    }
