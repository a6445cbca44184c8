"""What several predictions have in common: the reads that are dangerous, and the levels that are safe."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from plume_py.history.model import History
from plume_py.levels import weaker_levels
from plume_py.reasoning.predict import LEVELS
from plume_py.reasoning.predict.predictor.outcome import PredictionResult
from plume_py.reasoning.predict.predictor.prediction import Prediction
from plume_py.reasoning.predict.store.replay import Validation

# "s2.1 Balance", "transfer-7", "T12": a place or a number beside the name of a program, if there is one.
_PLACE = re.compile(r"^[A-Za-z]{0,2}[0-9]++([.,:][0-9]++)*+(\s++|$)")
_DIGITS, _BEFORE_A_NUMBER = "0123456789", " \t\r\n._#:/-"


@dataclass
class DangerousRead:
    """Reads of one key by one program (or transaction) without which an anomaly would not be there."""

    who: str
    key: str
    times: int = 0  # predictions in which such a read was changed
    anomalies: set[str] = field(default_factory=set)


def program_of(id: str | int) -> str | None:
    """The program that a transaction's id names, if any."""
    if isinstance(id, int):
        return None
    name = _PLACE.sub("", id).strip()
    if name[-1:] in _DIGITS:
        name = name.rstrip(_DIGITS).rstrip(_BEFORE_A_NUMBER)
    return name if len(name) > 1 else None


def dangerous_reads(observed: History, predictions: Iterable[Prediction]) -> list[DangerousRead]:
    """Changed reads of those that take part in the anomaly, most frequent first."""
    found: dict[tuple[str, str], DangerousRead] = {}
    for prediction in predictions:
        involved = {str(shown.id) for shown in prediction.violation.transactions}
        ids = ((observed.txn_label[change.txn], str(observed.key(change.key))) for change in prediction.changes)
        for where in {(program_of(id) or str(id), key) for id, key in ids if str(id) in involved}:
            read = found.setdefault(where, DangerousRead(*where))
            read.times += 1
            read.anomalies.add(prediction.violation.name)
    return sorted(found.values(), key=lambda read: (-read.times, read.who, read.key))


def comes_true(outcome: PredictionResult, validations: Sequence[Validation]) -> list[Prediction]:
    """The predictions that came true when replayed; all of them where none was replayed."""
    if not validations:
        return outcome.predictions
    return [p for p, validation in zip(outcome.predictions, validations, strict=True) if validation.validated]


def holds(outcome: PredictionResult, validations: Sequence[Validation]) -> bool | None:
    """False: a prediction came true, or was not asked to. True: there is no other left. None: that is not known."""
    if outcome.ok is not False:
        return outcome.ok
    if comes_true(outcome, validations):
        return False
    return True if outcome.complete else None


def safe_levels(answers: Mapping[str, bool | None]) -> list[str]:
    """The weakest levels that hold; several if they do not compare."""
    safe = [level for level in LEVELS if answers.get(level)]
    return [level for level in safe if not weaker_levels(level) & set(safe)]
