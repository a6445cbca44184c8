"""Run a scan on an existing Dask cluster: ``scan --engine dask``.

A Dask worker does not check histories itself. Each of its threads keeps a worker process, as the local engine does. So
limits and retries are the same, and no history can kill the Dask worker. Only this process writes results. If a Dask
worker or the scheduler is lost, missing batches are submitted again; an answer that arrives twice counts once.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from itertools import count
from queue import Empty, Queue
from typing import Any
from uuid import uuid4

from plume_py.base.errors import IsocheckError
from plume_py.base.memory import share_of_machine
from plume_py.base.passwords import without_those_of
from plume_py.base.version import __version__
from plume_py.scan.settings import Batches, ScanTask, Settings, TaskAnswer
from plume_py.scan.supervisor import WorkerProcess
from plume_py.scan.worker import undecided_answer

# Seconds for which the connection to the scheduler may be lost.
RECONNECT_SECONDS = 300.0
CONNECT_SECONDS = 20.0
# Submitted batches for each thread of the cluster: enough that no thread waits, few enough to keep the scheduler small.
BATCHES_PER_THREAD = 3
POLL_SECONDS = 2.0

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:\[[\w:.%]+\]|[^\s:/@?#\[\]]+):([0-9]{1,5})/?")

_processes: dict[int, WorkerProcess] = {}  # the processes of a Dask worker, by thread


def check_batch(tasks: list[tuple[Any, ...]], plain: dict[str, Any]) -> tuple[str, list[tuple[Any, ...]]]:
    """Check a batch on a Dask worker; return the version of isocheck there, and the answers."""
    process = _own_process(Settings.of(plain))
    return __version__, [tuple(answer) for answer in process.check([ScanTask(*task) for task in tasks])]


def _own_process(settings: Settings) -> WorkerProcess:
    """Return the worker process of this thread, which is restarted when the settings change."""
    thread = threading.get_ident()
    process = _processes.get(thread)
    if process is None or process.settings != settings:
        if process is not None:
            process.close()
        from distributed import get_worker

        memory = settings.max_memory or share_of_machine(get_worker().state.nthreads)
        process = _processes[thread] = WorkerProcess(settings, memory)
    return process


def end_processes() -> None:
    """Stop the worker processes of a Dask worker, at the end of a scan."""
    while _processes:
        _processes.popitem()[1].stop()


def _quieten() -> None:
    """Silence the loggers of distributed, which print tracebacks for connections that this module restores."""
    import logging

    if not os.environ.get("ISOCHECK_DEBUG"):
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def check_address(address: str) -> None:
    """Raise IsocheckError if this is no address of a scheduler; distributed would wait for its answer for ever."""
    form = _ADDRESS.fullmatch(address)
    if form is None or not 0 < int(form[1]) < 1 << 16:
        raise IsocheckError(f"{address} is not the address of a Dask scheduler; write tcp://HOST:PORT")


def _connected(address: str) -> Any:
    """Return a client of the scheduler; raise TimeoutError if another program listens there and does not answer.

    distributed waits for the first answer for ever, so another thread connects.
    """
    from distributed import Client

    found: Queue[Any] = Queue()

    def connect() -> None:
        try:
            found.put(Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="isocheck"))
        except BaseException as error:
            found.put(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        client = found.get(timeout=CONNECT_SECONDS + POLL_SECONDS)
    except Empty:
        raise TimeoutError("whoever listens there does not answer") from None
    if isinstance(client, BaseException):
        raise client
    return client


class _LostError(Exception):
    """The connection to the scheduler is lost, and with it all submitted batches."""


class DaskEngine:
    """The engine on a cluster: submits batches to the scheduler at ``address``."""

    def __init__(self, address: str, settings: Settings) -> None:
        check_address(address)
        self.address = address
        self.settings = settings
        self._client: Any = None
        self._poll_at = 0.0
        self._most_submitted = 0
        self._submitted: dict[str, tuple[Any, list[ScanTask]]] = {}
        self._arrived: Queue[str] = Queue()
        self._numbers = count()
        self._run = uuid4().hex[:12]  # makes keys differ from the keys of other scans
        self._lost: dict[int, int] = {}  # by task: how often its Dask worker died
        self._connect(CONNECT_SECONDS)

    def run(self, batches: Batches) -> Iterator[TaskAnswer]:
        """Yield the answers as they arrive."""
        more = True
        while more or self._submitted:
            try:
                more = self._submit(batches)
                yield from self._collect(batches)
            except _LostError:
                for _, batch in self._submitted.values():
                    batches.put_back(batch)
                self._submitted.clear()
                more = True
                self._connect(RECONNECT_SECONDS)

    def close(self) -> None:
        """Cancel the submitted batches, and stop the worker processes."""
        if self._client is None:
            return
        with suppress(Exception):
            if self._client.status == "running":
                self._client.cancel([future for future, _ in self._submitted.values()])
                self._client.run(end_processes, on_error="ignore")
        self._disconnect()

    def _connect(self, patience: float) -> None:
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise IsocheckError("--engine dask needs distributed: pip install distributed") from None
        _quieten()
        self._disconnect()
        until = time.monotonic() + patience
        while True:
            try:
                self._client = _connected(self.address)
                self._poll_at = 0.0
                return
            except (OSError, TimeoutError) as error:
                if time.monotonic() >= until:
                    raise IsocheckError(
                        f"no Dask scheduler at {self.address}: {error}; results so far are kept"
                    ) from None
                time.sleep(1)
            except Exception as error:  # for example, an address that distributed cannot parse
                raise IsocheckError(
                    f"no connection to {self.address} ({type(error).__name__}: {error}); write tcp://HOST:PORT"
                ) from None

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close(timeout=5)

    def _submit(self, batches: Batches) -> bool:
        """Submit batches up to the limit; return False if none is left."""
        while len(self._submitted) < self._submit_limit():
            batch = batches.next()
            if batch is None:
                return False
            key = f"isocheck-{self._run}-{next(self._numbers)}"
            try:
                future = self._client.submit(
                    check_batch, [tuple(task) for task in batch], self.settings.plain(), key=key, pure=False
                )
            except Exception:
                batches.put_back(batch)
                raise _LostError from None
            self._submitted[key] = (future, batch)
            future.add_done_callback(lambda done: self._arrived.put(done.key))
        return True

    def _submit_limit(self) -> int:
        """Return how many batches may be submitted. The cluster may grow and shrink, so the limit is updated."""
        if time.monotonic() >= self._poll_at:
            self._check_connection()
            try:
                threads = sum(self._client.nthreads().values())
            except Exception:
                raise _LostError from None
            self._most_submitted = max(4, BATCHES_PER_THREAD * threads)
            self._poll_at = time.monotonic() + POLL_SECONDS
        return self._most_submitted

    def _check_connection(self) -> None:
        if self._client is None or self._client.status != "running":
            raise _LostError

    def _collect(self, batches: Batches) -> Iterator[TaskAnswer]:
        """Yield the answers of one batch, if one arrives soon."""
        try:
            key = self._arrived.get(timeout=POLL_SECONDS)
        except Empty:
            self._check_connection()
            return
        if key not in self._submitted:  # submitted before the connection was lost
            return
        future, batch = self._submitted[key]
        if future.status == "finished":
            try:
                version, answers = future.result(timeout=60)
            except Exception:  # the result was on a worker that is lost
                self._check_connection()
                batches.put_back(self._take(key))
                return
            if version != __version__:
                raise IsocheckError(f"a Dask worker has isocheck {version}, this is {__version__}: install the same")
            self._take(key)
            yield from (TaskAnswer(*answer) for answer in answers)
            # A worker process that is stopped together with its Dask worker answers only part of its batch.
            missing = {task.number for task in batch} - {answer[0] for answer in answers}
            if missing:
                batches.put_back([task for task in batch if task.number in missing])
        elif future.status == "error":
            yield from self._failed(future.exception(timeout=60), self._take(key), batches)
        else:
            self._check_connection()
            batches.put_back(self._take(key))

    def _take(self, key: str) -> list[ScanTask]:
        return self._submitted.pop(key)[1]

    def _failed(self, error: BaseException, batch: list[ScanTask], batches: Batches) -> Iterator[TaskAnswer]:
        """Give up the tasks that keep killing Dask workers, put back the others, or raise an error."""
        from distributed import KilledWorker

        if isinstance(error, IsocheckError):
            raise error
        if isinstance(error, ImportError | AttributeError):
            raise IsocheckError(f"a Dask worker cannot run isocheck ({error}); install plume-py {__version__} on it")
        if not isinstance(error, KilledWorker | OSError | TimeoutError):
            what = f"a Dask worker failed: {type(error).__name__}: {error}"
            raise IsocheckError(reduce(lambda text, task: without_those_of(task.path, text), batch, what))
        for task in batch:
            self._lost[task.number] = self._lost.get(task.number, 0) + 1
            if len(batch) == 1 and self._lost[task.number] > 2:
                yield undecided_answer(task, self.settings, "worker died: every Dask worker that tried it was lost")
            else:
                batches.put_back([task])
