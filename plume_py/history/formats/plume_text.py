"""Read and write Plume text, also written by PolySI and IsoVista: ``w(key,value,session,txn)``, one operation per line.

Transaction -1 collects the aborted operations of a session. A read of 0 that no transaction wrote sees the initial
state. Blank lines and ``#`` comments are allowed; the lines of a transaction need not be contiguous.

Large files are first parsed by an automaton (``bulk_parser``). It finds *runs*: consecutive operations of one
transaction. Files with numbers beyond 63 bits, leading zeros or mistakes go to the kernel ``text_kernels.parse``.
"""

from functools import cache
from typing import Any

import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history import assemble_kernels
from plume_py.history.assemble import SECRET, RawColumns, first_positions, intern_keys, intern_versions
from plume_py.history.formats import automaton_kernels as automaton
from plume_py.history.formats import text_kernels as kernels
from plume_py.history.formats.bulk_parser import (
    Automaton,
    BulkGrammar,
    Columns,
    Point,
    Size,
    constant,
    count,
    parse_bulk,
    pays_off,
)
from plume_py.history.formats.render import (
    Rendered,
    Spelling,
    are_numbered,
    integer,
    lost_names,
    lost_nodes,
    lost_times,
    render,
    require,
    require_initial,
    session_numbers,
)
from plume_py.history.model import ABORTED, READ, WRITE, History, Int32s, Int64s, Labels
from plume_py.history.source import Buffer, Source
from plume_py.history.value_codes import Atoms

PROBLEMS = {
    kernels.NOT_AN_OPERATION: ("not an operation", "write r(key,value,session,txn) or w(key,value,session,txn)"),
    kernels.NUMBER_TOO_LARGE: ("a number does not fit in 64 bits", "use smaller numbers"),
    kernels.TWO_SESSIONS: ("this transaction id was used in another session before", "make ids unique"),
}


def read(source: Source) -> RawColumns:
    """Return the raw columns of a Plume text file."""
    content = source.content()
    columns = read_text(content) if is_large(len(content)) else None
    return _read_all(content) if columns is None else columns


def _read_all(content: Buffer) -> RawColumns:
    """Return the raw columns of a small file, or of a file that the automaton does not accept."""
    dispatch.prepare(STEPS * len(content), kernels)
    buf = dispatch.byte_buffer(content, kernels)
    lines = kernels.count_lines(buf)
    kinds, keys, values = np.empty(lines, np.uint8), np.empty(lines, np.int64), np.empty(lines, np.int64)
    txns, txn_ids, txn_sessions = np.empty(lines, np.int32), np.empty(lines, np.int64), np.empty(lines, np.int32)
    txn_lines, txn_aborted, session_ids = (
        np.empty(lines, np.int32),
        np.empty(lines, np.uint8),
        np.empty(lines, np.int64),
    )
    ops, transactions, sessions, flags, problem, at = kernels.parse(
        buf, SECRET, kinds, keys, values, txns, txn_ids, txn_sessions, txn_lines, txn_aborted, session_ids
    )
    if problem:
        raise _error(content, problem, at)
    labels = np.where(txn_aborted[:transactions] == 1, -1, txn_ids[:transactions])
    return RawColumns(
        op_kind=kinds[:ops],
        op_key=keys[:ops],
        op_value=values[:ops],
        op_txn=txns[:ops],
        txn_session=txn_sessions[:transactions].copy(),
        txn_status=txn_aborted[:transactions].copy(),
        sessions=sessions,
        keys=_atoms(flags & 3, "key"),
        values=_atoms(flags >> 2, "value"),
        initial=0,
        txn_line=txn_lines[:transactions].copy(),
        txn_label=Labels(labels),
        session_label=Labels(session_ids[:sessions].copy()),
    )


def _atoms(flags: int, what: str) -> Atoms:
    if flags == 3:
        raise InputError(f"a {what} is negative and another needs all 64 bits", hint="use one or the other")
    return Atoms(unsigned=flags == 2)


def _error(content: Buffer, problem: int, at: int) -> InputError:
    line = content[:at].count(b"\n") + 1
    end = content.find(b"\n", at)
    text = content[at : end if 0 <= end < at + 60 else at + 60].decode("utf-8", "replace").rstrip("\r")
    what, hint = PROBLEMS[problem]
    return InputError(f"{what}: {text!r}", where=f"line {line}", hint=hint)


# --- large files

# Loop steps of the kernel in plain Python per byte of text.
STEPS = 3

ABORTED_ID = -1

# Fields of a run: first operation, line, session, transaction.
_FIELDS = 4
_SHORTEST_LINE = len("r(1,1,1,1)\n")


def is_large(size: int) -> bool:
    """Return whether the automaton pays off for ``size`` bytes."""
    return pays_off(STEPS * size)


def read_text(content: Buffer) -> RawColumns | None:
    """Return the raw columns by the automaton, or None if it does not accept the file."""
    columns = parse_bulk(_plume_grammar(), content, 0, _FIELDS, _measure, {automaton.LINE: 1})
    return None if columns is None else _raw(columns)


