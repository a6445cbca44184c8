"""Times and peak memory of child processes.

The kernel counts what the parent had in memory at the fork as the child's, so this process must stay small: histories
are generated and loaded in children, and nothing here imports numpy.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PYTHON = sys.executable
ISOCHECK = str(Path(sys.executable).parent / "isocheck")

Command = Sequence[str]


@dataclass(frozen=True)
class Run:
    """One finished child: wall-clock seconds, CPU seconds of all threads, peak memory, what it printed, exit code."""

    seconds: float
    cpu: float
    megabytes: float
    output: str
    code: int = 0


@dataclass(frozen=True)
class Runs:
    """Several runs of one command; medians, because other work on the machine only ever adds time."""

    runs: tuple[Run, ...]

    @property
    def seconds(self) -> float:
        return median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        """Less than the wall clock disturbed by others at work on the machine."""
        return median(run.cpu for run in self.runs)

    @property
    def megabytes(self) -> float:
        return median(run.megabytes for run in self.runs)

    @property
    def spread(self) -> float:
        """How far apart the runs were, as a share of the median: the noise of the machine."""
        times = [run.seconds for run in self.runs]
        return (max(times) - min(times)) / self.seconds

    @property
    def typical(self) -> Run:
        """The run with the median time, whose parts then add up."""
        return sorted(self.runs, key=lambda run: run.seconds)[len(self.runs) // 2]


def run(command: Command, env: Mapping[str, str] | None = None, expect: Sequence[int] = (0,)) -> Run:
    """Run a command to its end; an exit code that is not expected stops the benchmark."""
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(env or {})},
        )
        assert child.stdout is not None
        with child.stdout:
            output = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in expect:
            errors.seek(0)
            tail = errors.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(command)}\nended with {child.returncode}:\n{tail}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output, child.returncode)


def in_turns(commands: Sequence[Command], rounds: int, expect: Sequence[int] = (0,)) -> list[Runs]:
    """Each command ``rounds`` times, in turns, so that a slow minute of the machine hits all of them alike."""
    found: list[list[Run]] = [[] for _ in commands]
    for _ in range(rounds):
        for runs, command in zip(found, commands, strict=True):
            runs.append(run(command, expect=expect))
    return [Runs(tuple(runs)) for runs in found]
