"""The fixed part of the command line, in one place: exit codes, level names, output formats, common options.

Scripts and other tools rely on what is here; commands only use it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.atomic_files import is_stream
from plume_py.base.text import one_line
from plume_py.history.formats.registry import FORMATS
from plume_py.levels import GROUPS, LEVELS, NAMES, RUNNABLE, parse_level
from plume_py.levels.orders import DEFAULT_ORDER, ORDERS, level_request, unknown_level

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


# Seconds for each level that needs a search, where nobody asked for levels or named a limit.
PER_LEVEL = 60.0

# How results can be printed; ``plume_py.report.output`` has a renderer for each.
OUTPUT_FORMATS = ("text", "json", "jsonl", "junit", "sarif", "github", "dot", "elle")
# How pictures can be drawn; ``plume_py.report.graphviz`` knows how.
PICTURE_FORMATS = ("svg", "png", "pdf")


class LevelChoice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A level, an alias, or a group of levels; converts to a tuple of level names."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """``all`` and ``weak`` are groups; ``declared`` is the level that each transaction carries."""
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
        """The levels, and the names of several."""
        from click.shell_completion import CompletionItem

        words = [word for word in (*GROUPS, "declared") if word.startswith(incomplete.lower())]
        return complete_levels(ctx, param, incomplete) + [CompletionItem(word) for word in words]


class LevelName(click.Choice):  # type: ignore[type-arg]  # generic only in newer click
    """One of some levels, by any of its names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the level's own name."""
        meant = level_request(str(value))
        if meant is None or meant.name not in self.choices:
            self.fail(unknown_level(str(value), map(str, self.choices)), param, ctx)
        return meant.name


def reading_options(command: F) -> F:
    """The options of every command that reads histories."""
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
    """Add ``--order``: which order between transactions counts. The help shows the orders that the command decides."""
    return click.option(
        "--order",
        type=click.Choice(ORDERS),
        metavar=f"[{'|'.join(shown)}]",
        default=DEFAULT_ORDER,
        show_default=True,
        help="Which order between transactions a level respects; SSER, StrongSI and the like mean realtime.",
    )(command)


def picture_option(command: F) -> F:
    """The option of every command that draws into a folder."""
    return click.option(
        "--picture",
        "pictures",
        type=click.Choice(PICTURE_FORMATS),
        multiple=True,
        help="What --out draws; may be given several times.  [default: svg]",
    )(command)


def picture_formats(pictures: tuple[str, ...], out: str | None) -> tuple[str, ...]:
    """What to draw, each once, in the order asked for."""
    if pictures and out is None:
        raise click.UsageError("--picture says what --out draws: give --out, too")
    return tuple(dict.fromkeys(pictures)) or PICTURE_FORMATS[:1]


def tell(notes: Iterable[str]) -> None:
    """Notes for people, beside the results."""
    for note in notes:
        click.echo(one_line(f"isocheck: {note}"), err=True)


def tell_written(target: str, what: str = "", *, quiet: bool = False) -> None:
    """What was written where, unless everybody sees it go by."""
    if not quiet and not is_stream(target):
        tell([f"wrote {target}" + (f": {what}" if what else "")])


def complete_levels(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """For the shell: the levels that begin so, in any case, each with its title."""
    from click.shell_completion import CompletionItem

    wanted = incomplete.upper()
    return [CompletionItem(name, help=level.title) for name, level in LEVELS.items() if name.startswith(wanted)]


def seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A limit of time: "nan" would be one that is never reached."""
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number of seconds")
    return value


def timeout_option(told: str = "Seconds, then undecided.", name: str = "timeout", **how: Any) -> Callable[[F], F]:
    """The option of every command that may be told how long it can take."""
    limit: dict[str, Any] = {"type": click.FloatRange(0, min_open=True), "callback": seconds, "help": told}
    return click.option("--timeout", name, **limit, **how)


def assumed_level(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The level of transactions that carry none."""
    level = None if value is None else parse_level(value)
    if value is not None and level not in RUNNABLE:
        raise click.BadParameter(unknown_level(value, RUNNABLE))
    return level


def bytes_of_memory(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """4G, 512M, 1048576: bytes, with a factor."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise click.BadParameter(f"{value!r} is not a size; write it like 4G or 512M")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
