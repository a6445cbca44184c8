"""Predict from one observed run, for ``isocheck predict``: prepare the run, choose the level, predict and replay.

An observed run is a history from a file, or a run of a program with a seed. If the history records the database that
wrote it, predictions follow the concurrency control of that database.
"""

from dataclasses import dataclass, replace

from plume_py.base.limits import Limits
from plume_py.checking.check import check
from plume_py.checking.declared import LevelMap
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History
from plume_py.levels import DEFAULT
from plume_py.levels.databases import Database
from plume_py.reasoning.predict import LEVELS
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl, concurrency_control
from plume_py.reasoning.predict.prediction_files import About, Origin, about
from plume_py.reasoning.predict.predictor.observed_run import Boundary
from plume_py.reasoning.predict.predictor.prediction import PredictionResult
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.predictor.windows import predict_in_windows
from plume_py.reasoning.predict.store.program import SeededProgram
from plume_py.reasoning.predict.store.replay import Validation, replay


@dataclass(frozen=True)
class ObservedRun:
    """An observed run: its name for reports, the history, and either its program or the database that recorded it."""

    name: str
    history: History
    program: SeededProgram | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class PredictOptions:
    """The options of ``predict`` that apply to every level."""

    target: str
    boundary: Boundary
    exact: bool
    count: int
    window: int | None
    level_map: LevelMap | None
    assume: str | None
    limits: Limits
    database: Database | None  # predicted runs follow its concurrency control


def without_guess(history: History, target: str, limits: Limits) -> History:
    """Return the history without the guess that a transaction is initial if the target is violated only by it."""
    certain = replace(history, init_guessed=False)
    if not history.init_guessed or check(certain, target, max_examples=0, limits=limits).ok:
        return history
    return as_ordinary(history, declared=True)


def level_of_origin(origin: Origin, target: str) -> str | None:
    """Return the level to predict at for the isolation level at which the history was recorded; None if unknown."""
    setting = origin.setting
    if setting is None:
        return None
    return setting.safe_as if setting.safe_as in LEVELS and setting.safe_as != target else DEFAULT


def predictions(run: ObservedRun, level: str, options: PredictOptions) -> PredictionResult:
    """Predict at one level, within the limits."""
    how = {
        "target": options.target,
        "boundary": options.boundary,
        "exact": options.exact,
        "count": options.count,
        "limits": options.limits,
        "level_map": options.level_map,
        "assume": options.assume,
        "engine": _concurrency_control(level, options.database, run.origin),
    }
    with options.limits.enforced():
        if options.window is None:
            return predict(run.history, level, **how)  # type: ignore[arg-type]
        return predict_in_windows(run.history, level, size=options.window, **how)  # type: ignore[arg-type]


def _concurrency_control(level: str, database: Database | None, origin: Origin | None) -> ConcurrencyControl | None:
    """Return how the database runs the level: at the recorded isolation level if that provides it, else at its own."""
    if database is None:
        return None
    recorded = None if origin is None or origin.engine is not database else origin.setting
    if origin is not None and recorded is not None and recorded.safe_as == level:
        return concurrency_control(database, recorded.name, origin.settings)
    setting = database.runs(level)
    assert setting is not None, "every level to predict at is at least as strong as the weakest setting"
    return concurrency_control(database, setting.name)


def replays(run: ObservedRun, outcome: PredictionResult) -> list[Validation]:
    """Replay each prediction on the program of the run; return an empty list if the run has no program."""
    if run.program is None:
        return []
    return [replay(run.program, run.history, p, outcome.level, outcome.target) for p in outcome.predictions]


def records(run: ObservedRun, outcome: PredictionResult, validations: list[Validation]) -> list[About]:
    """Return for each prediction the record that its file contains, which ``confirm`` needs to run it."""
    replayed: list[Validation | None] = [*validations] or [None] * len(outcome.predictions)
    return [
        about(run.history, outcome, prediction, validation, run.origin, run.program)
        for prediction, validation in zip(outcome.predictions, replayed, strict=True)
    ]
