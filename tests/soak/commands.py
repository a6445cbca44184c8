"""Every command that writes: its arguments, what it writes, and what that must look like when it is complete."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from program import isocheck

from benchmarks import archive
from plume_py import load
from plume_py.base.errors import IsocheckError
from plume_py.collect.managed import SERVERS
from plume_py.scan.results import parse


def same(got: bytes, complete: bytes) -> bool:
    """The same whenever it is written."""
    return got == complete


def page(got: bytes, complete: bytes) -> bool:
    """A page, which says how long something took."""
    return got.startswith(complete[:15]) and got.rstrip().endswith(b"</html>") and len(got) > len(complete) // 2


def results(got: bytes, complete: bytes) -> bool:
    """Results of a scan: lines of the complete ones, and at most the last one torn."""
    *lines, last = got.split(b"\n")
    whole = set(complete.split(b"\n"))
    return all(line in whole and parse(line + b"\n") for line in lines) and any(each.startswith(last) for each in whole)


@dataclass(frozen=True)
class Command:
    """A command; in its arguments, OUT is the folder of an attempt. It is run where its inputs are.

    ``targets``: names below OUT, each with what says that it is complete; all other files are the same whenever they
    are written. ``record``: the first target is written from beginning to end, so that what is there of it counts.
    ``again``: how to go on with what is there.
    """

    name: str
    arguments: tuple[str, ...]
    targets: dict[str, Callable[[bytes, bytes], bool]]
    record: bool = False
    again: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0, 1)
    server: str = ""  # what must be installed


RUN = ("--managed", "sqlite", "--sessions", "3", "--transactions", "30")
SCAN = ("scan", "archive", "-l", "weak", "-j", "2", "-q")
PAGE, FILE = {"page.html": page}, {"out.json": same}
PICTURES = "OUT/pictures"

COMMANDS = (
    Command("convert", ("convert", "large.jsonl", "OUT/out.json"), FILE),
    Command("convert (edn)", ("convert", "large.jsonl", "OUT/out.edn"), {"out.edn": same}),
    Command("generate", ("generate", "OUT/out.json", "--sessions", "5", "--transactions", "300"), FILE),
    Command("check --report", ("check", "broken.json", "-l", "all", "--report", "OUT/page.html"), PAGE),
    Command("check --out", ("check", "broken.json", "-l", "all", "--out", PICTURES), {}),
    Command("check --minimize", ("check", "broken.json", "--minimize", "OUT/out.json"), FILE),
    Command("check --witness", ("check", "large.jsonl", "--witness", "OUT/out.json"), FILE),
    Command(
        "scan --results",
        (*SCAN, "--no-times", "--results", "OUT/r.jsonl", "--report", "OUT/page.html"),
        {"r.jsonl": results, "page.html": page},
        record=True,
        again=("--resume",),
        codes=(0, 1, 4),
    ),
    Command(
        "scan",
        (*SCAN, "--report", "OUT/page.html"),
        {"page.html": page},
        codes=(0, 1, 4),
    ),
    Command("collect", ("collect", *RUN, "--out", "OUT/h.jsonl"), {"h.jsonl": same}, record=True, again=("--force",)),
    *(
        Command(
            f"collect ({name})",
            ("collect", "--managed", name, *RUN[2:], "--out", "OUT/h.jsonl"),
            {"h.jsonl": same},
            record=True,
            again=("--force",),
            server=name,
        )
        for name in ("postgresql", "mariadb")
    ),
    Command("test --history", ("test", *RUN, "--history", "OUT/h.jsonl"), {"h.jsonl": same}, True, ("--force",)),
    Command("test", ("test", *RUN, "--report", "OUT/page.html"), PAGE),
    Command("synth --out", ("synth", "-a", "RA", "-f", "TCC", "--out", "OUT/out.json"), FILE),
    Command("synth --out (pictures)", ("synth", "-a", "SI", "-f", "SER", "--out", PICTURES), {}),
    Command("hierarchy --out", ("hierarchy", "RC", "RA", "--txns", "2", "--out", "OUT/out.svg"), {"out.svg": same}),
    Command("predict --out", ("predict", "--program", "smallbank", "--out", "OUT/out.json"), FILE),
    Command("explore --out", ("explore", "smallbank", "--runs", "20", "--out", "OUT/out.json"), FILE),
    Command("infer --out", ("infer", "withdrawal", "--brief", "--timeout", "20", "--out", PICTURES), {}),
    Command("allocate --save", ("allocate", "smallbank", "--brief", "--save", "OUT/out.json"), FILE),
    Command("allocate --out", ("allocate", "smallbank", "--out", PICTURES), {}),
    Command("robust --out", ("robust", "smallbank", "--levels", "*=SI", "--out", PICTURES), {}),
    Command("simulate --out", ("simulate", "smallbank", "--instances", "60", "--out", "OUT/out.json"), FILE),
)  # fmt: skip


def missing(command: Command) -> str:
    """What must be installed before it can be run."""
    try:
        if command.server:
            SERVERS[command.server].find()
    except IsocheckError as error:
        return str(error)
    return ""


def make_inputs(folder: Path) -> None:
    """What the commands read; the same every time."""
    folder.mkdir(parents=True)
    for arguments in (
        ["generate", "large.jsonl", "--guarantee", "SER", "--sessions", "6", "--transactions", "300"],
        ["generate", "broken.json", "--inject", "l=1,b=1", "--sessions", "4", "--transactions", "20"],
    ):
        done = isocheck(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    before, archive.SIZES = archive.SIZES, ((1.0, 3, 5, 4),)
    try:
        archive.make(folder / "archive", 40, 7, limits=False)
    finally:
        archive.SIZES = before


def is_sound(path: Path) -> bool:
    """A recorded run, whatever ended it: can it be read?"""
    return path.stat().st_size == 0 or load(path, init_txn="none").transactions >= 0


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        os.path.relpath(os.path.join(where, name), folder): Path(where, name).read_bytes()
        for where, _, names in os.walk(folder)
        for name in names
    }
