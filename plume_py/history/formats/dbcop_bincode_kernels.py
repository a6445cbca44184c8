"""Kernels for dbcop's bincode: little endian, fixed width, each list after its 64-bit length."""

# mypy: allow-untyped-defs

# Problems that ``parse`` returns; ``dbcop.BINCODE_PROBLEMS`` has their messages.
FINE, CUT_OFF, TOO_LONG, NOT_A_BOOL, TRAILING = 0, 1, 2, 3, 4

# Minimal sizes in bytes.
PARAMETERS, LENGTH, EVENT, TXN = 40, 8, 18, 9


def load_number(buf, at):
    """Return the signed 64-bit number at ``at``, in steps that never overflow."""
    number = int(buf[at + 7])
    if number >= 128:
        number -= 256
    for i in range(6, -1, -1):
        number = (number << 8) | int(buf[at + i])
    return number


def load_length(buf, at, size):
    """Return the length of a list whose items take at least ``size`` bytes; -1: cut off, -2: longer than the file."""
    rest = len(buf) - at - LENGTH
    if rest < 0:
        return -1
    length = load_number(buf, at)
    if length < 0 or length > rest // size:
        return -2
    return length


def skip_header(buf):
    """Return the position after the parameters and the three strings, and the problem or FINE."""
    if len(buf) < PARAMETERS:
        return len(buf), CUT_OFF
    at = PARAMETERS
    for _ in range(3):
        length = load_length(buf, at, 1)
        if length < 0:
            return at, CUT_OFF if length == -1 else TOO_LONG
        at += LENGTH + length
    return at, FINE


def parse(buf, kinds, keys, values, txns, txn_session, txn_aborted):
    """Fill the columns; return (operations, transactions, sessions, problem, its position)."""
    count, txn_count = 0, 0
    at, problem = skip_header(buf)
    if problem != FINE:
        return count, txn_count, 0, problem, at
    sessions = load_length(buf, at, LENGTH)
    if sessions < 0:
        return count, txn_count, 0, CUT_OFF if sessions == -1 else TOO_LONG, at
    at += LENGTH
    for session in range(sessions):
        length = load_length(buf, at, TXN)
        if length < 0:
            return count, txn_count, sessions, CUT_OFF if length == -1 else TOO_LONG, at
        at += LENGTH
        for _ in range(length):
            events = load_length(buf, at, EVENT)
            if events < 0:
                return count, txn_count, sessions, CUT_OFF if events == -1 else TOO_LONG, at
            at += LENGTH
            end = at + events * EVENT
            if end >= len(buf):
                return count, txn_count, sessions, CUT_OFF, len(buf)
            if buf[end] > 1:
                return count, txn_count, sessions, NOT_A_BOOL, end
            aborted = 1 - int(buf[end])
            while at < end:
                write = int(buf[at])
                success = int(buf[at + 17])
                if write > 1 or success > 1:
                    return count, txn_count, sessions, NOT_A_BOOL, at if write > 1 else at + 17
                if success == 1 or (write == 1 and aborted == 1):
                    kinds[count] = write
                    keys[count] = load_number(buf, at + 1)
                    values[count] = load_number(buf, at + 9)
                    txns[count] = txn_count
                    count += 1
                at += EVENT
            txn_session[txn_count] = session
            txn_aborted[txn_count] = aborted
            txn_count += 1
            at = end + 1
    if at != len(buf):
        return count, txn_count, sessions, TRAILING, at
    return count, txn_count, sessions, FINE, at
