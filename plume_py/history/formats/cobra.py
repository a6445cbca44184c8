"""Read Cobra logs: a folder of *.log, one session per log, in the order of the numbers in their names.

The value of an operation is its write id, which is unique; the hash of the written value is ignored. Exceptions:

- Many writes share the write id 0xabddefee. Its values are pairs, shown as ``0xabddefee:HASH``.
- The write ids 0xbebeebee and 0xdeadbeef both mean the initial state, shown as 0.

A transaction that ends with 'A' is aborted. A transaction without an end has an unknown outcome. Keys are unsigned
64-bit hashes. Logs may have a timestamp after each 'S', 'C' and 'A', in an undocumented unit.
"""

import os
from typing import NamedTuple

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.formats import cobra_kernels as kernels
from plume_py.history.formats.reading import display, log_names, open_log
from plume_py.history.model import Bools, Int8s, Int32s, Int64s, Labels
from plume_py.history.source import Source
from plume_py.history.times import NO_TIME, Times
from plume_py.history.value_codes import Atoms

LOGS = r".*\.log"

PROBLEMS = {
    kernels.CUT_OFF: ("the file ends inside a record", "the log was cut off"),
    kernels.NOT_A_RECORD: ("not a record", "records begin with S, W, R, C or A"),
    kernels.AFTER_MARK: ("not a record", "a log has timestamps after all of S, C and A, or after none"),
    kernels.OUTSIDE: ("a record outside of any transaction", "a transaction begins with S"),
    kernels.WRONG_END: ("the end of another transaction than the one that began", "S and C must have the same id"),
}


class _Log(NamedTuple):
    """Columns of one session: four of its operations, then four of its transactions."""

    kinds: Int8s
    keys: Int64s
    values: Int64s
    txns: Int32s
    ids: Int64s
    status: Int8s
    begin: Int64s
    end: Int64s

    def cut(self, ops: int, txns: int) -> "_Log":
        """Return copies of the filled part, so that the memory of the unfilled part is freed."""
        return _Log(
            self.kinds[:ops].copy(),
            self.keys[:ops].copy(),
            self.values[:ops].copy(),
            self.txns[:ops].copy(),
            self.ids[:txns].copy(),
            self.status[:txns].copy(),
            self.begin[:txns].copy(),
            self.end[:txns].copy(),
        )


def read(source: Source) -> RawColumns:
    """Return the raw columns of a folder of Cobra logs."""
    if not source.is_folder:
        raise InputError("not a folder", hint="a Cobra history is a folder of *.log, one per session")
    names = log_names(source.path, LOGS)
    if not names:
        raise InputError("no *.log in this folder", hint="a Cobra history is a folder of *.log, one per session")
    dispatch.prepare(sum(_size(os.path.join(source.path, name)) for name in names), kernels)
    logs = []
    for name in names:
        with open_log(source.path, name) as log:
            logs.append(_read_log(log))
    return _join(logs, [display(name).removesuffix(".log") for name in names])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # reported when the log is opened
        return 0


def _read_log(log: Source) -> _Log:
    content = log.content()
    most_ops, most_txns = len(content) // kernels.WRITE, len(content) // kernels.MARK
    columns = _Log(
        np.empty(most_ops, np.uint8),
        np.empty(most_ops, np.int64),
        np.empty(most_ops, np.int64),
        np.empty(most_ops, np.int32),
        np.empty(most_txns, np.int64),
        np.empty(most_txns, np.uint8),
        np.empty(most_txns, np.int64),
        np.empty(most_txns, np.int64),
    )
    if not content:
        return columns
    buf = dispatch.byte_buffer(content, kernels)
    ops, txns, problem, at = kernels.parse(buf, 0, NO_TIME, *columns)
    if problem == kernels.AFTER_MARK:
        stamped = kernels.parse(buf, kernels.STAMP, NO_TIME, *columns)
        if not stamped[2] or stamped[3] > at:  # else the log has no timestamps and another problem
            ops, txns, problem, at = stamped
    if problem:
        what, hint = PROBLEMS[problem]
        raise InputError(what, where=f"byte {at}", hint=hint)
    return columns.cut(ops, txns)


def _join(logs: list[_Log], names: list[str]) -> RawColumns:
    lengths = [len(log.ids) for log in logs]
    firsts = np.concatenate(([0], np.cumsum(lengths)))
    keys = np.concatenate([log.keys for log in logs])
    kinds = np.concatenate([log.kinds for log in logs])
    values, initial, value_atoms = _values(np.concatenate([log.values for log in logs]), kinds >= kernels.UNIVERSAL)
    ids = np.concatenate([log.ids for log in logs])
    return RawColumns(
        op_kind=kinds & np.uint8(1),
        op_key=keys,
        op_value=values,
        op_txn=np.concatenate([log.txns + np.int32(first) for log, first in zip(logs, firsts, strict=False)]),
        txn_session=np.repeat(np.arange(len(logs), dtype=np.int32), lengths),
        txn_status=np.concatenate([log.status for log in logs]),
        sessions=len(logs),
        times=Times(np.concatenate([log.begin for log in logs]), np.concatenate([log.end for log in logs])),
        initial=initial,
        keys=Atoms.of_bit_patterns(keys),
        values=value_atoms,
        # repeated ids are not names
        txn_label=Labels(ids, prefix="T") if len(np.unique(ids)) == len(ids) else Labels(prefix="T"),
        session_label=Labels(tuple(names)),
    )


def _values(values: Int64s, universal: Bools) -> tuple[Int64s, int, Atoms]:
    """Return the codes of the values, the code of the initial value, and the spelling of all codes.

    ``values`` holds hashes where ``universal`` is set, and write ids elsewhere. Write ids are their own codes unless
    there are hashes, because a hash may equal an id.
    """
    ids = values[~universal]
    initial = _replace_initial_id(ids)
    if len(ids) == len(values):
        return ids, initial, Atoms.of_bit_patterns(ids)
    distinct, hashes = np.union1d(ids, [initial]), np.unique(values[universal])
    spelling = Atoms.of_bit_patterns(ids)
    codes = np.empty(len(values), np.int64)
    codes[~universal] = np.searchsorted(distinct, ids)
    codes[universal] = len(distinct) + np.searchsorted(hashes, values[universal])
    pairs = (f"0x{kernels.UNIVERSAL_WRITE:x}:{value}" for value in hashes.astype(np.uint64).tolist())
    table = (*map(spelling.spell, distinct.tolist()), *pairs)
    return codes, int(np.searchsorted(distinct, initial)), Atoms(table)


def _replace_initial_id(values: Int64s) -> int:
    """Replace the initial write id by 0, unless 0 is also a write id; return the code of the initial value."""
    if np.any(values == 0):
        return kernels.INITIAL_WRITE
    values[values == kernels.INITIAL_WRITE] = 0
    return 0
