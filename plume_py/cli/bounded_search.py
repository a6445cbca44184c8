"""A search that may take long: a line on the terminal that says how far it is, and an end in time."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from plume_py.base.child_process import Tell, run_in_child
from plume_py.base.limits import Limits
from plume_py.base.memory import share_of_machine
from plume_py.base.terminal import StatusLine, clock

T = TypeVar("T")


def limits_of(timeout: float | None, max_memory: int | None) -> Limits:
    """What the options say, and no more memory than the machine can spare."""
    return Limits(timeout, max_memory or share_of_machine(1))


class Search:
    """Work that tells how far it has come; ``news`` is the last of it."""

    def __init__(self, limits: Limits, news: Any = "", alone: bool = True) -> None:
        """``alone``: in a process of its own if there is a limit of time or somebody watches."""
        self.limits, self.news = limits, news
        self._status = StatusLine()
        self._alone = alone and (limits.timeout is not None or self._status.watched)
        self._begin = time.monotonic()

    def run(self, work: Callable[[Tell], T]) -> T:
        """What it returns. LimitError when it has to end."""

        def limited(tell: Tell) -> T:
            with self.limits.enforced():
                return work(tell)

        if not self._alone:
            return limited(self._told)
        try:
            return run_in_child(limited, self.limits, self._told, self._show)
        finally:
            self._status.clear()

    def _told(self, news: Any) -> None:
        self.news = news

    def _show(self) -> None:
        seconds = time.monotonic() - self._begin
        if seconds > 1:
            self._status.show(f"{self.news} ({clock(seconds)})")
