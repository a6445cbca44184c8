"""A predicted run as an IsoPredict trace: ``READ KEY[x] Txn(2, 0) From(1, 0)``, one event per line.

Sessions are numbered from 1, as (0, 0) is the initial state; writers stand before their readers. A trace has no values,
and names a writer by its transaction, so a read of an own write and a write that is overwritten in its own transaction
are left out. So are the reads of transactions of unknown outcome that are no part of a prediction. What cannot stand
in a key is written as %XX, and so is the whole of a number that another key has as its text.
"""

import re
from collections.abc import Iterator, Sequence

from plume_py.history.model import INITIAL, UNKNOWN, History
from plume_py.reasoning.predict.predictor.prediction import Run, running_order


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
