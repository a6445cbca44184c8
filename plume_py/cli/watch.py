"""``isocheck watch``: check a history while it is still being written."""

import signal
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import InputError, exit_code
from plume_py.base.terminal import REDRAW, StatusLine
from plume_py.base.text import one_line
from plume_py.cli.common_options import LevelChoice, order_option, reading_options
from plume_py.levels import WEAK
from plume_py.levels.orders import NONE, ORDERS, PER_KEY, in_lattice_order, level_of, order_in

if TYPE_CHECKING:
    from plume_py.checking.result import LevelVerdict, Result, Violation
    from plume_py.checking.stream.arrivals import Arrival
    from plume_py.checking.stream.follow import Piece
    from plume_py.checking.stream.monitor import Monitor

WATCHED_FORMATS = ("jsonl", "plume")
OUTPUTS = ("text", "jsonl")

# Seconds over which the rate in the status line is taken.
RATE_OVER = 2.0


@dataclass(frozen=True)
class WatchOptions:
    """What the user asked for."""

    levels: tuple[str, ...]
    order: str
    fail_fast: bool
    window: int | None
    max_examples: int
    input_format: str | None
    init_txn: Any
    until_idle: float | None
    follow: bool


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
    options = WatchOptions(levels=tuple(chosen), follow=not no_follow, **params)
    ctx.color = {"always": True, "never": False}.get(color, ctx.color)
    screen = Screen(output, ctx.color, quiet)
    with Stop() as stop:
        result = Watch(history, options, screen, stop).run()
    ctx.exit(exit_code(result.ok, result.error))


def _reject_strong(levels: list[str]) -> None:
    strong = [level for level in levels if level_of(level) not in WEAK]
    if strong:
        raise click.UsageError(f"{strong[0]} is not decided while a history grows: run isocheck check when it is whole")


def _reject_orders(levels: list[str], order: str, window: int | None) -> None:
    """One order is watched, and not every one."""
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
    """Ctrl-C and SIGTERM ask to end in good order, between two batches; a second time, at once."""

    def __init__(self) -> None:
        self.is_requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: object) -> None:
        if self.is_requested:
            raise KeyboardInterrupt
        self.is_requested = True


class Screen:
    """Results on standard output, messages on standard error and, on a terminal, a status line."""

    def __init__(self, output: str, color: bool | None, quiet: bool) -> None:
        self._output = output
        self._color = color
        self._quiet = quiet
        self._status = StatusLine(quiet=quiet)
        self._patterns: set[str] = set()  # of which an example has been printed
        self._next = time.monotonic() + REDRAW
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def say(self, message: str) -> None:
        """One line on standard error."""
        self.clear()
        click.echo(one_line(f"isocheck: {message}"), err=True)

    def violation(self, heading: str, violation: "Violation") -> None:
        """A violation that has just become certain."""
        from plume_py.report.json import violation_line
        from plume_py.report.text import example

        self._patterns.add(violation.tap)
        if self._output == "jsonl":
            self._print(violation_line(violation))
        else:
            self._print("\n".join((click.style(one_line(heading), bold=True), *example(violation), "")))

    def verdict(self, result: "Result") -> None:
        """The end."""
        from plume_py.report.output import one

        if self._quiet and result.ok:
            return
        # In text, what was cut off has its own line, and an example that was printed is not printed again; an object
        # can carry everything.
        if self._output != "jsonl":
            new = tuple(violation for violation in result.violations if violation.tap not in self._patterns)
            result = replace(result, error=None, violations=new)
        printed = one(self._output, result)
        if result.levels or self._output == "jsonl":
            self._print(printed)

    def tick(self, monitor: "Monitor | None") -> None:
        """Time goes by: draw the status line anew, but not too often."""
        now = time.monotonic()
        if not self._status.watched or monitor is None or now < self._next:
            return
        self._next = now + REDRAW
        self._samples.append((now, monitor.transactions))
        while now - self._samples[0][0] > RATE_OVER and len(self._samples) > 2:
            self._samples.popleft()
        (begin, before), (end, after) = self._samples[0], self._samples[-1]
        rate = (after - before) / (end - begin)
        broken = [level for level in monitor.levels if level not in monitor.holding]
        holding = f"{' '.join(monitor.holding)} holding" if monitor.holding else "no level holding"
        holding += f", {' '.join(broken)} broken" if broken else ""
        self._status.show(f"{after:,} transactions, {rate:,.0f}/s, {monitor.pending:,} reads pending, {holding}")

    def clear(self) -> None:
        """Take the status line away: something else is to be printed, or it is over."""
        self._status.clear()

    def _print(self, text: str) -> None:
        self.clear()
        click.echo(text, color=self._color)


