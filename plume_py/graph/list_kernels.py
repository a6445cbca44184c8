"""Kernels for list reads: what a list shows beyond its last element (design: lists fix the version order)."""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.graph import row_kernels

# Rows of ``counts`` and ``examples``.
THIN_AIR_ELEMENT, ABORTED_ELEMENT, OWN_APPENDS_LOST, DUPLICATE, INCOMPATIBLE = 0, 1, 2, 3, 4


def note(counts, examples, pattern, i):
    """Count an instance, and keep its list if there is room."""
    if counts[pattern] < examples.shape[1]:
        examples[pattern, counts[pattern]] = i
    counts[pattern] += 1


def find_longest(list_op, list_judged, starts, op_key, longest):
    """longest[x] := the longest judged list read of key x. ``longest`` is -1 per key."""
    for i in range(len(list_op)):
        if list_judged[i]:
            x = op_key[list_op[i]]
            best = longest[x]
            if best < 0 or starts[i + 1] - starts[i] > starts[best + 1] - starts[best]:
                longest[x] = i


def is_prefix(starts, items, i, j):
    """Is list i a prefix of list j (which is at least as long)?"""
    for k in range(starts[i + 1] - starts[i]):
        if items[starts[i] + k] != items[starts[j] + k]:
            return False
    return True


def all_live(starts, items, source, i):
    """Were all elements of list i appended by live transactions?"""
    for k in range(starts[i], starts[i + 1]):
        if source[items[k]] < 0:
            return False
    return True


def loses_own_appends(o, begin, last, op_kind, op_key, op_version, starts, items, i):
    """The list ends in an own append: then all own appends so far must be its end, in order."""
    x = op_key[o]
    at = starts[i + 1] - 1
    own_last = False
    for p in range(o - 1, begin - 1, -1):
        if op_kind[p] & 1 and op_key[p] == x:
            own_last = own_last or op_version[p] == last
    if not own_last:
        return False
    for p in range(o - 1, begin - 1, -1):
        if op_kind[p] & 1 and op_key[p] == x:
            if at < starts[i] or items[at] != op_version[p]:
                return True
            at -= 1
    return False


def add(edges, count, a, b, row):
    """``edges`` with one more row, enlarged if need be."""
    edges = row_kernels.with_room(edges, count)
    edges[count, 0] = a
    edges[count, 1] = b
    edges[count, 2] = row
    return edges


def check_lists(
    list_op, list_txn, list_judged, starts, items, op_kind, op_key, op_version, txn_start, source, longest,
    counts, examples,
):  # fmt: skip
    """Count what is wrong with lists; returns the version order they fix.

    Rows (t1, t2, -2 - i): list i shows an append of t1 right before one of t2.
    """
    edges, count = np.empty((64, 3), np.int32), 0
    seen = np.full(len(source), -1, np.int32)
    for i in range(len(list_op)):
        if not list_judged[i]:
            continue
        o = list_op[i]
        x = op_key[o]
        thin_air, aborted, twice = False, False, False
        for k in range(starts[i], starts[i + 1]):
            v = items[k]
            if k + 1 < starts[i + 1]:  # the last element is resolved like any read
                thin_air = thin_air or source[v] == -2 or source[v] == -1
                aborted = aborted or source[v] == -3
            twice = twice or seen[v] == i
            seen[v] = i
        if thin_air:
            note(counts, examples, THIN_AIR_ELEMENT, i)
        if aborted:
            note(counts, examples, ABORTED_ELEMENT, i)
        if twice:
            note(counts, examples, DUPLICATE, i)
        if starts[i + 1] > starts[i] and loses_own_appends(
            o, txn_start[list_txn[i]], items[starts[i + 1] - 1], op_kind, op_key, op_version, starts, items, i
        ):
            note(counts, examples, OWN_APPENDS_LOST, i)
        best = longest[x]
        compatible = is_prefix(starts, items, i, best)
        if not compatible:
            note(counts, examples, INCOMPATIBLE, i)
        covered = i != best and compatible and all_live(starts, items, source, best)
        if not covered and all_live(starts, items, source, i):
            for k in range(starts[i] + 1, starts[i + 1]):
                a, b = source[items[k - 1]], source[items[k]]
                if a != b:
                    edges = add(edges, count, a, b, -2 - i)
                    count += 1
    return edges[:count]
