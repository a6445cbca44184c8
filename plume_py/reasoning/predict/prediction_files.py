"""The files of predictions: native history, IsoPredict trace and picture, side by side.

Beside its sessions the history says what ``confirm`` needs: what was asked, from which database the observed run was,
and what its transactions did after the boundary. Other readers of the native format do not look there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from plume_py.base.atomic_files import is_stream, write_atomically
from plume_py.base.errors import InputError
from plume_py.history.formats.json_writer import write_json
from plume_py.history.formats.reading import decode
from plume_py.history.load import load
from plume_py.history.model import History
from plume_py.history.source import Source
from plume_py.levels import parse_level
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.predict import TARGETS
from plume_py.reasoning.predict.confirm.script import rest_of, rest_of_replay
from plume_py.reasoning.predict.origin import Origin
from plume_py.reasoning.predict.predictor.outcome import PredictionResult
from plume_py.reasoning.predict.predictor.prediction import Prediction
from plume_py.reasoning.predict.store.program import SeededProgram
from plume_py.reasoning.predict.store.replay import Validation
from plume_py.reasoning.predict.trace import trace
from plume_py.report.dot import write_pictures
from plume_py.report.graphviz import Album

Key = int | str


class SeededRun(msgspec.Struct, omit_defaults=True):
    """The run of a program that was observed; of a size that ``predict --program`` takes."""

    name: str
    seed: int
    sessions: Annotated[int, msgspec.Meta(ge=1, le=100)]
    transactions: Annotated[int, msgspec.Meta(ge=1, le=1000)]


class About(msgspec.Struct, omit_defaults=True):
    """What stands beside the sessions of a predicted history."""

    level: str = ""
    target: str = ""
    database: str = ""
    isolation: str = ""
    lists: bool = False  # its writes were appends
    changed: list[str] = []  # ids of transactions with reads that see something else than they did
    program: SeededRun | None = None
    rest: dict[str, list[list[Key | list[Key] | None]]] = {}


class _Document(msgspec.Struct):
    prediction: About = msgspec.field(default_factory=About)


_documents = msgspec.json.Decoder(_Document)


def about(
    observed: History,
    outcome: PredictionResult,
    prediction: Prediction,
    validation: Validation | None = None,
    origin: Origin | None = None,
    workload: SeededProgram | None = None,
) -> About:
    """What is to be known about a prediction beside its history."""
    rest: Any = rest_of(observed, prediction.run)
    if validation is not None and validation.validated and not validation.diverged:
        rest = rest_of_replay(observed, prediction.run, validation.history)
    changed = [str(observed.txn_label[t]) for t in sorted({change.txn for change in prediction.changes})]
    told = About(outcome.level, outcome.target, lists=observed.lists is not None, changed=changed, rest=rest)
    if origin is not None:
        told.database, told.isolation = origin.database, origin.isolation
    if workload is not None:
        size = workload.seed, workload.sessions, workload.transactions
        told.program = SeededRun(workload.program.name, *size)
    return told


def read_prediction(path: str) -> tuple[History, About]:
    """A predicted history, and what stands beside it; any other history will do, too."""
    history = load(path)
    if history.format != "json":
        return history, About()
    source = Source(path)
    try:
        told = decode(_documents, source.content()).prediction
    except InputError as error:
        raise error.in_source(path) from None
    finally:
        source.close()
    _reject_nonsense(told, path)
    return history, told


def _reject_nonsense(told: About, path: str) -> None:
    if told.target and told.target not in TARGETS:
        raise InputError(f"no target of a prediction: {told.target!r:.40}", where="prediction").in_source(path)
    if told.level and told.level != "declared" and parse_level(told.level) is None:
        raise InputError(unknown_level(told.level), where="prediction").in_source(path)
    for ops in told.rest.values():
        for op in ops:
            if not (len(op) in (2, 3) and op[0] == "r") and not (len(op) == 3 and op[0] in ("w", "append")):
                raise InputError(f"not an operation: {op!r:.60}", where="prediction.rest").in_source(path)
            if isinstance(op[1], list) or op[1] is None or (op[0] == "r" and isinstance(op[-1], list)):
                raise InputError(f"not a key: {op[1:]!r:.60}", where="prediction.rest").in_source(path)


def _chunks(history: History, told: About) -> Iterator[bytes]:
    """The native document with one field more, at its end."""
    *first, last = write_json(history).chunks
    yield from first
    yield last.rstrip().removesuffix(b"}") + b',\n"prediction":' + msgspec.json.encode(told) + b"}\n"


def write_predictions(
    target: str, observed: History, outcome: PredictionResult, formats: Sequence[str], told: Sequence[About]
) -> list[str]:
    """``out.json`` gets ``out.trace.txt`` and ``out-lost-update-1.svg`` beside it; the second one is ``out-2.json``.

    Answers notes for people about the pictures.
    """
    if is_stream(target):  # which has no beside
        for prediction, about_it in zip(outcome.predictions, told, strict=True):
            write_atomically(target, _chunks(prediction.history, about_it))
        return []
    path = Path(target)
    album = Album(path.parent, formats)
    for number, (prediction, about_it) in enumerate(zip(outcome.predictions, told, strict=True), 1):
        stem = path.stem if number == 1 else f"{path.stem}-{number}"
        here = path.with_name(f"{stem}{path.suffix or '.json'}")
        write_atomically(str(here), _chunks(prediction.history, about_it))
        write_atomically(str(path.with_name(f"{stem}.trace.txt")), trace(observed, prediction.run))
        write_pictures(replace(prediction.result, history=stem), album)
    return album.notes
