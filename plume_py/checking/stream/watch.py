"""Follow one growing history to its end: check it on the way, and report each violation as soon as it is certain.

``isocheck watch`` calls this module and prints what the listener receives. The input is read in pieces (``follow``),
parsed into transactions (``arrivals``) and checked by one monitor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from plume_py.base.errors import InputError
from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.checking.stream.arrivals import Arrival, Arrivals
from plume_py.checking.stream.follow import Follower, Piece
from plume_py.checking.stream.monitor import Monitor
from plume_py.levels.orders import level_of
from plume_py.levels.patterns import forbidden_at


@dataclass(frozen=True)
class WatchOptions:
    """The options of one run of ``watch``."""

    levels: tuple[str, ...]
    order: str
    fail_fast: bool
    window: int | None
    max_examples: int
    input_format: str | None
    init_txn: Any
    until_idle: float | None
    follow: bool


class Listener(Protocol):
    """Receiver of everything that happens while a history is followed."""

    def message(self, text: str) -> None:
        """Receive a message about the input or the levels."""

    def violation(self, heading: str, violation: Violation) -> None:
        """Receive a violation that has just become certain."""

    def tick(self, monitor: Monitor | None) -> None:
        """Be called often, for a status line."""


class Watch:
    """One input, followed to its end or until ``stopped`` returns True."""

    def __init__(self, path: str, options: WatchOptions, listener: Listener, stopped: Callable[[], bool]) -> None:
        self._path = path
        self._options = options
        self._listener = listener
        self._stopped = stopped
        self._follower = Follower(
            path,
            follow=options.follow,
            until_idle=options.until_idle,
            stopped=stopped,
            say=listener.message,
        )
        self._arrivals = Arrivals(path, options.input_format)
        self._monitor: Monitor | None = None
        self._violated: set[str] = set()
        self._cut = ""  # the message about an unfinished last line

    def run(self) -> Result:
        """Follow the input to its end and return the result; an input error is part of the result."""
        try:
            whole = self._feed_all()
            return self._result(whole)
        except InputError as error:
            problem = str(error.in_source(self._follower.name))
            self._listener.message(problem)
            return Result(history=self._path, error=problem)

    def _feed_all(self) -> bool:
        """Feed the whole input to the monitor; return False if it stopped before the end of the input."""
        for piece in self._follower:
            self._listener.tick(self._monitor)
            for batch in self._batches(piece):
                if self._feed(batch):
                    return False
        return not (self._feed(self._arrivals.finish()) or self._stopped())

    def _batches(self, piece: Piece) -> Iterator[list[Arrival]]:
        """Yield the transactions in a piece; an unfinished line is one if only its line break is missing."""
        if not piece.text:
            return
        try:
            yield from self._arrivals.read(piece)
        except InputError:
            if not piece.unfinished:
                raise
            problem = f"{self._follower.name}, line {piece.line}: unfinished, left out"
            self._listener.message(problem)
            if not self._stopped():  # after a stop, the writer may still be writing this line
                self._cut = problem

    def _feed(self, batch: list[Arrival]) -> bool:
        """Feed some transactions to the monitor; return True if --fail-fast ends the run."""
        if not batch:
            return False
        monitor = self._monitor = self._monitor or self._new_monitor()
        before = monitor.transactions
        for violation in monitor.feed_all(batch):
            self._report(violation, batch[monitor.transactions - before - 1].line)
            if self._options.fail_fast:
                return True
        self._listener.tick(monitor)
        return self._report_unproved(monitor, batch[-1].line) and self._options.fail_fast

    def _new_monitor(self) -> Monitor:
        reader = self._arrivals.reader
        assert reader is not None, "arrivals exist only after their reader"
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

    def _report(self, violation: Violation, line: int) -> None:
        violated = [level for level in self._options.levels if violation.tap in forbidden_at(level_of(level))]
        fresh = [level for level in violated if level not in self._violated]
        self._violated.update(fresh)
        what = f"{_are_broken(fresh)} from here on" if fresh else f"another violation of {' '.join(violated)}"
        self._listener.violation(f"{self._follower.name}, line {line}: {what}", violation)

    def _report_unproved(self, monitor: Monitor, line: int) -> bool:
        """Report levels known to be violated before there is an example; return whether there are any.

        The final result has the example.
        """
        fresh = [level for level in self._options.levels if level not in (*monitor.holding, *self._violated)]
        self._violated.update(fresh)
        if fresh:
            self._listener.message(
                f"{self._follower.name}, up to line {line}: {_are_broken(fresh)}; the proof comes at the end"
            )
        return bool(fresh)

    def _result(self, whole: bool) -> Result:
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


def _without_pending(result: Result) -> Result:
    """Return the result without the reads of values that no transaction has written so far.

    In a whole history they would be unreadable. In an unfinished one they leave their levels undecided.
    """
    waiting = result.counts.get("a", 0)
    if not waiting:
        return result
    reason = f"{waiting:,} reads were still waiting for their writers when the watch was stopped"

    def verdict(level: LevelVerdict) -> LevelVerdict:
        taps = tuple(tap for tap in level.taps if tap != "a")
        return replace(level, taps=taps) if taps or level.ok else replace(level, ok=None, taps=(), reason=reason)

    return replace(
        result,
        levels={name: verdict(level) for name, level in result.levels.items()},
        violations=tuple(violation for violation in result.violations if violation.tap != "a"),
        counts={tap: count for tap, count in result.counts.items() if tap != "a"},
        notes=(*result.notes, reason),
    )
