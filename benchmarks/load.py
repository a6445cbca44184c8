"""How long each format takes to load, beside ``wc -l`` on the same file."""

import json
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import PYTHON, in_turns, run
from benchmarks.plot import Bar, save_bars
from benchmarks.tables import Row, progress
from benchmarks.workloads import EXTENSIONS, LARGE, QUICK, UNIFORM, Workload

GUARANTEE = "SER"
WHOLE = "import sys, plume_py; plume_py.load(sys.argv[1])"
MEGABYTE = 1e6

# What a load of each format may take, in megabytes per second, on two cores that have nothing else to do.
AT_LEAST = {"plume": 200, "json": 100, "jsonl": 100, "edn": 50}


def measure(quick: bool) -> list[Row]:
    """One row per size and format."""
    rows: list[Row] = []
    for workload in (QUICK,) if quick else (UNIFORM, LARGE):
        text_seconds = None
        for format in EXTENSIONS:
            row = _row(workload, format, text_seconds, 1 if quick else 5 if workload is UNIFORM else 3)
            progress(f"{workload.name}, {format}: loaded in {row['load s']:.2f} s")
            text_seconds = text_seconds or float(row["load s"])  # type: ignore[arg-type]
            rows.append(row)
    return rows


def _row(workload: Workload, format: str, text_seconds: float | None, rounds: int) -> Row:
    path = workload.file(GUARANTEE, format)
    whole, lines = in_turns([[PYTHON, "-c", WHOLE, str(path)], ["wc", "-l", str(path)]], rounds)
    warm = run([PYTHON, "-m", "benchmarks.load", str(path), str(rounds)])
    seconds, cpu = map(median, zip(*json.loads(warm.output), strict=True))
    size = path.stat().st_size / MEGABYTE
    return {
        "operations": workload.total,
        "format": format,
        "MB": size,
        "wc -l s": lines.seconds,
        "load s": seconds,
        "load cpu": cpu,
        "at most s": _limit(format, size),
        "x wc -l": seconds / lines.seconds,
        "x text": seconds / (text_seconds or seconds),
        "MB/s": size / seconds,
        "MB/cpu s": size / cpu,
        "process s": whole.seconds,
        "cpu s": whole.cpu,
        "spread %": round(100 * whole.spread),
        "peak MB": whole.megabytes,
        # The interpreter and the kernels take the same for every file, so small ones have large ratios.
        "x file": whole.megabytes * 1024**2 / MEGABYTE / size,
    }


def _limit(format: str, size: float) -> float | None:
    return size / AT_LEAST[format] if format in AT_LEAST else None


def plot(rows: list[Row], path: Path) -> None:
    """Load times as bars."""
    bars = [
        Bar(f"{row['operations']:,} operations, {row['format']}", {"load": float(row["load s"])})  # type: ignore[arg-type]
        for row in rows
    ]
    save_bars(path, "Seconds to load a history, kernels warm", bars)


def _time_loads(path: str, rounds: int) -> list[tuple[float, float]]:
    """The child: loads once to warm the kernels, then with the clock running; wall and processor seconds."""
    from plume_py import load

    load(path)
    times = []
    for _ in range(rounds):
        start, start_cpu = time.perf_counter(), time.process_time()
        load(path)
        times.append((time.perf_counter() - start, time.process_time() - start_cpu))
    return times


if __name__ == "__main__":
    print(json.dumps(_time_loads(sys.argv[1], int(sys.argv[2]))))
