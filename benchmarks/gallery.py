"""docs/gallery.md, its pictures and histories/found: ``python -m benchmarks.gallery FOLDER``, the folder of a matrix.

Each entry is a run of ``isocheck matrix`` in which a level was broken; the smallest part that shows it is kept.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.against import HERE
from benchmarks.measure import ISOCHECK

FOUND = HERE / "histories" / "found"
PICTURES = HERE / "docs" / "pictures" / "found"


@dataclass(frozen=True)
class Entry:
    """A violation: its file, the runs in which it may be, the level that is broken, and what the vendor says."""

    name: str
    title: str
    runs: str  # the beginning of the names of the matrix's files
    level: str
    command: str
    promise: str


MATRIX = "--sessions 8 --transactions 60 --pause 0.5"
ENTRIES = (
    Entry(
        "mariadb-repeatable-read-lost-update", "MariaDB loses updates at REPEATABLE READ",
        "mariadb-repeatable-read-register", "SI",
        f'isocheck test --managed mariadb --isolation "repeatable read" {MATRIX} --expect SI',
        "Documented, though not under this name: InnoDB's consistent reads see a snapshot while UPDATE acts on the "
        "newest committed row (MySQL Reference Manual, Consistent Nonlocking Reads). The standard's REPEATABLE READ "
        "rules it out.",
    ),
    Entry(
        "galera-repeatable-read-lost-update", "A Galera cluster loses updates at REPEATABLE READ",
        "galera-repeatable-read-register", "SI",
        f'isocheck test --managed galera --isolation "repeatable read" {MATRIX} --expect SI',
        "As on one server; and between nodes what was written is compared at commit, not what was read.",
    ),
    Entry(
        "galera-serializable-write-skew", "A Galera cluster shows write skew at SERIALIZABLE",
        "galera-serializable-register", "SER",
        f"isocheck test --managed galera --isolation serializable {MATRIX} --expect SER",
        "SERIALIZABLE takes its locks on the node where a transaction runs; between nodes only what was written is "
        "compared.",
    ),
    Entry(
        "postgresql-standby-reads-own-past", "A session does not see its own write on a PostgreSQL standby",
        "postgresql-standby-repeatable-read-register", "RA",
        f'isocheck test --managed postgresql-standby --isolation "repeatable read" {MATRIX} --expect RA',
        "Documented: a hot standby is eventually consistent with the primary (PostgreSQL documentation, Hot Standby).",
    ),
    Entry(
        "redis-multi-lost-update", "Redis: MULTI without WATCH loses updates", "redis-multi-register", "SI",
        f"isocheck test --managed redis --isolation multi {MATRIX} --expect SI",
        "MULTI runs commands together and promises no more; what was read before needs WATCH (Redis documentation, "
        "Transactions).",
    ),
    Entry(
        "redis-replica-session", "Redis: a replica hides what its client wrote a moment before", "redis-watch-register",
        "RA", f"isocheck test --managed redis --isolation watch {MATRIX} --expect RA",
        "Documented: replication is asynchronous by default (Redis documentation, Replication).",
    ),
    Entry(
        "etcd-serializable-reads-stale", "etcd: a serializable read is stale", "etcd-serializable-reads-register",
        "SSER", f'isocheck test --managed etcd --isolation "serializable reads" {MATRIX} --expect SSER',
        "Documented: serializable reads are answered by one member and may be stale; linearizable ones, the default, "
        "are not.",
    ),
    Entry(
        "duckdb-write-skew", "DuckDB shows write skew", "duckdb*write-skew", "SER",
        f"isocheck test duckdb:///file --isolation snapshot {MATRIX} --expect SER",
        "Documented as snapshot isolation, which allows it.",
    ),
    Entry(
        "postgresql-repeatable-read-write-skew", "PostgreSQL shows write skew at REPEATABLE READ",
        "postgresql-repeatable-read-write-skew", "SER",
        f'isocheck test --managed postgresql --isolation "repeatable read" --workload write-skew {MATRIX} --expect SER',
        "Documented: REPEATABLE READ is snapshot isolation, and serialization anomalies need SERIALIZABLE.",
    ),
)  # fmt: skip

HEAD = """# Gallery: what was found in real databases

Every history here was recorded by `isocheck matrix` from a database that anybody can install, and cut down to the
smallest part that still fails in the same way. Not all are defects: most are documented, in words that are easy to
read past. A run finds what it finds; give it another `--seed`, more transactions or a longer `--pause` if it holds.
[matrix.md](matrix.md) has what all settings did.
"""


def shown(entry: Entry, folder: Path) -> str | None:
    """One section, or None if no run shows it."""
    for history in sorted(folder.glob(f"{entry.runs}*.jsonl")):
        small = FOUND / f"{entry.name}.json"
        words = [ISOCHECK, "check", str(history), "--level", entry.level, "--minimize", str(small), "--format", "json"]
        answer = subprocess.run(words, capture_output=True, text=True)
        if answer.returncode != 1 or not small.exists():
            continue
        run = json.loads(answer.stdout)["results"][0]["run"]
        return _section(entry, small, f"{run['database']} {run['version']}")
    return None


def _section(entry: Entry, small: Path, database: str) -> str:
    with tempfile.TemporaryDirectory() as drawn:
        name = str(small.relative_to(HERE))
        words = [ISOCHECK, "check", name, "--level", entry.level, "--out", drawn, "--format", "json"]
        result = json.loads(subprocess.run(words, capture_output=True, text=True, cwd=HERE).stdout)["results"][0]
        picture = sorted(Path(drawn).glob("*.svg"))[0]
        shutil.copyfile(picture, PICTURES / f"{entry.name}.svg")
    violation = result["violations"][0]
    return (
        f"\n## {entry.title}\n\n{database}. {violation['name']} breaks {entry.level}: {violation['headline']}.\n\n"
        f"![{entry.title}](pictures/found/{entry.name}.svg)\n\n```\n{entry.command}\n"
        f"isocheck histories/found/{small.name} --level {entry.level}\n```\n\n{entry.promise}\n"
    )


def main() -> None:
    """Every entry that the runs show."""
    folder = Path(sys.argv[1])
    for place in (FOUND, PICTURES):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    sections = []
    for entry in ENTRIES:
        section = shown(entry, folder)
        print(f"{'shown' if section else 'NOT SHOWN'}: {entry.title}")
        sections += [section] if section else []
    (HERE / "docs" / "gallery.md").write_text(HEAD + "".join(sections))


if __name__ == "__main__":
    main()
