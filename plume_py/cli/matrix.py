"""``isocheck matrix``: run workloads on databases at each isolation level, and print one table."""

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
    from plume_py.matrix.cells import Cell, Outcome
    from plume_py.matrix.tables import Row

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
    from plume_py.matrix.tables import rows

    targets = [cells.Target(name, name in MANAGED) for name in databases or MANAGED]
    more = tuple(word for name, value in _given(shape) for word in (f"--{name}", f"{value:.15g}"))
    more += tuple(word for setting in settings.items() for word in ("--set", "=".join(setting)))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    plan = list(cells.cells(targets, isolations, workloads or cells.WORKLOADS, more))
    done = _run(plan, folder, force)
    found = list(rows(done))
    write = {"text": tables.text, "markdown": tables.markdown, "html": tables.html, "json": _json}[output]
    click.echo(write(found).rstrip("\n"))
    _write(folder, found)
    ctx.exit(_exit_code(found))


def _given(shape: dict[str, float | None]) -> list[tuple[str, float]]:
    """Return the options to pass to every run: options without a value, and --think 0, are left out."""
    return [(name, value) for name, value in shape.items() if value or (value is not None and name != "think")]


def _run(plan: "Sequence[Cell]", folder: Path, force: bool) -> "list[tuple[Cell, Outcome]]":
    """Run the cells one after the other, and print a line for each."""
    from plume_py.matrix.cells import outcome

    done = []
    last_error: dict[str, str] = {}  # by database
    for number, cell in enumerate(plan, 1):
        start = time.monotonic()
        name = f"{cell.target.title}, {cell.isolation}, {cell.workload}"
        found, is_new = outcome(cell, folder, force)
        done.append((cell, found))
        outcome_text = found.error or " ".join(_violated(found)) or "every level holds"
        took = f"{time.monotonic() - start:.1f} s" if is_new else "done before"
        if last_error.get(cell.target.name) != outcome_text or not found.error:
            click.echo(one_line(f"isocheck: {number}/{len(plan)} {name}: {outcome_text} ({took})"), err=True)
        last_error[cell.target.name] = found.error
    return done


def _violated(found: "Outcome") -> list[str]:
    levels = (found.result or {}).get("levels", {})
    violated = [name for name, verdict in levels.items() if verdict["ok"] is False]
    return ["broken:", *violated] if violated else []


def _json(rows: "Sequence[Row]") -> str:
    from plume_py.matrix.tables import plain
    from plume_py.report.json import encode

    return encode(plain(rows))


def _write(folder: Path, rows: "Sequence[Row]") -> None:
    """Write the table as Markdown and HTML into the folder of the histories."""
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
