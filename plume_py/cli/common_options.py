"""Options, parameter types and messages that several commands share.

Scripts and other tools rely on these names and formats.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.text import counted, one_line
from plume_py.history.formats.registry import FORMATS
from plume_py.levels import GROUPS, LEVELS, NAMES, RUNNABLE, parse_level
from plume_py.levels.orders import DEFAULT_ORDER, ORDERS, level_request, unknown_level

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.history.model import History

F = TypeVar("F", bound=Callable[..., Any])

# Seconds for each level that needs a search, if the user neither named levels nor gave a limit.
PER_LEVEL = 60.0

# Output formats; ``plume_py.report.output`` has a renderer for each.
OUTPUT_FORMATS = ("text", "json", "jsonl", "junit", "sarif", "github", "dot", "elle")
# Picture formats; ``plume_py.report.graphviz`` draws them.
PICTURE_FORMATS = ("svg", "png", "pdf")


class LevelChoice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A level, an alias, or a group of levels, converted to a tuple of level names."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names; ``all`` and ``weak`` are groups, ``declared`` means the level of each transaction."""
        if isinstance(value, tuple):
            return value
        spelling = str(value).strip().lower()
        if spelling == "declared":
            return (spelling,)
        if spelling in GROUPS:
            return GROUPS[spelling]
        level = level_request(spelling)
        if level is None:
            self.fail(unknown_level(str(value), (*NAMES, "SSER", *GROUPS, "declared")), param, ctx)
        return (level.name,)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        words = [word for word in (*GROUPS, "declared") if word.startswith(incomplete.lower())]
        return complete_levels(ctx, param, incomplete) + [CompletionItem(word) for word in words]


class LevelName(click.Choice):  # type: ignore[type-arg]  # generic only in newer click
    """One of the given levels, by any of its names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        meant = level_request(str(value))
        if meant is None or meant.name not in self.choices:
            self.fail(unknown_level(str(value), map(str, self.choices)), param, ctx)
        return meant.name


def reading_options(command: F) -> F:
    """Add the options of commands that read histories."""
    command = click.option(
        "--init-txn",
        type=click.Choice(["auto", "first", "none"]),
        default="auto",
        show_default=True,
        help="Does the first transaction set up the initial state?",
    )(command)
    return click.option(
        "--input-format",
        type=click.Choice(list(FORMATS)),
        help="Read as this format instead of recognising it by content.",
    )(command)


def order_option(command: F, shown: Sequence[str] = ORDERS) -> F:
    """Add ``--order``; the help lists the orders that the command decides."""
    return click.option(
        "--order",
        type=click.Choice(ORDERS),
        metavar=f"[{'|'.join(shown)}]",
        default=DEFAULT_ORDER,
        show_default=True,
        help="Which order between transactions a level respects; SSER, StrongSI and the like mean realtime.",
    )(command)


def picture_option(command: F) -> F:
    """Add ``--picture``, for commands that draw into a folder."""
    return click.option(
        "--picture",
        "pictures",
        type=click.Choice(PICTURE_FORMATS),
        multiple=True,
        help="What --out draws; may be given several times.  [default: svg]",
    )(command)


def picture_formats(pictures: tuple[str, ...], out: str | None) -> tuple[str, ...]:
    """Return the formats to draw, without duplicates."""
    if pictures and out is None:
        raise click.UsageError("--picture says what --out draws: give --out, too")
    return tuple(dict.fromkeys(pictures)) or PICTURE_FORMATS[:1]


def tell(notes: Iterable[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        click.echo(one_line(f"isocheck: {note}"), err=True)


def tell_written(target: str, what: str = "", *, quiet: bool = False) -> None:
    """Print which file was written, unless it is standard output or another stream."""
    if not quiet and not is_stream(target):
        tell([f"wrote {target}" + (f": {what}" if what else "")])


def complete_levels(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete the name of a level, in upper or lower case."""
    from click.shell_completion import CompletionItem

    wanted = incomplete.upper()
    return [CompletionItem(name, help=level.title) for name, level in LEVELS.items() if name.startswith(wanted)]


def seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Reject "nan", a limit that no time would ever reach."""
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number of seconds")
    return value


def timeout_option(help: str = "Seconds, then undecided.", name: str = "timeout", **how: Any) -> Callable[[F], F]:
    """Add ``--timeout``."""
    limit: dict[str, Any] = {"type": click.FloatRange(0, min_open=True), "callback": seconds, "help": help}
    return click.option("--timeout", name, **limit, **how)


def assumed_level(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the level of ``--assume``."""
    level = None if value is None else parse_level(value)
    if value is not None and level not in RUNNABLE:
        raise click.BadParameter(unknown_level(value, RUNNABLE))
    return level


def bytes_of_memory(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return the bytes of a size such as 4G, 512M or 1048576."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise click.BadParameter(f"{value!r} is not a size; write it like 4G or 512M")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def limits_of(timeout: float | None, max_memory: int | None = None, per_level: float | None = None) -> "Limits":
    """Return the limits of the options; without ``--max-memory``, a share of the memory of the machine."""
    from plume_py.base.limits import Limits
    from plume_py.base.memory import share_of_machine

    return Limits(timeout, max_memory or share_of_machine(1), per_level)


def write_history(path: str, history: "History") -> None:
    """Write a history in the native JSON format."""
    from plume_py.base.atomic_files import write_atomically
    from plume_py.history.formats.json_writer import write_json

    write_atomically(path, write_json(history).chunks)


def draw_counterexamples(result: "Result", folder: str, formats: tuple[str, ...]) -> None:
    """Draw the counterexamples of a result into a folder, and print how many."""
    from plume_py.report.dot import write_pictures
    from plume_py.report.graphviz import Album

    album = Album(Path(folder), formats)
    write_pictures(result, album)
    tell(album.notes)
    tell_written(folder, counted(len(result.violations), "counterexample"))
