"""model.py, builder.py, value_codes.py and init_txn.py."""

import doctest
from itertools import permutations

import numpy as np
import pytest

from plume_py.base.errors import InputError
from plume_py.history import builder as builder_module
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import NOBODY, READ_LIST, History, Op
from plume_py.history.value_codes import MAX_DIGITS, NULL, AtomCoder, Atoms


def build(*transactions: tuple, initial: object = None, **how: object) -> History:
    """A history of (session, operations, keywords...)."""
    init_txn = how.pop("init_txn", "auto")
    builder = HistoryBuilder(initial, **how)
    for session, ops, *more in transactions:
        builder.add(session, ops, **(more[0] if more else {}))
    return builder.build(init_txn=init_txn)


def test_the_examples_of_the_builder() -> None:
    result = doctest.testmod(builder_module)
    assert result.attempted and not result.failed


# the builder


def test_interleaved_sessions_come_out_session_by_session() -> None:
    history = build(
        ("a", [("w", "x", 1)], {"id": "a1", "level": "si"}),
        ("b", [("r", "x", 1)]),
        ("a", [], {"status": "aborted", "line": 9}),
        ("b", [("w", "y", 2)], {"status": "unknown", "level": "read committed"}),
    )
    assert [[(t.id, t.session, t.status, t.level, t.ops) for t in session] for session in history] == [
        [("a1", "a", "committed", "SI", (Op("w", "x", 1),)), ("T2", "a", "aborted", None, ())],
        [("T3", "b", "committed", None, (Op("r", "x", 1),)), ("T4", "b", "unknown", "RC", (Op("w", "y", 2),))],
    ]
    assert [history.place(t) for t in range(4)] == ["sessions[0][0]", "line 9", "sessions[1][0]", "sessions[1][1]"]


def test_operations_of_interleaved_sessions_keep_their_lists() -> None:
    history = build(
        (0, [("append", "x", 1), ("r", "x", [1])]),
        (1, [("r", "x", [1, 2]), ("r", "y", [])]),
        (0, [("append", "x", 2), ("r", "x", [1, 2])]),
    )
    assert [[t.ops for t in session] for session in history] == [
        [(("append", "x", 1), ("r", "x", (1,))), (("append", "x", 2), ("r", "x", (1, 2)))],
        [(("r", "x", (1, 2)), ("r", "y", ()))],
    ]
    assert history.version_writer[history.op_version[history.op_kind == READ_LIST]].tolist() == [0, 1, 1, NOBODY]


