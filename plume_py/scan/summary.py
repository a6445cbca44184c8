"""Sum up the results of a scan, and print the summary as text and JSON (the HTML page is in ``page.py``).

The summary is one pass over the lines of the results. It keeps counters, a few examples and bounded lists, so its size
does not depend on the number of histories.
"""

import heapq
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plume_py.base.text import counted, encodable, one_line, shorten, wrapped
from plume_py.levels.orders import in_lattice_order
from plume_py.levels.patterns import PATTERNS
from plume_py.scan.results import ResultLine
from plume_py.scan.settings import (
    OUTCOMES,
    SAME,
    SKIPPED,
    UNDECIDED,
    UNREADABLE,
    VIOLATED,
    ScanTask,
    TaskAnswer,
    bytes_text,
)

SLOWEST = 20
EXAMPLES = 5  # paths per group
LISTED = 200  # paths of unreadable and undecided histories
FOLDERS = 500  # more folders are merged into their parents
SHAPES = 5_000

# The remains of a crashed run, with the words in the error messages of the readers.
REMAINS = {"empty": ("is empty",), "cut off": ("cut off", "ends too early", "ends inside")}

Counts = dict[str, int]
# Names of skipped files that are kept for the report.
SHOWN_SKIPPED = 20
# The fixed cost of a history, in bytes of content, for the estimate of the time left.
OVERHEAD = 2_000

# Rows of a table as text; further rows are only counted. The page and the JSON have more.
ROWS = 15
PATH = 100


