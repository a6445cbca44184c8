"""The byte loop of Cobra's logs: one-byte marks, each followed by big-endian 64-bit numbers."""

# mypy: allow-untyped-defs

# What ``parse`` may object to; the texts are in ``cobra.PROBLEMS``.
FINE, CUT_OFF, NOT_A_RECORD, AFTER_MARK, OUTSIDE, WRONG_END = 0, 1, 2, 3, 4, 5

# Bytes of a record that begins or ends a transaction, of a write, and of a read.
MARK, WRITE, READ = 9, 25, 33

# Bytes of a timestamp; some logs have one behind each mark.
STAMP = 8

# Write ids of the initial state: written by the initial transaction, or by nobody.
INITIAL_WRITE, NULL_WRITE = 0xBEBEEBEE, 0xDEADBEEF

# The write id that many writes share: their value hash tells them apart. UNIVERSAL marks them in ``kinds``.
UNIVERSAL_WRITE, UNIVERSAL = 0xABDDEFEE, 4

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2


def load_number(buf, at):
    """The signed 64-bit number at ``at``, in steps that never overflow."""
    number = int(buf[at])
    if number >= 128:
        number -= 256
    for i in range(at + 1, at + 8):
        number = (number << 8) | int(buf[i])
    return number


def record_size(mark):
    """How long the record is that begins with ``mark``: 'S', 'C' or 'A', 'W', 'R'; 0 if there is none such."""
    if mark == 83 or mark == 67 or mark == 65:
        return MARK
    if mark == 87:
        return WRITE
    if mark == 82:
        return READ
    return 0


def parse(buf, stamp, no_time, kinds, keys, values, txns, txn_ids, txn_status, txn_begin, txn_end):
    """Fill the columns of one log; returns (operations, transactions, problem, where it is).

    ``stamp``: how many bytes a timestamp has, 0 or STAMP; ``no_time`` stands for one that is not there.
    """
    at, count, txn_count, last = 0, 0, 0, 0
    is_open = False
    while at < len(buf):
        mark = int(buf[at])
        size = record_size(mark)
        if size == 0:
            # only timestamps stand behind a mark
            return count, txn_count, AFTER_MARK if record_size(last) == MARK else NOT_A_RECORD, at
        if size == MARK:
            size += stamp
        if at + size > len(buf):
            return count, txn_count, CUT_OFF, at
        if mark == 83:
            # a transaction that is still open has lost its outcome, and stays unknown
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
