"""Kernel that turns EDN into JSON: every top-level form becomes one line.

If the first form is a vector or a list, it encloses the forms. Between calls the kernel keeps only a position between
two forms; a form that the block cuts off is read again in the next block.
"""

# mypy: allow-untyped-defs

import numpy as np

# Problems that ``transduce`` returns; ``edn.PROBLEMS`` has their messages. CUT_OFF: the form continues after the block.
FINE, CUT_OFF, UNCLOSED, UNCLOSED_STRING, STRAY_CLOSE, MISMATCHED, ODD_MAP, DANGLING, TOO_DEEP = range(9)
AFTER_END, COLLECTION_KEY, BAD_BYTE, BAD_NUMBER, BAD_KEYWORD, BAD_ESCAPE, BAD_CHARACTER, BAD_DISPATCH = range(9, 17)
SAME_KEY, TOO_MANY_KEYS = 17, 18

# Classes of bytes; symbols, keywords and numbers consist of the classes from SYMBOL on.
UNKNOWN, SPACE, NEWLINE, COMMENT, OPEN, CLOSE, QUOTE, BACKSLASH = range(8)
SYMBOL, DIGIT, SIGN, COLON, HASH, APOSTROPHE = range(8, 14)

# Kinds of frames, some of them a closing bracket. TAG and DISCARD wait for the form that they apply to.
ROOT, TAG, DISCARD, MAP, SET, VECTOR, LIST = 0, 1, 2, 125, 126, 93, 41
MAX_DEPTH = 64

# Number of keys of a map that are compared; an operation has no more.
MAX_KEYS = 64

# Mark before the text of a character, a symbol, or a number that JSON does not have; see ``edn_atoms``.
EXACT = 127
# Maximal length of a number that is kept as text.
MAX_TEXT = 4000
# The largest number that is converted; larger ones are kept as text.
LARGEST = 2**63 - 1

# Modes: before the first form; forms without enclosure; after the enclosure. Inside it: its closing bracket.
NOTHING_YET, BARE, CLOSED = 0, 1, 2

INTEGER, DECIMAL, AS_TEXT, NO_NUMBER = range(4)

# Results of ``fold`` for names with a meaning.
NAME_NIL, NAME_TRUE, NAME_FALSE = 0x6E696C, 0x74727565, 0x66616C7365
NAME_NEWLINE, NAME_SPACE, NAME_TAB = 0x6E65776C696E65, 0x7370616365, 0x746162
NAME_RETURN, NAME_FORMFEED = 0x72657475726E, 0x666F726D66656564
NAME_BACKSPACE = 0x61636B7370616365  # without its first letter, which would be the ninth

GROWTH, MARGIN = 6, 16  # no byte of EDN becomes more of JSON than a control character in a string: \u001f


def all_hex(buf, at, end):
    """Return whether ``buf[at:end]`` consists of at least one hexadecimal digit and nothing else."""
    for i in range(at, end):
        if not (48 <= buf[i] <= 57 or 65 <= buf[i] <= 70 or 97 <= buf[i] <= 102):
            return False
    return at < end


def skip_digits(buf, at, end):
    """Return the position after the decimal digits at ``at``."""
    while at < end and 48 <= buf[at] <= 57:
        at += 1
    return at


def classify_number(buf, at, end):
    """Return the kind of the number ``buf[at:end]`` (without sign), and the end of the part that JSON keeps."""
    i = skip_digits(buf, at, end)
    if buf[at] == 48 and i - at > 1:
        return NO_NUMBER, end
    if i + 1 == end and buf[i] == 78:  # N
        return INTEGER, i
    if i + 1 < end and buf[i] == 47:  # a ratio
        is_zero = True
        for digit in buf[i + 1 : end]:
            is_zero = is_zero and digit == 48
        return AS_TEXT if skip_digits(buf, i + 1, end) == end and not is_zero else NO_NUMBER, end
    kind = INTEGER
    if i < end and buf[i] == 46:
        kind = DECIMAL if i + 1 < end and 48 <= buf[i + 1] <= 57 else NO_NUMBER
        i = skip_digits(buf, i + 1, end)
    if i < end and buf[i] in (69, 101):
        i += 2 if i + 1 < end and buf[i + 1] in (43, 45) else 1
        kind = DECIMAL if kind != NO_NUMBER and i < end and 48 <= buf[i] <= 57 else NO_NUMBER
        i = skip_digits(buf, i, end)
    if i + 1 == end and buf[i] == 77:  # M: more digits than a float has may matter
        return AS_TEXT if kind != NO_NUMBER else NO_NUMBER, end
    return kind if i == end else NO_NUMBER, end


