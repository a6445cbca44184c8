"""``isocheck bench``: measure checks along the parameters of generated histories."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.terminal import StatusLine, clock
from plume_py.bench.run import SHAPE, Value, points
from plume_py.cli.check import CLOCKS
from plume_py.cli.common_options import F, LevelChoice, LevelName, tell, tell_written, timeout_option
from plume_py.cli.generate import DISTRIBUTIONS, GUARANTEES, preset_option, sizes_of
from plume_py.levels import WEAK

if TYPE_CHECKING:
    from plume_py.bench.run import Measured, Point


class CommaSeparated(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """Values separated by commas, converted to a tuple without duplicates."""

    def __init__(self, each: click.ParamType) -> None:  # type: ignore[type-arg]
        self.each = each
        self.name = f"{each.name},..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """Convert each value by the type of one value; a group of levels becomes all its levels."""
        if isinstance(value, tuple):
            return value
        found: list[Any] = []
        for word in str(value).split(","):
            one = self.each.convert(word.strip(), param, ctx)
            found += one if isinstance(one, tuple) else [one]
        return tuple(dict.fromkeys(found))


def _several(name: str, each: click.ParamType, help: str = "") -> Callable[[F], F]:  # type: ignore[type-arg]
    default = f"{SHAPE[name]}"
    return click.option(
        f"--{name}", type=CommaSeparated(each), default=default, show_default=True, metavar="LIST", help=help
    )


@click.command("bench")
@click.option(
    "--level", "levels", type=CommaSeparated(LevelChoice()), default=WEAK[-1], show_default=True, metavar="LIST"
)
@click.option(
    "--clock", "clocks", type=CommaSeparated(click.Choice(CLOCKS)), default="auto", show_default=True, metavar="LIST",
    help="auto, vector, tree, none.",
)  # fmt: skip
@_several("guarantee", LevelName(GUARANTEES), "The levels that the histories keep.")
@_several("sessions", click.IntRange(min=0))
@_several("transactions", click.IntRange(min=0), "Per session.")
@_several("operations", click.IntRange(min=0), "Per transaction.")
@_several("read-share", click.FloatRange(0, 1))
@_several("keys", click.IntRange(min=1))
@_several("distribution", click.Choice(DISTRIBUTIONS), "uniform, zipfian, hotspot.")
@preset_option
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--runs", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="How often each check is measured; the median counts.")  # fmt: skip
@timeout_option("Seconds for each check; then the next one.")
@click.option("--out", type=click.Path(file_okay=False), help="A folder for bench.csv and plots of it (SVG).")
@click.option("--format", "output", type=click.Choice(["text", "csv"]), default="text", show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="No progress, and nothing about what was written.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    levels: tuple[str, ...],
    clocks: tuple[str, ...],
    preset: str | None,
    seed: int,
    runs: int,
    timeout: float | None,
    out: str | None,
    output: str,
    quiet: bool,
    **shape: tuple[Value, ...],
) -> None:
    """Measure checks of generated histories: time, the time of each stage, memory.

    Every parameter of the generator may be a list, with commas: each combination is generated, and checked in a process
    of its own, once before it counts, so that kernels are compiled. The same seed gives the same histories.

    \b
    Examples:
      isocheck bench --sessions 5,10,20,40 --level TCC,RA --out profile
      isocheck bench --preset GeneralRH --distribution uniform,zipfian --runs 3
    """
    from plume_py.bench import tables

    chosen = {name.replace("_", "-"): values for name, values in shape.items()}
    chosen |= {name.replace("_", "-"): (value,) for name, value in sizes_of(preset, ctx).items()}
    plan = list(points({name: chosen[name] for name in SHAPE}, levels, clocks, seed))
    found = _measured(plan, runs, timeout, quiet)
    click.echo((tables.as_csv(found) if output == "csv" else tables.as_text(found)).rstrip("\n"))
    if out is not None:
        _write(Path(out), found, quiet)


def _measured(plan: "Sequence[Point]", runs: int, timeout: float | None, quiet: bool) -> "list[Measured]":
    """Measure the points one after the other; the status line shows the current point and the time so far."""
    from plume_py.bench.run import measure, varied

    names, began = varied(plan), time.monotonic()
    step = ""

    def on_step(number: int, point: "Point", what: str) -> None:
        nonlocal step
        values = ", ".join(f"{name} {point.values[name]}" for name in names)
        step = f"{number + 1} of {len(plan)}: {what}{' ' if values else ''}{values}"

    with StatusLine(quiet=quiet).redrawn(lambda: f"{step}, {clock(time.monotonic() - began)}"):
        return list(measure(plan, runs, timeout, on_step))


def _write(folder: Path, found: "Sequence[Measured]", quiet: bool) -> None:
    """Write the CSV file, and the plots if a numeric parameter was varied."""
    from plume_py.base.atomic_files import write_atomically
    from plume_py.bench import tables

    folder.mkdir(parents=True, exist_ok=True)
    drawn = tables.plots(found)
    for name, content in {"bench.csv": tables.as_csv(found), **drawn}.items():
        write_atomically(str(folder / name), [content.encode()])
        tell_written(str(folder / name), quiet=quiet)
    if not drawn and not quiet:
        tell(["no plots: they need a parameter with several numbers, as --sessions 5,10,20"])
