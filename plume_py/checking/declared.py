"""Levels per transaction ("declared"): from the history file, a mapping file, or an assumed default.

``verdicts``, ``minimize`` and ``witness`` call ``transaction_levels``; the command line reads mapping files here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.base.text import display
from plume_py.history.model import History, Int8s
from plume_py.levels import CODES, NAMES, RUNNABLE, parse_level
from plume_py.levels.orders import unknown_level

# Name of the pseudo-level that judges each transaction by its own level.
DECLARED = "declared"


@dataclass(frozen=True)
class LevelMap:
    """Levels by transaction id and by session name. They take precedence over the levels in the history."""

    transactions: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)


def read_level_map(path: str) -> LevelMap:
    """Read ``{"transactions": {"T1": "SI"}, "sessions": {"0": "SER"}}``; either part may be missing."""
    import msgspec

    try:
        content = Path(path).read_bytes()
        document = msgspec.json.decode(content, type=dict[str, dict[str, str]])
        reject_same_names(content)
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(path) from None
    except InputError as error:
        raise error.in_source(path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a mapping to levels: {error}", hint=_FORM).in_source(path) from None
    unknown = sorted(document.keys() - {"transactions", "sessions"})
    if unknown:
        raise InputError(f"not a mapping to levels: '{display(unknown[0])}'", hint=_FORM).in_source(path)
    parts = {}
    for part, levels in document.items():
        parts[part] = {name: _level(spelled, f"{part}.{name}", path) for name, spelled in levels.items()}
    return LevelMap(**parts)


_FORM = 'use {"transactions": {"ID": "LEVEL"}, "sessions": {"NAME": "LEVEL"}}'


def _level(spelled: str, where: str, path: str) -> str:
    level = parse_level(spelled)
    if level not in RUNNABLE:
        raise InputError(unknown_level(spelled, RUNNABLE), where=where).in_source(path)
    return level


def transaction_levels(history: History, mapping: LevelMap | None = None, assume: str | None = None) -> Int8s:
    """Return the level of each transaction as a code: 1 + index into ``levels.NAMES``, or 0 if it has none."""
    carried = history.txn_level
    codes = np.zeros(history.transactions, np.uint8) if carried is None else carried.astype(np.uint8)
    if mapping is not None:
        _apply(history, mapping, codes)
    if assume is not None:
        codes[codes == 0] = CODES[assume]
    return codes


def _apply(history: History, mapping: LevelMap, codes: Int8s) -> None:
    left = dict(mapping.sessions)
    for s in range(history.sessions) if left else ():
        level = left.pop(str(history.session_label[s]), None)
        if level is not None:
            codes[history.session_start[s] : history.session_start[s + 1]] = CODES[level]
    if left:
        raise InputError(f"no session is called '{display(next(iter(left)))}'", hint="correct the mapping to levels")
    wanted = mapping.transactions
    found = set()
    for t in range(history.transactions) if wanted else ():
        name = str(history.txn_label[t])
        if name in wanted:
            found.add(name)
            codes[t] = CODES[wanted[name]]
    missing = [name for name in wanted if name not in found]
    if missing:
        problem = f"no transaction has the id '{display(missing[0])}'"
        raise InputError(problem, hint="correct the mapping to levels")


def missing_levels(history: History, codes: Int8s, live: Int8s) -> str | None:
    """Return a message that says which participating transactions lack a usable level, or None if none does."""
    without = np.flatnonzero((codes == 0) & (live == 1))
    if len(without):
        example = display(history.txn_label[int(without[0])])
        who = f"{len(without):,} transactions carry no level (for example {example})"
        if len(without) == 1:
            who = f"1 transaction carries no level ({example})"
        return f"{who}; give one with --assume LEVEL or --levels-file FILE"
    other = np.flatnonzero(~np.isin(codes, [CODES[level] for level in RUNNABLE]) & (live == 1))
    if len(other):
        example, level = display(history.txn_label[int(other[0])]), NAMES[codes[other[0]] - 1]
        return f"{example} carries {level}, which is no level to run at; give it another with --levels-file FILE"
    return None
