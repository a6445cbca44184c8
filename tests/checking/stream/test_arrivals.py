"""``stream.arrivals``: transactions read from lines, however the lines are cut into pieces."""

import json
import random

import pytest

import plume_py
from plume_py import InputError
from plume_py.base.kernels import dispatch
from plume_py.checking.stream.arrivals import Arrivals, JsonLines, PlumeText, _IdSet
from plume_py.checking.stream.follow import Piece
from plume_py.history.formats import text_kernels


def arrivals_of(content, cuts, input_format=None):
    """All arrivals of a text that comes in pieces of whole lines, and the arrivals' reader."""
    lines = content.splitlines(keepends=True)
    reader, found, line = Arrivals("h", input_format), [], 0
    for cut in [*cuts, len(lines)]:
        text = b"".join(lines[line:cut])
        if text:
            for batch in reader.read(Piece(line + 1, text, not text.endswith(b"\n"))):
                found += batch
        line = max(line, cut)
    return found + reader.finish(), reader.reader


def some_cuts(lines, rng):
    return sorted(rng.randrange(lines + 1) for _ in range(rng.randrange(6)))


def by_session(arrivals):
    sessions = {}
    for a in arrivals:
        ops = tuple((kind, key, tuple(v) if isinstance(v, list) else v) for kind, key, v in a.ops)
        sessions.setdefault(a.session, []).append((ops, a.status, a.id, a.line))
    return sessions


def loaded(path):
    """The same of a history that was loaded whole."""
    history = plume_py.load(path, init_txn="none")
    found, t = {}, 0
    for session in history:
        for txn in session:
            line = int(history.place(t).removeprefix("line "))
            found.setdefault(txn.session, []).append((tuple(map(tuple, txn.ops)), txn.status, txn.id, line))
            t += 1
    return found


def random_text(rng):
    """Plume text, sessions mixed line by line or transaction by transaction; ids unique, some aborted."""
    waiting = {}
    ids = iter(rng.sample(range(-5000, 5000), 60))
    for s in range(rng.randrange(1, 5)):
        waiting[s] = []
        for _ in range(rng.randrange(6)):
            t = next(i for i in ids if i != -1)
            ops = rng.randrange(1, 4)
            waiting[s].append(
                [f"{rng.choice('rw')}({rng.randrange(5)},{rng.randrange(50)},{s},{t})" for _ in range(ops)]
            )
    lines = []
    by_line = rng.random() < 0.5
    while any(waiting.values()):
        s = rng.choice([s for s, txns in waiting.items() if txns])
        txn = waiting[s][0]
        lines += [txn.pop(0)] if by_line else txn
        if not by_line or not txn:
            waiting[s].pop(0)
        if rng.random() < 0.1:
            lines.append(rng.choice(["", "# remark", "  "]))
    return "".join(line + rng.choice(["\n", " \r\n"]) for line in lines).encode()


@pytest.mark.parametrize("compiled", [False, True])
def test_plume_text_gives_the_same_transactions_however_it_is_cut(compiled, tmp_path):
    dispatch.uncompile(text_kernels)
    if compiled:
        dispatch.prepare(10**9, text_kernels)
    rng = random.Random(5)
    for _ in range(150):
        text = random_text(rng)
        if not text.strip():
            continue
        (tmp_path / "h.txt").write_bytes(text)
        found, reader = arrivals_of(text, some_cuts(text.count(b"\n"), rng), "plume")
        assert by_session(found) == loaded(tmp_path / "h.txt")
        assert (reader.format, reader.initial, reader.declared) == ("plume", 0, False)


def test_a_transaction_of_plume_text_is_complete_when_its_session_begins_another():
    reader = PlumeText()

    def read(line, text):
        return [(a.session, a.id, a.line) for batch in reader.read(Piece(line, text)) for a in batch]

    assert read(1, b"w(1,1,0,7)\nw(1,2,1,8)\n") == []
    assert read(3, b"w(2,1,0,7)\n") == []
    assert read(4, b"w(3,1,0,9)\n") == [(0, 7, 1)]
    assert [(a.session, a.id) for a in reader.finish()] == [(1, 8), (0, 9)]


def test_each_run_of_aborted_lines_is_a_transaction_of_its_own():
    text = b"w(1,1,0,-1)\nw(1,2,1,-1)\nw(1,3,0,-1)\nr(1,0,0,4)\nw(1,5,0,-1)\n"
    for cut in range(6):
        found, _ = arrivals_of(text, [cut])
        assert by_session(found) == {
            0: [
                ((("w", 1, 1), ("w", 1, 3)), "aborted", None, 1),
                ((("r", 1, 0),), "committed", 4, 4),
                ((("w", 1, 5),), "aborted", None, 5),
            ],
            1: [((("w", 1, 2),), "aborted", None, 2)],
        }


