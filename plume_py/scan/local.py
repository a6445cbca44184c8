"""The local engine: worker processes on this machine, each with a thread here that feeds it."""

import threading
from collections.abc import Iterator
from queue import Queue

from plume_py.base.memory import share_of_machine
from plume_py.scan.batches import Batches
from plume_py.scan.process import WorkerProcess
from plume_py.scan.settings import Settings, TaskAnswer

# Answers that may wait to be written; more would only take memory.
WAITING = 2_000


class LocalEngine:
    """``jobs`` worker processes."""

    def __init__(self, jobs: int, settings: Settings) -> None:
        memory = settings.max_memory or share_of_machine(jobs)
        self._workers = [WorkerProcess(settings, memory) for _ in range(jobs)]
        self._done: Queue[TaskAnswer | BaseException | None] = Queue(WAITING)
        self._threads: list[threading.Thread] = []

    def run(self, batches: Batches) -> Iterator[TaskAnswer]:
        """The answers, as they come."""
        for worker in self._workers:
            thread = threading.Thread(target=self._feed, args=(worker, batches), daemon=True)
            self._threads.append(thread)
            thread.start()
        running = len(self._threads)
        while running:
            found = self._done.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found

    def close(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            while thread.is_alive():
                while not self._done.empty():  # or it would wait for room for ever
                    self._done.get()
                thread.join(0.05)
        for worker in self._workers:
            worker.close()

    def _feed(self, worker: WorkerProcess, batches: Batches) -> None:
        try:
            while (batch := batches.next()) is not None:
                for answer in worker.check(batch):
                    self._done.put(answer)
        except BaseException as error:
            self._done.put(error)
        finally:
            self._done.put(None)
