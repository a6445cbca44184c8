"""Write predictions to files, and read them for ``confirm``.

A prediction is written as a native history, with an IsoPredict trace and pictures next to it. The history has one more
field, ``prediction``, which ``confirm`` needs: the levels, the database of the observed run, and the operations of its
transactions after the boundary. Other readers of the native format ignore the field.

A trace has one event per line: ``READ KEY[x] Txn(2, 0) From(1, 0)``. Sessions are numbered from 1, because (0, 0) is
the initial state; writers precede their readers. A trace has no values and names a writer by its transaction. So it
leaves out reads of own writes, and writes that the same transaction overwrites. It also leaves out the reads of
transactions of unknown outcome that are not part of a prediction. Characters that a key cannot contain are written as
%XX; so is a whole number whose text is another key.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from plume_py.base.atomic_files import is_stream, write_atomically
from plume_py.base.errors import InputError, IsocheckError
from plume_py.history.formats.json_writer import write_json
from plume_py.history.formats.reading import decode
from plume_py.history.load import load
from plume_py.history.model import INITIAL, UNKNOWN, History
from plume_py.history.source import Source
from plume_py.levels import parse_level
from plume_py.levels.databases import Database, Setting, engine
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.predict import TARGETS
from plume_py.reasoning.predict.confirm.script import rest_of, rest_of_replay
from plume_py.reasoning.predict.predictor.prediction import Prediction, PredictionResult, Run, running_order
from plume_py.reasoning.predict.store.program import SeededProgram
from plume_py.reasoning.predict.store.replay import Validation
from plume_py.report.dot import write_pictures
from plume_py.report.graphviz import Album


@dataclass(frozen=True)
class Origin:
    """The database of a recorded history, and the isolation level of all its transactions ("" if there are several)."""

    database: str
    isolation: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> Database | None:
        """Our table's entry for the database."""
        return engine(self.database)

    @property
    def setting(self) -> Setting | None:
        """Our table's entry for the isolation level."""
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
    """Return the origin that the header of a recorded history states, or None. The header is untrusted input.

    Returns None for several nodes: one may be behind, so a session need not see what it has committed.
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
    """The observed run of a program, within the sizes that ``predict --program`` accepts."""

    name: str
    seed: int
    sessions: Annotated[int, msgspec.Meta(ge=1, le=100)]
    transactions: Annotated[int, msgspec.Meta(ge=1, le=1000)]


class About(msgspec.Struct, omit_defaults=True):
    """The field ``prediction`` of a predicted history."""

    level: str = ""
    target: str = ""
    database: str = ""
    isolation: str = ""
    lists: bool = False  # the writes were appends
    changed: list[str] = []  # ids of transactions with changed reads
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
    """Return the field for a prediction. After a replay without divergence, the later operations are the replay's."""
    rest: Any = rest_of(observed, prediction.run)
    if validation is not None and validation.validated and not validation.diverged:
        rest = rest_of_replay(observed, prediction.run, validation.history)
    changed = [str(observed.txn_label[t]) for t in sorted({change.txn for change in prediction.changes})]
    made = About(outcome.level, outcome.target, lists=observed.lists is not None, changed=changed, rest=rest)
    if origin is not None:
        made.database, made.isolation = origin.database, origin.isolation
    if workload is not None:
        size = workload.seed, workload.sessions, workload.transactions
        made.program = SeededRun(workload.program.name, *size)
    return made


def read_prediction(path: str) -> tuple[History, About]:
    """Return a history and its field ``prediction``, which is empty for any other history."""
    history = load(path)
    if history.format != "json":
        return history, About()
    source = Source(path)
    try:
        found = decode(_documents, source.content()).prediction
    except InputError as error:
        raise error.in_source(path) from None
    finally:
        source.close()
    _reject_invalid(found, path)
    return history, found


def _reject_invalid(found: About, path: str) -> None:
    if found.target and found.target not in TARGETS:
        raise InputError(f"no target of a prediction: {found.target!r:.40}", where="prediction").in_source(path)
    if found.level and found.level != "declared" and parse_level(found.level) is None:
        raise InputError(unknown_level(found.level), where="prediction").in_source(path)
    for ops in found.rest.values():
        for op in ops:
            if not (len(op) in (2, 3) and op[0] == "r") and not (len(op) == 3 and op[0] in ("w", "append")):
                raise InputError(f"not an operation: {op!r:.60}", where="prediction.rest").in_source(path)
            if isinstance(op[1], list) or op[1] is None or (op[0] == "r" and isinstance(op[-1], list)):
                raise InputError(f"not a key: {op[1:]!r:.60}", where="prediction.rest").in_source(path)


def _chunks(history: History, field: About) -> Iterator[bytes]:
    """Yield the native document with the field added at its end."""
    *first, last = write_json(history).chunks
    yield from first
    yield last.rstrip().removesuffix(b"}") + b',\n"prediction":' + msgspec.json.encode(field) + b"}\n"


def write_predictions(
    target: str, observed: History, outcome: PredictionResult, formats: Sequence[str], fields: Sequence[About]
) -> list[str]:
    """Write ``out.json`` with ``out.trace.txt`` and ``out-lost-update-1.svg`` next to it; the second prediction is
    ``out-2.json``.

    Return notes about the pictures, for the user.
    """
    if is_stream(target):
        for prediction, field in zip(outcome.predictions, fields, strict=True):
            write_atomically(target, _chunks(prediction.history, field))
        return []
    path = Path(target)
    album = Album(path.parent, formats)
    for number, (prediction, field) in enumerate(zip(outcome.predictions, fields, strict=True), 1):
        stem = path.stem if number == 1 else f"{path.stem}-{number}"
        here = path.with_name(f"{stem}{path.suffix or '.json'}")
        write_atomically(str(here), _chunks(prediction.history, field))
        write_atomically(str(path.with_name(f"{stem}.trace.txt")), trace(observed, prediction.run))
        write_pictures(replace(prediction.result, history=stem), album)
    return album.notes


def trace(history: History, run: Run) -> Iterator[bytes]:
    """Yield the lines of the trace. ``history`` is the observed one."""
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
