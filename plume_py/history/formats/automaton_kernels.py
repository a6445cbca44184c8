"""Kernel that runs the automaton of ``bulk_parser`` and fills columns.

The tables give the next state by state and class of byte, and the action on entering a state. State 0 means that the
tables do not accept the text; the caller then reads it with the format's general reader.
"""

# mypy: allow-untyped-defs

# Maximal number of classes of bytes.
CLASSES = 64

# Actions on entering a state, with an operand: a register, a number, or bits. The actions up to NUMBER_ITEM read a
# number.
NOTHING, NUMBER, NUMBER_SPAN, NUMBER_ITEM = 0, 1, 2, 3
SET, OP, MARK_FIELD, ROW, BEGIN, COUNT, LIST, LIST_END, NULL_VALUE, NULL_ITEM, SPAN, SPAN_END, RUN = range(4, 17)

# Registers of the operation and the whole text, then the registers that are stored as a row.
KIND, KEY, VALUE, INITIAL, FIELDS_SEEN, LINE, SESSIONS, ENCLOSED = range(8)
FIRST_OP, PLACE, SESSION, ID, STATUS, TIME, SPAN_FROM, SPAN_TO, LEVEL = range(8, 17)
REGISTERS = 17

# The operand of SET has the register in its lowest bits and the value above them.
REGISTER_BITS = 5

# Entries of ``n``: counts, the state and position of the loop, and whether a column is full.
OPS, LISTS, ITEMS, ROWS, STATE, AT, FULL = range(7)

READ, READ_LIST = 0, 2

# The code of null.
NULL = -(2**63)


def run(
    buf, stop, classes, after, action, operand, n, regs, defaults, rows, kinds, keys, values, list_ops, list_ends, items
):
    """Read from ``n[AT]`` to ``stop``, or until the text is not accepted or a column is full."""
    at, state = int(n[AT]), int(n[STATE])
    ops, lists, count, made = int(n[OPS]), int(n[LISTS]), int(n[ITEMS]), int(n[ROWS])
    while at < stop and state:
        state = int(after[state * CLASSES + int(classes[buf[at]])])
        at += 1
        todo = int(action[state])
        if todo == NOTHING:
            continue
        which = int(operand[state])
        if todo <= NUMBER_ITEM:
            begin = at - 1
            negative = buf[begin] == 45
            first = at if negative else begin
            at = first
            number = 0
            safe = min(stop, at + 18)  # 18 digits always fit
            while at < safe:
                digit = int(buf[at]) ^ 48  # at most 9 for digits only
                if digit > 9:
                    break
                number = number * 10 + digit
                at += 1
            if at == first or (at > first + 1 and buf[first] == 48):
                state = 0
            if at == first + 18 and at < stop and int(buf[at]) ^ 48 <= 9:
                digit = int(buf[at]) ^ 48
                if number < 922337203685477580 or (number == 922337203685477580 and digit <= 7):
                    number = number * 10 + digit
                    at += 1  # no table accepts a digit after a number
                else:
                    state = 0
            if negative:
                number = -number
            if todo == NUMBER:
                regs[which] = number
            elif todo == NUMBER_SPAN:
                regs[SPAN_FROM] = begin
                regs[SPAN_TO] = at
            elif count < len(items):
                items[count] = number
                regs[VALUE] = number
                count += 1
            else:
                state = 0
                n[FULL] = 1
        elif todo == SET:
            regs[which & ((1 << REGISTER_BITS) - 1)] = which >> REGISTER_BITS
        elif todo == OP or todo == RUN:
            if ops == len(kinds) or (todo == RUN and made == rows.shape[1]):
                state = 0
                n[FULL] = 1
                continue
            if todo == RUN and (
                made == 0
                or rows[ID - FIRST_OP, made - 1] != regs[ID]
                or rows[SESSION - FIRST_OP, made - 1] != regs[SESSION]
            ):
                regs[FIRST_OP] = ops
                regs[PLACE] = regs[LINE]
                for i in range(rows.shape[0]):
                    rows[i, made] = regs[FIRST_OP + i]
                made += 1
            kinds[ops] = regs[KIND]
            keys[ops] = regs[KEY]
            values[ops] = regs[VALUE]
            ops += 1
        elif todo == MARK_FIELD:
            if regs[FIELDS_SEEN] & which:
                state = 0
            regs[FIELDS_SEEN] |= which
        elif todo == BEGIN:
            regs[FIRST_OP] = ops
            regs[PLACE] = regs[which]
        elif todo == ROW:
            if regs[FIELDS_SEEN] & which != which:
                state = 0
            elif made == rows.shape[1]:
                state = 0
                n[FULL] = 1
            else:
                for i in range(rows.shape[0]):
                    rows[i, made] = regs[FIRST_OP + i]
                made += 1
            regs[FIELDS_SEEN] = 0
            for i in range(SESSION, REGISTERS):
                regs[i] = defaults[i]
        elif todo == COUNT:
            regs[which] += 1
        elif todo == LIST:
            regs[VALUE] = regs[INITIAL]  # until there is a last element, whose writer the read sees
            if regs[KIND] != READ or lists == len(list_ops):
                state = 0
                n[FULL] = 1 if regs[KIND] == READ else 0
        elif todo == NULL_VALUE:
            regs[VALUE] = NULL
        elif todo == NULL_ITEM:
            if count == len(items):
                state = 0
                n[FULL] = 1
                continue
            items[count] = NULL
            regs[VALUE] = NULL
            count += 1
        elif todo == LIST_END:
            regs[KIND] = READ_LIST
            list_ops[lists] = ops
            lists += 1
            list_ends[lists] = count
        elif todo == SPAN:
            regs[SPAN_FROM] = at - 1
        elif todo == SPAN_END:
            regs[SPAN_TO] = at
    n[OPS], n[LISTS], n[ITEMS], n[ROWS], n[STATE], n[AT] = ops, lists, count, made, state, at
