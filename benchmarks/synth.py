"""Synthesis: the 46 problems of Isolde's evaluation beside its published times, and what each trick is worth.

``python -m benchmarks.synth [--quick] [--only TEXT] [--txns N,N] [--timeout S] [--no-blind-writes] [--no-ablation]``;
every history that is found is checked again outside the time measured. Limits are of processor time: the machine may be
shared. Writes synth-ablation.csv, and it as a table in synth.md; with ``--results`` also synth.csv, which the page of
the paper has otherwise (``make paper-isolde``).
"""

import argparse
import time
from pathlib import Path
from statistics import median

from benchmarks.synth_problems import SIZES, TASKS, Task
from benchmarks.tables import Cell, progress, save, show, spell
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.reasoning.synth.formulas import definitions
from plume_py.reasoning.synth.problem import TRICKS, Problem, Tricks, without
from plume_py.reasoning.synth.recheck import recheck
from plume_py.reasoning.synth.scope import Scope

RESULTS = Path(__file__).parent / "results"
KEYS, VALUES = 5, 5
REPEATS = 3

# For the tricks: some of each class.
REPRESENTATIVES = (
    "RA | TCC",
    "TCC | PC",
    "TCC@vis | PC",
    "SI@vis, UpdateSer@vis | SER@vis",
    "SI, UpdateSer@vis | SER",
    "TapRA | RA",
    "SER | SI",
    "TapTCC | TCC",
    "TCC | TCC@vis",
    "PC | PC@vis",
    "SI | SI@vis",
    "SI@vis | SI",
    "SER | SER@vis",
)
# Where the forbidden level has no other witness to begin with, the direct encoding is all there is.
PATTERNS = [Task((f"{level}@tap",), level, "UNSAT, patterns", (None, None, None)) for level in ("RA", "TCC")]


class ProcessorTime(Limits):
    """A limit of the seconds that this process works."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._until = time.process_time() + seconds

    @property
    def seconds_left(self) -> float | None:
        """Of those."""
        return self._until - time.process_time()


def solve(
    task: Task,
    txns: int,
    timeout: float,
    blind: bool = True,
    tricks: Tricks | None = None,
    repeats: int = REPEATS,
) -> dict[str, Cell]:
    """One problem, the median of some runs unless one takes long."""
    allow, forbid = definitions(task.allow), definitions([task.forbid])
    scope = Scope(txns, KEYS, VALUES, blind_writes=blind)
    walls, cpus, verdict, candidates, initial, clauses = [], [], "", 0, 0, 0
    while len(walls) < repeats and sum(walls) < 2:
        wall, cpu = time.perf_counter(), time.process_time()
        limits = ProcessorTime(timeout)
        problem = None
        try:
            problem = Problem(allow, forbid, scope, tricks=tricks, limits=limits)
            found = problem.next()
            verdict = "UNSAT" if found is None else "SAT"
        except LimitError:
            found, verdict = None, "timeout"
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if found is not None:
            recheck(found[0], allow, forbid, found[1])
        if problem is not None:
            candidates, clauses, initial = problem.candidates, problem.formula.clauses, problem.initial_clauses
            problem.close()
    return {
        "verdict": verdict,
        "candidates": candidates,
        "initial clauses": initial,
        "clauses": clauses,
        "seconds": median(walls),
        "cpu": median(cpus),
    }


def right(task: Task, txns: int, verdict: Cell) -> bool:
    """Is it the verdict that was expected?"""
    return verdict == ("SAT" if task.expected(txns) else "UNSAT")


def table(tasks: list[Task], sizes: list[int], timeout: float, blind: bool) -> list[dict[str, Cell]]:
    """A row per problem and size."""
    rows: list[dict[str, Cell]] = []
    for task in tasks:
        progress(task.name)
        for txns in sizes:
            row = solve(task, txns, timeout, blind)
            published = task.published[SIZES.index(txns)] if txns in SIZES else None
            fine = "yes" if right(task, txns, row["verdict"]) else "NO"
            named = {"problem": task.name, "class": task.kind, "txns": txns}
            rows.append({**named, **row, "as expected": fine, "published s": published})
    return rows


def ablation(tasks: list[Task], txns: int, timeout: float) -> list[dict[str, Cell]]:
    """A row per problem: seconds and candidates with all tricks, and without each."""
    rows: list[dict[str, Cell]] = []
    for task in tasks:
        progress(f"without tricks: {task.name}")
        row: dict[str, Cell] = {"problem": task.name, "txns": txns}
        for trick in ("", *TRICKS):
            done = solve(task, txns, timeout, tricks=without(trick) if trick else Tricks())
            wrong = done["verdict"] != "timeout" and not right(task, txns, done["verdict"])
            told = f"{spell(done['cpu'])} c{done['candidates']}"
            row[f"no {trick}" if trick else "all"] = (
                "WRONG" if wrong else f"> {timeout:g}" if done["verdict"] == "timeout" else told
            )
        rows.append(row)
    return rows


def page(off: list[dict[str, Cell]]) -> str:
    """The tricks in Markdown; the problems themselves are on the page of the paper."""
    heads = list(off[0])
    lines = [
        "# Synthesis: without each trick",
        "",
        "Written by `python -m benchmarks.synth`: some of the 46 problems of [Isolde's",
        "evaluation](../../docs/papers/isolde.md). Seconds of processor time of the one process, without start-up;",
        "5 keys, 5 values; c counts candidates.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(spell(cell).replace(' | ', ' not ') for cell in row.values())} |" for row in off),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three transactions only")
    parser.add_argument("--only", default="", help="only problems with this in their name")
    parser.add_argument("--txns", default="3,5,7,10")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--no-blind-writes", action="store_true")
    parser.add_argument("--no-ablation", action="store_true")
    parser.add_argument("--results", type=Path, help="the folder for results [benchmarks/results]")
    args = parser.parse_args()
    sizes = [3] if args.quick else [int(n) for n in args.txns.split(",")]
    tasks = [task for task in TASKS if args.only in task.name]
    rows = table(tasks, sizes, args.timeout, not args.no_blind_writes)
    show("Synthesis problems", rows)
    chosen = [task for task in [*TASKS, *PATTERNS] if task in PATTERNS or task.name in REPRESENTATIVES]
    chosen = [task for task in chosen if args.only in task.name]
    off = (
        []
        if args.no_ablation or not chosen
        else ablation(chosen, min(7, max(sizes)), min(args.timeout, 1 if args.quick else 20))
    )
    if off:
        show("Without each trick", off)
    wrong = [row for row in rows if row["as expected"] != "yes"]
    print(f"\n{len(rows)} verdicts, {len(wrong)} not as expected")
    if args.results or not (args.quick or args.only or args.no_blind_writes or args.no_ablation):
        folder = args.results or RESULTS
        if args.results:
            save(folder / "synth.csv", rows)
        if off:
            save(folder / "synth-ablation.csv", off)
            (folder / "synth.md").write_text(page(off))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
