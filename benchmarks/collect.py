"""Is the collector the bottleneck? Its throughput and CPU time beside pgbench's and those of a loop around the driver.

``python -m benchmarks.collect [--quick]`` starts a private PostgreSQL and has everyone run the same transactions on it
(BEGIN, a SELECT, an UPDATE, COMMIT at repeatable read, 10,000 keys), in turns. Each runs a few transactions and many:
the difference is what transactions take, without starts, connections and tables. Writes ``results/collect.csv`` and the
table in ``docs/collect.md``.

Whoever calls ``python -m benchmarks.collect driver URL SESSIONS TRANSACTIONS`` gets the loop around psycopg.
"""

import argparse
import os
import platform
import random
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.measure import ISOCHECK, PYTHON, Command, run
from benchmarks.tables import Row, progress, save, show

HERE = Path(__file__).parent.parent
RESULTS, PAGE = HERE / "benchmarks" / "results" / "collect.csv", HERE / "docs" / "collect.md"
MARKS = ("<!-- load: written by benchmarks/collect.py -->", "<!-- /load -->")

SESSIONS = (8, 32, 64)
KEYS = 10_000
FEW, MANY, ROUNDS = 1_600, 12_800, 5  # transactions of a run, and runs of each kind
TOOLS = ("isocheck", "isocheck, two processes", "psycopg alone", "pgbench")

# \\set and :names are pgbench's; keys are the collector's, "x" and a number.
SCRIPT = """\\set a random(0, LAST)
\\set b random(0, LAST)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT v FROM bench WHERE k = 'x' || :a;
UPDATE bench SET v = :client_id WHERE k = 'x' || :b;
COMMIT;
"""


def measure(url: str, pgbench: str, folder: str, sizes: tuple[int, int], rounds: int) -> list[Row]:
    """A row for each tool and number of sessions."""
    _make_table(url)
    script = Path(folder, "transaction.sql")
    script.write_text(SCRIPT.replace("LAST", str(KEYS - 1)))
    rows: list[Row] = []
    for sessions in SESSIONS:
        found: dict[str, list[tuple[float, float]]] = {tool: [] for tool in TOOLS}
        for number in range(rounds):
            progress(f"{sessions} sessions, round {number + 1} of {rounds}")
            for tool in TOOLS:
                few, many = (
                    run(_command(tool, url, pgbench, str(script), folder, sessions, size // sessions)) for size in sizes
                )
                more = sizes[1] - sizes[0]
                found[tool].append((more / max(many.seconds - few.seconds, 1e-3), 1000 * (many.cpu - few.cpu) / more))
        for tool, runs in found.items():
            rates, costs = zip(*runs, strict=True)
            rows.append(
                {"sessions": sessions, "tool": tool, "transactions/s": round(median(rates)), "CPU ms": median(costs)}
            )
    return rows


def _command(tool: str, url: str, pgbench: str, script: str, folder: str, sessions: int, each: int) -> Command:
    if tool == "pgbench":
        how = ("-n", "-M", "prepared", "-j", "1", "-f", script)
        return [pgbench, *how, "-c", str(sessions), "-t", str(each), url]
    if tool == "psycopg alone":
        return [PYTHON, "-m", "benchmarks.collect", "driver", url, str(sessions), str(each)]
    if tool == "isocheck":
        return _collecting(url, str(Path(folder, "1.jsonl")), sessions, each)
    halves = [_collecting(url, str(Path(folder, f"{half}.jsonl")), sessions // 2, each) for half in (1, 2)]
    return ["sh", "-c", " & ".join(map(shlex.join, halves)) + " & wait"]


def _collecting(url: str, out: str, sessions: int, each: int) -> list[str]:
    shape = ("--operations", "2", "--read-share", "0.5", "--read-first", "0", "--read-only", "0", "--keys", str(KEYS))
    size = ("--sessions", str(sessions), "--transactions", str(each))
    return [ISOCHECK, "collect", url, "--isolation", "repeatable read", *shape, *size, "--out", out, "--force"]


def _make_table(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bench (k TEXT PRIMARY KEY, v BIGINT NOT NULL)")
        connection.execute("INSERT INTO bench SELECT 'x' || i, 0 FROM generate_series(0, %s) i", [KEYS - 1])


def drive(url: str, sessions: int, each: int) -> None:
    """What a program does that uses the driver and records nothing: a thread for each session."""
    import psycopg

    def session(number: int) -> None:
        rng = random.Random(number)
        with psycopg.connect(url, autocommit=True, options="-c enable_seqscan=off") as connection:
            cursor = connection.cursor()
            for value in range(each):
                try:
                    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    cursor.execute("SELECT v FROM bench WHERE k = %s", [f"x{rng.randrange(KEYS)}"]).fetchone()
                    cursor.execute("UPDATE bench SET v = %s WHERE k = %s", [value, f"x{rng.randrange(KEYS)}"])
                    cursor.execute("COMMIT")
                except psycopg.errors.SerializationFailure:
                    cursor.execute("ROLLBACK")

    threads = [threading.Thread(target=session, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def table(rows: list[Row]) -> str:
    """Throughput / CPU time, a line for each number of sessions."""
    cells = {(row["sessions"], row["tool"]): f"{row['transactions/s']:,} / {row['CPU ms']:.2f}" for row in rows}
    lines = [["sessions", *TOOLS], ["---"] * (1 + len(TOOLS))]
    lines += [[str(sessions), *(cells[sessions, tool] for tool in TOOLS)] for sessions in SESSIONS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(rows: list[Row]) -> None:
    """The table between its marks."""
    before, rest = PAGE.read_text().split(MARKS[0])
    machine = f"({os.cpu_count()} cores, which the server needs, too; Python {platform.python_version()}.)"
    PAGE.write_text(f"{before}{MARKS[0]}\n{table(rows)}\n\n{machine}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """A private server: its address, and pgbench, which Debian puts beside its programs."""
    from plume_py.collect.managed import ManagedPostgres

    found = [Path(folder, "pgbench") for folder in ManagedPostgres.program_folders()]
    programs = [path for path in found if path.exists()]
    if not programs:
        raise SystemExit("pgbench is not installed; it comes with Debian's package postgresql")
    with ManagedPostgres() as server:
        yield server.url, str(programs[0])


def main() -> None:
    """The command line."""
    if sys.argv[1:2] == ["driver"]:
        drive(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collect", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few transactions, nothing kept: does it work at all?")
    args = parser.parse_args()
    sizes, rounds = ((640, 1_920), 1) if args.quick else ((FEW, MANY), ROUNDS)
    with _server() as (url, pgbench), tempfile.TemporaryDirectory() as folder:
        rows = measure(url, pgbench, folder, sizes, rounds)
    show("A transaction of four statements on PostgreSQL (medians)", rows)
    if not args.quick:
        save(RESULTS, rows)
        write_page(rows)


if __name__ == "__main__":
    main()