def digit_value(byte):
    """Return the value of a digit in a base of up to 36; 36 for other bytes."""
    if 48 <= byte <= 57:
        return int(byte) - 48
    if 65 <= byte <= 90:
        return int(byte) - 55
    return int(byte) - 87 if 97 <= byte <= 122 else 36


def radix(buf, at, end):
    """Return the base of the integer ``buf[at:end]`` (without sign) and the span of its digits; base 10 by default."""
    i = skip_digits(buf, at, end)
    if buf[at] == 48 and end - at > 1:
        stop = end - 1 if buf[end - 1] == 78 else end  # N
        if buf[at + 1] in (88, 120):
            return 16, at + 2, stop
        if i == stop and i - at > 1:
            return 8, at + 1, stop
    elif i < end and buf[i] in (82, 114) and i - at <= 2:
        return int(buf[at]) - 48 if i - at == 1 else 10 * int(buf[at]) + int(buf[at + 1]) - 528, i + 1, end
    return 10, at, end


def put_byte(byte, out, pos):
    """Append one byte to ``out``. A character of several bytes takes several calls."""
    if byte < 32:
        low = byte & 15
        for i, part in enumerate((92, 117, 48, 48, 48 + (byte >> 4), low + (48 if low < 10 else 87))):
            out[pos + i] = part
        return pos + 6
    if byte in (34, 92):
        out[pos] = 92
        pos += 1
    out[pos] = byte
    return pos + 1


def put_copy(buf, at, end, out, pos):
    """Copy ``buf[at:end]``; return the position after it."""
    for i in range(at, end):
        out[pos] = buf[i]
        pos += 1
    return pos


def put_quoted(buf, at, end, out, pos):
    """Write a token as a JSON string; no byte of a token needs an escape."""
    out[pos] = 34
    pos = put_copy(buf, at, end, out, pos + 1)
    out[pos] = 34
    return pos + 1


def may_look_like_other_atom(buf, at, stop):
    """Return whether the string whose content begins at ``at`` may look like another atom, a vector or a set."""
    if at + 5 < stop and buf[at] in (102, 116):
        end = at + (5 if buf[at] == 102 else 4)
        return buf[end] == 34 and fold(buf, at, end) in (NAME_TRUE, NAME_FALSE)
    # : [ # - ' digits, and the escapes, which may hide these; the marks themselves
    return at < stop and (buf[at] in (0, 35, 39, 45, 58, 91, 92, EXACT) or 48 <= buf[at] <= 57)


def put_string(buf, at, stop, out, pos):
    """Copy the string at ``at`` as a JSON string, with a mark if it may look like another atom.

    Return (next position in buf, next position in out, newlines, problem).
    """
    out[pos] = 34
    at, pos, newlines = at + 1, pos + 1, 0
    if may_look_like_other_atom(buf, at, stop):
        pos = put_byte(0, out, pos)
    while at < stop:
        byte = buf[at]
        if byte == 34:
            out[pos] = 34
            return at + 1, pos + 1, newlines, FINE
        if byte == 92:
            if at + 1 >= stop:
                break
            letter = buf[at + 1]
            size = 2
            if letter == 117:
                if at + 6 > stop:
                    break
                if not all_hex(buf, at + 2, at + 6):
                    return at, pos, newlines, BAD_ESCAPE
                size = 6
            elif letter not in (34, 92, 98, 102, 110, 114, 116):
                return at, pos, newlines, BAD_ESCAPE
            pos = put_copy(buf, at, at + size, out, pos)
            at += size
        else:
            newlines += 1 if byte == 10 else 0
            pos = put_byte(byte, out, pos)
            at += 1
    return stop, pos, newlines, CUT_OFF


def fold(buf, at, end):
    """Return up to eight ASCII bytes as one number for comparison; -1 if there are more."""
    if end - at > 8 or buf[at] >= 128:
        return -1
    number = 0
    for i in range(at, end):
        number = number * 256 + buf[i]
    return number