def _measure(buf: Any, start: int, stop: int) -> Size:
    # the last line may lack a newline
    lines = min(count(buf, b"\n", start, stop) + (stop == len(buf)), (stop - start) // _SHORTEST_LINE + 1)
    return Size(lines, lines)


def _raw(columns: Columns) -> RawColumns | None:
    ops = int(columns.n[automaton.OPS])
    first_op, line, name, id = (columns.row(automaton.FIRST_OP + i) for i in range(_FIELDS))
    dispatch.prepare(6 * len(id), assemble_kernels)
    session, session_names = intern_keys(name)
    run_txn, txn_id = _transactions(session, id, len(session_names))
    first = first_positions(run_txn, len(txn_id))
    if np.any(session[first][run_txn] != session):
        return None
    return RawColumns(
        op_kind=columns.kinds[:ops],
        op_key=columns.keys[:ops],
        op_value=columns.values[:ops],
        op_txn=np.repeat(run_txn, np.diff(first_op, append=ops)),
        txn_session=session[first],
        txn_status=(txn_id == ABORTED_ID).astype(np.uint8),
        sessions=len(session_names),
        keys=Atoms(),
        values=Atoms(),
        initial=0,
        txn_line=line[first].astype(np.int32),
        txn_label=Labels(txn_id),
        session_label=Labels(session_names),
    )


def _transactions(session: Int32s, id: Int64s, sessions: int) -> tuple[Int32s, Int64s]:
    """Return the transaction of each run, and the id of each transaction: one per session for all aborted ones."""
    aborted = id == ABORTED_ID
    runs, _, ids = intern_versions(np.where(aborted, session + 1, 0).astype(np.int32), id, sessions + 1, None)
    return runs, ids


@cache
def _plume_grammar() -> BulkGrammar:
    """Return the grammar of the files that the automaton accepts."""
    grammar = Automaton(b" \t\r", newline=False)
    line = grammar.point(automaton.COUNT, automaton.LINE)
    grammar.word(line, b"\n", line)
    after_op = grammar.point(automaton.RUN)
    grammar.word(after_op, b"\n", line)
    comment = grammar.bare()
    grammar.word(line, b"#", comment)
    grammar.loop(comment, bytes(byte for byte in range(256) if byte != 10))
    grammar.word(comment, b"\n", line)
    at: Point = ()
    for word, kind in ((b"r(", READ), (b"w(", WRITE)):
        at += grammar.word(line, word, grammar.bare(automaton.SET, constant(automaton.KIND, kind)))
    for register in (automaton.KEY, automaton.VALUE, automaton.SESSION, automaton.ID):
        number = grammar.number(at, grammar.bare(automaton.NUMBER, register))
        at = grammar.word(number, b",", grammar.bare()) if register != automaton.ID else number
    grammar.word(at, b")", after_op)
    return BulkGrammar(grammar.tables(), line[1], (*line, *after_op, *comment), b"\n", line[1])


# --- writer

TARGET = "Plume text"


def write(history: History) -> Rendered:
    """Return the history as Plume text, one operation per line.

    Aborted transactions lose their boundaries, because they all have the id -1.
    """
    require(history, TARGET, lists=False, unknown=False, empty=False, levels=False)
    require_initial(history, TARGET, (0,), keep_empty=False)
    sessions = session_numbers(history)
    numbers, notes = _numbers(history)
    aborted = history.txn_status == ABORTED
    if np.any(np.bincount(history.txn_session[aborted], minlength=1) > 1):
        notes.append("the aborted transactions of a session are one in this format")
    owners = zip(history.txn_session.tolist(), numbers, strict=True)
    spelling = Spelling(
        opens=(b"r(", b"w(", b"", b""),
        key=lambda atom: b"%d" % integer(atom, "key", TARGET),
        middle=b",",
        value=lambda atom: b"%d" % integer(atom, "value", TARGET),
        initial=b"0",
        closes=[b",%d,%d)\n" % (sessions[s], number) for s, number in owners],
        heads=[b""] * history.transactions,
        tails=[b""] * history.transactions,
    )
    notes += lost_names(history, ids=True, sessions=are_numbered(history)) + lost_times(history) + lost_nodes(history)
    return Rendered(render(history, spelling), notes)


def _numbers(history: History) -> tuple[list[int], list[str]]:
    """Return transaction ids and notes: the file's own if they are non-negative integers; -1 for aborted ones."""
    aborted = (history.txn_status == ABORTED).tolist()
    labels = [history.txn_label[t] for t in range(history.transactions)]
    own = [label for label, gone in zip(labels, aborted, strict=True) if not gone]
    if all(isinstance(label, int) and 0 <= label < 2**63 for label in own):
        return [-1 if gone else int(label) for label, gone in zip(labels, aborted, strict=True)], []
    renumbered = [-1 if gone else t for t, gone in enumerate(aborted)]
    return renumbered, ["transactions are numbered from 0, as this format has no other ids"]
