"""Run predictions on a database: open the database, prepare a prediction, and confirm it.

``isocheck confirm``, ``isocheck predict --confirm`` and ``benchmarks/confirm.py`` call this module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from plume_py.base.limits import Limits
from plume_py.collect.adapter import Adapter, Setup
from plume_py.collect.isolations import chosen_isolations
from plume_py.collect.managed import SERVERS
from plume_py.collect.registry import open_adapter
from plume_py.collect.table_setup import new_name
from plume_py.history.model import History
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.confirm.confirmation import Confirmation, ConfirmOptions, confirm, fitting_isolation
from plume_py.reasoning.predict.confirm.script import Script, script
from plume_py.reasoning.predict.prediction_files import About
from plume_py.reasoning.predict.store.program import SeededProgram, observed_run


@dataclass(frozen=True)
class DatabaseAddress:
    """The URL of a database, or the name of a server to start."""

    url_or_server: str
    timeout: float = 10.0  # seconds for each statement
    settings: dict[str, str] | None = None  # of every connection

    @contextmanager
    def opened(self, lists: bool) -> Iterator[Adapter]:
        """Yield the adapter for a table of lists, or of registers; stop the server afterwards."""
        setup = Setup(self.url_or_server, new_name(), lists, self.timeout, self.settings or {})
        if self.url_or_server not in SERVERS:
            yield open_adapter(setup)
            return
        with SERVERS[self.url_or_server]() as server:
            yield open_adapter(replace(setup, url=server.url))


@dataclass(frozen=True)
class PreparedPrediction:
    """A prediction with its statements; ``workload`` is the program that runs, if there is one."""

    script: Script
    about: About
    workload: SeededProgram | None = None


def prepare(history: History, about: About, workload: SeededProgram | None = None) -> PreparedPrediction:
    """Return the prediction with its statements; a program may access all keys of its observed run."""
    keys: list[object] = []
    if workload is not None:
        observed = observed_run(workload)
        keys = [observed.key(key) for key in range(len(observed.key_code))]
    statements = script(history, about.rest, lists=about.lists, keys=keys, late=about.changed)
    return PreparedPrediction(statements, about, workload)


@dataclass(frozen=True)
class DatabaseRun:
    """A database on which predictions run; ``folder`` gets the recorded histories."""

    adapter: Adapter
    folder: str
    limits: Limits
    isolation: str | None = None
    attempts: int = 5
    target: str | None = None

    def confirm(self, prediction: PreparedPrediction) -> Confirmation:
        """Run a prediction at the chosen isolation level, or at the one that fits it best."""
        about = prediction.about
        if self.isolation is None:
            isolation = fitting_isolation(self.adapter, about.level, about.database, about.isolation)
        else:
            isolation = chosen_isolations(self.adapter, self.isolation, {})[0].name
        target = self.target or about.target or STRONGEST
        options = ConfirmOptions(isolation, target, self.folder, self.attempts, self.limits)
        return confirm(self.adapter, prediction.script, options, prediction.workload)