@pytest.mark.parametrize("second", [0, 1], ids=["its session had gone on", "another session has it"])
def test_a_repeated_transaction_id_is_an_error_wherever_the_text_is_cut(second):
    text = f"w(1,1,0,7)\nw(1,2,0,8)\nw(1,3,{second},7)\n".encode()
    for cut in range(4):
        with pytest.raises(InputError, match=r"^line 3: .*(came before|used in another session)"):
            arrivals_of(text, [cut])


def test_ids_are_remembered_exactly():
    rng = random.Random(1)
    ids, seen = _IdSet(), set()
    for _ in range(20_000):
        n = rng.choice([rng.randrange(-3000, 3000), rng.randrange(-(2**63), 2**63)])
        assert ids.add(n) is (n not in seen)
        seen.add(n)


def test_64_bit_numbers_are_read_but_not_mixed_with_negative_ones():
    big = 2**64 - 1
    found, _ = arrivals_of(f"w(1,{big},0,1)\nw({big},3,0,2)\n".encode(), [1])
    assert [a.ops for a in found] == [[("w", 1, big)], [("w", big, 3)]]
    for cut in range(3):
        with pytest.raises(InputError, match="a value is negative and another needs all 64 bits"):
            arrivals_of(f"w(1,{big},0,1)\nw(1,-3,0,2)\n".encode(), [cut])


def random_lines(rng):
    out = [json.dumps({"initial": rng.choice([None, 0, "x", []])})] if rng.random() < 0.5 else []
    for n in range(rng.randrange(8)):
        txn = {"session": rng.choice([0, 1, "s"]), "ops": [["w", "k", n], ["r", 3, None], ["r", "l", [1, 2]]][: n % 4]}
        txn |= rng.choice([{}, {"status": "unknown"}, {"id": f"t{n}", "line": "a remark"}, {"level": "si"}])
        out += [json.dumps(txn)] + [""] * (rng.random() < 0.1)
    return "".join(f"{line}\n" for line in out).encode()


def test_json_lines_give_the_same_transactions_however_they_are_cut(tmp_path):
    rng = random.Random(7)
    for _ in range(200):
        text = random_lines(rng)
        if not text:
            continue
        (tmp_path / "h.jsonl").write_bytes(text)
        found, reader = arrivals_of(text, some_cuts(text.count(b"\n"), rng), "jsonl")
        expected = loaded(tmp_path / "h.jsonl")
        mine = by_session(found)
        assert {s: [(ops, status, line) for ops, status, _, line in t] for s, t in mine.items()} == {
            s: [(ops, status, line) for ops, status, _, line in t] for s, t in expected.items()
        }
        given = {a.line: a.id for a in found if a.id}
        assert given == {line: i for t in expected.values() for *_, i, line in t if str(i).startswith("t")}
        assert reader is not None and reader.initial == plume_py.load(tmp_path / "h.jsonl").initial_value


def test_json_lines_may_declare_the_initial_value():
    for first, initial, declared in (
        (b'{"initial": 0}\n', 0, True),
        (b'\n{"initial": null}\n', None, True),
        (b'{"initial": []}\n', None, True),
        (b'{"remark": 1}\n', None, False),
        (b"", None, False),
    ):
        _, reader = arrivals_of(first + b'{"session":0,"ops":[]}\n', [], "jsonl")
        assert (reader.initial, reader.declared) == (initial, declared)
    with pytest.raises(InputError, match="line 1: the initial value of a list is the empty list"):
        arrivals_of(b'{"initial": [1]}\n', [])


def test_a_continuation_goes_on_with_the_same_clock():
    reader = JsonLines()
    for text in (b'{"ticks_per_second": 1000}\n', b'{"ticks_per_second": 1000}\n', b'{"session":1,"ops":[]}\n'):
        list(reader.read(Piece(1, text)))
    assert reader.per_second == 1000
    with pytest.raises(InputError, match="line 1: the clock has 5 ticks per second now, and had 1000 before"):
        list(reader.read(Piece(1, b'{"ticks_per_second": 5}\n')))


def test_a_continuation_may_repeat_the_header_but_not_change_it():
    reader = JsonLines()
    for text in (b'{"initial": 0}\n', b'\n{"initial": 0}\n{"session":1,"ops":[]}\n', b'{"session":1,"ops":[]}\n'):
        list(reader.read(Piece(1, text)))
    with pytest.raises(InputError, match="line 1: the initial value is now None, and was 0 before; this is another"):
        list(reader.read(Piece(1, b'{"initial": null}\n')))


