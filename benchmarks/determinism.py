"""Show that the same input and options give the same output: ``python -m benchmarks.determinism [FOLDER...]``.

It runs `check`, `scan` and `watch` on violated histories, again and again, while it varies all that must not matter:
the load of the machine, the kernel cache (warm, or empty at first), plain Python or compiled kernels, the hash seed,
and the number of processes. Measured times are removed. Every other byte of standard output, of the exit code and of
the file of results must agree with the first run; the exit code is 1 if any byte differs.

Histories in FOLDERs are checked in addition to those that are generated. The settings of the rounds are a covering
list, not every combination; large histories are not run in every round (see ``one_round``).
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROGRAM = [sys.executable, "-m", "plume_py"]
LOADS, SEEDS, PROCESSES = (0, 4, 12), (0, 1, 2, 3), (1, 8)
SMALL = 100_000  # bytes; larger histories take seconds each
SHAPE = "--sessions 6 --transactions 40 --operations 6 --keys 40"
LARGE = "--sessions 20 --transactions 100 --operations 10 --keys 500"
LARGEST = "--sessions 50 --transactions 200 --operations 10 --keys 3000"

# File name -> arguments of ``isocheck generate``. Every one violates at least one level.
HISTORIES = {
    **{f"si-{seed}.jsonl": f"--guarantee SI {SHAPE} --seed {seed}" for seed in range(3)},
    **{f"tcc-{seed}.jsonl": f"--guarantee TCC {SHAPE} --seed {seed}" for seed in range(3)},
    **{f"rc-{seed}.jsonl": f"--guarantee RC {SHAPE} --seed {seed}" for seed in range(2)},
    **{f"psi-{seed}.jsonl": f"--guarantee PSI {SHAPE} --seed {seed}" for seed in range(2)},
    **{f"pc-{seed}.jsonl": f"--guarantee PC {SHAPE} --seed {seed}" for seed in range(2)},
    "weak.jsonl": f"--guarantee SER {SHAPE} --inject a..n=1",
    "strong.jsonl": f"--guarantee SER {SHAPE} --inject lost-update=2,write-skew=1,long-fork=1,read-only-anomaly=1",
    "both.jsonl": f"--guarantee TCC {SHAPE} --inject a..n=1,lost-update=1",
    "stale.jsonl": f"--guarantee SSER {SHAPE} --inject stale-read=1",
    "si-20k.jsonl": f"--guarantee SI {LARGE} --seed 8",
    "tcc-20k.jsonl": f"--guarantee TCC {LARGE} --seed 9 --inject a..n=1",
    "rc-20k.jsonl": f"--guarantee RC {LARGE} --seed 7",
    "psi-20k.jsonl": f"--guarantee PSI {LARGE} --seed 6",
    "si-100k.jsonl": f"--guarantee SI {LARGEST} --seed 1",
    "ser-100k.jsonl": f"--guarantee SER {LARGEST} --seed 2 --inject lost-update=20,write-skew=5,long-fork=5",
    "ra-100k.jsonl": f"--guarantee TCC {LARGEST} --seed 3 --inject k=3,m=2",
}

# What is measured: times in results, and the table of the slowest histories at the end of a scan's summary.
_TIMES = re.compile(rb'"seconds":\{[^}]*\}|\nSlowest\n(?:  .*\n)+')


class Setting(NamedTuple):
    """What must not matter."""

    load: int
    cold: bool  # the kernel cache is empty at first
    compile: str  # as in ISOCHECK_COMPILE
    seed: int  # of Python's hashes
    processes: int  # that run the command at the same time; of a scan, its --jobs


def settings(runs: int, small: bool) -> list[Setting]:
    """Return ``runs`` settings, loads ascending, in which every value of every field occurs.

    Plain Python would take minutes for large histories.
    """
    modes = itertools.cycle(("auto", "never", "auto", "always") if small else ("auto", "auto", "always"))
    seeds, processes = itertools.cycle(SEEDS), itertools.cycle(PROCESSES)
    drawn = [(LOADS[run * len(LOADS) // runs], next(modes), next(seeds), next(processes)) for run in range(runs)]
    cold = {runs // 3, runs - 2}  # one without load, or nearly, and one at the highest
    return [Setting(load, run in cold, mode, seed, count) for run, (load, mode, seed, count) in enumerate(drawn)]


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


class Runs:
    """Runs commands under settings and compares what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first: dict[str, tuple[Setting, bytes]] = {}
        self.count: Counter[str] = Counter()
        self.different: list[str] = []
        self._caches = itertools.count()

    def run(self, name: str, command: list[str], setting: Setting, results: bool = False) -> None:
        """Run ``command`` as often at a time as the setting says, a scan once, and compare each output."""
        cache = f"cold-{next(self._caches)}" if setting.cold else "warm"
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(self.folder / cache),
            "ISOCHECK_COMPILE": setting.compile,
            "PYTHONHASHSEED": str(setting.seed),
        }
        files = [self.folder / f"results-{n}.jsonl" for n in range(1 if results else setting.processes)]
        started = []
        for file in files:
            file.unlink(missing_ok=True)
            more = ["--results", str(file), "--jobs", str(setting.processes)] if results else []
            pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
            started.append(subprocess.Popen([*PROGRAM, *command, *more], env=environment, **pipe))  # type: ignore[call-overload]
        for process, file in zip(started, files, strict=True):
            printed = process.communicate()[0] + b"\nexit code %d\n" % process.returncode
            printed = printed.replace(os.fsencode(file), b"RESULTS")
            if results:
                printed += file.read_bytes()
            self._compare(name, setting, _TIMES.sub(b"", printed))

    def _compare(self, name: str, setting: Setting, printed: bytes) -> None:
        self.count[name.split()[0]] += 1
        known, expected = self.first.setdefault(name, (setting, printed))
        if printed != expected:
            at = next((i for i, (a, b) in enumerate(zip(printed, expected, strict=False)) if a != b), len(expected))
            self.different.append(f"{name}: {setting} differs from {known} at byte {at}")
            print(
                self.different[-1], printed[max(0, at - 80) : at + 80], expected[max(0, at - 80) : at + 80], sep="\n  "
            )


