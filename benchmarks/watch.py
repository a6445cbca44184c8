"""Watching a stream, beside checking the same file when it is complete."""

from pathlib import Path

from benchmarks.measure import ISOCHECK, PYTHON, in_turns, run
from benchmarks.tables import Row, progress
from benchmarks.workloads import WORK

# How the transactions arrive: see ``stream``.
ORDERS = ("commit", "nearly", "sessions")
SIZES = (10_000, 100_000, 1_000_000)
# Session by session is slow, so the largest size is left out there.
LARGEST_OUT_OF_ORDER = 100_000


def measure(quick: bool) -> list[Row]:
    """Rates at TCC, from the start of the process to the verdict."""
    rows = []
    for size in SIZES[:1] if quick else SIZES:
        for order in ORDERS:
            if order != "sessions" or size <= LARGEST_OUT_OF_ORDER:
                progress(f"watch {size:,} {order}")
                rows.append(_row(size, order, 1 if quick or size > LARGEST_OUT_OF_ORDER else 3))
    return rows


def _row(size: int, order: str, times: int) -> Row:
    path = str(_file(size, order))
    run([ISOCHECK, "watch", path, "--no-follow"])  # the kernels are compiled only once
    watch, check = in_turns([[ISOCHECK, "watch", path, "--no-follow"], [ISOCHECK, "check", path]], times)
    return {
        "transactions": size,
        "arrive": order,
        "watch s": watch.seconds,
        "cpu s": watch.cpu,
        "transactions/s": round(size / watch.seconds),
        "per cpu s": round(size / watch.cpu),
        "MB": round(watch.megabytes),
        "check s": check.seconds,
        "watch/check": watch.seconds / check.seconds,
    }


def _file(size: int, order: str) -> Path:
    path = WORK / f"stream-{size}-{order}.jsonl"
    if not path.exists():
        WORK.mkdir(exist_ok=True)
        run([PYTHON, "-m", "benchmarks.stream", str(size), order, str(path)])
    return path
