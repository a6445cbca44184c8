"""Kernels that resolve reads, find the patterns of single transactions (TAP a-f and j), and list the writers of keys.

``source`` of a version is its participating writer (>= 0), INITIAL, THIN_AIR or ABORTED.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import numpy as np

from plume_py.checking.graph.records import Columns, ExternalReads, Findings, Versions, Writers
from plume_py.history.model import INITIAL

THIN_AIR, ABORTED = -2, -3

# Rows of ``counts`` and ``examples``: one per pattern letter a b c d e f j.
A, B, C, D, E, F, J = 0, 1, 2, 3, 4, 5, 6


def mark_final_writes(columns: Columns, participates, stamp, version_final):
    """version_final[v] := 1 for the last write of each key in each participating transaction.

    ``stamp`` is -1 per key.
    """
    op_kind, op_key, op_version, txn_start = columns.op_kind, columns.op_key, columns.op_version, columns.txn_start
    for t in range(len(txn_start) - 1):
        if participates[t]:
            for o in range(txn_start[t + 1] - 1, txn_start[t] - 1, -1):
                if op_kind[o] & 1 and stamp[op_key[o]] != t:
                    stamp[op_key[o]] = t
                    version_final[op_version[o]] = 1


def note(counts, examples, pattern, o):
    """Count an instance, and keep its operation if there is room."""
    if counts[pattern] < examples.shape[1]:
        examples[pattern, counts[pattern]] = o
    counts[pattern] += 1


def resolve(
    columns: Columns, keys, judged, versions: Versions, list_op, list_last, reads: ExternalReads, findings: Findings
):
    """Fill the external reads (operation, key, source); return their number.

    Patterns of lists are found by list_kernels. Here a list counts as a read of list_last, its last element by others.
    """
    op_kind, op_key, op_version, txn_start = columns.op_kind, columns.op_key, columns.op_version, columns.txn_start
    writer, source, version_final = versions
    counts, examples = findings
    written = np.zeros(len(writer), np.uint8)
    own_stamp, own_version = np.full(keys, -1, np.int32), np.empty(keys, np.int32)
    seen_stamp, seen_source = np.full(keys, -1, np.int32), np.empty(keys, np.int32)
    seen_twice = np.full(keys, -1, np.int32)
    count = 0
    at = 0  # the next list
    for t in range(len(txn_start) - 1):
        reads.start[t] = count
        if not judged[t]:
            continue
        for o in range(txn_start[t], txn_start[t + 1]):
            x = op_key[o]
            v = op_version[o]
            if op_kind[o] & 1:
                own_stamp[x] = t
                own_version[x] = v
                written[v] = 1
                continue
            if op_kind[o] == 2:
                while list_op[at] < o:
                    at += 1
                w = source[list_last[at]] if list_last[at] >= 0 else INITIAL
                if w <= THIN_AIR:
                    continue
            else:
                if writer[v] == t:
                    if not written[v]:
                        note(counts, examples, C, o)
                    elif own_version[x] != v:
                        note(counts, examples, E, o)
                    continue
                w = source[v]
                if w <= THIN_AIR:
                    note(counts, examples, A if w == THIN_AIR else B, o)
                    continue
                if w >= 0 and not version_final[v]:
                    note(counts, examples, F, o)
                if own_stamp[x] == t:
                    note(counts, examples, D, o)
            if seen_stamp[x] != t:
                seen_stamp[x] = t
                seen_source[x] = w
            elif seen_source[x] != w and seen_twice[x] != t:
                seen_twice[x] = t
                note(counts, examples, J, o)
            reads.op[count] = o
            reads.key[count] = x
            reads.source[count] = w
            count += 1
    reads.start[len(txn_start) - 1] = count
    return count


def count_key_writers(columns: Columns, participates, version_final, last, starts):
    """starts[x + 1] := the number of participating writers of x. ``last`` is -1 per key."""
    op_kind, op_key, op_version, txn_start = columns.op_kind, columns.op_key, columns.op_version, columns.txn_start
    for t in range(len(txn_start) - 1):
        if participates[t]:
            for o in range(txn_start[t], txn_start[t + 1]):
                x = op_key[o]
                if op_kind[o] & 1 and version_final[op_version[o]] and last[x] != t:
                    last[x] = t
                    starts[x + 1] += 1


def list_key_writers(columns: Columns, participates, version_final, last, at, writers):
    """List the writers of x, ascending, from at[x] on (``at`` is consumed). ``last`` is -1 per key."""
    op_kind, op_key, op_version, txn_start = columns.op_kind, columns.op_key, columns.op_version, columns.txn_start
    for t in range(len(txn_start) - 1):
        if participates[t]:
            for o in range(txn_start[t], txn_start[t + 1]):
                x = op_key[o]
                if op_kind[o] & 1 and version_final[op_version[o]] and last[x] != t:
                    last[x] = t
                    writers[at[x]] = t
                    at[x] += 1


def group_writers(writers: Writers, txn_session, key_group, group_start, group_session):
    """Group the writers of each key by session; return the number of groups."""
    key_start, key_writers = writers
    count = 0
    for x in range(len(key_start) - 1):
        key_group[x] = count
        for i in range(key_start[x], key_start[x + 1]):
            s = txn_session[key_writers[i]]
            if i == key_start[x] or s != group_session[count - 1]:
                group_start[count] = i
                group_session[count] = s
                count += 1
    key_group[len(key_start) - 1] = count
    group_start[count] = len(key_writers)
    return count
