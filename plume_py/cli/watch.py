"""``isocheck watch``: check a history while it is still being written, and print violations as they become certain."""

import signal
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import exit_code
from plume_py.base.terminal import REDRAW, StatusLine
from plume_py.base.text import one_line
from plume_py.cli.common_options import LevelChoice, order_option, reading_options
from plume_py.levels import WEAK
from plume_py.levels.orders import NONE, ORDERS, PER_KEY, in_lattice_order, level_of, order_in

if TYPE_CHECKING:
    from plume_py.checking.result import Result, Violation
    from plume_py.checking.stream.monitor import Monitor

WATCHED_FORMATS = ("jsonl", "plume")
OUTPUTS = ("text", "jsonl")

# The rate in the status line is the mean over this many seconds.
RATE_SECONDS = 2.0


@click.command("watch")
@click.argument("history", metavar="FILE")
@click.option(
    "--level", "-l", "levels", type=LevelChoice(), multiple=True,
    help="CI RC RA TCC, or weak for all four; may be given several times.  [default: weak]",
)  # fmt: skip
@partial(order_option, shown=tuple(order for order in ORDERS if order != PER_KEY))
@click.option("--fail-fast", is_flag=True, help="Stop at the first violation.")
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="Bound the memory: see the documentation.")
@click.option("--until-idle", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="End when nothing has come for so long.")  # fmt: skip
@click.option("--no-follow", is_flag=True, help="End at the present end of the file.")
@click.option("--format", "output", type=click.Choice(OUTPUTS), default="text", show_default=True)
@click.option("--max-examples", default=1, show_default=True, type=click.IntRange(1, 1000), help="Per pattern.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="No status line, and nothing if all levels hold.")
@reading_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    history: str,
    levels: tuple[tuple[str, ...], ...],
    no_follow: bool,
    output: str,
    color: str,
    quiet: bool,
    **params: Any,
) -> None:
    """Follow a growing JSON Lines or Plume text file, or a pipe ("-"), and tell each violation once it is certain.

    Ends with the pipe, or at Ctrl-C, with the verdict and the exit code of `isocheck check`: 0 every level holds, 1
    some violation, 2 wrong usage, 3 undecided, 4 some input could not be read.

    \b
    Examples:
      isocheck watch history.jsonl --fail-fast
      my-test | isocheck watch - --level RA
      isocheck watch history.jsonl --until-idle 30
      isocheck watch history.jsonl --order realtime
    """
    chosen = in_lattice_order({level for group in levels for level in group} or WEAK)
    _reject_strong(chosen)
    _reject_orders(chosen, params["order"], params["window"])
    if params["input_format"] not in (None, *WATCHED_FORMATS):
        raise click.UsageError(f"{params['input_format']} cannot be watched, only jsonl and plume: run isocheck check")
    ctx.color = {"always": True, "never": False}.get(color, ctx.color)
    screen = Screen(output, ctx.color, quiet)
    with Stop() as stop:
        from plume_py.checking.stream.watch import Watch, WatchOptions

        options = WatchOptions(levels=tuple(chosen), follow=not no_follow, **params)
        try:
            result = Watch(history, options, screen, lambda: stop.is_requested).run()
        finally:
            screen.clear()
        screen.verdict(result)
    ctx.exit(exit_code(result.ok, result.error))


def _reject_strong(levels: list[str]) -> None:
    strong = [level for level in levels if level_of(level) not in WEAK]
    if strong:
        raise click.UsageError(f"{strong[0]} is not decided while a history grows: run isocheck check when it is whole")


def _reject_orders(levels: list[str], order: str, window: int | None) -> None:
    """Reject the orders that the monitor does not decide, and several orders at once."""
    orders = {order_in(level) or order for level in levels}
    if PER_KEY in orders:
        raise click.UsageError(
            f"{PER_KEY} is not decided while a history grows: run isocheck check --order {PER_KEY} when it is whole"
        )
    if len(orders) > 1:
        raise click.UsageError(
            f"{' '.join(levels)} mean several orders, and only one is watched at a time: "
            f"ask for plain levels with --order, or run isocheck check when the history is whole"
        )
    if orders == {NONE} and window is not None:
        raise click.UsageError(
            f"with --order {NONE} nothing can be forgotten: leave --window out, or run isocheck check --order {NONE}"
        )


class Stop:
    """A request to stop by Ctrl-C or SIGTERM: in order between two batches, the second time at once."""

    def __init__(self) -> None:
        self.is_requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: object) -> None:
        if self.is_requested:
            raise KeyboardInterrupt
        self.is_requested = True


class Screen:
    """Prints results on standard output, messages on standard error and, on a terminal, a status line."""

    def __init__(self, output: str, color: bool | None, quiet: bool) -> None:
        self._output = output
        self._color = color
        self._quiet = quiet
        self._status = StatusLine(quiet=quiet)
        self._patterns: set[str] = set()  # patterns of which an example has been printed
        self._next = time.monotonic() + REDRAW
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def message(self, text: str) -> None:
        """Print one line on standard error."""
        self.clear()
        click.echo(one_line(f"isocheck: {text}"), err=True)

    def violation(self, heading: str, violation: "Violation") -> None:
        """Print a violation that has just become certain."""
        from plume_py.report.json import violation_line
        from plume_py.report.text import example

        self._patterns.add(violation.tap)
        if self._output == "jsonl":
            self._print(violation_line(violation))
        else:
            self._print("\n".join((click.style(one_line(heading), bold=True), *example(violation), "")))

    def verdict(self, result: "Result") -> None:
        """Print the final result."""
        from plume_py.report.output import one

        if self._quiet and result.ok:
            return
        # As text, the error and the examples have been printed already. A JSON object contains them again.
        if self._output != "jsonl":
            new = tuple(violation for violation in result.violations if violation.tap not in self._patterns)
            result = replace(result, error=None, violations=new)
        printed = one(self._output, result)
        if result.levels or self._output == "jsonl":
            self._print(printed)

    def tick(self, monitor: "Monitor | None") -> None:
        """Redraw the status line, but not too often."""
        now = time.monotonic()
        if not self._status.watched or monitor is None or now < self._next:
            return
        self._next = now + REDRAW
        self._samples.append((now, monitor.transactions))
        while now - self._samples[0][0] > RATE_SECONDS and len(self._samples) > 2:
            self._samples.popleft()
        (begin, before), (end, after) = self._samples[0], self._samples[-1]
        rate = (after - before) / (end - begin)
        violated = [level for level in monitor.levels if level not in monitor.holding]
        holding = f"{' '.join(monitor.holding)} holding" if monitor.holding else "no level holding"
        holding += f", {' '.join(violated)} broken" if violated else ""
        self._status.show(f"{after:,} transactions, {rate:,.0f}/s, {monitor.pending:,} reads pending, {holding}")

    def clear(self) -> None:
        """Remove the status line."""
        self._status.clear()

    def _print(self, text: str) -> None:
        self.clear()
        click.echo(text, color=self._color)
