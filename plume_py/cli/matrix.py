"""``isocheck matrix``: databases x isolation levels x workloads, in one table."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plume_py.base.errors import ExitCode
from plume_py.base.text import one_line
from plume_py.cli.collect_options import MANAGED, WORKLOADS, options
from plume_py.cli.common_options import tell_written, timeout_option

if TYPE_CHECKING:
    from plume_py.matrix.cells import Cell
    from plume_py.matrix.rows import Row
    from plume_py.matrix.run import Outcome

FORMATS = ("text", "markdown", "json", "html")


@click.command("matrix")
@click.argument("databases", metavar="[DATABASE]...", nargs=-1)
@click.option("--isolation", "isolations", multiple=True, help="Only this level; may be given several times.")
@click.option(
    "--workload", "workloads", type=click.Choice(WORKLOADS), multiple=True, help="May be given several times."
)
@options(
    *("--sessions", "--transactions", "--pause", "--think", "--rate", "--seed", "--set"),
    transactions=100,
    pause=0.5,
)
@timeout_option("Seconds for the check of each run, then undecided.", default=60.0, show_default=True)
@click.option("--out", default="isocheck-matrix", show_default=True, type=click.Path(file_okay=False),
              help="The folder of histories, pictures and results; what is done there is not done again.")  # fmt: skip
@click.option("--force", is_flag=True, help="Run again what was run before.")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    databases: tuple[str, ...],
    isolations: tuple[str, ...],
    workloads: tuple[str, ...],
    settings: dict[str, str],
    out: str,
    force: bool,
    output: str,
    **shape: float | None,
) -> None:
    """Run workloads on databases at each of their isolation levels, and say what each really keeps.

    DATABASE is a managed one (postgresql, mariadb, sqlite, …), or an address; several addresses of one cluster stand
    in one word, with spaces between them. Without, every managed one whose programs are installed. Exit code: 0 every
    promise is kept, 1 some is broken, 3 some level could not be run.

    \b
    Examples:
      isocheck matrix sqlite postgresql mariadb
      isocheck matrix postgresql --workload smallbank --format markdown > matrix.md
    """
    from plume_py.matrix import cells, tables
    from plume_py.matrix.rows import rows

    targets = [cells.Target(name, name in MANAGED) for name in databases or MANAGED]
    more = tuple(word for name, value in _told(shape) for word in (f"--{name}", f"{value:.15g}"))
    more += tuple(word for setting in settings.items() for word in ("--set", "=".join(setting)))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    plan = list(cells.cells(targets, isolations, workloads or cells.WORKLOADS, more))
    done = _run(plan, folder, force)
    found = list(rows(done))
    write = {"text": tables.text, "markdown": tables.markdown, "html": tables.html, "json": _json}[output]
    click.echo(write(found).rstrip("\n"))
    _keep(folder, found)
    ctx.exit(_exit_code(found))


def _told(shape: dict[str, float | None]) -> list[tuple[str, float]]:
    """What is passed on to every run; what is not asked for is not told."""
    return [(name, value) for name, value in shape.items() if value or (value is not None and name != "think")]


def _run(plan: "Sequence[Cell]", folder: Path, force: bool) -> "list[tuple[Cell, Outcome]]":
    """One after the other, each told when it is done."""
    from plume_py.matrix.run import outcome

    done = []
    missing: dict[str, str] = {}
    for number, cell in enumerate(plan, 1):
        start = time.monotonic()
        name = f"{cell.target.title}, {cell.isolation}, {cell.workload}"
        found, is_new = outcome(cell, folder, force)
        done.append((cell, found))
        said = found.error or " ".join(_broken(found)) or "every level holds"
        took = f"{time.monotonic() - start:.1f} s" if is_new else "done before"
        if missing.get(cell.target.name) != said or not found.error:
            click.echo(one_line(f"isocheck: {number}/{len(plan)} {name}: {said} ({took})"), err=True)
        missing[cell.target.name] = said if found.error else ""
    return done


def _broken(found: "Outcome") -> list[str]:
    levels = (found.result or {}).get("levels", {})
    broken = [name for name, verdict in levels.items() if verdict["ok"] is False]
    return ["broken:", *broken] if broken else []


def _json(rows: "Sequence[Row]") -> str:
    from plume_py.matrix.tables import plain
    from plume_py.report.json import encode

    return encode(plain(rows))


def _keep(folder: Path, rows: "Sequence[Row]") -> None:
    """The table beside what it is made of, in the forms that are read later."""
    from plume_py.base.atomic_files import write_atomically
    from plume_py.matrix import tables

    for name, content in (("matrix.md", tables.markdown(rows)), ("matrix.html", tables.html(rows))):
        write_atomically(str(folder / name), [content.encode("utf-8", "backslashreplace")])
    tell_written(str(folder / "matrix.html"))


def _exit_code(rows: "Sequence[Row]") -> int:
    verdicts = {row.verdict for row in rows}
    if "broken" in verdicts:
        return ExitCode.VIOLATION
    return ExitCode.UNDECIDED if "not run" in verdicts else ExitCode.HOLDS
