"""Allocation: levels against the paper's, time, attack and precision. ``python -m benchmarks.allocate [--only …]``

parts: figure8 (100 drawn workloads of each benchmark), scale, attack (tiny workloads, all their runs), precision,
protocols. Each has a table in benchmarks/results; figure8 also a bar chart.
"""

import argparse
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

from benchmarks.plot import Bar, save_bars
from plume_py.reasoning.allocate.catalogue import CATALOGUES, allocate
from plume_py.reasoning.allocate.driver import BENCHMARKS, draw
from plume_py.reasoning.allocate.read_write_sets import gather
from plume_py.reasoning.allocate.rules import simple_rules
from plume_py.reasoning.allocate.search_space import of_instances
from plume_py.reasoning.allocate.trial import in_sessions, summarize, trials
from plume_py.reasoning.allocate.workload import Access, Instance, Workload

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "oracles")]

RESULTS = Path(__file__).parent / "results"
LEVELS = ("RA", "PC", "PSI", "SI", "SER")
WEAKER = {"SER": ["SI"], "SI": ["PSI", "PC"], "PSI": ["TCC"], "PC": ["TCC"], "TCC": ["RA"]}


def levels_by(rules: str, workload: Workload) -> list[str]:
    """A level for each instance."""
    if rules == "refined":
        return allocate(of_instances(workload), CATALOGUES["mixiso"])
    return simple_rules(gather(workload), repaired=rules == "repaired")


def figure8(quick: bool) -> Iterator[str]:
    """Shares of levels over many workloads, the paper's rules and ours."""
    runs = 10 if quick else 100
    yield f"### Levels of 1,000 instances on 500 keys, {runs} seeds: mean (least to most)\n"
    yield "| benchmark | rules | " + " | ".join(LEVELS) + " |"
    yield "|---|---|" + "---|" * len(LEVELS)
    chart: list[Bar] = []
    for name, programs in BENCHMARKS.items():
        for rules in ("paper", "refined"):
            counts = [Counter(levels_by(rules, draw(programs, 1000, 500, seed))) for seed in range(1, runs + 1)]
            cells = [_spread([c[level] for c in counts]) for level in LEVELS]
            yield f"| {name} | {rules} | " + " | ".join(cells) + " |"
            chart.append(Bar(f"{name}, {rules}", {lv: mean(c[lv] for c in counts) / 10 for lv in LEVELS}))
    save_bars(RESULTS / "allocate-figure8.svg", "Share of instances at each level, %", chart, shares=True)


def _spread(numbers: list[int]) -> str:
    return f"{mean(numbers):.1f} ({min(numbers)} to {max(numbers)})" if max(numbers) else ""


def random_workload(instances: int, operations: int, keys: int, seed: int = 1) -> Workload:
    """Reads, writes and updates of random keys, a tenth of the instances read-only."""
    rng = random.Random(seed)
    made = []
    for i in range(instances):
        kinds = ("READ",) if rng.random() < 0.1 else ("READ", "WRITE", "UPDATE")
        accesses = tuple(Access(rng.choice(kinds), f"k{rng.randrange(keys)}") for _ in range(operations))
        made.append(Instance(f"T_{i}", "T", accesses))
    return Workload(made)


def scale(quick: bool) -> Iterator[str]:
    """Seconds of the whole command, and of the allocation alone."""
    yield "\n### Time: 10 operations on 300 keys, `isocheck allocate FILE --brief` (medians of 3 warm runs)\n"
    yield "| instances | whole command, s | allocation, s | peak MB |"
    yield "|---|---|---|---|"
    from plume_py.reasoning.allocate.workload_files import encode_workload, load_workload, save

    target = RESULTS.parent / "work"
    target.mkdir(exist_ok=True)
    for instances in (1_000, 10_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000):
        workload = random_workload(instances, 10, 300)
        path = target / f"workload-{instances}.json"
        save(str(path), encode_workload(workload))
        command = [str(Path(sys.executable).with_name("isocheck")), "allocate", str(path), "--brief"]
        subprocess.run(command, capture_output=True, check=True)
        whole = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            whole.append(time.perf_counter() - start)
        loaded = load_workload(path)
        start = time.perf_counter()
        levels_by("refined", loaded)
        alone = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        yield f"| {instances:,} | {median(whole):.2f} | {alone:.2f} | {peak:,.0f} |"