def named_character(buf, at, end):
    """Return the byte that a name like ``newline`` means, or -1."""
    name = fold(buf, at, end)
    for known, byte in ((NAME_NEWLINE, 10), (NAME_SPACE, 32), (NAME_TAB, 9), (NAME_RETURN, 13), (NAME_FORMFEED, 12)):
        if name == known:
            return byte
    if buf[at] == 98 and fold(buf, at + 1, end) == NAME_BACKSPACE:
        return 8
    return -1


def put_character(buf, at, end, out, pos):
    """Write the character ``buf[at:end]`` (without its backslash) as a marked JSON string.

    Return the position after it, or -1. After the mark follow a backslash and the character itself, whatever its name.
    """
    first = buf[at]
    size = end - at
    for i, part in enumerate((34, EXACT, 92, 92)):
        out[pos + i] = part
    pos += 4
    if size > 1 and first >= 0xC0:
        if size != (2 if first < 0xE0 else 3 if first < 0xF0 else 4):
            return -1
        pos = put_copy(buf, at, end, out, pos)
    elif size == 1:
        pos = put_byte(first, out, pos)
    elif size == 5 and first == 117 and all_hex(buf, at + 1, end):
        out[pos] = 92
        pos = put_copy(buf, at, end, out, pos + 1)
    else:
        named = named_character(buf, at, end)
        if named < 0:
            return -1
        pos = put_byte(named, out, pos)
    out[pos] = 34
    return pos + 1


def put_exact(buf, at, end, out, pos):
    """Write a token as a JSON string with the mark EXACT; no byte of it needs an escape."""
    out[pos] = 34
    out[pos + 1] = EXACT
    pos = put_copy(buf, at, end, out, pos + 2)
    out[pos] = 34
    return pos + 1


def put_radix(buf, at, end, out, pos):
    """Write the integer ``buf[at:end]``, hexadecimal, octal or with a base; return the position after it, or -1."""
    signed = 1 if buf[at] == 43 or buf[at] == 45 else 0
    base, first, stop = radix(buf, at + signed, end)
    if not 2 <= base <= 36 or first == stop:
        return -1
    number = 0
    for i in range(first, stop):
        digit = digit_value(buf[i])
        if digit >= base:
            return -1
        number = number * base + digit if 0 <= number <= (LARGEST - digit) // base else -1
    if number < 0:
        return put_exact(buf, at, stop, out, pos) if end - at <= MAX_TEXT else -1
    if number and buf[at] == 45:
        out[pos] = 45
        pos += 1
    size, above = 1, number // 10
    while above:
        size += 1
        above //= 10
    for i in range(pos + size - 1, pos - 1, -1):
        out[i] = 48 + number % 10
        number //= 10
    return pos + size


def put_number(buf, at, end, is_key, out, pos):
    """Write the number ``buf[at:end]`` as JSON; return the position after it, or -1."""
    signed = 1 if buf[at] == 43 or buf[at] == 45 else 0
    if radix(buf, at + signed, end)[0] != 10:
        if not is_key:
            return put_radix(buf, at, end, out, pos)
        out[pos] = 34
        pos = put_radix(buf, at, end, out, pos + 1)
        out[pos] = 34
        return pos + 1 if pos >= 0 else -1
    kind, keep = classify_number(buf, at + signed, end)
    if kind == NO_NUMBER:
        return -1
    at += 1 if buf[at] == 43 else 0
    if kind == AS_TEXT:
        return put_exact(buf, at, keep, out, pos) if keep - at <= MAX_TEXT else -1
    return put_quoted(buf, at, keep, out, pos) if is_key else put_copy(buf, at, keep, out, pos)


def put_symbol(buf, at, end, is_key, out, pos):
    """Write a symbol as null, true, false or a marked string."""
    name = -1 if is_key else fold(buf, at, end)
    if name == NAME_NIL:
        for i, letter in enumerate((110, 117, 108, 108)):
            out[pos + i] = letter
        return pos + 4
    if name in (NAME_TRUE, NAME_FALSE):
        return put_copy(buf, at, end, out, pos)
    return put_exact(buf, at, end, out, pos)


