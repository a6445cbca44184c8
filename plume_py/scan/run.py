"""A scan from end to end: find, check, write, and count on the way."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from plume_py.base.text import encodable
from plume_py.scan.batches import Batches
from plume_py.scan.results import Writer
from plume_py.scan.settings import OUTCOMES, SAME, SKIPPED, ScanTask, Settings, TaskAnswer
from plume_py.scan.storage import identity

# Names of skipped files that are kept to be shown.
SHOWN_SKIPPED = 20

# What a history costs beside its bytes, in bytes: for the time that is left.
OVERHEAD = 2_000


class Engine(Protocol):
    """Who does the work: this machine, or a cluster."""

    def run(self, batches: Batches) -> Iterator[TaskAnswer]:
        """An answer for each task, at least one, in any order."""

    def close(self) -> None:
        """Stop whatever is still at work."""


@dataclass
class Tally:
    """What has happened so far; its size does not depend on how many histories there are."""

    tasks: int
    work: int  # bytes and overhead of all tasks
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    work_done: int = 0
    same: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    skipped: dict[str, int] = field(default_factory=dict)  # by reason
    skipped_names: list[str] = field(default_factory=list)

    def count(self, task: ScanTask, answer: TaskAnswer) -> None:
        """One more is done."""
        self.done += 1
        self.work_done += task.size + OVERHEAD
        if answer.outcome == SAME:
            self.same += 1
        elif answer.outcome == SKIPPED:
            reason = answer.payload.decode().strip()
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            if len(self.skipped_names) < SHOWN_SKIPPED:
                self.skipped_names.append(encodable(task.name))
        else:
            self.outcomes[answer.outcome] += 1

    @property
    def checked(self) -> int:
        """Histories of which this run wrote a line."""
        return sum(self.outcomes.values())

    @property
    def rate(self) -> float:
        """Files per second."""
        return self.done / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None before there is one."""
        if not self.work_done:
            return None
        return (time.monotonic() - self.started) * (self.work - self.work_done) / self.work_done


def with_known(tasks: Sequence[ScanTask], writer: Writer, settings: Settings) -> list[ScanTask]:
    """Tasks that remember the hash of a result that is there, if it answers the same question."""
    valid = {settings.key(), settings.limited_key()}
    marked = []
    for task in tasks:
        digest, key = writer.known.get(identity(encodable(task.name)), ("", ""))
        marked.append(task._replace(known=digest) if key in valid else task)
    return marked


def run(
    tasks: Sequence[ScanTask], engine: Engine, writer: Writer, watch: Callable[[Tally], None] = lambda tally: None
) -> Tally:
    """Check ``tasks`` and write their lines; an answer that comes twice is counted and written once."""
    tally = Tally(len(tasks), sum(task.size + OVERHEAD for task in tasks))
    done = bytearray(len(tasks))
    latest, sorted_so_far = -1, not writer.known
    watch(tally)
    try:
        for answer in engine.run(Batches(tasks)):
            if done[answer.number]:
                continue
            done[answer.number] = 1
            if answer.outcome not in (SAME, SKIPPED):
                writer.write(encodable(tasks[answer.number].name), answer.payload)
                sorted_so_far = sorted_so_far and answer.number > latest
                latest = answer.number
            tally.count(tasks[answer.number], answer)
            watch(tally)
    finally:
        engine.close()
    if writer.doubled or not sorted_so_far:
        writer.sort({identity(encodable(task.name)): task.number for task in tasks})
    return tally
