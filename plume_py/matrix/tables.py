"""Combine the cells of a matrix into rows, and print the table as text, Markdown, HTML and JSON.

``isocheck matrix`` calls this module. A row is one isolation level of one database. It has the levels that held in
every run, the anomalies of all runs, and whether the promised level held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from html import escape
from statistics import median
from typing import Any

from plume_py.base.text import one_line
from plume_py.base.version import TOOL
from plume_py.levels import LEVELS, NAMES, weaker_levels
from plume_py.levels.patterns import PATTERNS
from plume_py.matrix.cells import Cell, Outcome

# Names by Adya and Hermitage of the anomalies that histories of keys and values can show. Values are ids of patterns,
# or the first letters of their aliases. Phantoms (PMP, G2) need predicates, so they are missing.
ANOMALIES: dict[str, tuple[str, ...]] = {
    "G0": ("G0",),
    "G1a": ("G1a",),
    "G1b": ("G1b",),
    "G1c": ("G1c",),
    "OTV": ("h", "i"),
    "P2": ("P2",),
    "P4": ("lost-update",),
    "G-single": ("G-single",),
    "long fork": ("long-fork",),
    "G2-item": ("G2-item", "write-skew"),
}
STALE = "stale"  # a read of a version that a transaction had overwritten which ended before the reader began


@dataclass(frozen=True)
class Row:
    """One isolation level of one database."""

    target: str
    version: str
    isolation: str
    promise: str | None
    held: tuple[str, ...]  # the strongest levels that every run kept
    anomalies: dict[str, tuple[str, str]]  # by name: the workload that showed it, and a picture or ""
    transactions: int
    rate: int
    first_violation: float | None  # seconds from the beginning of a run to the end of its first violation
    noticed: int | None  # of 100 stale reads, how many the promised level detects at least
    errors: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether the promised level held: "kept", "broken", "no promise" or "not run"."""
        if not self.transactions:
            return "not run"
        if self.promise is None:
            return "no promise"
        kept = {level for name in self.held for level in (name, *weaker_levels(name))}
        return "kept" if self.promise in kept else "broken"


def rows(done: Iterable[tuple[Cell, Outcome]]) -> Iterator[Row]:
    """Yield a row for each database and isolation level."""
    groups: dict[tuple[str, str], list[tuple[Cell, Outcome]]] = {}
    for cell, outcome in done:
        groups.setdefault((cell.target.title, cell.isolation), []).append((cell, outcome))
    for (target, isolation), members in groups.items():
        yield _row(target, isolation, members)


def _row(target: str, isolation: str, members: list[tuple[Cell, Outcome]]) -> Row:
    ran = [(cell, outcome, outcome.result) for cell, outcome in members if outcome.result is not None]
    results = [result for _, _, result in ran]
    promise = members[0][0].target.isolations.get(isolation)
    level = promise.level if promise is not None else None
    run = results[0].get("run", {}) if results else {}
    seconds = [after for result in results if (after := _first_violation(result)) is not None]
    return Row(
        target=target,
        version=f"{run.get('database', '')} {run.get('version', '')}".strip(),
        isolation=isolation,
        promise=level,
        held=_strongest([name for name in NAMES if results and all(_holds(result, name) for result in results)]),
        anomalies=_anomalies(ran),
        transactions=sum(result["transactions"] for result in results),
        rate=round(median(outcome.rate for _, outcome, _ in ran)) if ran else 0,
        first_violation=min(seconds, default=None),
        noticed=_noticed(results, level),
        errors=tuple(dict.fromkeys(outcome.error for _, outcome in members if outcome.error)),
    )


def _holds(result: dict[str, Any], level: str) -> bool:
    return result["levels"].get(level, {}).get("ok") is True


def _strongest(levels: list[str]) -> tuple[str, ...]:
    return tuple(name for name in levels if not any(name in weaker_levels(other) for other in levels))


def _anomalies(ran: list[tuple[Cell, Outcome, dict[str, Any]]]) -> dict[str, tuple[str, str]]:
    """Return for each anomaly the first workload that showed it and a picture, in the order of the table."""
    found: dict[str, tuple[str, str]] = {}
    for cell, outcome, result in ran:
        numbers: Counter[str] = Counter()
        for violation in result["violations"]:
            names = (violation["tap"], *violation["aliases"])
            numbers[violation["tap"]] += 1
            picture = _picture(outcome, violation["tap"], numbers[violation["tap"]])
            if violation.get("order") == "realtime":
                if _is_stale(violation):
                    found.setdefault(STALE, (cell.workload, picture))
                continue
            for anomaly, spellings in ANOMALIES.items():
                if any(name == s or (len(s) > 1 and name.startswith(s)) for name in names for s in spellings):
                    found.setdefault(anomaly, (cell.workload, picture))
    return {name: found[name] for name in (*ANOMALIES, STALE) if name in found}


def _picture(outcome: Outcome, tap: str, number: int) -> str:
    """Return the picture with this pattern and number at the end of its name, or ""."""
    ending = f"-{PATTERNS[tap].label.lower()}-{number}.svg" if tap in PATTERNS else ""
    return next((name for name in outcome.pictures if ending and name.endswith(ending)), "")


