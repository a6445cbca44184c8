"""Kernel for Cobra's logs: one-byte marks, each followed by big-endian 64-bit numbers."""

# mypy: allow-untyped-defs

# Problems that ``parse`` returns; ``cobra.PROBLEMS`` has their messages.
FINE, CUT_OFF, NOT_A_RECORD, AFTER_MARK, OUTSIDE, WRONG_END = 0, 1, 2, 3, 4, 5

# Sizes in bytes of the begin or end of a transaction, of a write, and of a read.
MARK, WRITE, READ = 9, 25, 33

# Size in bytes of a timestamp; some logs have one after each begin and end.
STAMP = 8

# Write ids of the initial state: of the initial transaction, and of no transaction.
INITIAL_WRITE, NULL_WRITE = 0xBEBEEBEE, 0xDEADBEEF

# The write id that many writes share; their value hashes differ. UNIVERSAL marks these writes in ``kinds``.
UNIVERSAL_WRITE, UNIVERSAL = 0xABDDEFEE, 4

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2


def load_number(buf, at):
    """Return the signed 64-bit number at ``at``, in steps that never overflow."""
    number = int(buf[at])
    if number >= 128:
        number -= 256
    for i in range(at + 1, at + 8):
        number = (number << 8) | int(buf[i])
    return number


def record_size(mark):
    """Return the size of the record that begins with ``mark`` ('S', 'C', 'A', 'W' or 'R'); 0 for another byte."""
    if mark == 83 or mark == 67 or mark == 65:
        return MARK
    if mark == 87:
        return WRITE
    if mark == 82:
        return READ
    return 0


def parse(buf, stamp, no_time, kinds, keys, values, txns, txn_ids, txn_status, txn_begin, txn_end):
    """Fill the columns of one log; return (operations, transactions, problem, its position).

    ``stamp`` is the size of a timestamp, 0 or STAMP; ``no_time`` replaces a missing timestamp.
    """
    at, count, txn_count, last = 0, 0, 0, 0
    is_open = False
    while at < len(buf):
        mark = int(buf[at])
        size = record_size(mark)
        if size == 0:
            # after a begin or end, this may be a timestamp
            return count, txn_count, AFTER_MARK if record_size(last) == MARK else NOT_A_RECORD, at
        if size == MARK:
            size += stamp
        if at + size > len(buf):
            return count, txn_count, CUT_OFF, at
        if mark == 83:
            # an open transaction has lost its outcome and stays unknown
            txn_ids[txn_count] = load_number(buf, at + 1)
            txn_status[txn_count] = UNKNOWN
            txn_begin[txn_count] = load_number(buf, at + MARK) if stamp else no_time
            txn_end[txn_count] = no_time
            txn_count += 1
            is_open = True
        elif not is_open:
            return count, txn_count, OUTSIDE, at
        elif size == MARK + stamp:
            if load_number(buf, at + 1) != txn_ids[txn_count - 1]:
                return count, txn_count, WRONG_END, at
            txn_status[txn_count - 1] = COMMITTED if mark == 67 else ABORTED
            if stamp:
                txn_end[txn_count - 1] = load_number(buf, at + MARK)
            is_open = False
        else:
            first = at + 1 if mark == 87 else at + 9  # a read names the writing transaction first
            write_id = load_number(buf, first)
            kinds[count] = 1 if mark == 87 else 0
            keys[count] = load_number(buf, first + 8)
            values[count] = INITIAL_WRITE if write_id == NULL_WRITE else write_id
            if write_id == UNIVERSAL_WRITE:
                kinds[count] |= UNIVERSAL
                values[count] = load_number(buf, first + 16)
            txns[count] = txn_count - 1
            count += 1
        last = mark
        at += size
    return count, txn_count, FINE, at
