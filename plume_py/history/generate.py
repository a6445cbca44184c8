"""Generate histories that satisfy a chosen level, by executing a random workload on a multi-version store.

Transactions commit one after another, with the sessions interleaved at random. This commit order CM is the witness of
the level: a read returns the newest version, in CM, among the versions that its transaction sees.

=====  ======================================================  =========================================================
level  what a transaction sees                                 why its level holds
=====  ======================================================  =========================================================
SER    everything committed                                    transactions run one after another
PC     a prefix of CM that contains its session's past         every SO or WR predecessor lies in the prefix
SI     as PC, and the prefix reaches every version it writes   of two writers of a key the later has seen the earlier
TCC    what its session knows; sessions learn from each other  what a session learns comes with all its causes
PSI    as TCC, and it first learns each version it overwrites  version order is part of what is visible
RA     its session's past, of others all but the latest few    its direct predecessors are visible, theirs may not be
RC     for each read a prefix of CM, none shorter than before  what it read from earlier is in every later prefix
=====  ======================================================  =========================================================

SSER is SER with times: every transaction begins before its commit and ends after it, and its session waits for the end.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history import generate_kernels as kernels
from plume_py.history.assemble import RawColumns, assemble
from plume_py.history.model import COMMITTED, History, Int32s
from plume_py.history.times import Times
from plume_py.history.value_codes import Atoms
from plume_py.levels import STRONGEST, STRONGEST_FIRST, visibility_bits
from plume_py.levels.orders import REALTIME, level_of, strong_name

Distribution = Literal["uniform", "zipfian", "hotspot"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "zipfian", "hotspot")
STRICT = strong_name(STRONGEST, REALTIME)
GUARANTEES = (STRICT, *STRONGEST_FIRST)

# Ticks of the clock from one commit to the next.
TICKS = 4

# Hotspot distribution: this share of the operations accesses that share of the keys.
HOT_OPERATIONS, HOT_KEYS = 0.8, 0.2
ZIPF_EXPONENT = 1.0

# A snapshot lags behind by at most twice as many commits as there are sessions, and by at most this many: versions are
# searched from the newest back.
MAX_LAG = 500


def generate(
    guarantee: str = STRONGEST,
    *,
    sessions: int = 25,
    transactions: int = 200,
    operations: int = 20,
    read_share: float = 0.5,
    keys: int = 10_000,
    distribution: Distribution = "uniform",
    seed: int = 0,
) -> History:
    """Return a history that satisfies ``guarantee``; ``transactions`` per session, ``operations`` per transaction.

    Keys and values are integers. The values of a key count up from 1, and 0 is the initial value.
    """
    _check(guarantee, sessions, transactions, operations, read_share, keys, distribution)
    rng = np.random.default_rng(seed)
    total = sessions * transactions
    count = total * operations
    order = _commit_order(rng, sessions, transactions)
    lag = rng.integers(0, min(2 * sessions, MAX_LAG) + 1, total, dtype=np.int32)
    peer = rng.integers(0, sessions, total, dtype=np.int32)
    peer[rng.random(total) < 0.5] = -1  # learns from no session before this transaction
    op_kind = (rng.random(count, dtype=np.float32) >= read_share).astype(np.uint8)
    op_key = draw_keys(rng, distribution, keys, count)
    op_value = np.empty(count, np.int64)
    dispatch.prepare(4 * count + sessions * total, kernels)
    salt = int(rng.integers(1, 2**30))
    kernels.execute(
        visibility_bits(level_of(guarantee)), order, lag, peer, salt, operations, keys, op_kind, op_key, op_value
    )
    raw = RawColumns(
        op_kind=op_kind,
        op_key=op_key.astype(np.int64),
        op_value=op_value,
        op_txn=np.repeat(np.arange(total, dtype=np.int32), operations),
        txn_session=np.repeat(np.arange(sessions, dtype=np.int32), transactions),
        txn_status=np.full(total, COMMITTED, np.uint8),
        sessions=sessions,
        keys=Atoms(),
        values=Atoms(),
        initial=0,
        initial_declared=True,
        times=_times(rng, order, sessions, transactions) if guarantee == STRICT else None,
    )
    return assemble(raw, "generated")


def commit_order(sessions: int, transactions: int, seed: int = 0) -> Int32s:
    """Return the order in which the transactions of ``generate`` commit, by their numbers in the history."""
    order = _commit_order(np.random.default_rng(seed), sessions, transactions)
    by_session = np.argsort(order, kind="stable")
    committed = np.empty(len(order), np.int32)
    committed[by_session] = np.arange(len(order), dtype=np.int32)
    return committed


def _commit_order(rng: np.random.Generator, sessions: int, transactions: int) -> Int32s:
    """Return the session of each commit."""
    return rng.permutation(np.repeat(np.arange(sessions, dtype=np.int32), transactions))


def _times(rng: np.random.Generator, order: Int32s, sessions: int, transactions: int) -> Times:
    """Return a time span around each commit. Between two commits of a session one span ends and the next begins."""
    commits = np.argsort(order, kind="stable").reshape(sessions, transactions) * TICKS + TICKS // 2
    gaps = np.diff(commits, axis=1, append=commits[:, -1:] + TICKS * sessions) - 1
    end = commits + (rng.random(commits.shape) * gaps).astype(np.int64)
    before = np.concatenate((np.maximum(commits[:, :1] - TICKS * sessions, 0), end[:, :-1]), axis=1)
    begin = before + (rng.random(commits.shape) * (commits - before)).astype(np.int64)
    return Times(begin.ravel(), end.ravel())


def draw_keys(rng: np.random.Generator, distribution: Distribution, keys: int, count: int) -> Int32s:
    """Return ``count`` random keys below ``keys``; zipfian and hotspot prefer small ones."""
    if distribution == "uniform":
        return rng.integers(0, keys, count, dtype=np.int32)
    if distribution == "zipfian":
        weights = np.arange(1, keys + 1, dtype=np.float64) ** -ZIPF_EXPONENT
        return _by_weight(rng, np.cumsum(weights), count)
    hot = max(1, int(keys * HOT_KEYS))
    in_hot = rng.random(count, dtype=np.float32) < HOT_OPERATIONS
    cold = rng.integers(hot if hot < keys else 0, keys, count, dtype=np.int32)
    cold[in_hot] = rng.integers(0, hot, count, dtype=np.int32)[in_hot]
    return cold


def _by_weight(rng: np.random.Generator, cumulative: npt.NDArray[np.float64], count: int) -> Int32s:
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    chosen: Int32s = np.minimum(drawn, len(cumulative) - 1).astype(np.int32)
    return chosen


def _check(
    guarantee: str,
    sessions: int,
    transactions: int,
    operations: int,
    read_share: float,
    keys: int,
    distribution: str,
) -> None:
    """Raise InputError for parameters out of range."""
    if guarantee not in GUARANTEES:
        raise InputError(f"cannot generate for the level {guarantee!r:.40}", hint=f"use one of {' '.join(GUARANTEES)}")
    if distribution not in DISTRIBUTIONS:
        raise InputError(f"unknown distribution {distribution!r:.40}", hint=f"use one of {' '.join(DISTRIBUTIONS)}")
    if min(sessions, transactions, operations) < 0 or keys < 1 or not 0 <= read_share <= 1:
        raise InputError("sizes must not be negative, there must be a key, and the read share lies between 0 and 1")
    if max(sessions * transactions * max(operations, 1), keys) >= 2**31:
        raise InputError("more than 2**31 operations or keys", hint="choose smaller sizes")
