"""Sizes and shape of a history, for ``isocheck stats``."""

from dataclasses import dataclass

import numpy as np

from plume_py.history.model import ABORTED, COMMITTED, NOBODY, READ_LIST, UNKNOWN, History, Int64s
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import Atom
from plume_py.levels import NAMES

HOT_KEYS = 5


@dataclass(frozen=True)
class TimeStats:
    """Durations in ticks and concurrency of the transactions whose begin and end are known."""

    ticks_per_second: int | None
    begun: int  # transactions with a known begin
    ended: int  # with a known end
    timed: int  # with both
    shortest: int | None
    median: int | None
    longest: int | None
    overlapping: int  # transactions that overlapped another one
    most_at_once: int
    mean_at_once: float


@dataclass(frozen=True)
class Stats:
    """The statistics that ``isocheck stats`` prints."""

    format: str
    sessions: int
    transactions: int
    committed: int
    aborted: int
    unknown: int
    operations: int
    reads: int
    writes: int
    read_share: float
    initial_reads: int
    keys: int
    list_keys: int
    longest_session: int
    longest_transaction: int
    longest_transaction_id: str | int | None
    initial_value: Atom
    initial_transaction: str | int | None
    declared_levels: dict[str, int]
    hot_keys: list[tuple[Atom, int]]
    times: TimeStats | None
    warnings: tuple[str, ...]


def stats(history: History) -> Stats:
    """Return the statistics of a history."""
    lengths = np.diff(history.txn_start)
    longest = int(np.argmax(lengths)) if len(lengths) else -1
    writes = int(np.count_nonzero(history.op_kind & 1))
    status = np.bincount(history.txn_status, minlength=3)
    return Stats(
        format=history.format,
        sessions=history.sessions,
        transactions=history.transactions,
        committed=int(status[COMMITTED]),
        aborted=int(status[ABORTED]),
        unknown=int(status[UNKNOWN]),
        operations=history.operations,
        reads=history.operations - writes,
        writes=writes,
        read_share=round(1 - writes / history.operations, 4) if history.operations else 0.0,
        initial_reads=_initial_reads(history),
        keys=len(history.key_code),
        list_keys=len(np.unique(history.op_key[history.op_kind >= READ_LIST])),
        longest_session=int(np.max(np.diff(history.session_start), initial=0)),
        longest_transaction=int(lengths[longest]) if longest >= 0 else 0,
        longest_transaction_id=history.txn_label[longest] if longest >= 0 else None,
        initial_value=history.initial_value,
        initial_transaction=history.txn_label[history.init_txn] if history.init_txn != NOBODY else None,
        declared_levels=_declared(history),
        hot_keys=_hot_keys(history),
        times=None if history.times is None else _times(history.times),
        warnings=history.warnings,
    )


def _initial_reads(history: History) -> int:
    initial = history.initial_versions
    if history.init_txn != NOBODY:
        initial = history.version_writer == history.init_txn
    return int(np.count_nonzero(initial[history.op_version[(history.op_kind & 1) == 0]]))


def _declared(history: History) -> dict[str, int]:
    if history.txn_level is None:
        return {}
    counts = np.bincount(history.txn_level, minlength=len(NAMES) + 1)[1:]
    return {name: int(count) for name, count in zip(NAMES, counts, strict=True) if count}


def _hot_keys(history: History) -> list[tuple[Atom, int]]:
    uses = np.bincount(history.op_key, minlength=len(history.key_code))
    hottest = np.argsort(-uses, kind="stable")[:HOT_KEYS]
    return [(history.key(int(k)), int(uses[k])) for k in hottest]


def _times(times: Times) -> TimeStats:
    begun, ended = times.begin > NO_TIME, times.end > NO_TIME
    begin, end = times.begin[begun & ended], times.end[begun & ended]
    # unsigned: the difference of two signed 64-bit times may not fit in a signed one
    durations = np.sort(end.astype(np.uint64) - begin.astype(np.uint64)).tolist()
    at_once = _at_once(begin, begin, end)
    span = int(np.max(end)) - int(np.min(begin)) if durations else 0
    return TimeStats(
        ticks_per_second=times.per_second,
        begun=int(np.count_nonzero(begun)),
        ended=int(np.count_nonzero(ended)),
        timed=len(durations),
        shortest=durations[0] if durations else None,
        median=durations[(len(durations) - 1) // 2] if durations else None,
        longest=durations[-1] if durations else None,
        overlapping=int(np.count_nonzero(_at_once(end, begin, end) > 1)),
        most_at_once=int(np.max(at_once, initial=0)),
        mean_at_once=round(sum(durations) / span, 2) if span else float(len(durations)),
    )


def _at_once(until: Int64s, begin: Int64s, end: Int64s) -> Int64s:
    """Return, for each transaction, how many began up to ``until`` and had not ended when it began, with itself."""
    begun = np.searchsorted(np.sort(begin), until, side="right")
    return begun - np.searchsorted(np.sort(end), begin, side="left")
