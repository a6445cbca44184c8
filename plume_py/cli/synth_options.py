"""Options of the commands about levels (``synth``, ``relate``, ``hierarchy``), and their search with limits."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.child_process import Send, run_in_child
from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.base.terminal import StatusLine, clock
from plume_py.base.text import one_line
from plume_py.cli.common_options import bytes_of_memory, tell, timeout_option

if TYPE_CHECKING:
    from plume_py.reasoning.synth import Definition, Scope

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def scope_options(txns: int, keys: int, values: int) -> Callable[[F], F]:
    """Add the options for the largest size of a history, with these defaults, and for limits."""

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
            timeout_option("Seconds, then undecided; what is settled by then is told."),
            click.option(
                "--max-memory", metavar="SIZE", callback=bytes_of_memory, help="Such as 4G; undecided beyond it."
            ),
        )
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def scope_of(txns: int, keys: int, values: int, sessions: int | None, no_blind_writes: bool) -> "Scope":
    """Return the scope that the options describe."""
    from plume_py.reasoning.synth import Scope

    return Scope(txns, keys, values, sessions, not no_blind_writes)


def split(names: tuple[str, ...]) -> list[str]:
    """Split ``--allow SI,UpdateSer --allow RA`` into three names."""
    parts = [part.strip() for name in names for part in name.split(",")]
    if "" in parts:
        raise IsocheckError("the name of a level is empty; name levels as in SI,SER")
    return parts


def defined_in(files: tuple[str, ...]) -> "dict[str, Definition]":
    """Return the levels by name that the files of ``--define`` define."""
    from plume_py.reasoning.synth import load_definitions

    defined: dict[str, Definition] = {}
    for file in dict.fromkeys(files):
        for name, level in load_definitions(file).items():
            if defined.setdefault(name, level) is not level:
                raise IsocheckError(one_line(f"--define: two files define {name}; rename one of them"))
    return defined


def chosen(defined: "Mapping[str, Definition]", *groups: tuple[str, ...]) -> "list[list[Definition]]":
    """Return the levels of each group of names, each level once; ``defined`` adds levels from files."""
    from plume_py.reasoning.synth.formulas import definitions

    found = [list(dict.fromkeys(definitions(split(names), defined))) for names in groups]
    if defined and not any(level.level in defined for group in found for level in group):
        tell([f"--define: none of {', '.join(defined)} was asked for"])
    return found


class Search:
    """A search with limits and a status line; ``news`` is the last progress that the search has sent."""

    def __init__(self, limits: Limits, news: Any = "") -> None:
        self.limits, self.news = limits, news
        self._status = StatusLine()
        self._in_child = limits.timeout is not None or self._status.watched
        self._begin = time.monotonic()

    def run(self, work: Callable[[Send], T]) -> T:
        """Return the result of ``work``; run it in a child process if there is a timeout or a terminal.

        Raise LimitError if a limit ends it.
        """

        def limited(send: Send) -> T:
            with self.limits.enforced():
                return work(send)

        if not self._in_child:
            return limited(self._set_news)
        try:
            return run_in_child(limited, self.limits, self._set_news, self._show)
        finally:
            self._status.clear()

    def _set_news(self, news: Any) -> None:
        self.news = news

    def _show(self) -> None:
        seconds = time.monotonic() - self._begin
        if seconds > 1:
            self._status.show(f"{self.news} ({clock(seconds)})")