class Watch:
    """One input, followed to its end."""

    def __init__(self, path: str, options: WatchOptions, screen: Screen, stop: Stop) -> None:
        from plume_py.checking.stream.arrivals import Arrivals
        from plume_py.checking.stream.follow import Follower

        self._path = path
        self._options = options
        self._screen = screen
        self._stop = stop
        self._follower = Follower(
            path,
            follow=options.follow,
            until_idle=options.until_idle,
            stopped=lambda: stop.is_requested,
            say=screen.say,
        )
        self._arrivals = Arrivals(path, options.input_format)
        self._monitor: Monitor | None = None
        self._broken: set[str] = set()
        self._cut = ""  # what could not be read because it is unfinished

    def run(self) -> "Result":
        """Follow, tell, and at the end the verdict; it has been printed, too."""
        from plume_py.checking.result import Result

        try:
            whole = self._feed_all()
            result = self._result(whole)
        except InputError as error:
            problem = str(error.in_source(self._follower.name))
            self._screen.say(problem)
            result = Result(history=self._path, error=problem)
        finally:
            self._screen.clear()
        self._screen.verdict(result)
        return result

    def _feed_all(self) -> bool:
        """Take in everything; False if it ended before the input did."""
        for piece in self._follower:
            self._screen.tick(self._monitor)
            for batch in self._batches(piece):
                if self._feed(batch):
                    return False
        return not (self._feed(self._arrivals.finish()) or self._stop.is_requested)

    def _batches(self, piece: "Piece") -> "Iterator[list[Arrival]]":
        """The transactions in a piece; an unfinished line may be one, too, if only the end of the line is missing."""
        if not piece.text:
            return
        try:
            yield from self._arrivals.read(piece)
        except InputError:
            if not piece.unfinished:
                raise
            problem = f"{self._follower.name}, line {piece.line}: unfinished, left out"
            self._screen.say(problem)
            if not self._stop.is_requested:  # otherwise its writer is just at work
                self._cut = problem

    def _feed(self, batch: "list[Arrival]") -> bool:
        """Take in some transactions; True if that is enough."""
        if not batch:
            return False
        monitor = self._monitor = self._monitor or self._new_monitor()
        before = monitor.transactions
        for violation in monitor.feed_all(batch):
            self._tell(violation, batch[monitor.transactions - before - 1].line)
            if self._options.fail_fast:
                return True
        self._screen.tick(monitor)
        return self._tell_unproved(monitor, batch[-1].line) and self._options.fail_fast

    def _new_monitor(self) -> "Monitor":
        from plume_py.checking.stream.monitor import Monitor

        reader = self._arrivals.reader
        assert reader is not None, "whoever yields arrivals has a reader"
        return Monitor(
            self._options.levels,
            order=self._options.order,
            initial=reader.initial,
            declared=reader.declared,
            init_txn=self._options.init_txn,
            max_examples=self._options.max_examples,
            name=self._path,
            window=self._options.window,
            per_second=reader.per_second,
        )

    def _tell(self, violation: "Violation", line: int) -> None:
        from plume_py.levels.patterns import forbidden_at

        broken = [level for level in self._options.levels if violation.tap in forbidden_at(level_of(level))]
        fresh = [level for level in broken if level not in self._broken]
        self._broken.update(fresh)
        what = f"{_are_broken(fresh)} from here on" if fresh else f"another violation of {' '.join(broken)}"
        self._screen.violation(f"{self._follower.name}, line {line}: {what}", violation)

    def _tell_unproved(self, monitor: "Monitor", line: int) -> bool:
        """A level may be known to be broken before there is an example of it to show: then the verdict has one."""
        fresh = [level for level in self._options.levels if level not in (*monitor.holding, *self._broken)]
        self._broken.update(fresh)
        if fresh:
            self._screen.say(
                f"{self._follower.name}, up to line {line}: {_are_broken(fresh)}; the proof comes at the end"
            )
        return bool(fresh)

    def _result(self, whole: bool) -> "Result":
        from plume_py.checking.result import Result

        reader = self._arrivals.reader
        if self._cut and self._monitor is None:
            return Result(history=self._path, error=self._cut)
        if reader is None:
            raise InputError("nothing has arrived, so there is nothing to judge")
        result = replace((self._monitor or self._new_monitor()).close(), format=reader.format)
        result = result if whole else _without_pending(result)
        return replace(result, error=self._cut or None)


def _are_broken(levels: list[str]) -> str:
    return f"{' '.join(levels)} {'is' if len(levels) == 1 else 'are'} broken"


def _without_pending(result: "Result") -> "Result":
    """Reads whose writers have not arrived are from nobody only if the history is whole; here, they are undecided."""
    waiting = result.counts.get("a", 0)
    if not waiting:
        return result
    reason = f"{waiting:,} reads were still waiting for their writers when the watch was stopped"

    def verdict(level: "LevelVerdict") -> "LevelVerdict":
        taps = tuple(tap for tap in level.taps if tap != "a")
        return replace(level, taps=taps) if taps or level.ok else replace(level, ok=None, taps=(), reason=reason)

    return replace(
        result,
        levels={name: verdict(level) for name, level in result.levels.items()},
        violations=tuple(violation for violation in result.violations if violation.tap != "a"),
        counts={tap: count for tap, count in result.counts.items() if tap != "a"},
        notes=(*result.notes, reason),
    )
