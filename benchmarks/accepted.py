"""Which transactions of applications allocate and infer read, and what they advise: now, and in an older tree.

``python -m benchmarks.accepted [--before FOLDER] [--results FILE]``; FOLDER is a checkout of an older version. What
infer found safe is also run on private servers (``infer --run``); they agree if nothing of it breaks there. The
applications are in ``benchmarks/applications``, written as people write them: TPC-C from a client and as procedures,
pgbench, and the parts of a shop.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workloads import WORK

APPLICATIONS = Path(__file__).parent / "applications"
RESULTS = Path(__file__).parent / "results" / "accepted.md"
ROOT = Path(__file__).parent.parent
_BEGINS = re.compile(
    r"(?=^-- transaction:|^CREATE (?:OR REPLACE )?(?:PROCEDURE|FUNCTION)|^-- invariant:|^DELIMITER)", re.MULTILINE
)
_NAME = re.compile(r"-- transaction: (\w+)|CREATE (?:OR REPLACE )?(?:PROCEDURE|FUNCTION) `?(\w+)")
SECONDS = "20"  # for a question to infer


@dataclass(frozen=True)
class Application:
    """A file in its parts."""

    name: str
    before: str
    transactions: dict[str, str]
    after: str

    def only(self, names: list[str]) -> str:
        """The file with some of its transactions."""
        return self.before + "".join(self.transactions[name] for name in names) + self.after


def application(path: Path) -> Application:
    """Schema, transactions, and the rest."""
    before, after, found, delimiter = "", "", {}, ""
    for part in _BEGINS.split(path.read_text()):
        named = _NAME.match(part)
        if named is not None:
            ends = f"\nDELIMITER {delimiter}\n" if delimiter else ""
            found[named[1] or named[2]] = ends + part + ("\nDELIMITER ;\n" if delimiter else "")
        elif part.startswith("DELIMITER"):
            delimiter = part.split()[1].replace(";", "")
            after += part.split("\n", 1)[1]
        elif found:
            after += part
        else:
            before += part
    return Application(path.stem, before, found, after)


def ask(tree: Path, text: str, name: str, *command: str) -> tuple[dict[str, str], str]:
    """The levels by transaction, or why not."""
    WORK.mkdir(exist_ok=True)
    file = WORK / f"{name}.sql"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "plume_py", command[0], str(file), *command[1:], "--brief", "--format", "json"],
        capture_output=True, text=True, check=False, cwd=WORK, env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    if done.returncode not in (0, 1, 3):
        return {}, done.stderr.strip().replace(f"isocheck: {file}, ", "").replace("isocheck: ", "")
    told = json.loads(done.stdout)
    rows = told.get("groups") or told.get("transactions") or []
    return {row["name"]: row["level"] or "none" for row in rows}, ""


def answers(tree: Path, app: Application, *command: str) -> dict[str, str]:
    """For each transaction the advice, or the refusal; the advice is for those that are read, together."""
    refused = {}
    for name in app.transactions:
        _, why = ask(tree, app.only([name]), app.name, *command)
        if why:
            refused[name] = why
    names = [name for name in app.transactions if name not in refused]
    levels, why = ask(tree, app.only(names), app.name, *command) if names else ({}, "")
    return {name: refused.get(name) or levels.get(name) or why for name in app.transactions}


def rows(before: Path | None) -> list[list[str]]:
    """A row for each transaction."""
    found = []
    for path in sorted(APPLICATIONS.glob("*.sql")):
        app = application(path)
        has_invariant = "-- invariant" in app.after
        infer = ("infer", "--timeout", SECONDS, *(() if has_invariant else ("--serializability",)))
        asked = [("allocate", "--catalogue", "postgresql"), infer]
        columns = [answers(tree, app, *command) for command in asked for tree in (*([before] if before else []), ROOT)]
        columns.append(agreed(app, columns[-1], infer) if has_invariant else dict.fromkeys(app.transactions, "–"))
        found += [[app.name, name, *(_cell(column[name]) for column in columns)] for name in app.transactions]
        print(*(" | ".join(row) for row in found[-len(app.transactions) :]), sep="\n", flush=True)
    return found


def agreed(app: Application, levels: dict[str, str], infer: tuple[str, ...]) -> dict[str, str]:
    """For each transaction that infer reads: did the servers keep the invariant at the levels found?"""
    names = [name for name, level in levels.items() if len(level) <= len("none")]
    told = {}
    for server in ("postgresql", "mariadb"):
        file = WORK / f"{app.name}.sql"
        file.write_text(app.only(names))
        done = subprocess.run(
            [sys.executable, "-m", "plume_py", infer[0], str(file), *infer[1:], "--run", server, "--run-seconds", "2",
             "--brief", "--format", "json"],
            capture_output=True, text=True, check=False, cwd=WORK, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        if done.returncode not in (0, 1, 3):
            told[server] = f"not run ({done.stderr.strip().split(': ', 2)[-1].split(';')[0]:.60})"
            continue
        ran = [run for run in json.loads(done.stdout)["run"]["vectors"] if run["found safe"]]
        commits = sum(run["commits"] for run in ran)
        broken = any(run["broken"] for run in ran)
        told[server] = f"{'broken' if broken else 'yes' if commits else 'no commit'} ({commits:,} commits)"
    text = ", ".join(f"{server}: {answer}" for server, answer in told.items())
    return {name: text if name in names else "–" for name in app.transactions}


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def document(found: list[list[str]], before: bool) -> str:
    """The table, and how many are read."""
    titles = ["allocate before", "allocate", "infer before", "infer"] if before else ["allocate", "infer"]
    last = "server run agreed"
    lines = [f"| application | transaction | {' | '.join(titles)} | {last} |", "|" + "---|" * (3 + len(titles))]
    lines += [f"| {' | '.join(row)} |" for row in found]
    counts = [sum(len(row[2 + i]) <= len("none") for row in found) for i in range(len(titles))]
    share = ", ".join(f"{title} {count} of {len(found)}" for title, count in zip(titles, counts, strict=True))
    return (
        f"### Transactions that are read, and the level each gets on PostgreSQL\n\nRead: {share}.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accepted", description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of an older version")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    before = args.before.resolve() if args.before else None
    text = document(rows(before), before is not None)
    args.results.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