def is_same_key(out, keys, count, begin, end):
    """Return whether ``out[begin:end]`` is one of the first ``count`` keys of a map, whose spans are in ``keys``."""
    for k in range(count):
        at = int(keys[k, 0])
        if int(keys[k, 1]) - at == end - begin:
            i = begin
            while i < end and out[i] == out[at + i - begin]:
                i += 1
            if i == end:
                return True
    return False


def put_token(buf, at, end, kind, after, is_key, out, pos):
    """Write the token ``buf[at:end]``; return (position after it, problem if that is negative).

    ``kind`` and ``after`` are the classes of its first two bytes.
    """
    if kind == DIGIT or (kind == SIGN and after == DIGIT):
        return put_number(buf, at, end, is_key, out, pos), BAD_NUMBER
    if kind == COLON:
        named = end - at > 1 and after != COLON
        return put_quoted(buf, at, end, out, pos) if named else -1, BAD_KEYWORD
    if kind in (SYMBOL, SIGN):
        return put_symbol(buf, at, end, is_key, out, pos), FINE
    if kind == BACKSLASH:
        named = end - at > 1 and after not in (SPACE, NEWLINE)
        return put_character(buf, at + 1, end, out, pos) if named else -1, BAD_CHARACTER
    if kind == HASH and after == HASH and end - at > 2:  # ##Inf, ##-Inf, ##NaN
        return put_quoted(buf, at, end, out, pos), FINE
    return -1, BAD_DISPATCH if kind == HASH else BAD_BYTE


def put_set(out, pos):
    """Write the start of a set: an object with one key, to distinguish it from a vector."""
    for i, part in enumerate((123, 34, 35, 123, 125, 34, 58, 91)):  # {"#{}":[
        out[pos + i] = part
    return pos + 8


def problem_of_close(byte, frame, forms, mode):
    """Return the problem of a closing bracket in ``frame``, which has ``forms`` forms, or FINE."""
    if frame == ROOT:
        return FINE if byte == mode else STRAY_CLOSE if mode <= CLOSED else MISMATCHED
    if frame in (TAG, DISCARD):
        return DANGLING
    if byte != frame and not (byte == MAP and frame == SET):
        return MISMATCHED
    return ODD_MAP if frame == MAP and forms & 1 else FINE