def _is_stale(violation: dict[str, Any]) -> bool:
    """Return whether a transaction read a version that had been overwritten before it began, in real time."""
    return violation["tap"] == "k" and any(
        step["relation"] == "CM" and any(e["relation"] == "RT" for e in step.get("evidence", []))
        for step in violation["steps"]
    )


def _first_violation(result: dict[str, Any]) -> float | None:
    """Return the seconds from the begin of the run (known to a second) to the end of its first violation, or None."""
    try:
        begin = datetime.fromisoformat(result["run"]["begin"]).timestamp()
    except (KeyError, ValueError):
        return None
    ends = [
        max(txn["end"] for txn in violation["transactions"])
        for violation in result["violations"]
        if violation["transactions"] and all(txn.get("end") is not None for txn in violation["transactions"])
    ]
    return max(min(ends) - begin, 0.0) if ends else None


def _noticed(results: list[dict[str, Any]], level: str | None) -> int | None:
    """Return the percentage of stale reads in all runs that the promised level detects."""
    if level not in LEVELS:
        return None
    evidence = [result["evidence"] for result in results if level in result.get("evidence", {}).get("noticed", {})]
    tried = sum(each["tried"] for each in evidence)
    return 100 * sum(each["noticed"][level] for each in evidence) // tried if tried else None


HEAD = ("database", "isolation", "promises", "held", "verdict", "seen", "transactions/s", "first after", "evidence")
_HELD = "held: the strongest levels that every run kept."
_SEEN = "seen: anomalies that happened; what is not named did not happen here, which is no proof."
_COLUMNS = (
    "The columns from G0 to stale: a workload whose run showed the anomaly, with a picture. An empty cell means that "
    "the anomaly did not happen here, which is no proof."
)
_OTHERS = (
    "evidence: had one read been one version stale, how often the promised level would have "
    "noticed, at least. first after: from the beginning of a run to the end of its first violation."
)
NOTE = f"{_HELD} {_SEEN} {_OTHERS}"


def _cells(row: Row) -> list[str]:
    seen = ", ".join(row.anomalies)
    return [
        f"{row.target} ({row.version})" if row.version else row.target,
        row.isolation,
        row.promise or "nothing",
        " ".join(row.held) or "none" if row.transactions else "",
        row.verdict,
        seen or ("none" if row.transactions else "; ".join(row.errors)),
        f"{row.rate:,}" if row.rate else "",
        "" if row.first_violation is None else f"{row.first_violation:.0f} s",
        "" if row.noticed is None else f"{row.noticed} %",
    ]


def text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    lines = [list(HEAD), *([one_line(cell) for cell in _cells(row)] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return a Markdown table with a column for each anomaly, as Hermitage has it, and links to pictures."""
    names = [*ANOMALIES, STALE]
    head = [*HEAD[:5], *names, *HEAD[6:]]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [_plain(cell) for cell in _cells(row)]
        seen = [_linked(row, name) for name in names]
        lines.append([*cells[:5], *seen, *cells[6:]])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    problems = "".join(
        f"\n- {_plain(row.target)}, {_plain(row.isolation)}: {_plain(e)}" for row in rows for e in row.errors
    )
    return f"{table}\n\n{_HELD} {_COLUMNS} {_OTHERS}\n{problems}"


def _linked(row: Row, name: str) -> str:
    if name not in row.anomalies:
        return ""
    workload, picture = row.anomalies[name]
    return f"[{workload}](<{picture}>)" if picture else workload


def _plain(text: str) -> str:
    """Return text with all characters escaped that mean something in Markdown."""
    kept = one_line(text)
    for mark in "\\`*_[]<>|#":
        kept = kept.replace(mark, f"\\{mark}")
    return kept


def html(rows: Sequence[Row]) -> str:
    """Return a page with the table and the pictures."""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    body = "".join(
        f'<tr class="{escape(row.verdict.replace(" ", "-"))}">'
        + "".join(f"<td>{escape(one_line(cell))}</td>" for cell in _cells(row))
        + "</tr>"
        for row in rows
    )
    figures = "".join(
        f'<figure><img src="{escape(picture)}" alt=""><figcaption>{escape(one_line(row.target))}, '
        f"{escape(row.isolation)}: {escape(name)} ({escape(workload)})</figcaption></figure>"
        for row in rows
        for name, (workload, picture) in row.anomalies.items()
        if picture
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>isocheck matrix</title><style>'
        "body{font:15px/1.4 system-ui,sans-serif;margin:2rem;max-width:100rem}table{border-collapse:collapse}"
        "th,td{border:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
        ".broken td:nth-child(5){background:#fbd5d0}.kept td:nth-child(5){background:#d8f0d8}"
        "figure{display:inline-block;margin:1rem;max-width:30rem}img{max-width:100%}</style>"
        f"<h1>What each setting keeps</h1><table><tr>{head}</tr>{body}</table><p>{escape(NOTE)}</p>{figures}</html>\n"
    )


def plain(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows as JSON objects."""
    return {"tool": TOOL, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}
