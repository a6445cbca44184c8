"""What is attacked: readers by themselves, and every command that reads a file, each with arguments drawn anew."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from paths import EXAMPLES, ROOT
from paths import HISTORIES as SAMPLES

from fuzz.mutate import damage
from fuzz.seeds import FOLDERS, HISTORIES, TIMED
from plume_py.history.formats.registry import FORMATS

LEVELS = ("CI", "RC", "RA", "TCC", "PC", "PSI", "SI", "SER", "all", "weak", "declared")
ORDERS = ("none", "session", "realtime")  # of those that can be watched
OUTPUTS = ("text", "json", "jsonl", "junit", "sarif", "github", "dot", "elle")
WRITERS = tuple(name for name, fmt in FORMATS.items() if fmt.writer)

Files = dict[str, bytes]


@dataclass(frozen=True)
class Target:
    """A command, the files that it gets, one of which is damaged, and its arguments; "{x}" is the path of file x."""

    name: str
    seeds: Callable[[], list[Files]]
    arguments: Callable[[random.Random], list[str]]
    weight: int = 1
    damaged: tuple[str, ...] = ()  # else any of the files

    def draw(self, rng: random.Random) -> tuple[Files, list[str]]:
        """One input."""
        files = dict(rng.choice(self.seeds()))
        victim = rng.choice(self.damaged or tuple(files))
        files[victim] = damage(files[victim], rng)
        return files, [self.name, *self.arguments(rng)]


@cache
def histories() -> list[Files]:
    """Small histories of every format, and those that show patterns."""
    formats = [{FOLDERS.get(name, "h"): content} for name, content in HISTORIES.items()]
    return formats + [{"h": path.read_bytes()} for path in sorted(SAMPLES.rglob("*.json"))]


@cache
def plain_histories() -> list[Files]:
    """Histories in a file of their own, one of them with times."""
    return [{"h": TIMED}, *(files for files in histories() if "h" in files)]


@cache
def claims() -> list[Files]:
    """Histories with the report or the witness that ``check`` wrote about them."""
    return [made for path in sorted(SAMPLES.rglob("*.json"))[::4] for made in _claims_of(path)]


def _claims_of(path: Path) -> list[Files]:
    program = [sys.executable, "-P", "-c", "from plume_py.cli.main import main; main()", "check", str(path)]
    environment = {"PYTHONPATH": str(ROOT), "ISOCHECK_COMPILE": "never"}
    report = subprocess.run([*program, "--level", "all", "--format", "json"], capture_output=True, env=environment)
    made = [{"h": path.read_bytes(), "claim": report.stdout}]
    with tempfile.TemporaryDirectory() as folder:
        order = Path(folder) / "order"
        subprocess.run([*program, "--level", "RC", "--witness", str(order), "-q"], capture_output=True, env=environment)
        return made + ([{"h": path.read_bytes(), "claim": order.read_bytes()}] if order.exists() else [])


@cache
def workloads() -> list[Files]:
    """Programs as SQL and as JSON."""
    found = [{path.name: path.read_bytes()} for path in sorted(EXAMPLES.iterdir()) if path.suffix in (".sql", ".json")]
    return [{("w.sql" if name.endswith("sql") else "w.json"): content for name, content in f.items()} for f in found]


@cache
def applications() -> list[Files]:
    """Programs with an invariant."""
    return [{"w.sql": (EXAMPLES / name).read_bytes()} for name in ("booking.sql", "courseware.sql")]


@cache
def levels_files() -> list[Files]:
    """A history, and the levels of its transactions."""
    levels = json.dumps({"T1": "SI", "T2": "SER", "*": "RC"}).encode()
    return [{"h": (SAMPLES / "demo.json").read_bytes(), "levels": levels}]


def _path(rng: random.Random) -> str:
    return "{}"  # the only file, or the folder if it is one


def _check(rng: random.Random) -> list[str]:
    more = [
        ["--init-txn", rng.choice(("auto", "first", "none"))],
        ["--input-format", rng.choice(tuple(FORMATS))],
        [],
        [],
    ]
    return ["{}", "--level", rng.choice(LEVELS), "--format", rng.choice(OUTPUTS), *rng.choice(more), "--timeout", "5"]


def _verify(rng: random.Random) -> list[str]:
    return ["{h}", "{claim}"]


def _allocate(rng: random.Random) -> list[str]:
    return ["{}", "--format", rng.choice(("text", "json"))]


def _predict(rng: random.Random) -> list[str]:
    return [
        "{}",
        "--level",
        rng.choice(("RC", "TCC", "SI")),
        "--timeout",
        "2",
        "--format",
        rng.choice(("text", "json")),
    ]


def _infer(rng: random.Random) -> list[str]:
    return ["{}", "--rows", "1", "--steps", "1", "--timeout", "2", "--engine", rng.choice(("explore", "auto"))]


@dataclass(frozen=True)
class Weighted:
    """All targets, drawn by weight."""

    targets: tuple[Target, ...] = field(default_factory=tuple)

    def draw(self, rng: random.Random) -> Target:
        """One of them."""
        return rng.choices(self.targets, [target.weight for target in self.targets])[0]


TARGETS = (
    Target("check", histories, _check, 8),
    Target("stats", histories, lambda rng: ["{}", "--format", rng.choice(("text", "json"))], 4),
    Target("convert", histories, lambda rng: ["{}", "{out}", "--to", rng.choice(WRITERS)], 4),
    Target(
        "check", levels_files, lambda rng: ["{h}", "--level", "declared", "--levels-file", "{levels}"], 1, ("levels",)
    ),
    Target("watch", plain_histories, lambda rng: ["{}", "--no-follow", "--order", rng.choice(ORDERS)], 2),
    Target("verify", claims, _verify, 3, ("claim",)),
    Target("predict", plain_histories, _predict, 1),
    Target("allocate", workloads, _allocate, 2),
    Target("robust", workloads, lambda rng: ["{}", "--levels", f"*={rng.choice(LEVELS)}"], 1),
    Target("infer", applications, _infer, 1),
)
