"""``isocheck warm-up``: compile all kernels now, so that no later check waits for the compiler."""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from plume_py.base.child_process import run_command
from plume_py.base.errors import ExitCode, IsocheckError
from plume_py.base.processes import module_command
from plume_py.base.terminal import StatusLine, clock

# The commands that call every kernel, by part of the program; the commands of a part run in this order. They cover
# histories that hold and histories that do not, all formats with kernels, and sessions below and above 256
# transactions.
SMALL, LONG = "--sessions 3 --transactions 20", "--sessions 3 --transactions 300"
PARTS = {
    "weak levels": [
        f"generate long.txt --guarantee TCC --keys 50 --operations 5 {LONG}",
        "check long.txt --level weak",
        f"generate short.jsonl {SMALL} --inject a..n=1",
        "check short.jsonl --level weak",
        "check long.txt --level TCC --clock tree",
        "check long.txt --level TCC --clock none",
    ],
    "strong levels": [
        f"generate holds.jsonl --guarantee SER --keys 50 --operations 5 {LONG}",
        "check holds.jsonl",
        f"generate broken.jsonl --guarantee SER --keys 50 --operations 5 {LONG} --inject lost-update=1,write-skew=1",
        "check broken.jsonl",
        "check mixed.jsonl --level declared",
    ],
    "real time": [
        f"generate timed.jsonl --guarantee SSER --keys 50 --operations 5 {LONG}",
        "check timed.jsonl --level weak --level SER --order realtime",
    ],
    "orders": [
        f"generate timed.jsonl --guarantee SSER --keys 50 --operations 5 {LONG}",
        "check timed.jsonl --level weak --order none",
        "check timed.jsonl --level weak --order realtime-per-key",
        "check stale.jsonl --level weak --order realtime",
    ],
    "lists": ["check lists.jsonl", "check bad-lists.jsonl", "convert lists.jsonl lists.edn", "check lists.edn"],
    "streams": [
        f"generate timed.jsonl --guarantee SSER --keys 50 --operations 5 {LONG}",
        "watch timed.jsonl --no-follow --order realtime",
        f"generate short.jsonl {SMALL} --inject a..n=1",
        "watch short.jsonl --no-follow",
        "watch timed.jsonl --no-follow --window 100",
        "watch seen-unknown.jsonl --no-follow",
    ],
    "programs": [
        "allocate smallbank --instances 30",
        "robust smallbank --levels *=SI --instances 30",
    ],
    "formats": [
        f"generate text.txt {SMALL}",
        *(f"stats {name}" for name in ("odd.txt", "odd.edn", "odd.jsonl", "apart.txt", "twice.jsonl", "elle.json")),
        *(f"convert text.txt {name}" for name in ("one.edn", "one.jsonl", "one.json", "one.bincode")),
        *(f"stats {name}" for name in ("one.edn", "one.jsonl", "one.json", "one.bincode")),
    ],
}

# Unusual files need other kernels: spaces, large numbers, keys that are words.
ODD = {
    "odd.txt": "w( 1 ,2,0,1)\nr(1,2,1,2)\nw(987654321987,123456789123,1,2)\n",
    "odd.edn": '{:type :ok, :process 0, :value [[:w "x" 1] [:r "x" 1]], :index 0}\n',
    "lists.jsonl": "".join(
        f'{{"session": {n}, "ops": [["append", "x", {n}], ["r", "x", {list(range(n + 1))}]]}}\n' for n in range(20)
    ),
    "bad-lists.jsonl": '{"session":0,"ops":[["append","x",1],["append","x",2]]}\n{"session":1,"ops":[["r","x",[1]]]}\n'
    '{"session":2,"ops":[["append","x",3],["r","x",[2,1]]]}\n',
    "seen-unknown.jsonl": '{"session":0,"status":"unknown","ops":[["append","x",1]]}\n'
    '{"session":1,"ops":[["r","x",[1]]]}\n',
    "mixed.jsonl": '{"session":0,"level":"RA","ops":[["w","x",1],["w","y",1]]}\n'
    '{"session":1,"level":"SI","ops":[["r","x",1],["w","x",2]]}\n{"session":2,"level":"RC","ops":[["r","x",1],["r","y",1]]}\n',
    "stale.jsonl": '{"session":0,"start":1,"end":2,"ops":[["w","x",1]]}\n'
    '{"session":1,"start":3,"end":4,"ops":[["r","x",null],["w","y",2]]}\n{"session":2,"start":5,"end":6,"ops":[["r","y",2]]}\n',
    "twice.jsonl": '{"session":0,"ops":[["w","x",1],["w","y",1]]}\n{"session":1,"ops":[["w","x",1],["r","y",1]]}\n',
    "apart.txt": "w(1,1,0,0)\nw(2,2,1,1)\nw(3,3,0,0)\n",
    "elle.json": '[{"type":"ok","process":0,"value":[["w","x",1],["r","x",1]],"index":0}]\n',
    "odd.jsonl": '{"session": "a", "ops": [["w", "x", 1], ["r", "x", 1]]}\n',
}


@click.command("warm-up")
@click.option("--jobs", type=click.IntRange(1), help="Processes at a time.  [default: one per core]")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
def command(jobs: int | None, quiet: bool) -> None:
    """Compile the kernels for large histories, once and for all.

    They are compiled when they are first needed, for some seconds each; on a new machine, in an image or before a
    measurement it may be better to have that done. They are kept where NUMBA_CACHE_DIR says, or else with the package
    if it is yours, or in your cache folder.

    \b
    Examples:
      isocheck warm-up
      NUMBA_CACHE_DIR=/opt/kernels isocheck warm-up --jobs 4
    """
    began, done = time.monotonic(), 0

    def line() -> str:
        return f"compiling, once: {done} of {len(PARTS)} parts, {clock(time.monotonic() - began)}"

    with (
        tempfile.TemporaryDirectory(prefix="isocheck-warm-up-") as folder,
        StatusLine(quiet=quiet).redrawn(line),
        ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool,
    ):
        for problem in pool.map(lambda name: _run(PARTS[name], Path(folder, name)), PARTS):
            if problem:
                raise IsocheckError(problem)
            done += 1
    if not quiet:
        click.echo(f"kernels are compiled ({time.monotonic() - began:.0f} s)", err=True)


def write_odd(folder: Path) -> None:
    """Write the files that the commands read and no command writes."""
    for name, text in ODD.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def _run(commands: list[str], folder: Path) -> str:
    """Run the commands of one part in a new folder; return the first error, or ""."""
    folder.mkdir()
    write_odd(folder)
    environment = {**os.environ, "ISOCHECK_COMPILE": "always"}
    if base := environment.get("NUMBA_CACHE_DIR"):
        environment["NUMBA_CACHE_DIR"] = os.path.abspath(base)  # the commands run in another folder
    for words in commands:
        done = run_command(module_command("plume_py", *words.split()), environment=environment, folder=folder)
        if done.code not in (ExitCode.HOLDS, ExitCode.VIOLATION):
            return f"isocheck {words}: {done.errors.strip() or done.output.strip()}"
    return ""
