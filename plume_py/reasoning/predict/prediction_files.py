"""The files of predictions: native history, IsoPredict trace and picture, side by side.

Beside its sessions the history says what ``confirm`` needs: what was asked, from which database the observed run was,
and what its transactions did after the boundary. Other readers of the native format do not look there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from plume_py.base.atomic_files import is_stream, write_atomically
from plume_py.base.errors import InputError, IsocheckError
from plume_py.history.formats.json_common import decode
from plume_py.history.formats.json_writer import write_json
from plume_py.history.load import load
from plume_py.history.model import INITIAL, UNKNOWN, History
from plume_py.history.source import Source
from plume_py.levels import parse_level
from plume_py.levels.databases import Database, Setting, engine
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.predict import TARGETS
from plume_py.reasoning.predict.confirm.script import rest_of, rest_of_replay
from plume_py.reasoning.predict.predictor.outcome import PredictionResult
from plume_py.reasoning.predict.predictor.prediction import Prediction, Run, running_order
from plume_py.reasoning.predict.store.program import SeededProgram
from plume_py.reasoning.predict.store.replay import Validation
from plume_py.report.dot import write_pictures
from plume_py.report.graphviz import Album


@dataclass(frozen=True)
class Origin:
    """A database by the name it goes by, and at which of its isolation levels all transactions ran; "" if several."""

    database: str
    isolation: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> Database | None:
        """What is known of it."""
        return engine(self.database)

    @property
    def setting(self) -> Setting | None:
        """What is known of the isolation level."""
        known = self.engine
        return None if known is None else known.setting_named(self.isolation)


class _About(msgspec.Struct):
    database: str = ""
    isolation: list[str] = []
    settings: dict[str, str] = {}
    levels: Any = None
    nodes: Any = None


class _Header(msgspec.Struct):
    collected: _About


_headers = msgspec.json.Decoder(_Header)


def origin(path: str) -> Origin | None:
    """What the header of a recorded history says; None if there is none, or of several nodes. Nothing in it is trusted.

    Of several nodes one may be behind: what a session has committed, it need not see.
    """
    if path == "-":
        return None
    source = Source(path)
    try:
        about = _headers.decode(source.head().split(b"\n", 1)[0]).collected
    except (msgspec.MsgspecError, IsocheckError, OSError, UnicodeDecodeError, RecursionError):
        return None
    finally:
        source.close()
    alone = len(set(about.isolation)) == 1 and not about.levels
    if not about.database or about.nodes:
        return None
    return Origin(about.database, about.isolation[0] if alone else "", about.settings)


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


# From trace.py: A predicted run as an IsoPredict trace: ``READ KEY[x] Txn(2, 0) From(1, 0)``, one event per line.
# Sessions are numbered from 1, as (0, 0) is the initial state; writers stand before their readers. A trace has no
# values, and names a writer by its transaction, so a read of an own write and a write that is overwritten in its
# own transaction are left out. So are the reads of transactions of unknown outcome that are no part of a
# prediction. What cannot stand in a key is written as %XX, and so is the whole of a number that another key has as
# its text.
def trace(history: History, run: Run) -> Iterator[bytes]:
    """The lines of the trace; ``history`` is the observed one."""
    names = {
        t: (int(history.txn_session[t]) + 1, t - int(history.session_start[history.txn_session[t]]))
        for t in range(history.transactions)
    }
    keys = _spelled_keys(history)
    for t in running_order(history, run):
        yield from (f"{line}\n".encode() for line in _events(history, run, t, names, keys))


def _events(
    history: History, run: Run, t: int, names: dict[int, tuple[int, int]], keys: Sequence[str]
) -> Iterator[str]:
    ops = range(int(history.txn_start[t]), run.prefix[t])
    last = {int(history.op_key[o]): o for o in ops if history.op_kind[o] & 1}
    wrote: set[int] = set()
    for o in ops:
        key = int(history.op_key[o])
        if history.op_kind[o] & 1:
            wrote.add(key)
            if last[key] == o:
                yield f"WRITE KEY[{keys[key]}] Txn{names[t]}"
        elif key not in wrote and (o in run.sources or history.txn_status[t] != UNKNOWN):
            source = run.sources.get(o, INITIAL)
            yield f"READ KEY[{keys[key]}] Txn{names[t]} From{(0, 0) if source == INITIAL else names[source]}"


def _spelled_keys(history: History) -> list[str]:
    keys = [history.key(key) for key in range(len(history.key_code))]
    texts = {key for key in keys if isinstance(key, str)}
    return [
        _escaped(str(key), r"." if not isinstance(key, str) and str(key) in texts else r"[^\x20-\x7e]|[\[\]%]")
        for key in keys
    ]


def _escaped(key: str, what: str) -> str:
    return re.sub(what, lambda m: "".join(f"%{b:02X}" for b in _bytes(m.group())), key)


def _bytes(character: str) -> bytes:
    return character.encode("utf-8", "surrogatepass")
