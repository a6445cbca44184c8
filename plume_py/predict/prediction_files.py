"""The files of predictions: native history, IsoPredict trace and picture, side by side."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plume_py.base.files import is_stream, write_atomically
from plume_py.history.formats.json_writer import write_json
from plume_py.history.model import History
from plume_py.predict.predictor.outcome import PredictionResult
from plume_py.predict.trace import trace
from plume_py.report.dot import write_pictures
from plume_py.report.graphviz import Album


def write_predictions(target: str, observed: History, outcome: PredictionResult, formats: Sequence[str]) -> list[str]:
    """``out.json`` gets ``out.trace.txt`` and ``out-lost-update-1.svg`` beside it; the second one is ``out-2.json``.

    Answers notes for people about the pictures.
    """
    if is_stream(target):  # which has no beside
        for prediction in outcome.predictions:
            write_atomically(target, write_json(prediction.history).chunks)
        return []
    path = Path(target)
    album = Album(path.parent, formats)
    for number, prediction in enumerate(outcome.predictions, 1):
        stem = path.stem if number == 1 else f"{path.stem}-{number}"
        here = path.with_name(f"{stem}{path.suffix or '.json'}")
        write_atomically(str(here), write_json(prediction.history).chunks)
        write_atomically(str(path.with_name(f"{stem}.trace.txt")), trace(observed, prediction.run))
        write_pictures(replace(prediction.result, history=stem), album)
    return album.notes
