"""How the cost of a check grows along one axis at a time: sessions, keys, operations per transaction, violations.

The number of operations stays the same, so along the first three the cost should stay as it is, and along the last one
grow with what is found. The exponent of each step is the growth of CPU seconds beyond the start of the process over
that of the axis; 1 is linear.
"""

from math import log

from benchmarks import workloads as w
from benchmarks.check import HOLDS, VIOLATION, command
from benchmarks.measure import run
from benchmarks.tables import Row, progress

TOTAL = 1_000_000
QUICK_TOTAL = 20_000
START = 0.25  # CPU seconds of a check of next to nothing, about
LEVELS = ("TCC", "RA", "RC")


def measure(quick: bool) -> list[Row]:
    """One row per axis, size and level."""
    total = QUICK_TOTAL if quick else TOTAL
    rows: list[Row] = []
    for axis, workloads in _axes(total).items():
        for level in LEVELS:
            before: tuple[int, float] | None = None
            for size, workload in workloads.items():
                progress(f"{axis} {size:,}, {level}")
                done = run(command(workload.file("SER"), level), expect=(HOLDS, VIOLATION))
                cost = max(done.cpu - START, 0.01)
                exponent = None if before is None else log(cost / before[1]) / log(size / before[0])
                before = size, cost
                rows.append(
                    {"axis": axis, "size": size, "level": level, "cpu s": done.cpu, "MB": done.megabytes}
                    | {"exponent": exponent}
                )
    return rows


def worst(rows: list[Row]) -> Row:
    """The step that grew most."""
    return max((row for row in rows if row["exponent"] is not None), key=lambda row: float(row["exponent"] or 0))


def _axes(total: int) -> dict[str, dict[int, w.Workload]]:
    def made(sessions: int = 50, operations: int = 10, keys: int = 10_000, inject: str = "") -> w.Workload:
        return w.Workload("", sessions, total // operations, operations, keys, inject=inject)

    largest = total // 100
    return {
        "sessions": {n: made(sessions=n) for n in (10, 100, 1_000, largest)},
        "keys": {n: made(keys=n) for n in (1, 100, 10_000, total)},
        "operations per transaction": {n: made(operations=n, sessions=10) for n in (1, 10, 1_000, total // 10)},
        "violations": {n: made(inject=f"h..i={n // 6},k..n={n // 6}") for n in (6, 60, 600, 6_000)},
    }
