"""Runs the parts that were asked for, prints their tables and keeps them as CSV and SVG."""

import argparse
import os
import platform
from pathlib import Path

from benchmarks import check, cold, growth, load, startup, watch
from benchmarks.tables import save, show
from benchmarks.workloads import WORK

PARTS = ("startup", "load", "check", "growth", "watch", "cold")
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """The command line."""
    args = _arguments()
    # A quick look must not replace the results of a real run.
    results = args.results or (WORK / "quick-results" if args.quick else RESULTS)
    one, five, fifteen = os.getloadavg()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {one:.1f} {five:.1f} {fifteen:.1f}")
    for part in PARTS:
        if part in args.only:
            _run(part, args, results)


def _run(part: str, args: argparse.Namespace, results: Path) -> None:
    if part == "startup":
        rows = startup.measure(args.quick)
        show("Start-up, seconds (medians)", rows)
    elif part == "load":
        rows = load.measure(args.quick)
        show("Load (medians; in one process with warm kernels, and as a whole process)", rows)
        load.plot(rows, results / "load.svg")
    elif part == "check":
        rows = check.measure(args.quick, args.huge)
        show("Check of healthy histories, process start to verdict, seconds (medians)", rows)
        check.plot(rows, results / "check.svg")
        ratios = check.ratios(args.quick)
        show("Check, ratios", ratios)
        save(results / "ratios.csv", ratios)
    elif part == "growth":
        rows = growth.measure(args.quick)
        show("Growth along one axis at a time, the number of operations being the same", rows)
        show("The step that grew most", [growth.worst(rows)])
    elif part == "watch":
        rows = watch.measure(args.quick)
        show("Watching a stream (medians, process start to verdict)", rows)
    else:
        rows = cold.measure(args.quick)
        show("Empty numba cache, seconds (medians)", rows)
    save(results / f"{part}.csv", rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and few runs: does it work at all?")
    parser.add_argument("--huge", action="store_true", help="also the history of 50 M operations")
    parser.add_argument("--results", type=Path, help="the folder for CSV and SVG [benchmarks/results]")
    return parser.parse_args()


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"{part!r} is none of {','.join(PARTS)}")
    return parts


if __name__ == "__main__":
    main()
