"""Plant anomalous patterns in a history, each on new keys and in new sessions.

The transactions of the history keep their numbers and share no key with a planted transaction. Each recipe shows
exactly its own pattern.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from plume_py.base.errors import InputError
from plume_py.history.model import ABORTED, COMMITTED, NOBODY, READ, WRITE, History, Int64s, Labels
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import Atom, Atoms

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Injection:
    """One planted pattern: its name, its transactions in the new history, and its keys."""

    tap: str
    transactions: tuple[int, ...]
    keys: tuple[Atom, ...]


# A recipe: sessions separated by "|", their transactions by ";", operations as kind, key, value. "!" marks an aborted
# transaction. Value 0 is the initial one; a value that is only read has no writer.
RECIPES: dict[str, tuple[str, ...]] = {
    "a": ("rx9", "wx1 | rx9"),
    "b": ("!wx1 | rx1",),
    "c": ("rx1 wx1",),
    "d": ("wx1 | wx2 rx1", "wx1 rx0"),
    "e": ("wx1 wx2 rx1",),
    "f": ("wx1 wx2 | rx1", "wx1 wx2 | rx1 rx2"),
    "g": ("ry1 wx1 | rx1 wy1", "rx1 ; wy1 | ry1 ; wx1"),
    "h": ("wx1 | rx1 wx2 wy1 | ry1 rx1", "wx1 wy1 | ry1 rx0"),
    "i": ("wx1 wz1 | wx2 wy1 | ry1 rx1 | rz1 rx2",),
    "j": ("wx1 | wx2 | rx1 rx2", "wx1 | rx0 rx1"),
    "k": ("wx1 | rx1 wx2 wy1 | rx1 ry1", "wx1 | rx1 wx2 ; rx1", "wx1 wy1 | rx0 ry1", "wx1 ; rx0"),
    "l": ("wx1 wz1 | wx2 wy1 | rx1 ry1 | rx2 rz1", "wx1 ; rx2 | wx2 ; rx1"),
    "m": ("wx1 | rx1 wx2 wy1 | ry1 wz1 | rz1 rx1", "wx1 wy1 | ry1 wz1 | rz1 rx0"),
    "n": ("wx1 wy1 | wx2 wz1 | ry1 wu1 | rz1 wv1 | ru1 rx2 | rv1 rx1",),
}

# Recipes that only strong levels forbid; each shows the pattern of its name and no weaker one.
STRONG_RECIPES: dict[str, tuple[str, ...]] = {
    "lost-update": ("wx1 | rx1 wx2 | rx1 wx3", "rx0 wx1 | rx0 wx2"),
    "write-skew": ("wx1 wy1 | rx1 ry1 wx2 | rx1 ry1 wy2", "rx0 ry0 wx1 | rx0 ry0 wy1"),
    "long-fork": ("wx1 wy1 | rx1 wx2 | ry1 wy2 | rx2 ry1 | rx1 ry2", "wx1 | wy1 | rx1 ry0 | rx0 ry1"),
    "read-only-anomaly": ("rx0 ry0 wx1 | ry0 wy1 | rx0 ry1",),
}

# Recipes that only real time forbids, for histories with times: "@2-3" is the begin and end of a transaction.
TIMED_RECIPES: dict[str, tuple[str, ...]] = {
    "stale-read": ("wx1 @0-1 | rx0 @2-3", "wx1 @0-1 | rx1 wx2 @2-3 | rx1 @4-5"),
    "non-monotonic-snapshot": ("wx1 @0-9 | rx1 @1-2 | rx0 @3-4", "wx1 @0-1 | rx1 wx2 @2-9 | rx2 @3-4 | rx1 @5-6"),
}

ALL_RECIPES = RECIPES | STRONG_RECIPES | TIMED_RECIPES


class _Planted(NamedTuple):
    """The planted transactions as columns; keys and versions are numbered from 0."""

    session: list[int]
    status: list[int]
    lengths: list[int]
    kinds: list[int]
    op_key: list[int]
    op_version: list[int]
    versions: dict[tuple[int, int], int]  # (key, digit of the recipe) -> number
    writers: dict[int, int]  # version -> transaction
    spans: list[tuple[int, int] | None]  # begin and end of each, if the recipe has times


def inject(history: History, counts: Mapping[str, int], seed: int = 0) -> tuple[History, list[Injection]]:
    """Return ``history`` with ``counts[tap]`` new instances of each pattern, and the planted instances."""
    for tap, count in counts.items():
        if tap not in ALL_RECIPES or count < 0:
            known = f"the letters a to n, {', '.join((*STRONG_RECIPES, *TIMED_RECIPES))}"
            raise InputError(f"cannot inject {count!r} of {tap!r:.40}", hint=f"use {known}")
        if tap in TIMED_RECIPES and count and history.times is None:
            raise InputError(f"cannot inject {tap} into a history without times", hint="generate one that is SSER")
    rng = np.random.default_rng(seed)
    taps = [tap for tap in sorted(counts) for _ in range(counts[tap])]
    taps = [taps[i] for i in rng.permutation(len(taps))]
    # An explicit initial transaction has no value for new keys, and some formats have no initial state.
    has_initial = history.initial is not None and history.init_txn == NOBODY
    planted = _Planted([], [], [], [], [], [], {}, {}, [])
    spans: list[tuple[str, range, range]] = []
    keys = 0
    for tap in taps:
        recipes = [recipe for recipe in ALL_RECIPES[tap] if has_initial or "0" not in recipe]
        recipe = recipes[int(rng.integers(len(recipes)))]
        first = len(planted.status)
        used = _plant(planted, recipe, keys, rng)
        spans.append((tap, range(first, len(planted.status)), range(keys, keys + used)))
        keys += used
    names = [f"tap-{tap}-{n}.{i}" for n, (tap, txns, _) in enumerate(spans, 1) for i in range(1, len(txns) + 1)]
    result = _append(history, planted, keys, names)
    at, key_at = history.transactions, len(history.key_code)
    return result, [
        Injection(tap, tuple(at + t for t in txns), tuple(result.key(key_at + k) for k in own))
        for tap, txns, own in spans
    ]


def _plant(planted: _Planted, recipe: str, first_key: int, rng: np.random.Generator) -> int:
    """Add one recipe with its sessions in random order; return how many keys it uses."""
    names: dict[str, int] = {}
    sessions = recipe.split("|")
    for i in rng.permutation(len(sessions)):
        session = planted.session[-1] + 1 if planted.session else 0
        for body in sessions[i].split(";"):
            _plant_transaction(planted, session, body.split(), first_key, names)
    return len(names)


def _plant_transaction(
    planted: _Planted, session: int, ops: Sequence[str], first_key: int, names: dict[str, int]
) -> None:
    t = len(planted.status)
    span = ops[-1][1:].split("-") if ops[-1].startswith("@") else None
    ops = ops if span is None else ops[:-1]
    planted.spans.append(None if span is None else (int(span[0]), int(span[1])))
    planted.session.append(session)
    planted.status.append(ABORTED if ops[0].startswith("!") else COMMITTED)
    planted.lengths.append(len(ops))
    for op in ops:
        kind, name, digit = tuple(op.lstrip("!"))
        key = first_key + names.setdefault(name, len(names))
        version = planted.versions.setdefault((key, int(digit)), len(planted.versions))
        planted.kinds.append(WRITE if kind == "w" else READ)
        planted.op_key.append(key)
        planted.op_version.append(version)
        if kind == "w":
            planted.writers[version] = t


def _append(history: History, planted: _Planted, keys: int, names: list[str]) -> History:
    """Return ``history`` with the planted transactions after its own."""
    txns, key_at, version_at = history.transactions, len(history.key_code), len(history.version_key)
    key_atoms, key_code = _new_keys(history.keys, history.key_code, keys)
    values, digit_code = _digits(history)
    writer = [txns + planted.writers[v] if v in planted.writers else NOBODY for v in range(len(planted.versions))]
    new_sessions = planted.session[-1] + 1 if planted.session else 0
    per_session = np.bincount(np.array(planted.session, np.int64), minlength=new_sessions)
    zeros = [0] * len(planted.status)
    return replace(
        history,
        op_kind=_longer(history.op_kind, planted.kinds),
        op_key=_longer(history.op_key, [key_at + k for k in planted.op_key]),
        op_version=_longer(history.op_version, [version_at + v for v in planted.op_version]),
        txn_start=_longer(history.txn_start, history.operations + np.cumsum(planted.lengths, dtype=np.int64)),
        txn_session=_longer(history.txn_session, [history.sessions + s for s in planted.session]),
        txn_status=_longer(history.txn_status, planted.status),
        txn_level=None if history.txn_level is None else _longer(history.txn_level, zeros),
        txn_line=None if history.txn_line is None else _longer(history.txn_line, zeros),
        txn_index=None,
        times=_more_times(history.times, planted.spans),
        session_start=_longer(history.session_start, txns + np.cumsum(per_session)),
        version_key=_longer(history.version_key, [key_at + key for key, _ in planted.versions]),
        version_value=_longer(history.version_value, [digit_code[digit] for _, digit in planted.versions]),
        version_writer=_longer(history.version_writer, writer),
        key_code=_longer(history.key_code, key_code),
        keys=key_atoms,
        values=values,
        txn_label=_more_labels(history.txn_label, names),
        session_label=_more_labels(history.session_label, [f"tap-session-{s}" for s in range(1, new_sessions + 1)]),
    )


def _longer(column: npt.NDArray[Number], more: npt.ArrayLike) -> npt.NDArray[Number]:
    return np.concatenate((column, np.asarray(more, column.dtype)))


def _more_times(times: Times | None, spans: list[tuple[int, int] | None]) -> Times | None:
    """Return the times with the times of planted transactions added, all later than the history's own."""
    if times is None:
        return None
    late = max(int(times.begin.max(initial=0)), int(times.end.max(initial=0))) + 1
    begin, end = ([NO_TIME if span is None else late + span[i] for span in spans] for i in (0, 1))
    return replace(times, begin=_longer(times.begin, begin), end=_longer(times.end, end))


