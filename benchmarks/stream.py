"""Writes a generated history as JSON Lines, its transactions in some order of arrival.

python -m benchmarks.stream TRANSACTIONS ORDER FILE, where ORDER says how they arrive: as they
"commit"; "nearly" so, each up to a hundred transactions later; or by "sessions", one after the other, so that half of
all readers come before their writers.
"""

import sys
from collections.abc import Iterator

import numpy as np

from plume_py.base.atomic_files import write_atomically
from plume_py.history.generate import commit_order, generate
from plume_py.history.model import History, Int32s

SESSIONS, OPERATIONS, TRANSACTIONS_PER_KEY = 50, 10, 10
DELAY = 100


def arrivals(order: str, transactions: int) -> Int32s:
    """The numbers of the transactions as they arrive."""
    committed = commit_order(SESSIONS, transactions // SESSIONS)
    if order == "sessions":
        return np.sort(committed)
    if order == "commit":
        return committed
    arrival = np.empty(len(committed))
    arrival[committed] = np.arange(len(committed)) + np.random.default_rng(1).uniform(0, DELAY, len(committed))
    by_session = np.maximum.accumulate(arrival.reshape(SESSIONS, -1), axis=1)  # nobody overtakes in the own session
    return np.argsort(by_session.reshape(-1), kind="stable").astype(np.int32)


def lines(history: History, order: Int32s) -> Iterator[bytes]:
    """JSON Lines."""
    kinds = history.op_kind.tolist()
    keys = history.key_code[history.op_key].tolist()
    values = history.version_value[history.op_version].tolist()
    start, session = history.txn_start.tolist(), history.txn_session.tolist()
    yield b'{"initial":0}\n'
    for t in order.tolist():
        ops = ",".join(f'["{"rw"[kinds[o]]}",{keys[o]},{values[o]}]' for o in range(start[t], start[t + 1]))
        yield f'{{"session":{session[t]},"ops":[{ops}]}}\n'.encode()


def main() -> None:
    """The command line."""
    transactions, order, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    shape = {"sessions": SESSIONS, "transactions": transactions // SESSIONS, "operations": OPERATIONS}
    history = generate("SER", **shape, keys=transactions // TRANSACTIONS_PER_KEY)
    write_atomically(path, lines(history, arrivals(order, transactions)))


if __name__ == "__main__":
    main()