GOOD = b'{"session":0,"ops":[["w","x",1]]}\n'


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'{"session":0,"ops":[["w","x"\n', "line 2: the JSON ends too early"),
        (b'{"session":0}\n', "line 2: object missing required field `ops`"),
        (b'{"ops":[]}\n', "line 2: object missing required field `session`"),
        (b'{"session":0,"ops":[["x","x",1]]}\n', r"line 2, ops\[0\]\[0\]: invalid enum value 'x'"),
        (b'{"session":0,"ops":[],"status":"lost"}\n', "line 2, status: invalid enum value 'lost'"),
        (b'{"session":0,"ops":[],"level":"best"}\n', "line 2: unknown level 'best'"),
        (b'{"session":0,"ops":[]} {"session":0,"ops":[]}\n', "line 2"),
        (b'{"session":0,\n"ops":[]}\n', "line 2"),
        (b'{"session":0,"ops":' + b"[" * 100_000 + b"\n", "line 2"),
        (b'{"session":0,"ops":[["w","\xff",1]]}\n', "line 2"),
        (b"\0\0\0\n", "line 2"),
        (b"hello\n", "line 2: malformed JSON"),
    ],
)
def test_a_bad_json_line_is_located_and_earlier_transactions_are_delivered(bad, problem):
    for cut in (0, 1, 2):
        reader = Arrivals("h")
        lines = (GOOD + bad + GOOD).splitlines(keepends=True)
        found = []
        with pytest.raises(InputError, match=problem):
            for line, some in ((1, lines[:cut]), (1 + cut, lines[cut:])):
                for batch in reader.read(Piece(line, b"".join(some))) if some else ():
                    found += batch
        assert [a.line for a in found] == [1]


@pytest.mark.parametrize(
    "bad", [b"x(1,2,0,1)\n", b"w(1,2,0)\n", b"w(1,99999999999999999999,0,1)\n", b"\xff\n", b"\0\n"]
)
def test_a_bad_line_of_plume_text_is_located_and_earlier_transactions_are_delivered(bad):
    for cut in (0, 2, 3):
        reader, found = Arrivals("h"), []
        lines = (b"w(1,1,0,0)\nw(1,2,0,1)\n" + bad).splitlines(keepends=True)
        with pytest.raises(InputError, match=r"^line 3: "):
            for line, some in ((1, lines[:cut]), (1 + cut, lines[cut:])):
                for batch in reader.read(Piece(line, b"".join(some))) if some else ():
                    found += batch
        assert [a.id for a in found] == [0]


def test_format_detection_waits_for_a_decisive_line():
    reader = Arrivals("h")
    for n, text in enumerate((b"\n", b"# Plume\n", b" # text\n"), 1):
        assert list(reader.read(Piece(n, text))) == [] and reader.reader is None
    list(reader.read(Piece(4, b"w(1,2,0,3)\n")))
    assert [(a.id, a.line) for a in reader.finish()] == [(3, 4)]


@pytest.mark.parametrize(
    "text",
    [
        b'{"sessions": []}\n',
        b"{:type :ok, :process 0, :value [[:w 1 2]]}\n",
        b"#jepsen.history.Op{:type :ok}\n",
        b"{\n",
    ],
)
def test_other_formats_are_rejected_with_a_hint_to_use_check(text):
    with pytest.raises(InputError, match=r"cannot be watched; use isocheck check"):
        list(Arrivals("h").read(Piece(1, text)))


def test_prose_is_not_a_history():
    with pytest.raises(InputError, match="not a history in any known format"):
        list(Arrivals("h").read(Piece(1, b"hello\n")))


def test_times_are_read():
    """What ``collect`` writes beside a transaction is for real-time order."""
    content = (
        b'{"initial": 0, "ticks_per_second": 1000000000, "collected": {}}\n'
        b'{"session": 0, "ops": [["w", "x", 1]], "start": 5, "end": 9}\n'
        b'{"start": 7, "end": null, "session": 1, "ops": [["r", "x", 1]], "status": "unknown"}\n'
    )
    found, reader = arrivals_of(content, [])
    assert [(a.session, a.status, a.line) for a in found] == [(0, "committed", 2), (1, "unknown", 3)]
    assert [(a.start, a.end) for a in found] == [(5, 9), (7, None)]
    assert reader.initial == 0 and reader.declared and reader.per_second == 10**9
    with pytest.raises(InputError, match=r"line 1, ticks_per_second"):
        arrivals_of(content.replace(b"1000000000", b"true"), [])
