"""Kernels for Plume text: ``w(key,value,session,txn)``, one operation per line."""

# mypy: allow-untyped-defs

import numpy as np

from plume_py.history import assemble_kernels

# Problems that ``parse`` returns; ``plume_text.PROBLEMS`` has their messages.
FINE, NOT_AN_OPERATION, NUMBER_TOO_LARGE, TWO_SESSIONS = 0, 1, 2, 3

# Bits of the flags that ``parse`` returns: negative numbers and numbers beyond 63 bits, among keys and among values.
NEGATIVE_KEY, BIG_KEY, NEGATIVE_VALUE, BIG_VALUE = 1, 2, 4, 8


def find_slot(table, numbers, secret, number):
    """Return the slot that holds ``number``, or the free slot for it."""
    mask = len(table) - 1
    slot = assemble_kernels.hash_code(number ^ secret) & mask
    while table[slot] >= 0 and numbers[table[slot]] != number:
        slot = (slot + 1) & mask
    return slot


def enlarge(table, numbers, secret, count):
    """Return a hash table of four times the size with the ``count`` entries of ``table``."""
    bigger = np.full(4 * len(table), -1, np.int32)
    for i in range(count):
        bigger[find_slot(bigger, numbers, secret, int(numbers[i]))] = i
    return bigger


def count_lines(buf):
    """Return the number of lines, with an unfinished last one."""
    lines = 1
    for i in range(len(buf)):
        if buf[i] == 10:
            lines += 1
    return lines


def parse_number(buf, at, end):
    """Parse the decimal number at ``at``: return its 64-bit pattern, the position after it, and flags.

    The position is -1 if there is no number and -2 if it is too large. Flags: 1 negative, 2 beyond 63 bits.
    ``byte ^ 48`` is at most 9 for digits only.
    """
    while at < end and buf[at] == 32:
        at += 1
    negative = at < end and buf[at] == 45
    if negative:
        at += 1
    begin = at
    number = 0
    safe = min(end, at + 18)  # 18 digits always fit
    while at < safe:
        digit = int(buf[at]) ^ 48
        if digit > 9:
            break
        number = number * 10 + digit
        at += 1
    if at == begin:
        return 0, -1, 0
    sign = 1 if negative else 0
    if at == safe and at < end:
        number, at, big = parse_last_digits(buf, at, end, number)
        if at < 0 or (big and negative):
            return 0, -2, 0
        sign |= big
    while at < end and buf[at] == 32:
        at += 1
    return -number if negative else number, at, sign


def parse_last_digits(buf, at, end, number):
    """Parse the digits from the 19th on: return the 64-bit pattern, the position after it (or -2), and the flag 2 or 0.

    The flag 2 marks a number beyond 63 bits.
    """
    big = 0
    while at < end:
        digit = int(buf[at]) ^ 48
        if digit > 9:
            break
        if big or number > 1844674407370955161 or (number == 1844674407370955161 and digit > 5):
            return 0, -2, 0
        if number < 922337203685477580 or (number == 922337203685477580 and digit <= 7):
            number = number * 10 + digit
        else:
            number = (number - 1844674407370955161) * 10 + (digit - 6)  # that is number * 10 + digit - 2**64
            big = 2
        at += 1
    return number, at, big


def parse_field(buf, at, end):
    """Parse a comma and a number, like ``parse_number``; pass on an earlier failure."""
    if at < 0:
        return 0, at, 0
    if at >= end or buf[at] != 44:
        return 0, -1, 0
    return parse_number(buf, at + 1, end)


def parse(buf, secret, kinds, keys, values, txns, txn_ids, txn_sessions, txn_lines, txn_aborted, session_ids):
    """Fill the columns; return (operations, transactions, sessions, flags, problem, its position)."""
    end = len(buf)
    txn_table = np.full(1 << 12, -1, np.int32)
    session_table = np.full(1 << 8, -1, np.int32)
    aborted = np.full(1 << 8, -1, np.int32)  # by session: the transaction of its aborted operations
    at, line, count, txn_count, session_count, named, flags = 0, 1, 0, 0, 0, 0, 0
    last_session, last_id, txn = 0, 0, -1
    named_txn = np.empty(len(txn_ids), np.int32)  # named transactions, in the order of ``txn_table``
    named_ids = np.empty(len(txn_ids), np.int64)
    while at < end:
        byte = buf[at]
        if byte == 10:
            line += 1
            at += 1
            continue
        if byte == 13 or byte == 32 or byte == 9:
            at += 1
            continue
        if byte == 35:  # '#': a comment
            while at < end and buf[at] != 10:
                at += 1
            continue
        if (byte != 114 and byte != 119) or at + 1 >= end or buf[at + 1] != 40:
            return count, txn_count, session_count, flags, NOT_AN_OPERATION, at
        start = at
        key, at, key_flags = parse_number(buf, at + 2, end)
        value, at, value_flags = parse_field(buf, at, end)
        session_id, at, session_flags = parse_field(buf, at, end)
        txn_id, at, txn_flags = parse_field(buf, at, end)
        if at < 0 or at >= end or buf[at] != 41:
            problem = NUMBER_TOO_LARGE if at == -2 else NOT_AN_OPERATION
            return count, txn_count, session_count, flags, problem, start
        if (session_flags | txn_flags) & 2:
            return count, txn_count, session_count, flags, NUMBER_TOO_LARGE, start
        at += 1
        while at < end and (buf[at] == 32 or buf[at] == 9 or buf[at] == 13):
            at += 1
        if at < end and buf[at] != 10:
            return count, txn_count, session_count, flags, NOT_AN_OPERATION, start
        flags |= key_flags | (value_flags << 2)
        if txn < 0 or txn_id != last_id or session_id != last_session:
            slot = find_slot(session_table, session_ids, secret, session_id)
            if session_table[slot] < 0:
                if 2 * session_count >= len(session_table):
                    session_table = enlarge(session_table, session_ids, secret, session_count)
                    slot = find_slot(session_table, session_ids, secret, session_id)
                    longer = np.full(len(session_table), -1, np.int32)
                    for i in range(session_count):
                        longer[i] = aborted[i]
                    aborted = longer
                session_ids[session_count] = session_id
                session_table[slot] = session_count
                session_count += 1
            session = session_table[slot]
            if txn_id == -1:
                txn = aborted[session]
            else:
                slot = find_slot(txn_table, named_ids, secret, txn_id)
                txn = -1 if txn_table[slot] < 0 else named_txn[txn_table[slot]]
            if txn < 0:
                txn = txn_count
                if txn_id == -1:
                    aborted[session] = txn
                else:
                    if 2 * named >= len(txn_table):
                        txn_table = enlarge(txn_table, named_ids, secret, named)
                        slot = find_slot(txn_table, named_ids, secret, txn_id)
                    named_ids[named] = txn_id
                    named_txn[named] = txn
                    txn_table[slot] = named
                    named += 1
                txn_ids[txn] = txn_id
                txn_sessions[txn] = session
                txn_lines[txn] = line
                txn_aborted[txn] = 1 if txn_id == -1 else 0
                txn_count += 1
            elif txn_sessions[txn] != session:
                return count, txn_count, session_count, flags, TWO_SESSIONS, start
            last_session, last_id = session_id, txn_id
        kinds[count] = 1 if byte == 119 else 0
        keys[count] = key
        values[count] = value
        txns[count] = txn
        count += 1
    return count, txn_count, session_count, flags, FINE, 0