def _unused(codes: Int64s, count: int) -> Int64s:
    """Return the ``count`` smallest numbers that are not among ``codes``."""
    return np.setdiff1d(np.arange(len(codes) + count, dtype=np.int64), codes)[:count]


def _new_keys(atoms: Atoms, codes: Int64s, count: int) -> tuple[Atoms, Int64s]:
    """Return ``count`` new keys: small integers, or names if the history has a table of keys."""
    if atoms.table is None:
        return atoms, _unused(codes, count)
    known = set(atoms.table)
    names = [name for i in range(count + len(known)) if (name := f"tap-key-{i + 1}") not in known][:count]
    return replace(atoms, table=atoms.table + tuple(names)), len(atoms.table) + np.arange(count, dtype=np.int64)


def _digits(history: History) -> tuple[Atoms, dict[int, int]]:
    """Return the value code of each digit of a recipe: 0 is the initial value, the others are other integers."""
    integers = [i for i in range(1, 11) if i != history.initial_value][:9]
    initial = {} if history.initial is None else {0: history.initial}
    table = history.values.table
    if table is None:
        return history.values, initial | dict(enumerate(integers, 1))
    code = {atom: i for i, atom in enumerate(table)}
    for integer in integers:
        code.setdefault(integer, len(code))
    return replace(history.values, table=tuple(code)), initial | {d: code[i] for d, i in enumerate(integers, 1)}


def _more_labels(labels: Labels, names: list[str]) -> Labels:
    """Return the labels with ``names`` added for planted transactions or sessions, if the file names its own."""
    if labels.names is None:
        return labels
    if isinstance(labels.names, np.ndarray):
        return replace(labels, names=np.concatenate((labels.names, _unused(labels.names, len(names)))))
    return replace(labels, names=labels.names + tuple(names))
