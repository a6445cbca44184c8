"""Run damaged inputs, one after the other, and say what should never happen: ``make fuzz``.

Every input is run in this process, with a limit of time; some by the reader alone, which is fast, the others by a whole
command. What is wrong is kept in a folder, as files and a command to run again.
"""

import io
import os
import random
import resource
import shlex
import signal
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.mutate import damage
from fuzz.seeds import FOLDERS, HISTORIES
from fuzz.targets import TARGETS, Files, Weighted
from plume_py import load
from plume_py.base.errors import InputError, LimitError
from plume_py.cli.main import main

SECONDS = 10  # of processor time: a loaded machine must not turn a quick input into a hang
PATIENCE = 300  # seconds of wall time, for an input that waits for ever
MEGABYTES = 1024
CODES = {0, 1, 2, 3, 4}


class HangError(BaseException):
    """An input took too long. This is no Exception, so that code under test cannot catch it."""


@dataclass
class Tally:
    """What has been run."""

    inputs: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    slowest: float = 0.0
    problems: list[str] = field(default_factory=list)


def _too_long(*_: object) -> None:
    raise HangError


def bounded(run: object, *arguments: object) -> object:
    """Call it, with an end."""
    limits = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE))
    for number, timer, seconds in limits:
        signal.signal(number, _too_long)
        signal.setitimer(timer, seconds)
    try:
        return run(*arguments)  # type: ignore[operator]
    finally:
        for _, timer, _ in limits:
            signal.setitimer(timer, 0)


def megabytes() -> float:
    """The most that this process has ever used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(folder: Path, files: Files) -> Path:
    """The files of an input; what a command is given: the only one, or the folder of a history that is one."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (only, *_) = files
    return folder if only in FOLDERS.values() else folder / only


def spelled(argument: str, given: Path, folder: Path) -> str:
    """An argument with the paths put in."""
    if argument == "{}":
        return str(given)
    return str(folder / argument[1:-1]) if argument.startswith("{") and argument.endswith("}") else argument


def command(arguments: list[str]) -> tuple[int, str, str]:
    """Run the program in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    before = sys.argv
    sys.argv = ["isocheck", *arguments]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return int(code or 0), texts[0], texts[1]  # type: ignore[call-overload]


def wrong_with(code: int, out: str, err: str, arguments: list[str]) -> str | None:
    """What is wrong with an answer."""
    if code not in CODES:
        return f"exit code {code}"
    if code == 4 and len(err.splitlines()) != 1:
        return f"bad input in {len(err.splitlines())} lines"
    for text in (out, err):
        bad = next((c for c in text if not (c.isprintable() or c in "\n\t")), None)
        if bad is not None and arguments[0] != "convert" and "html" not in arguments:
            return f"{bad!r} is printed"
        if "github" not in arguments and any(line.lstrip().startswith(("::", "##[")) for line in text.splitlines()):
            return "a workflow command is printed"
    return None


def run_reader(rng: random.Random, folder: Path, tally: Tally) -> str | None:
    """One damaged history, read; what is wrong, if anything."""
    name = rng.choice(tuple(HISTORIES))
    given = write(folder, {FOLDERS.get(name, "h"): damage(HISTORIES[name], rng)})
    tally.inputs[f"load {name}"] += 1
    try:
        history = bounded(load, given)
        tally.codes["load", 0] += 1
        assert history is not None
    except (InputError, LimitError) as error:
        tally.codes["load", 4] += 1
        if "\n" in str(error) or len(str(error)) > 3000:
            return f"not one line: {error!s:.200}"
    except HangError:
        return "takes too long"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run_command(rng: random.Random, folder: Path, tally: Tally) -> str | None:
    """One damaged input of a command; what is wrong, if anything."""
    files, drawn = Weighted(TARGETS).draw(rng).draw(rng)
    given = write(folder, files)
    arguments = [spelled(argument, given, folder) for argument in drawn]
    tally.inputs[arguments[0]] += 1
    try:
        code, out, err = bounded(command, arguments)  # type: ignore[misc]
    except HangError:
        return f"takes too long: {shlex.join(arguments)}"
    except Exception as error:
        return f"{type(error).__name__}: {error!s:.300}: {shlex.join(arguments)}"
    tally.codes[arguments[0], code] += 1
    wrong = wrong_with(code, out, err, arguments)
    return f"{wrong}: {shlex.join(arguments)}" if wrong else None


def run(seed: object, count: int, folder: Path, keep: Path | None, commands: float = 0.3) -> Tally:
    """Run ``count`` inputs that the seed determines; ``commands`` is the share of whole commands."""
    os.environ["ISOCHECK_DEBUG"] = "1"  # what nobody expected comes here as it is
    tally, work = Tally(), folder / "input"
    work.mkdir(exist_ok=True)
    high = megabytes()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        start = time.monotonic()
        wrong = (run_command if rng.random() < commands else run_reader)(rng, work, tally)
        tally.slowest = max(tally.slowest, time.monotonic() - start)
        if megabytes() > max(high, MEGABYTES):
            wrong = wrong or f"{megabytes():.0f} MB"
        high = max(high, megabytes())
        if wrong:
            tally.problems.append(f"seed {seed} {number}: {wrong}")
            if keep is not None:
                target = keep / f"{seed}-{number}"
                target.mkdir(parents=True, exist_ok=True)
                for path in work.iterdir():
                    (target / path.name).write_bytes(path.read_bytes())
                (target / "problem.txt").write_text(tally.problems[-1] + "\n")
    return tally
