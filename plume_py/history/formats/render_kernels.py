"""Kernels that write operations as bytes. A blob is a pair (data, starts): piece i is data[starts[i]:starts[i + 1]]."""

# mypy: allow-untyped-defs


def rendered_size(first, last, txn_start, kinds, keys, values, tables):
    """Return the number of bytes that ``render`` writes for the transactions first .. last - 1."""
    (
        (_, open_at),
        (_, key_at),
        (_, middle_at),
        (_, value_at),
        (_, close_at),
        (_, comma_at),
        (_, head_at),
        (_, tail_at),
    ) = tables
    middle = middle_at[1] - middle_at[0]
    comma = comma_at[1] - comma_at[0]
    size = 0
    for t in range(first, last):
        size += head_at[t + 1] - head_at[t] + tail_at[t + 1] - tail_at[t]
        begin, end = txn_start[t], txn_start[t + 1]
        close = close_at[t + 1] - close_at[t]
        for o in range(begin, end):
            size += open_at[kinds[o] + 1] - open_at[kinds[o]] + key_at[keys[o] + 1] - key_at[keys[o]]
            size += middle + value_at[values[o] + 1] - value_at[values[o]] + close
        if end > begin:
            size += comma * (end - begin - 1)
    return size


def put(out, at, data, starts, piece):
    """Copy one piece of a blob to out[at:]; return the position after it."""
    for i in range(starts[piece], starts[piece + 1]):
        out[at] = data[i]
        at += 1
    return at


def render(first, last, txn_start, kinds, keys, values, tables, out):
    """Write the transactions first .. last - 1 and return the end position.

    A transaction is a head, then per operation open, key, middle, value and close, with commas between, then a tail.
    """
    (opens, open_at), (names, key_at), (middle, middle_at), (spelled, value_at) = (
        tables[0],
        tables[1],
        tables[2],
        tables[3],
    )
    (closes, close_at), (comma, comma_at), (heads, head_at), (tails, tail_at) = (
        tables[4],
        tables[5],
        tables[6],
        tables[7],
    )
    at = 0
    for t in range(first, last):
        at = put(out, at, heads, head_at, t)
        begin, end = txn_start[t], txn_start[t + 1]
        for o in range(begin, end):
            if o > begin:
                at = put(out, at, comma, comma_at, 0)
            at = put(out, at, opens, open_at, kinds[o])
            at = put(out, at, names, key_at, keys[o])
            at = put(out, at, middle, middle_at, 0)
            at = put(out, at, spelled, value_at, values[o])
            at = put(out, at, closes, close_at, t)
        at = put(out, at, tails, tail_at, t)
    return at