@dataclass
class Tally:
    """Counters of one run of ``scan``."""

    tasks: int
    work: int  # bytes and overhead of all tasks
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    work_done: int = 0
    same: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    skipped: dict[str, int] = field(default_factory=dict)  # by reason
    skipped_names: list[str] = field(default_factory=list)

    def count(self, task: ScanTask, answer: TaskAnswer) -> None:
        """Count an answer."""
        self.done += 1
        self.work_done += task.size + OVERHEAD
        if answer.outcome == SAME:
            self.same += 1
        elif answer.outcome == SKIPPED:
            reason = answer.payload.decode().strip()
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            if len(self.skipped_names) < SHOWN_SKIPPED:
                self.skipped_names.append(encodable(task.name))
        else:
            self.outcomes[answer.outcome] += 1

    @property
    def checked(self) -> int:
        """The histories for which this run wrote a line."""
        return sum(self.outcomes.values())

    @property
    def rate(self) -> float:
        """Files per second."""
        return self.done / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds until the end, or None before the first answer."""
        if not self.work_done:
            return None
        return (time.monotonic() - self.started) * (self.work - self.work_done) / self.work_done


class ExampleTransaction(msgspec.Struct):
    """A transaction of a counterexample."""

    id: Any
    session: Any
    place: str
    ops: list[tuple[Any, Any, Any]]


class ExampleStep(msgspec.Struct):
    """A step of a counterexample."""

    because: str


class Example(msgspec.Struct):
    """The fields of a violation that the page shows."""

    tap: str
    transactions: list[ExampleTransaction]
    steps: list[ExampleStep]
    explanation: str
    conclusion: str = ""  # missing in results of earlier versions


_decoder = msgspec.json.Decoder(Example)


@dataclass
class Group:
    """The histories with the same shape of violation."""

    shape: str
    text: str
    histories: int = 0
    examples: list[str] = field(default_factory=list)
    violation: Example | None = None  # of the smallest history
    smallest: tuple[int, str] = (1 << 62, "")

    @property
    def tap(self) -> str:
        """The pattern, which is the first part of the name of a shape."""
        return self.shape.rpartition("-")[0]

    def add(self, line: ResultLine) -> None:
        """Count a history. The examples are the first paths by name, so the order of the lines does not matter."""
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
    """Outcomes by folder. If there are too many folders, the deepest ones are merged into their parents."""

    def __init__(self) -> None:
        self.rows: dict[str, Counts] = {}
        self._depth = 1 << 30

    def add(self, path: str, outcome: str) -> None:
        folder = self._cut(os.path.dirname(path) or ".")
        row = self.rows.setdefault(folder, dict.fromkeys(OUTCOMES, 0))
        row[outcome] += 1
        while len(self.rows) > FOLDERS:
            self._merge_deepest()

    def _cut(self, folder: str) -> str:
        return "/".join(folder.split("/")[: self._depth])

    def _merge_deepest(self) -> None:
        self._depth = max(folder.count("/") for folder in self.rows)
        merged: dict[str, Counts] = {}
        for folder, row in self.rows.items():
            total = merged.setdefault(self._cut(folder), dict.fromkeys(OUTCOMES, 0))
            for outcome, count in row.items():
                total[outcome] += count
        self.rows = merged


@dataclass
class Summary:
    """The totals of a file of results."""

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
    remains: Counts = field(default_factory=dict)  # unreadable histories of crashed runs, by a key of REMAINS
    groups: dict[str, Group] = field(default_factory=dict)
    ungrouped: int = 0  # shapes beyond SHAPES, counted once per history
    slowest: list[tuple[float, str, int]] = field(default_factory=list)  # (seconds, history, operations)
    folders: Folders = field(default_factory=Folders)

    def add(self, line: ResultLine) -> None:
        """Count a line of the results."""
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
            if remains := next((name for name, words in REMAINS.items() if any(w in error for w in words)), ""):
                self.remains[remains] = self.remains.get(remains, 0) + 1

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
        """Sort all tables, and return the summary."""
        levels = in_lattice_order(self.levels)
        self.levels = {level: self.levels[level] for level in levels}
        self.lowest = {level: self.lowest[level] for level in levels if level in self.lowest}
        order = {tap: i for i, tap in enumerate(PATTERNS)}
        self.taps = {tap: self.taps[tap] for tap in sorted(self.taps, key=lambda t: (order.get(t, len(order)), t))}
        self.reasons = dict(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0])))
        self.groups = {g.shape: g for g in sorted(self.groups.values(), key=lambda g: (-g.histories, g.shape))}
        self.slowest.sort(reverse=True)
        self.undecided = sorted(self.undecided)[:LISTED]
        self.unreadable = sorted(self.unreadable)[:LISTED]
        self.folders.rows = dict(sorted(self.folders.rows.items()))
        return self


def _list(names: list[tuple[str, str]], history: str, why: str) -> None:
    """Add a history to a list that keeps the first names, whatever the order of the lines."""
    names.append((history, why))
    if len(names) >= 2 * LISTED:
        names.sort()
        del names[LISTED:]


def summarize(lines: Iterable[ResultLine]) -> Summary:
    """Return the summary of some results."""
    summary = Summary()
    for line in lines:
        summary.add(line)
    return summary.finish()


def pattern(tap: str) -> tuple[str, str]:
    """Return the name of a pattern and the weakest level that forbids it; empty for an unknown pattern."""
    return (PATTERNS[tap].name, PATTERNS[tap].level) if tap in PATTERNS else ("", "")


def remains_text(summary: Summary) -> str:
    """Return how many unreadable histories are remains of crashed runs, or ""."""
    counts = ", ".join(f"{summary.remains[name]:,} {name}" for name in REMAINS if name in summary.remains)
    return f"{counts}, as a run leaves them that crashed" if counts else ""


def plain(summary: Summary) -> dict[str, Any]:
    """Return the summary as JSON objects."""
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
        "remains": {name: summary.remains.get(name, 0) for name in REMAINS},
    }


def render(summary: Summary, tally: Tally | None = None) -> str:
    """Return the summary as tables for a terminal."""
    return "\n".join(_lines(summary, tally))


def _lines(summary: Summary, tally: Tally | None) -> Iterator[str]:
    counts = ", ".join(f"{summary.outcomes[outcome]:,} {_verb(outcome)}" for outcome in OUTCOMES)
    size = f"{counted(summary.operations, 'operation')}, {bytes_text(summary.size)}"
    yield f"{counted(summary.histories, 'history')} ({size}): {counts}"
    if tally is not None:
        yield from _run(tally, summary.histories)
    yield from _levels(summary)
    yield from _taps(summary)
    yield from _groups(summary)
    yield from _folders(summary)
    yield from _slowest(summary)
    yield from _named("Undecided", summary.undecided, summary.outcomes["undecided"])
    yield from _named("Unreadable", summary.unreadable, summary.outcomes["unreadable"], remains_text(summary))


def _verb(outcome: str) -> str:
    return "hold" if outcome == "holds" else outcome


def _run(tally: Tally, histories: int) -> Iterator[str]:
    if tally.same:
        yield f"{tally.same:,} were there already, {tally.checked:,} checked now"
    others = histories - tally.same - tally.checked
    if others > 0:
        yield f"also counted: {counted(others, 'history')} that only the results contain"
    if tally.skipped:
        total = sum(tally.skipped.values())
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.skipped.items()))
        names = ", ".join(shorten(one_line(name), PATH) for name in tally.skipped_names[:3])
        yield from wrapped("", f"{counted(total, 'file')} skipped ({why}): {names}{' …' if total > 3 else ''}", "  ")


def _levels(summary: Summary) -> Iterator[str]:
    if summary.levels:
        rows = [
            [
                level,
                *(f"{row[word]:,}" for word in ("holds", "violated", "undecided")),
                f"{summary.lowest.get(level, 0):,}",
            ]
            for level, row in summary.levels.items()
        ]
        yield from _table("By level", ["level", "holds", "violated", "undecided", "lowest violated"], rows)


def _taps(summary: Summary) -> Iterator[str]:
    violated = summary.outcomes[VIOLATED] or 1
    rows = [
        [
            tap,
            *pattern(tap),
            f"{found['histories']:,}",
            f"{found['histories'] / violated:.1%}",
            f"{found['instances']:,}",
        ]
        for tap, found in summary.taps.items()
    ]
    if rows:
        header = ["TAP", "name", "level", "histories", "of violated", "instances"]
        yield from _table("By pattern", header, rows, name_columns=3)


def _groups(summary: Summary) -> Iterator[str]:
    groups = list(summary.groups.values())
    if not groups:
        return
    yield from ("", f"Shapes of violations: {len(groups):,}" + (" at least" if summary.ungrouped else ""))
    for group in groups[:ROWS]:
        count = f"  {group.histories:>7,}  "
        tap = f"{group.tap} {pattern(group.tap)[0]}".strip()
        yield from wrapped(count, f"{tap}: {one_line(group.text)}", " " * 11, 110)
        yield f"{' ' * 11}for example {shorten(one_line(group.smallest[1]), PATH)}"
    yield from _more(len(groups))


def _folders(summary: Summary) -> Iterator[str]:
    rows = sorted(summary.folders.rows.items(), key=lambda row: (-row[1][VIOLATED], row[0]))
    if len(rows) > 1:
        cells = [[*(f"{row[o]:,}" for o in OUTCOMES), shorten(one_line(name), PATH)] for name, row in rows[:ROWS]]
        yield from _table("By folder", [*OUTCOMES, "folder"], cells, name_columns=0)
        yield from _more(len(rows))


def _slowest(summary: Summary) -> Iterator[str]:
    if summary.slowest:
        rows = [
            [f"{seconds:.2f}", f"{ops:,}", shorten(one_line(history), PATH)]
            for seconds, history, ops in summary.slowest[:5]
        ]
        yield from _table("Slowest", ["seconds", "operations", "history"], rows, name_columns=0)


def _named(title: str, names: list[tuple[str, str]], total: int, remark: str = "") -> Iterator[str]:
    if names:
        yield from ("", f"{title}: {total:,}" + (f" ({remark})" if remark else ""))
        for history, why in names[:ROWS]:
            yield from wrapped("  ", f"{shorten(one_line(history), PATH)}: {shorten(one_line(why), 200)}", "    ", 110)
        yield from _more(total)


def _more(count: int) -> Iterator[str]:
    if count > ROWS:
        yield f"  … and {count - ROWS:,} more"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], name_columns: int = 1) -> Iterator[str]:
    """Yield a table: numbers are aligned right, the first ``name_columns`` and a last column of names left."""
    yield from ("", title)
    names = header[-1] in ("folder", "history")
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = []
        for i, cell in enumerate(row):
            last = i == len(header) - 1
            cells.append(cell.ljust(widths[i]) if i < name_columns or (last and names) else cell.rjust(widths[i]))
        yield "  " + "  ".join(cells).rstrip()
