"""What the cells of one database and isolation level say together."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from plume_py.levels import LEVELS, NAMES, weaker_levels
from plume_py.levels.patterns import PATTERNS
from plume_py.matrix.cells import Cell
from plume_py.matrix.run import Outcome

# Adya's and Hermitage's names, as far as histories of keys and values can show them, and which violations they are:
# patterns by id, or by the beginning of one of their other names. Phantoms (PMP, G2) take predicates.
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
STALE = "stale"  # a read of what had been overwritten by somebody who had ended


@dataclass(frozen=True)
class Row:
    """One isolation level of one database."""

    target: str
    version: str
    isolation: str
    promise: str | None
    held: tuple[str, ...]  # the strongest levels that every run kept
    anomalies: dict[str, tuple[str, str]]  # seen: the workload, and a picture or ""
    transactions: int
    rate: int
    first_violation: float | None  # seconds from the beginning of its run to the end of the first that breaks a level
    noticed: int | None  # of 100 stale reads, how many the promised level would have noticed, at least
    errors: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Does it keep what it promises?"""
        if not self.transactions:
            return "not run"
        if self.promise is None:
            return "no promise"
        kept = {level for name in self.held for level in (name, *weaker_levels(name))}
        return "kept" if self.promise in kept else "broken"


def rows(done: Iterable[tuple[Cell, Outcome]]) -> Iterator[Row]:
    """Cells of one database and level, together."""
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
    moments = [moment for result in results if (moment := _first(result)) is not None]
    return Row(
        target=target,
        version=f"{run.get('database', '')} {run.get('version', '')}".strip(),
        isolation=isolation,
        promise=level,
        held=_strongest([name for name in NAMES if results and all(_holds(result, name) for result in results)]),
        anomalies=_anomalies(ran),
        transactions=sum(result["transactions"] for result in results),
        rate=round(median(outcome.rate for _, outcome, _ in ran)) if ran else 0,
        first_violation=min(moments, default=None),
        noticed=_noticed(results, level),
        errors=tuple(dict.fromkeys(outcome.error for _, outcome in members if outcome.error)),
    )


def _holds(result: dict[str, Any], level: str) -> bool:
    return result["levels"].get(level, {}).get("ok") is True


def _strongest(levels: list[str]) -> tuple[str, ...]:
    return tuple(name for name in levels if not any(name in weaker_levels(other) for other in levels))


def _anomalies(ran: list[tuple[Cell, Outcome, dict[str, Any]]]) -> dict[str, tuple[str, str]]:
    """By name, in the order of the table: where each was seen first."""
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
    """Pictures have the name of their pattern, and a number."""
    ending = f"-{PATTERNS[tap].label.lower()}-{number}.svg" if tap in PATTERNS else ""
    return next((name for name in outcome.pictures if ending and name.endswith(ending)), "")


def _is_stale(violation: dict[str, Any]) -> bool:
    """Did somebody read what another one had overwritten who ended before it began?"""
    return violation["tap"] == "k" and any(
        step["relation"] == "CM" and any(e["relation"] == "RT" for e in step.get("evidence", []))
        for step in violation["steps"]
    )


def _first(result: dict[str, Any]) -> float | None:
    """When the first violation was complete, in seconds from the beginning of the run, which is known to a second."""
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
    """Over all runs, at the promised level."""
    if level not in LEVELS:
        return None
    evidence = [result["evidence"] for result in results if level in result.get("evidence", {}).get("noticed", {})]
    tried = sum(each["tried"] for each in evidence)
    return 100 * sum(each["noticed"][level] for each in evidence) // tried if tried else None