def prepare(folder: Path) -> None:
    """Generate the histories and fill the warm cache, unless an earlier run has left them in ``folder``."""
    histories = folder / "histories"
    histories.mkdir(exist_ok=True)
    for name, arguments in HISTORIES.items():
        if not (histories / name).exists():
            subprocess.run([*PROGRAM, "generate", str(histories / name), *arguments.split(), "-q"], check=True)
    if not (folder / "warm").exists():
        warm = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "warm")}
        subprocess.run([*PROGRAM, "warm-up", "-q"], check=True, env=warm)


def main() -> int:
    """Run all of it and print what was run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", help="Folders with more histories.")
    parser.add_argument("--runs", type=int, default=10, help="Rounds, each with its own setting.")
    parser.add_argument("--minutes", type=float, default=25.0, help="Begin no further round after so long.")
    parser.add_argument("--work", type=Path, help="Where histories and kernels are kept for the next run.")
    arguments = parser.parse_args()
    os.nice(5)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="isocheck-determinism-") as name:
        folder = arguments.work or Path(name)
        prepare(folder)
        folders = [folder / "histories", *map(Path, arguments.folders)]
        files = [file for one in folders for file in sorted(one.iterdir())]
        runs, done = Runs(folder), 0
        both = zip(settings(arguments.runs, True), settings(arguments.runs, False), strict=True)
        for number, (of_small, of_large) in enumerate(both):
            if time.monotonic() - begin > 60 * arguments.minutes:
                break
            print(f"round {number}, {time.monotonic() - begin:.0f} s: {of_small}, large: {of_large}", flush=True)
            with busy(of_small.load):
                one_round(runs, files, number, of_small, of_large)
            done += 1
    counted = ", ".join(f"{count} of {command}" for command, count in runs.count.items())
    print(f"{len(files)} histories, {done} rounds, runs: {counted}. Different: {len(runs.different)}")
    return 1 if runs.different or done < arguments.runs else 0


def one_round(runs: Runs, files: list[Path], number: int, of_small: Setting, of_large: Setting) -> None:
    """Check all small histories; the large ones in every third round; in others watch, or scan all histories.

    Startup takes longer than a small history, so one process checks all of them. One history is enough for an empty
    cache and for many processes.
    """
    small = [file for file in files if file.stat().st_size < SMALL]
    large = [file for file in files if file not in small]
    alone = of_small._replace(cold=False, processes=1)
    runs.run("check small", ["check", *map(str, small), "--format", "jsonl"], alone)
    (both,) = (file for file in small if file.name == "both.jsonl")
    runs.run("check both.jsonl", ["check", str(both), "--format", "json"], of_small)
    if number % 3 == 0:
        setting = of_large._replace(cold=False, processes=1)
        runs.run("check large", ["check", *map(str, large), "--format", "jsonl"], setting)
    if number % 3 == 1:
        for file in files:
            if file.suffix == ".jsonl":
                watch = ["watch", str(file), "--no-follow", "--format", "jsonl", "-q"]
                runs.run(f"watch {file.name}", watch, alone)
    if number % 2 == 1:
        folders = dict.fromkeys(str(file.parent) for file in files)
        setting = of_large._replace(cold=False, processes=PROCESSES[number // 2 % 2])
        runs.run("scan", ["scan", *folders], setting, results=True)


if __name__ == "__main__":
    sys.exit(main())