def transduce(buf, start, stop, last, classes, out, lines, line, mode):
    """Turn the forms of ``buf[start:stop]`` into lines of ``out``; ``lines`` gets the source line of each.

    ``last``: the text ends at ``stop``. Return (problem, its position, bytes of out, forms), and for the next block the
    position after the last whole form, its line and the mode.
    """
    frames = np.zeros(MAX_DEPTH + 1, np.int64)
    counts = np.zeros(MAX_DEPTH + 1, np.int64)  # forms so far; of a TAG: 1 if it tags the key of a map
    marks = np.zeros(MAX_DEPTH + 1, np.int64)  # where in ``out`` a discarded form begins
    keys = np.zeros((MAX_DEPTH + 1, MAX_KEYS, 2), np.int64)  # where in ``out`` the keys of a map are
    begin, before = start, 0
    at, pos, end, depth, records, record_line, problem = start, 0, 0, 0, 0, line, FINE
    done, done_pos, done_line, done_mode = start, 0, line, mode
    while at < stop:
        byte = buf[at]
        kind = classes[byte]
        if kind in (SPACE, NEWLINE):
            line += 1 if kind == NEWLINE else 0
            at += 1
            continue
        if kind == COMMENT:
            while at < stop and buf[at] != 10:
                at += 1
            continue
        frame = int(frames[depth])
        forms = int(counts[depth])
        if kind == CLOSE:
            problem = problem_of_close(byte, frame, forms, mode)
            if problem != FINE:
                break
            at += 1
            if depth == 0:
                mode = CLOSED
                done, done_pos, done_line, done_mode = at, pos, line, mode
                continue
            out[pos] = 125 if frame == MAP else 93
            pos += 1
            if frame == SET:
                out[pos] = 125
                pos += 1
            depth -= 1
        else:
            if at + 1 >= stop and not last:
                break
            after = classes[buf[at + 1]] if at + 1 < stop else SPACE
            is_set = kind == HASH and after == OPEN and buf[at + 1] == 123
            is_discard = kind == HASH and after == SYMBOL and buf[at + 1] == 95
            is_tag = kind == HASH and after == SYMBOL and not is_discard
            is_key = (frame == MAP and forms & 1 == 0) or (frame == TAG and forms == 1)
            if (kind == OPEN or is_set) and is_key:
                problem = COLLECTION_KEY
                break
            if depth == MAX_DEPTH and (kind == OPEN or is_set or is_discard or is_tag):
                problem = TOO_DEEP
                break
            if is_discard:
                depth += 1
                frames[depth], counts[depth], marks[depth] = DISCARD, 0, pos
                at += 2
                continue
            if depth == 0:
                if mode == CLOSED:
                    problem = AFTER_END
                    break
                if mode == NOTHING_YET:
                    mode = BARE
                    if byte == 91 or byte == 40:
                        mode = VECTOR if byte == 91 else LIST
                        at += 1
                        done, done_line, done_mode = at, line, mode
                        continue
                record_line = line
            elif frame >= LIST and forms > 0:
                out[pos] = 58 if frame == MAP and forms & 1 else 44
                pos += 1
            if kind == OPEN or is_set:
                depth += 1
                counts[depth] = 0
                frames[depth] = SET if is_set else MAP if byte == 123 else VECTOR if byte == 91 else LIST
                if is_set:
                    pos = put_set(out, pos)
                else:
                    out[pos] = 123 if byte == 123 else 91
                    pos += 1
                at += 2 if is_set else 1
                continue
            begin = at
            before = pos
            whole = False
            if kind == DIGIT and not is_key and (byte != 48 or after != DIGIT):
                # Nearly all of a history is plain integers and keywords: copy those here, without a call.
                end = pos
                while at < stop and classes[buf[at]] == DIGIT:
                    out[end] = buf[at]
                    end += 1
                    at += 1
                whole = at < stop and classes[buf[at]] < SYMBOL
            elif kind == COLON and after == SYMBOL:
                out[pos] = 34
                end = pos + 1
                while at < stop and classes[buf[at]] >= SYMBOL:
                    out[end] = buf[at]
                    end += 1
                    at += 1
                out[end] = 34
                end += 1
                whole = at < stop
            if whole:
                pos = end
            elif kind == QUOTE:
                at, pos, newlines, problem = put_string(buf, begin, stop, out, pos)
                line += newlines
                if problem == CUT_OFF:
                    at = begin
                    problem = UNCLOSED_STRING if last else CUT_OFF
                if problem != FINE:
                    break
            else:
                at = min(begin + (2 if kind == BACKSLASH else 1), stop)
                while at < stop and classes[buf[at]] >= SYMBOL:
                    at += 1
                if at >= stop and not last:
                    break
                if is_tag:
                    depth += 1
                    frames[depth], counts[depth] = TAG, 1 if is_key else 0
                    continue
                pos, problem = put_token(buf, begin, at, kind, after, is_key, out, pos)
                if pos < 0:
                    at = begin
                    break
                problem = FINE
        # A form is complete, and its tags are too; a #_ before it discards it.
        while frames[depth] == TAG:
            depth -= 1
        if frames[depth] == DISCARD:
            pos = int(marks[depth])
            depth -= 1
            continue
        if frames[depth] == MAP and counts[depth] & 1 == 0:
            known = int(counts[depth]) >> 1
            if is_same_key(out, keys[depth], min(known, MAX_KEYS), before, pos):
                problem, at = SAME_KEY, begin
            elif known < MAX_KEYS:
                keys[depth, known, 0], keys[depth, known, 1] = before, pos
            elif depth == 1:
                problem, at = TOO_MANY_KEYS, begin
            if problem != FINE:
                break
        counts[depth] += 1
        if depth == 0:
            out[pos] = 10
            pos += 1
            lines[records] = record_line
            records += 1
            done, done_pos, done_line, done_mode = at, pos, line, mode
    if problem == FINE and not last:
        problem = CUT_OFF
    elif problem == FINE and (depth > 0 or mode > CLOSED):
        problem = DANGLING if frames[depth] in (TAG, DISCARD) else UNCLOSED
    return problem, at, done_pos, records, done, done_line, done_mode