def attack(quick: bool) -> Iterator[str]:
    """Tiny workloads whose runs are all tried."""
    from oracle_runs import bad_run
    from random_workloads import random_txns, workload_of

    count = 500 if quick else 20_000
    yield f"\n### Attack: {count:,} random workloads of 3 or 4 instances, every run at the given levels\n"
    yield "By its reads: no serial order explains them. By what is left: nor what the cells hold at the end.\n"
    yield "| rules | workloads broken by reads | or by what is left | " + " | ".join(LEVELS) + " |"
    yield "|---|---|---|" + "---|" * len(LEVELS)
    for rules in ("paper", "repaired", "refined"):
        rng = random.Random(2026)
        by_reads, by_rest, given = 0, 0, Counter[str]()
        for _ in range(count):
            txns = random_txns(rng)
            levels = levels_by(rules, workload_of(txns))
            given.update(levels)
            by_reads += bad_run(txns, levels) is not None
            by_rest += bad_run(txns, levels, left=True) is not None
        yield f"| {rules} | {by_reads} | {by_rest} | " + " | ".join(f"{given[level]:,}" for level in LEVELS) + " |"


def precision(quick: bool) -> Iterator[str]:
    """How often one step down for one instance is refuted by a run."""
    from oracle_runs import bad_run
    from random_workloads import random_txns, workload_of

    count = 300 if quick else 3_000
    yield f"\n### Precision: one instance lowered by one step, {count:,} workloads\n"
    yield "A run refutes a step by its reads, which no serial order explains, or by them and what the cells hold at the"
    yield "end: an update that overwrote another's blind write has lost it, though nobody is left to read that.\n"
    yield "| rules | steps tried | refuted by reads | share | by reads and what is left | share |"
    yield "|---|---|---|---|---|---|"
    for rules in ("repaired", "refined"):
        rng = random.Random(7)
        tried = by_reads = by_rest = 0
        for _ in range(count):
            txns = random_txns(rng)
            levels = levels_by(rules, workload_of(txns))
            for i, level in enumerate(levels):
                for weaker in WEAKER.get(level, ()):
                    tried += 1
                    lowered = [*levels[:i], weaker, *levels[i + 1 :]]
                    by_reads += bad_run(txns, lowered) is not None
                    by_rest += bad_run(txns, lowered, left=True) is not None
        shares = f"{by_reads:,} | {by_reads / tried:.0%} | {by_rest:,} | {by_rest / tried:.0%}"
        yield f"| {rules} | {tried:,} | {shares} |"


def protocols(quick: bool) -> Iterator[str]:
    """Simulated throughput under three allocations."""
    runs = 3 if quick else 10
    yield "\n### Protocol pc-si-ser, 10 sessions of 20 instances, 30 to 50 ms per operation (simulated, medians)\n"
    yield "| benchmark | keys | allocation | transactions/s | latency, ms | aborted | declared broken | SER broken |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, programs in BENCHMARKS.items():
        for largest in (500, 20):
            workload = in_sessions(draw(programs, 200, largest, 1), 10, 1)
            for allocation in ("ser", "si-ser", "weakest"):
                told = summarize(list(trials(workload, "pc-si-ser", allocation, runs)))
                cells = [f"{told.throughput:.1f}", f"{told.latency * 1000:.0f}", f"{told.aborted:.0f}"]
                broken = [str(told.broken["declared"]), str(told.broken["SER"])]
                yield f"| {name} | {largest} | {allocation} | " + " | ".join(cells + broken) + " |"


PARTS = {"figure8": figure8, "scale": scale, "attack": attack, "precision": precision, "protocols": protocols}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in options.only.split(","):
        lines = []
        for line in PARTS[name](options.quick):
            print(line, flush=True)
            lines.append(line)
        (RESULTS / f"allocate-{name}.md").write_text("\n".join(lines).lstrip("\n") + "\n")


if __name__ == "__main__":
    main()
