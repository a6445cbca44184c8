"""Measure checks of generated histories: one point for each combination of generator parameters, level and clock.

``isocheck bench`` and ``benchmarks/papers`` call this module. Each history is written to a file, and a child process
checks it. The operating system counts the memory of the parent at the start of a child as memory of the child. So this
process must stay small: children generate and load the histories, and nothing here imports numpy.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median_low
from typing import Any

from plume_py.base.child_process import FinishedCommand, run_command
from plume_py.base.errors import IsocheckError
from plume_py.base.processes import module_command
from plume_py.base.temp_folder import TempFolder
from plume_py.base.text import one_line
from plume_py.levels import STRONGEST

Value = str | int | float

# The parameters of the generator with their defaults, and the parameters of the check.
SHAPE: dict[str, Value] = {
    "guarantee": STRONGEST,
    "sessions": 25,
    "transactions": 200,
    "operations": 20,
    "read-share": 0.5,
    "keys": 10_000,
    "distribution": "uniform",
}
CHECK = ("level", "clock")

HOLDS, BROKEN, UNDECIDED, STOPPED = "holds", "broken", "undecided", "stopped"
# Exit codes of a check that printed a verdict.
_ANSWERED = (0, 1, 3)


@dataclass(frozen=True)
class Point:
    """One generated history, and the level and clock to check it with."""

    shape: Mapping[str, Value]
    level: str
    clock: str
    seed: int = 0

    @property
    def generate(self) -> list[str]:
        """The arguments of ``isocheck generate OUT``."""
        parameters = (*self.shape.items(), ("seed", self.seed))
        return [word for name, value in parameters for word in (f"--{name}", f"{value}")]

    @property
    def check(self) -> list[str]:
        """The arguments of ``isocheck check FILE``."""
        return ["--level", self.level, "--clock", self.clock]

    @property
    def values(self) -> dict[str, Value]:
        """All parameters by name."""
        return {**self.shape, "level": self.level, "clock": self.clock}


def points(
    shape: Mapping[str, Sequence[Value]], levels: Sequence[str], clocks: Sequence[str], seed: int
) -> Iterator[Point]:
    """Yield all combinations, those with the same history one after the other."""
    for values in product(*shape.values()):
        chosen = dict(zip(shape, values, strict=True))
        for level, clock in product(levels, clocks):
            yield Point(chosen, level, clock, seed)


def varied(measured: Sequence[Point]) -> list[str]:
    """Return the parameters that take several values, in the order of the columns."""
    names = (*SHAPE, *CHECK)
    return [name for name in names if len({point.values[name] for point in measured}) > 1]


@dataclass(frozen=True)
class Measured:
    """The verdict and the cost of one point; ``stages`` are the seconds that the check itself reports."""

    point: Point
    verdict: str
    seconds: float
    cpu: float
    megabytes: float
    stages: Mapping[str, float] = field(default_factory=dict)


def measure(
    points: Sequence[Point], runs: int, timeout: float | None, on_step: Callable[[int, Point, str], None]
) -> Iterator[Measured]:
    """Measure each point in turn; call ``on_step`` with its number, the point and the step before each step.

    Each check runs once before the runs that count, so that its kernels are compiled and the file is in memory.
    """
    with TempFolder() as scratch:
        path = Path(scratch.path) / "history.txt"
        written: tuple[Any, ...] | None = None
        for number, point in enumerate(points):
            if written != (point.shape, point.seed):
                on_step(number, point, "generating")
                write(point, path)
                written = (point.shape, point.seed)
            on_step(number, point, "checking")
            yield checked(point, path, runs, timeout)


def write(point: Point, path: Path) -> None:
    """Generate the history of a point into a file."""
    done = _run(module_command("plume_py", "generate", str(path), "--quiet", *point.generate), None)
    if done.code != 0:
        raise IsocheckError(_problem(done))


def checked(
    point: Point, path: Path, runs: int, timeout: float | None, before: Sequence[str] = (), warm: bool = False
) -> Measured:
    """Check the history in ``path`` several times; return the run with the median of the CPU seconds.

    ``before`` is a program that starts the check, as ``prlimit``; ``warm`` means that its kernels are compiled.
    """
    command = [*before, *module_command("plume_py", "check", str(path), *point.check, "--format", "json", "--quiet")]
    first = None if warm else _run(command, timeout)
    if first is not None and first.was_killed:
        return _measured(point, first)
    found = [_run(command, timeout) for _ in range(runs)]
    middle = median_low(each.cpu for each in found)
    return _measured(point, next(each for each in found if each.cpu == middle))


def _run(command: Sequence[str], timeout: float | None) -> FinishedCommand:
    # Without this, small points would run in plain Python and large ones would compile their kernels.
    return run_command(command, timeout, environment={"ISOCHECK_COMPILE": "always", **os.environ})


def _measured(point: Point, done: FinishedCommand) -> Measured:
    import msgspec  # not at the top, because `isocheck bench --help` imports this module

    if done.was_killed:
        return Measured(point, STOPPED, done.seconds, done.cpu, done.megabytes)
    try:
        if done.code not in _ANSWERED:
            raise LookupError
        result = msgspec.json.decode(done.output)["results"][0]
        verdict = {True: HOLDS, False: BROKEN, None: UNDECIDED}[result["ok"]]
        stages = {name: float(seconds) for name, seconds in result["seconds"].items() if name != "check"}
        start = done.seconds - stages.get("load", 0.0) - float(result["seconds"]["check"])
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
        raise IsocheckError(_problem(done)) from None
    return Measured(point, verdict, done.seconds, done.cpu, done.megabytes, {"start": max(start, 0.0), **stages})


def _problem(done: FinishedCommand) -> str:
    """Return the error message of a command, as one line."""
    return one_line(done.last_error.removeprefix("isocheck: ")) or f"a check ended with {done.code}"
