"""The options that the commands about levels share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.cli.contract import seconds

if TYPE_CHECKING:
    from plume_py.synth import Definition, Scope

F = TypeVar("F", bound=Callable[..., Any])


def scope_options(txns: int, keys: int, values: int) -> Callable[[F], F]:
    """How large a history may be; with these defaults."""

    def decorate(command: F) -> F:
        options = (
            click.option("--txns", type=click.IntRange(1, 24), default=txns, show_default=True, help="Transactions."),
            click.option("--keys", type=click.IntRange(1, 26), default=keys, show_default=True, help="At most."),
            click.option(
                "--values",
                type=click.IntRange(1, 100),
                default=values,
                show_default=True,
                help="Of each key, at most; the initial one counts.",
            ),
            click.option("--sessions", type=click.IntRange(1, 24), help="At most.  [default: as many as transactions]"),
            click.option("--no-blind-writes", is_flag=True, help="Who writes a key has read it."),
            click.option(
                "--define",
                "files",
                multiple=True,
                type=click.Path(dir_okay=False),
                help="A Python file that defines levels; it is run.",
            ),
            click.option(
                "--timeout", type=click.FloatRange(0, min_open=True), callback=seconds, help="Seconds, then undecided."
            ),
        )
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def scope_of(txns: int, keys: int, values: int, sessions: int | None, no_blind_writes: bool) -> "Scope":
    """The scope that the options say."""
    from plume_py.synth import Scope

    return Scope(txns, keys, values, sessions, not no_blind_writes)


def split(names: tuple[str, ...]) -> list[str]:
    """``--allow SI,UpdateSer --allow RA``: three names."""
    return [part.strip() for name in names for part in name.split(",") if part.strip()]


def chosen(names: tuple[str, ...] | list[str], files: tuple[str, ...]) -> "list[Definition]":
    """The levels of these names, some of which the files may define."""
    from plume_py.synth.registry import definitions, load_definitions

    defined: dict[str, Any] = {}
    for file in files:
        defined |= load_definitions(file)
    return definitions(split(tuple(names)), defined)