def test_a_long_stream_is_flushed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def stream() -> History:
        return build(
            *[(i % 3, [("w", i, i), ("r", i, i if i < 7 else f"s{i}")]) for i in range(20)],
            (0, [("append", "list", 1), ("r", "list", [1])]),
        )

    whole = list(stream())
    monkeypatch.setattr(builder_module, "FLUSH_AT", 4)
    assert list(stream()) == whole


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ops": [("x", 1, 2)]}, "not an operation: \\('x', 1, 2\\)"),
        ({"ops": [("r", 1)]}, "not an operation"),
        ({"ops": [5]}, "not an operation: 5"),
        ({"ops": [("r", 1.5, 2)]}, "a key must be an integer or a string, not 1.5"),
        ({"ops": [("r", True, 2)]}, "a key must be an integer or a string, not True"),
        ({"ops": [("r", None, 2)]}, "a key must be an integer or a string, not null"),
        ({"ops": [("r", None, 2), ("r", "x", 2)]}, "a key must be an integer or a string, not null"),
        ({"ops": [("w", 1, {})]}, "a value must be an integer or a string, not {}"),
        ({"ops": [("w", 1, [2])]}, "cannot write a list at once"),
        ({"ops": [("r", 1, [[2]])]}, "a value must be an integer or a string"),
        ({"ops": [("w", 1, 10**4000)]}, "more than 4000 digits"),
        ({"ops": [], "status": "lost"}, "unknown status 'lost'"),
        ({"ops": [], "level": "best"}, "unknown level 'best'"),
        ({"ops": [("w", 1, 2), ("append", 1, 3)]}, "key 1 is used both as a list and as a register"),
        ({"ops": [("r", 1, 2), ("r", 1, [3])]}, "key 1 is used both as a list and as a register"),
        ({"ops": [("append", "x", None)]}, "key 'x' is a list, and the initial value None stands in it"),
        ({"ops": [("r", "x", [None])]}, "key 'x' is a list, and the initial value None stands in it"),
    ],
)
def test_the_builder_rejects_wrong_input(wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build((0, wrong.pop("ops"), wrong))


def test_an_id_may_occur_only_once() -> None:
    with pytest.raises(InputError, match="two transactions have the id '5'"):
        build((0, [], {"id": 5}), (1, [], {"id": "5"}))


def test_only_the_empty_list_is_the_initial_list() -> None:
    assert build((0, [("r", "x", [])]), initial=[]).initial_value is None
    with pytest.raises(InputError, match="empty list"):
        HistoryBuilder([1])


def test_an_ambiguous_read_names_both_writers() -> None:
    with pytest.raises(InputError) as caught:
        build((0, [("w", "x", 1)]), (1, [("w", "x", 1)], {"id": "b"}), (2, [("r", "x", 1)]))
    for part in ("T1 (sessions[0][0])", "b (sessions[1][0])", "sessions[2][0]: ambiguous read: T3"):
        assert part in str(caught.value)


@pytest.mark.parametrize("reader", [None, "aborted", "unknown"])
def test_duplicates_that_no_committed_transaction_reads_are_a_warning(reader: str | None) -> None:
    txns = [(0, [("w", "x", 1)]), (1, [("w", "x", 1)])]
    history = build(*txns, *([(2, [("r", "x", 1)], {"status": reader})] if reader else []))
    assert len(history.warnings) == 1


def test_one_transaction_may_write_a_value_twice() -> None:
    assert not build((0, [("w", "x", 1), ("w", "x", 1)]), (1, [("r", "x", 1)])).warnings


# atoms


def coded(*chunks: list, streams: int = 1) -> tuple[list, Atoms]:
    """What comes back from coding chunks, stream by stream."""
    coder = AtomCoder("value", streams)
    for i, chunk in enumerate(chunks):
        coder.encode(chunk, i % streams)
    codes, atoms = coder.finish()
    return [[atoms.spell(code) for code in stream.tolist()] for stream in codes], atoms


@pytest.mark.parametrize(
    "chunks", list(permutations([[1, 2, 1], [None, 5], ["1", None], [2**64, 1], [NULL, 3]])), ids=str
)
def test_codes_keep_every_spelling_in_any_order(chunks: tuple[list, ...]) -> None:
    streams, atoms = coded(*chunks)
    assert streams == [[atom for chunk in chunks for atom in chunk]]
    assert atoms.table is not None


def test_a_table_recodes_all_streams() -> None:
    streams, _ = coded([1, None], [2, 1], ["1"], [NULL, 2], streams=2)
    assert streams == [[1, None, "1"], [2, 1, NULL, 2]]


def test_null_is_not_the_smallest_integer_even_in_one_chunk() -> None:
    assert coded([None, NULL])[0] == [[None, NULL]]
    history = build((0, [("w", "x", NULL), ("w", "y", None)]))
    assert [op.value for op in history.transaction(0).ops] == [NULL, None]


def test_plain_integers_need_no_table() -> None:
    streams, atoms = coded([0, -5, 2**63 - 1, -(2**63) + 1], [None])
    assert (streams, atoms) == ([[0, -5, 2**63 - 1, -(2**63) + 1, None]], Atoms())


def test_equal_digits_of_different_types_differ() -> None:
    history = build((0, [("w", 1, "1"), ("w", "1", 1), ("r", 1, 1)]))
    assert len(history.key_code) == 2
    assert len(set(history.op_version.tolist())) == 3


def test_huge_numbers_are_rejected() -> None:
    assert coded([10**3000])[0] == [[10**3000]]
    with pytest.raises(InputError, match=f"more than {MAX_DIGITS} digits"):
        coded([-(10**MAX_DIGITS)])


@pytest.mark.parametrize(
    ("atoms", "known", "unknown"),
    [
        (Atoms(), (0, -1, 2**63 - 1, None), (2**63, "x", NULL)),
        (Atoms(unsigned=True), (0, 2**63, 2**64 - 1), (-1, 2**64, None, "x")),
        (Atoms((1, "1", None, 2**70)), (1, "1", None, 2**70), (2, "2")),
    ],
)
def test_code_of_is_the_inverse_of_spell(atoms: Atoms, known: tuple, unknown: tuple) -> None:
    for atom in known:
        assert atoms.spell(atoms.code_of(atom)) == atom
    assert [atoms.code_of(atom) for atom in unknown] == [None] * len(unknown)


# the initial transaction

FIRST = ("a", [("w", "x", 5), ("w", "y", 6)])


@pytest.mark.parametrize(
    ("txns", "declared", "found"),
    [
        pytest.param([FIRST, ("b", [("r", "x", 5)])], False, True, id="alone, writes every key once"),
        pytest.param([FIRST, ("b", [("r", "x", None)])], False, False, id="the format's initial value was read"),
        pytest.param(
            [FIRST, ("b", [("r", "x", None)], {"status": "aborted"})], False, True, id="only by an aborted transaction"
        ),
        pytest.param([FIRST, ("b", [("r", "x", 5)])], True, False, id="another initial value is declared"),
        pytest.param(
            [("a", [("w", "x", None)]), ("b", [("r", "x", None)])], True, True, id="it writes what is declared"
        ),
        pytest.param([FIRST, ("b", [("r", "z", 1)])], False, False, id="it misses a key"),
        pytest.param([FIRST], False, False, id="there is no other session"),
        pytest.param([FIRST, ("a", []), ("b", [])], False, False, id="it is not alone in its session"),
        pytest.param([("a", FIRST[1], {"status": "unknown"}), ("b", [])], False, False, id="it did not commit"),
        pytest.param([("a", [("w", "x", 1), ("w", "x", 2)]), ("b", [])], False, False, id="it writes a key twice"),
        pytest.param([("a", [("w", "x", 1), ("r", "x", 1)]), ("b", [])], False, False, id="it reads"),
        pytest.param([("a", [("append", "x", 1)]), ("b", [])], False, False, id="it appends"),
        pytest.param([("a", []), ("b", [])], False, True, id="there are no keys"),
        pytest.param([], False, False, id="there is nothing"),
    ],
)
def test_an_initial_transaction_is_detected(txns: list, declared: bool, found: bool) -> None:
    assert (build(*txns, declared=declared).init_txn != NOBODY) == found
    assert build(*txns, declared=declared, init_txn="none").init_txn == NOBODY


def test_the_choice_first_overrides_reads_and_declarations_only() -> None:
    reader = "b", [("r", "x", None)]
    assert build(FIRST, reader, init_txn="first").init_txn == 0
    with pytest.raises(InputError, match="not an initial one: it does not write every key exactly once"):
        build(FIRST, ("b", [("r", "z", 1)]), init_txn="first")


def test_without_an_implicit_initial_state_null_is_a_value() -> None:
    history = build((0, [("r", "x", None)]), implicit_initial=False)
    assert history.initial is None
    assert history.version_writer.tolist() == [NOBODY]


# what the columns promise


def test_transactions_and_operations_are_numbered_densely_in_order() -> None:
    history = build((1, [("w", 5, 1)]), (0, []), (1, [("r", 5, 1), ("r", 6, None)]), (2, []))
    assert history.session_start.tolist() == [0, 2, 3, 4]
    assert history.txn_start.tolist() == [0, 1, 3, 3, 3]
    assert history.txn_session.tolist() == [0, 0, 1, 2]
    assert (history.sessions, history.transactions, history.operations) == (3, 4, 3)
    assert np.array_equal(history.op_key[:2], [0, 0]) and history.op_version[0] == history.op_version[1]


def test_an_element_inside_a_list_can_be_ambiguous_too():
    builder = HistoryBuilder([])
    for session, value in enumerate((1, 1, 2)):
        builder.add(session, [("append", "x", value)])
    builder.add(3, [("r", "x", [1, 2])])
    with pytest.raises(InputError, match="ambiguous read: T4 read value 1 of key 'x'"):
        builder.build()


def test_generated_ids_never_equal_given_ones():
    builder = HistoryBuilder()
    builder.add(0, [], id="T2")
    builder.add(0, [])
    assert [txn.id for session in builder.build() for txn in session] == ["T2", "T'2"]


def test_the_name_of_the_initial_state_is_reserved():
    builder = HistoryBuilder()
    builder.add(0, [], id="(initial state)")
    with pytest.raises(InputError, match="reserved"):
        builder.build()


@pytest.mark.parametrize("more", ["an empty session first", "an aborted key", "nothing"])
def test_uncommitted_transactions_do_not_hide_the_initial_transaction(more):
    builder = HistoryBuilder(declared=False)
    if more == "an empty session first":
        builder.session("empty")
    builder.add("setup", [("w", "x", 7)])
    builder.add("a", [("w", "x", 1)])
    builder.add("a", [("r", "x", 7)])
    if more == "an aborted key":
        builder.add("b", [("w", "z", 1)], status="aborted")
    assert builder.build().init_txn == 0


def test_a_generated_id_differs_from_a_numeric_one():
    """Reports call the transaction 2 T2."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], id=2)
    builder.add("a", [("r", "x", 1)])
    assert [txn.id for session in builder.build() for txn in session] == [2, "T'2"]
