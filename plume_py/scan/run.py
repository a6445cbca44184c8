"""Run a scan from end to end: find the histories, check them on an engine, write the results and sum them up."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from plume_py.base.text import encodable
from plume_py.scan.find import find
from plume_py.scan.results import Writer, read_lines
from plume_py.scan.settings import SAME, SKIPPED, Batches, ScanTask, Settings, TaskAnswer
from plume_py.scan.storage import identity
from plume_py.scan.summary import OVERHEAD, Summary, Tally, summarize


class Engine(Protocol):
    """Checks histories: on this machine, or on a cluster."""

    def run(self, batches: Batches) -> Iterator[TaskAnswer]:
        """Yield at least one answer for each task, in any order."""

    def close(self) -> None:
        """Stop all running work."""


OpenEngine = Callable[[int], Engine]
OnProgress = Callable[[Tally], None]


def scan(
    paths: Sequence[str],
    settings: Settings,
    open_engine: OpenEngine,
    writer: Writer,
    leave_out: Sequence[str],
    on_progress: OnProgress,
) -> tuple[Summary, Tally, Mapping[str, str]]:
    """Check all histories below ``paths``; return the summary, the counts of this run, and the paths by alias.

    ``open_engine`` gets the number of tasks. ``leave_out`` lists files of isocheck that are not to be read.
    """
    tasks = _with_known(find(paths, leave_out=[writer.path, *leave_out]), writer, settings)
    tally = run(tasks, open_engine(len(tasks)), writer, on_progress)
    return summarize(read_lines(writer.path)), tally, {task.alias: task.path for task in tasks if task.alias}


def engine_for(scheduler: str | None, jobs: int | None, settings: Settings, tasks: int) -> Engine:
    """Return the engine on the Dask cluster at ``scheduler``, or on this machine with at most ``jobs`` workers."""
    if scheduler is not None:
        from plume_py.scan.cluster import DaskEngine

        return DaskEngine(scheduler, settings)
    from plume_py.scan.supervisor import LocalEngine

    # Not more workers than tasks, because the workers share the memory.
    return LocalEngine(max(1, min(jobs or _cores(), tasks)), settings)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _with_known(tasks: Sequence[ScanTask], writer: Writer, settings: Settings) -> list[ScanTask]:
    """Return the tasks with the hashes for which the results have a line already, made with the same settings."""
    valid = {settings.key(), settings.limited_key()}
    marked = []
    for task in tasks:
        digest, key = writer.known.get(identity(encodable(task.name)), ("", ""))
        marked.append(task._replace(known=digest) if key in valid else task)
    return marked


def run(
    tasks: Sequence[ScanTask], engine: Engine, writer: Writer, on_progress: OnProgress = lambda tally: None
) -> Tally:
    """Check the tasks and write their lines; an answer that arrives twice counts once."""
    tally = Tally(len(tasks), sum(task.size + OVERHEAD for task in tasks))
    done = bytearray(len(tasks))
    latest, is_sorted = -1, not writer.known
    on_progress(tally)
    try:
        for answer in engine.run(Batches(tasks)):
            if done[answer.number]:
                continue
            done[answer.number] = 1
            if answer.outcome not in (SAME, SKIPPED):
                writer.write(encodable(tasks[answer.number].name), answer.payload)
                is_sorted = is_sorted and answer.number > latest
                latest = answer.number
            tally.count(tasks[answer.number], answer)
            on_progress(tally)
    finally:
        engine.close()
    if writer.doubled or not is_sorted:
        writer.sort({identity(encodable(task.name)): task.number for task in tasks})
    return tally
