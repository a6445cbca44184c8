"""What a check costs from the start of the process to the verdict, split in phases, for a text file."""

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks import workloads as w
from benchmarks.measure import ISOCHECK, Run, Runs, in_turns
from benchmarks.plot import Bar, save_bars
from benchmarks.tables import Row, progress

LEVELS = ("TCC", "RA", "RC")
GUARANTEES = ("TCC", "SER")
# As the checker tells them; "start" (interpreter, imports, output) and "other" are what it does not account for.
PHASES = ("start", "load", "resolve", "order", "clocks", "edges", "cycle", "name", "explain", "other")

HOLDS, VIOLATION = 0, 1  # exit codes


def measure(quick: bool, huge: bool) -> list[Row]:
    """One row per workload, guarantee and level: a healthy history, so nothing stops early."""
    plan: Sequence[w.Workload] = (w.QUICK, w.QUICK_HOT_KEY) if quick else (*w.CHECKED, *((w.HUGE,) if huge else ()))
    rounds = 1 if quick else 3
    rows: list[Row] = []
    for workload in plan:
        for guarantee in GUARANTEES:
            path = workload.file(guarantee)
            runs = in_turns([command(path, level) for level in LEVELS], 1 if workload is w.HUGE else rounds)
            times = ", ".join(f"{level} {r.seconds:.2f} s" for level, r in zip(LEVELS, runs, strict=True))
            progress(f"{workload.name}, made {guarantee}: {times}")
            rows += [_row(workload, guarantee, level, r) for level, r in zip(LEVELS, runs, strict=True)]
    return rows


def ratios(quick: bool) -> list[Row]:
    """What doubling the operations and what 1,000 violations cost, against the plain history."""
    plain, double, broken = (w.QUICK, w.QUICK_DOUBLE, w.QUICK_BROKEN) if quick else (w.UNIFORM, w.DOUBLE, w.BROKEN)
    rows: list[Row] = []
    for guarantee in GUARANTEES:
        files = [x.file(guarantee) for x in (plain, double, broken)]
        for level in LEVELS:
            commands = [command(path, level) for path in files]
            one, two, bad = in_turns(commands, 1 if quick else 5, expect=(HOLDS, VIOLATION))
            assert [_ok(runs) for runs in (one, two, bad)] == [True, True, False], "a verdict is wrong"
            rows.append(_ratio_row(guarantee, level, one, two, bad))
    return rows


def _ratio_row(guarantee: str, level: str, one: Runs, two: Runs, bad: Runs) -> Row:
    told = json.loads(one.typical.output)["results"][0]["seconds"]
    return {
        "guarantee": guarantee,
        "level": level,
        "plain s": one.seconds,
        "check / load": told["check"] / told["load"],
        "allowed": 3.0 if level == "TCC" else 1.5,
        "doubled s": two.seconds,
        "doubled / plain": two.seconds / one.seconds,
        "cpu (of 2.2)": two.cpu / one.cpu,
        "violations s": bad.seconds,
        "violations / plain": bad.seconds / one.seconds,
        "cpu (of 3)": bad.cpu / one.cpu,
    }


def command(path: Path, level: str) -> list[str]:
    """Checks ``path`` and prints JSON."""
    return [ISOCHECK, str(path), "--level", level, "--format", "json"]


def _ok(runs: Runs) -> bool:
    return bool(json.loads(runs.typical.output)["results"][0]["ok"])


def phases(found: Run) -> dict[str, float]:
    """The parts of a run, in seconds; they add up to the whole."""
    told: dict[str, float] = json.loads(found.output)["results"][0]["seconds"]
    parts = {name: told.get(name, 0.0) for name in PHASES}
    parts["start"] = found.seconds - told["load"] - told["check"]
    parts["other"] = found.seconds - sum(parts.values())
    return parts


def _row(workload: w.Workload, guarantee: str, level: str, runs: Runs) -> Row:
    parts = phases(runs.typical)
    return {
        "workload": workload.name,
        "guarantee": guarantee,
        "level": level,
        "seconds": runs.seconds,
        "cpu s": runs.cpu,
        "target": workload.target(level),
        "spread %": round(100 * runs.spread),
        **{name: round(seconds, 3) for name, seconds in parts.items()},
        "peak MB": runs.megabytes,
        "target MB": workload.targets[2] if workload.targets else None,
    }


def plot(rows: list[Row], path: Path) -> None:
    """The phases of each check as stacked bars, with its target as a mark."""
    bars = [
        Bar(
            f"{row['workload']}, made {row['guarantee']}, asked {row['level']}",
            {name: max(float(row[name]), 0.0) for name in PHASES},  # type: ignore[arg-type]
            row["target"],  # type: ignore[arg-type]
        )
        for row in rows
    ]
    save_bars(path, "Seconds from process start to verdict", bars, "target")
