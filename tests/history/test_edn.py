"""formats/edn.py, jepsen.py, elle_json.py: kernel against edn_format, meaning of operations, broken input."""

import json
import random

import edn_format
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.checking.check import check
from plume_py.history.formats import edn, edn_kernels, elle_json_kernels
from plume_py.history.formats.edn_atoms import EXACT, MARK, SET, text_of, written
from plume_py.history.load import load
from plume_py.history.model import NOBODY, History
from plume_py.levels import NAMES


@pytest.fixture(params=["never", "always"])
def compiled(request, monkeypatch):
    dispatch.uncompile(edn_kernels, elle_json_kernels)
    monkeypatch.setenv("ISOCHECK_COMPILE", request.param)
    yield request.param
    dispatch.uncompile(edn_kernels, elle_json_kernels)


def to_json(text, block=edn.BLOCK):
    """The forms of ``text`` as JSON, and their lines."""
    reader = edn.BlockReader(text.encode() if isinstance(text, str) else text, block)
    forms, lines = [], []
    while not reader.finished:
        out, numbers = reader.next_block()
        forms += [json.loads(line) for line in out.splitlines()]
        lines += numbers
    return forms, lines


def history(tmp_path, text, name="h.edn", format="edn") -> History:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(path, format=format)


def sessions(loaded):
    """{session: [(status, [operation])]}."""
    return {
        session[0].session: [(txn.status, [tuple(op) for op in txn.ops]) for txn in session]
        for session in loaded
        if session
    }


# --- the kernel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{:a 1, :b nil}", [{":a": 1, ":b": None}]),
        ("[1 2]", [1, 2]),
        ("(1 2)", [1, 2]),
        ("[]", []),
        ("", []),
        (" ; nothing\n", []),
        ("[[1 (2 #{3}) {}]]", [[1, [2, {SET: [3]}], {}]]),
        ("[true false nil truer ni +]", [True, False, None, EXACT + "truer", EXACT + "ni", EXACT + "+"]),
        ("[a/b :c/d :e.f' -x é :ü]", [EXACT + "a/b", ":c/d", ":e.f'", EXACT + "-x", EXACT + "é", ":ü"]),
        ("[1N -2 +3 1.5M 7M 2e3 -1.5E-2 0 -0 1/2]",
         [1, -2, 3, EXACT + "1.5M", EXACT + "7M", 2000.0, -0.015, 0, 0, EXACT + "1/2"]),
        ("[0x1f -0X1FN 017 +00 2r101 -36Rzz 16r1F 0x7fffffffffffffff 0x8000000000000000 -9r8N8]", None),
        ("[0x1f -0X1FN 017 +00 2r101 -36Rzz 16r1F 0x7fffffffffffffff 0x8000000000000000 36rN]",
         [31, -31, 15, 0, 5, -1295, 31, 2**63 - 1, EXACT + "0x8000000000000000", 23]),
        ('["a\\n\\t\\"\\\\" "\\u0041" "ü" "\n"]', ['a\n\t"\\', MARK + "A", "ü", "\n"]),
        ('[":x" "1.5" "-1" "true" "false" "[1]" "#{}" "\\"" "\0" "trues" "true " "" "x:1"]',
         [MARK + s for s in (":x", "1.5", "-1", "true", "false", "[1]", "#{}", '"', "\0")]
         + ["trues", "true ", "", "x:1"]),
        ("[#{} #{1 #{2}}]", [{SET: []}, {SET: [1, {SET: [2]}]}]),
        ("[\\a \\newline \\space \\tab \\return \\formfeed \\backspace \\u0041 \\u \\é \\( \\\\ \\\"]",
         [EXACT + "\\" + c for c in "a\n \t\r\f\bAué(\\\""]),
        ('[#inst "2020" #a.b/C {:x 1} #object[a.Foo 0x1f "s"]]',
         [MARK + "2020", {":x": 1}, [EXACT + "a.Foo", 31, "s"]]),
        ("[#_1 2 #_ #_ 3 4 5 #_{:a [}]", None),
        ("[#_1 2 #_ #_ 3 4 5 #_{:a [7]}]", [2, 5]),
        ("{#_:z :a #_[1] 1 #t :b #t 2}", [{":a": 1, ":b": 2}]),
        ('{1 2, "s" 3, nil 4, sym 5, \\c 6, -1.5 7}',
         [{"1": 2, "s": 3, EXACT + "nil": 4, EXACT + "sym": 5, EXACT + "\\c": 6, "-1.5": 7}]),
        ("{:a 1}{:b 2}\n{:c 3}", [{":a": 1}, {":b": 2}, {":c": 3}]),
        ("[##Inf ##-Inf]", ["##Inf", "##-Inf"]),
        ("\ufeff[1]", [1]),
        ('[:a"b"1[2]3]', [":a", "b", 1, [2], 3]),
    ],
)  # fmt: skip
def test_each_form_becomes_a_line_of_json(compiled, text, expected):
    if expected is None:
        with pytest.raises(InputError):
            to_json(text)
    else:
        assert to_json(text)[0] == expected


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        ("[{:a 1}\n {:b", "never closed", "line 2, column 5"),
        ("[1 2", "never closed", "line 1, column 5"),
        ('{:a "x', "string that never ends", "line 1, column 5"),
        ("{:a 1}]", "without an opening", "line 1, column 7"),
        ("[{:a 1)]", "wrong kind", "line 1, column 7"),
        ("[1)", "wrong kind", "line 1, column 3"),
        ("\n\n{:a 1 :b}", "no value", "line 3, column 9"),
        ("[1 #_]", "nothing after it", "line 1, column 6"),
        ("[1] #foo", "follows the vector", "line 1, column 5"),
        ("1 #foo", "nothing after it", "line 1, column 7"),
        ("[1] [2]", "follows the vector", "line 1, column 5"),
        ("{[1] 2}", "key of a map", "line 1, column 2"),
        ("{#t #{1} 2}", "key of a map", "line 1, column 5"),
        ("[" * 100, "too deeply", "line 1, column 66"),
        ("[@x]", "does not know", "line 1, column 2"),
        ("[08]", "malformed number", "line 1, column 2"),
        ("[0x]", "malformed number", "line 1, column 2"),
        ("[1 2r2]", "malformed number", "line 1, column 4"),
        ("[37r1]", "malformed number", "line 1, column 2"),
        ("[1/0]", "malformed number", "line 1, column 2"),
        (f"[0x{'f' * 5000}]", "malformed number", "line 1, column 2"),
        ("[ü 1a]", "malformed number", "line 1, column 4"),
        ("[1. ]", "malformed number", "line 1, column 2"),
        ("[1/ ]", "malformed number", "line 1, column 2"),
        ("[1e]", "malformed number", "line 1, column 2"),
        ("[: 1]", "malformed keyword", "line 1, column 2"),
        ("[::a]", "malformed keyword", "line 1, column 2"),
        ('["\\q"]', "unknown escape", "line 1, column 3"),
        ('["\\u12g4"]', "unknown escape", "line 1, column 3"),
        ("[\\abc]", "unknown character name", "line 1, column 2"),
        ("[\\ ]", "unknown character name", "line 1, column 2"),
        ('[#"re"]', "unknown use of #", "line 1, column 2"),
        ("#", "unknown use of #", "line 1, column 1"),
    ],
)
def test_syntax_errors(compiled, text, problem, where):
    with pytest.raises(InputError) as error:
        to_json(text)
    assert problem in error.value.problem
    assert error.value.where == where
    assert error.value.hint


def test_each_form_has_its_source_line():
    text = '; comment\n[{:a 1}\n\n {:b "x\ny"} {:c\n 1}\n#_ {:d 2}\n#t {:e 1}]\n'
    assert to_json(text)[1] == [2, 4, 5, 8]
    assert to_json("{:a 1}\n{:b 1}")[1] == [1, 2]


def test_the_block_size_does_not_change_the_result(compiled):
    text = (
        '[{:a 1, :b "x\\n\\u0041 é"}\n #_ {:z 1} #inst "2020" ; c\n \\newline 12 nil :key [#{1 2} (3)]\n{:c \\a}] ; end'
    )
    expected = to_json(text)
    for block in range(1, len(text) + 2):
        assert to_json(text, block) == expected


def test_error_in_a_later_block():
    text = "{:a 1}\n" * 100 + "  {:a é 08}"
    for block in (5, 30, 1000):
        with pytest.raises(InputError) as error:
            to_json(text, block)
        assert error.value.where == "line 101, column 9"


names = st.from_regex(r"[a-z][a-z0-9*!_?.-]{0,6}", fullmatch=True)
atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(st.characters(exclude_categories=["Cs"])),
    names.map(edn_format.Keyword),
    names.filter(lambda n: n not in ("nil", "true", "false")).map(edn_format.Symbol),
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.one_of(st.text('ab\n"\\é'), names.map(edn_format.Keyword), st.integers()), inner, max_size=4
        )
    ),
    max_leaves=25,
)


def as_json(value):
    """What our JSON makes of a value of edn_format's."""
    if isinstance(value, edn_format.Keyword):
        return f":{value.name}"
    if isinstance(value, edn_format.Symbol):
        return EXACT + value.name
    if isinstance(value, dict | edn_format.ImmutableDict):
        return {str(as_json(key)): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | edn_format.ImmutableList):
        return [as_json(inner) for inner in value]
    if isinstance(value, str) and (value in ("true", "false") or value[:1] in tuple("\0\x7f:'[#-\\0123456789")):
        return MARK + value
    return value


def unmarked(value):
    """edn_format's escapes differ from ours, and so what they mark: the marks of escaped beginnings do not matter."""
    if isinstance(value, str):
        return value.removeprefix(MARK)
    if isinstance(value, dict):
        return {unmarked(key): unmarked(inner) for key, inner in value.items()}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=300, deadline=None)
@given(st.lists(values, max_size=4))
def test_the_kernel_agrees_with_edn_format(data):
    text = edn_format.dumps(data)
    assert unmarked(as_json(edn_format.loads(text))) == unmarked(to_json(text)[0])


@st.composite
def damaged_texts(draw):
    text = bytearray(edn_format.dumps(draw(st.lists(values, max_size=4))).encode())
    if draw(st.booleans()):
        text[draw(st.integers(0, len(text) - 1))] = draw(st.sampled_from(b'[](){}#_"\\:;u1 \n\xff'))
    return bytes(text), draw(st.integers(1, 60))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(damaged_texts(), min_size=10, max_size=20))
def test_compiled_and_plain_kernel_agree(monkeypatch, cases):
    results = []
    for mode in ("never", "always"):
        dispatch.uncompile(edn_kernels)
        monkeypatch.setenv("ISOCHECK_COMPILE", mode)
        results.append([outcome(text, block) for text, block in cases])
    dispatch.uncompile(edn_kernels)
    assert results[0] == results[1]


def outcome(text, block):
    try:
        return list(read_raw(text, block))
    except InputError as error:
        return str(error)


def read_raw(text, block):
    reader = edn.BlockReader(text, block)
    while not reader.finished:
        yield reader.next_block()


# --- the meaning


def test_invocations_and_completions_become_transactions(tmp_path):
    loaded = history(
        tmp_path,
        """
{:type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r :y nil]]}
{:type :invoke, :process 1, :f :txn, :value [[:append :x 2]]}
{:type :info, :process :nemesis, :f :kill, :value {"n1" [:killed]}}
{:type :ok, :process 0, :f :txn, :value [[:append :x 1] [:r :y nil] [:r :x [2 1]] [:r :z []]]}
{:type :fail, :process 1, :f :txn, :error [:duplicate "key"]}
{:type :invoke, :process 1, :f :txn, :value [[:append :x 3] [:r :x nil]]}
{:type :info, :process 1, :f :txn, :value [[:append :x 3] [:r :x nil] [:r :y [7]]], :error :timeout}
{:type :invoke, :process 2, :f :txn, :value [[:append :y 7] [:r :x nil]]}
{:type :fail, :process 3, :f :txn, :value [[:append :y 8]]}
""",
    )
    assert sessions(loaded) == {
        0: [("committed", [("append", ":x", 1), ("r", ":y", None), ("r", ":x", (2, 1)), ("r", ":z", ())])],
        1: [
            ("aborted", [("append", ":x", 2)]),
            ("unknown", [("append", ":x", 3), ("r", ":y", (7,))]),
        ],
        3: [("aborted", [("append", ":y", 8)])],
        2: [("unknown", [("append", ":y", 7)])],
    }
    assert loaded.txn_line is not None
    assert sorted(loaded.txn_line.tolist()) == [5, 6, 8, 9, 10]
    assert loaded.initial_value is None


def test_registers_and_histories_of_invocations_only(tmp_path):
    loaded = history(
        tmp_path,
        '[{:type :ok :process 5 :value [[:w "x" 1] [:r 2 nil] [:r "x" 1] [:w :k :v]]}'
        "{:process 5 :type :invoke :value []}{:process 5 :type :invoke :value [[:w 3 4]]}]",
    )
    assert sessions(loaded) == {
        5: [
            ("committed", [("w", "x", 1), ("r", 2, None), ("r", "x", 1), ("w", ":k", ":v")]),
            ("unknown", []),
            ("unknown", [("w", 3, 4)]),
        ]
    }


def test_without_processes_each_transaction_is_a_session(tmp_path):
    loaded = history(
        tmp_path,
        """{:type :invoke :value [[:append 1 1] [:r 2 nil]]}
{:type :invoke :value [[:append 1 2]]}
{:type :invoke :value [[:append 1 3]]}
{:type :ok :value [[:append 1 2]]}
{:type :ok :value [[:append 1 1] [:r 2 []]]}
""",
    )
    assert sorted(sessions(loaded).values()) == [
        [("committed", [("append", 1, 1), ("r", 2, ())])],
        [("committed", [("append", 1, 2)])],
        [("unknown", [("append", 1, 3)])],
    ]


def test_an_invocation_survives_the_end_of_its_block(tmp_path, monkeypatch):
    monkeypatch.setattr(edn, "BLOCK", 200)
    monkeypatch.setattr(edn.BlockReader.__init__, "__defaults__", (200,))
    text = "{:type :invoke :process 9 :value [[:w 1 1] [:r 1 nil]]}\n"
    text += "".join(f"{{:type :ok :process 1 :value [[:w 2 {i}]]}}\n" for i in range(200))
    loaded = history(tmp_path, text + "{:type :fail :process 9}")
    assert sessions(loaded)[9] == [("aborted", [("w", 1, 1)])]
    assert loaded.transactions == 201


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (
            "{:type :ok :process 0 :value [[:w :x 1]]}\n{:type :ok :process 1 :value [[:w :x 2]]}\n"
            "{:type :ok :process 1 :value [[:r :x 1]]}",
            "edn",
        ),
        (
            '{"type": "ok", "process": 0, "value": [["w", "x", 1]]}\n'
            '{"type": "ok", "process": 1, "value": [["w", "x", 2]]}\n'
            '{"type": "ok", "process": 1, "value": [["r", "x", 1]]}',
            "elle-json",
        ),
    ],
)
def test_no_jepsen_transaction_is_initial(tmp_path, text, format):
    loaded = history(tmp_path, text, format=format)
    assert loaded.init_txn == NOBODY
    assert check(loaded, NAMES).ok
    assert load(tmp_path / "h.edn", format=format, init_txn="first").init_txn == 0


def test_empty_histories(tmp_path):
    assert history(tmp_path, "[]").transactions == 0
    assert history(tmp_path, "[]", "h.json", "elle-json").transactions == 0
    for text in (" ", "; nothing\n", "[{:type :info :process :nemesis :f :kill}]", "#_ {}"):
        with pytest.raises(InputError, match=r"no operation|no client operations"):
            history(tmp_path, text)
    with pytest.raises(InputError, match="no operation"):
        history(tmp_path, " \n", "h.json", "elle-json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{:type :ok :process 1 :f :read :value {}}", r"line 1: not a transactional.*\(its operations are :read\)"),
        ("{:type :invoke :process 1 :f :acquire}", "its operations are :acquire"),
        ("{:type :ok :process 1 :f :add :value [1 2]}", "its operations are :add.*list-append and rw-register"),
        ("{:type :ok :process 1 :f :txn :value [[:cas 1 2]]}", r"not a read, write or append: \[:cas 1 2\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r nil 1]]}", r"line 1: nil as a key: \[:r nil 1\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r {:a 1} 1]]}", r"a map or a set as a key: \[:r {:a 1} 1\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r #{1} 1]]}", r"a map or a set as a key: \[:r #\{1} 1\]"),
        ("{:type :ok :process 1 :f :txn :value [[:append 1 [2 3]]]}", r"a list appended.*\[:append 1 \[2 3\]\]"),
        ("{:type :ok :process 1 :f :txn :value [[:w 1 [2 3]]]}", r"a list can only be read: \[:w 1 \[2 3\]\]"),
        ("{:type :ok :process 1 :f :txn :value [[:w 1]]}", r"nothing to write: \[:w 1\]"),
        ("{:type :ok :process 1 :f :txn :value [[:append 1]]}", r"nothing to append: \[:append 1\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r 1 [2 [3]]]]}", r"a list inside a list: \[:r 1 \[2 \[3\]\]\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r 1 [2 nil]]]}", r"nil inside a list: \[:r 1 \[2 nil\]\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r 1 #{2 true}]]}", r"a set is no list.*\[:r 1 #\{2 true}\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r 1 [#{2}]]]}", r"a set is no list.*\[:r 1 \[#\{2}\]\]"),
        ("{:type :ok :process 1 :f :txn :value [[:r 1 {:a 2}]]}", r"a map as a value: \[:r 1 {:a 2}\]"),
        ('{:type :ok :process 1 :f :txn :value [["r" 1 2]]}', r"not a read, write or append: \[r 1 2\]"),
        ("{:type :ok :process 1 :f :txn :value nil}", "not a transactional"),
        ("\n{:type :done :process 1 :value []}", "line 2: unknown type ':done'"),
        ("{:process 1 :value []}", "without a type"),
        ("{:type :ok}\n[1 2]", "line 2: not an operation"),
        ('{:type "\\ud800"}', "line 1"),
        (b'{:type :ok :process 1 :value [[:w "\xff" 1]]}', "line 1"),
        ("{:type :ok :process 1 :value [[:w 1 " + "9" * 5000 + "]]}", "out of range"),
        ("{:type :ok :process 1 :value [[:w 1 2] [:append 1 3]]}", "both as a list and as a register"),
    ],
)
def test_non_transactional_histories_are_rejected(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        history(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_read_may_leave_out_its_value(tmp_path):
    """As in the docstring of jepsen.tests.cycle.append; what is not there is nil, as Clojure has it."""
    loaded = history(
        tmp_path,
        "{:type :invoke :process 0 :f :txn :value [[:r 3 nil] [:append 3 2] [:r 3]]}"
        "{:type :ok :process 0 :f :txn :value [[:r 3 [1]] [:append 3 2] [:r 3 [1 2]]]}"
        "{:type :invoke :process 0 :f :txn :value [[:r 3] [:append 3 4]]}"
        "{:type :info :process 0 :f :txn :value [[:r 3] [:append 3 4]]}"
        "{:type :ok :process 1 :f :txn :value [[:r 4]]}",
    )
    assert sessions(loaded) == {
        0: [
            ("committed", [("r", 3, (1,)), ("append", 3, 2), ("r", 3, (1, 2))]),
            ("unknown", [("append", 3, 4)]),
        ],
        1: [("committed", [("r", 4, None)])],
    }


# What EDN has besides integers, and how the model spells it; no two of them alike.
ATOMS = {
    "1": 1,
    "7N": 7,
    "1.0": "1.0",
    "1.50": "1.5",
    "-0.0": "0.0",
    "1E22": "1e+22",
    "1.50M": "1.5M",
    "1/2": "1/2",
    "true": "true",
    "##Inf": "##Inf",
    ":x": ":x",
    ":a/b": ":a/b",
    ":1": ":1",
    '"1"': "1",
    '"x"': "x",
    '"1.0"': '"1.0"',
    '"1.50"': "1.50",  # no float is spelled like that
    '"1.50M"': "1.50M",  # nor an exact number
    '"1.5M"': '"1.5M"',
    '"2/4"': "2/4",
    '"1/0"': "1/0",
    '"1/2"': '"1/2"',
    '"0x10"': "0x10",
    '"\'sym"': '"\'sym"',
    '"\'nil"': "'nil",
    '"sym"': "sym",
    '"\\\\a"': '"\\a"',
    '"\\\\ab"': "\\ab",
    '"\\\\newline"': '"\\newline"',
    '"\\\\u002c"': '"\\u002c"',
    "0x20": 32,
    "-021": -17,
    "16r1F": 31,
    "-0xffffffffffffffffff": -(16**18) + 1,
    "4/2": 2,
    "-6/4": "-3/2",
    "1M": "1M",
    "100M": "100M",
    "1e30M": "1E+30M",
    "-0.0M": "0M",
    "sym": "'sym",
    "a/b": "'a/b",
    "-": "'-",
    "truer": "'truer",
    "\\a": "\\a",
    "\\é": "\\é",
    "\\newline": "\\newline",
    "\\u0042": "\\B",
    "\\u002c": "\\u002c",
    "\\'": "\\'",
    '"true"': '"true"',
    '"##Inf"': '"##Inf"',
    '":x"': '":x"',
    '"\\u003ax:"': '":x:"',
    '": x"': ": x",
    '"::x"': "::x",
    '"\\":x\\""': '"":x""',
    '"\\"x\\""': '"x"',
    '"[1 2]"': '"[1 2]"',
    '"[1,2]"': "[1,2]",
    '"2020-01-01"': "2020-01-01",
    '"\\u0000x"': "\0x",
}
VECTORS = {
    "[1 2]": "[1 2]",
    '[1,"a" :b nil [2.50 (true)] "1" ":b"]': '[1 "a" :b nil [2.5 [true]] "1" ":b"]',
    "[]": "[]",
    "[sym \\a \\newline 0x10 2/4 nilx]": "[sym \\a \\newline 16 1/2 nilx]",
    '"[sym]"': '"[sym]"',
    '"[nilx \\\\a]"': '"[nilx \\a]"',
    '"[2/4]"': "[2/4]",
}


@pytest.mark.parametrize(("spelled", "atom"), [*ATOMS.items(), *VECTORS.items()])
def test_keys_of_every_type(tmp_path, spelled, atom):
    loaded = history(tmp_path, f"{{:type :ok :process 0 :value [[:w {spelled} 1] [:r 2 3]]}}")
    assert next(iter(sessions(loaded).values()))[0][1][0] == ("w", atom, 1)
    if isinstance(atom, str):
        (again,), _ = to_json(f"[{written(atom)}]")
        assert text_of(again, marked=True) == atom


@pytest.mark.parametrize(("spelled", "atom"), ATOMS.items())
def test_values_of_every_type(tmp_path, spelled, atom):
    text = (
        f"{{:type :ok :process 0 :value [[:append 1 {spelled}] [:r 1 [{spelled}]] [:w 2 {spelled}] [:r 2 {spelled}]]}}"
    )
    expected = [("append", 1, atom), ("r", 1, (atom,)), ("w", 2, atom), ("r", 2, atom)]
    assert sessions(history(tmp_path, text)) == {0: [("committed", expected)]}


def test_no_two_atoms_are_spelled_alike():
    assert len(set(ATOMS.values()) | set(VECTORS.values())) == len(ATOMS) + len(VECTORS)


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from('":[]\\ 1.0e+-/MxNtrue#\0é{}'), max_size=8) | st.text(max_size=5))
def test_every_text_can_be_written(text):
    """Also hostile ones: whatever a key is called, it takes one form of EDN and is read back as it was."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    (again,), _ = to_json(f"[{written(text)}]")
    assert text_of(again, marked=True) == text


def test_elle_json_keys_and_values_of_every_type(tmp_path):
    ops = [["w", 1.0, 1], ["w", "1.0", 1], ["w", True, 1], ["w", "true", 1], ["w", [1, "a"], 1], ["w", '[1 "a"]', 1]]
    text = json.dumps([{"type": "ok", "process": 0, "value": ops}])
    keys = [op[1] for op in sessions(history(tmp_path, text, format="elle-json"))[0][0][1]]
    assert keys == ["1.0", '"1.0"', "true", '"true"', '[1 "a"]', '"[1 "a"]"']
    assert len(sessions(history(tmp_path, json.dumps([{"type": "ok", "value": [["r", 1]]}]), format="elle-json"))) == 1


# --- registers: operations that are no transactions


def test_operations_on_one_register(tmp_path):
    loaded = history(
        tmp_path,
        """
{:type :invoke :process 0 :f :write :value 1}
{:type :info :process :nemesis :f :kill :value nil}
{:type :ok :process 0 :f :write :value 1}
{:type :invoke :process 1 :f :read :value nil}
{:type :invoke :process 0 :f :cas :value [1 2]}
{:type :ok :process 1 :f :read :value 1}
{:type :ok :process 0 :f :cas :value [1 2]}
{:type :invoke :process 0 :f :cas :value [7 3]}
{:type :fail :process 0 :f :cas :value [7 3] :error :mismatch}
{:type :invoke :process 0 :f :cas :value [2 4]}
{:type :info :process 0 :f :cas :value [2 4] :error :timeout}
{:type :invoke :process 2 :f :read}
{:type :fail :process 2 :f :read :error :timeout}
{:type :invoke :process 2 :f :read}
{:type :ok :process 2 :f :read :value nil}
{:type :invoke :process 2 :f :read}
""",
    )
    assert sessions(loaded) == {
        0: [
            ("committed", [("w", "register", 1)]),
            ("committed", [("r", "register", 1), ("w", "register", 2)]),
            ("aborted", [("w", "register", 3)]),
            ("unknown", [("w", "register", 4)]),
        ],
        1: [("committed", [("r", "register", 1)])],
        2: [("aborted", []), ("committed", [("r", "register", None)]), ("unknown", [])],
    }


def test_a_register_without_processes(tmp_path):
    loaded = history(
        tmp_path,
        "{:type :invoke :f :read :value nil}{:type :invoke :f :write :value 1}"
        "{:type :ok :f :write :value 1}{:type :ok :f :read :value 1}",
    )
    assert sorted(sessions(loaded).values()) == [
        [("committed", [("r", "register", 1)])],
        [("committed", [("w", "register", 1)])],
    ]


def test_independent_registers(tmp_path):
    loaded = history(
        tmp_path,
        """
{:type :invoke :process 0 :f :write :value [5 1]}
{:type :ok :process 0 :f :write :value [5 1]}
{:type :invoke :process 1 :f :read :value [5 nil]}
{:type :ok :process 1 :f :read :value #jepsen.independent.Tuple [5 1]}
{:type :invoke :process 0 :f :cas :value #clojure.lang.MapEntry [:k [1 2]]}
{:type :ok :process 0 :f :cas :value [:k [1 2]]}
{:type :invoke :process 1 :f :read :value [6 nil]}
{:type :ok :process 1 :f :read :value nil}
{:type :invoke :process 1 :f :read :value [6 nil]}
{:type :info :process 1 :f :read :value [6 nil]}
""",
    )
    assert sessions(loaded) == {
        0: [("committed", [("w", 5, 1)]), ("committed", [("r", ":k", 1), ("w", ":k", 2)])],
        1: [("committed", [("r", 5, 1)]), ("committed", [("r", 6, None)]), ("unknown", [])],
    }


def test_independent_transactions(tmp_path):
    text = "{:type :ok :process 0 :f :txn :value [7 [[:append :x 1] [:r :x [1]] [:r 2]]]}"
    expected = [("append", "[7 :x]", 1), ("r", "[7 :x]", (1,)), ("r", "[7 2]", None)]
    assert sessions(history(tmp_path, text)) == {0: [("committed", expected)]}


def test_transactions_that_are_called_reads(tmp_path):
    """As jepsen.tests.long-fork does."""
    text = "{:type :ok :process 0 :f :read :value [[:r 1 nil] [:r 2 3]]}"
    assert sessions(history(tmp_path, text)) == {0: [("committed", [("r", 1, None), ("r", 2, 3)])]}


def test_registers_in_elle_json(tmp_path):
    text = json.dumps(
        [
            {"type": "ok", "process": 0, "f": "write", "value": ["k", 1]},
            {"type": "ok", "process": 1, "f": "cas", "value": ["k", [1, 2]]},
        ]
    )
    assert sessions(history(tmp_path, text, format="elle-json")) == {
        0: [("committed", [("w", "k", 1)])],
        1: [("committed", [("r", "k", 1), ("w", "k", 2)])],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{:type :ok :process 0 :f :write :value 1}\n{:type :ok :process 0 :f :read :value [1 2]}", "line 2: some op"),
        ("{:type :ok :process 0 :f :read :value [1 2 3]}", "its operations are :read"),
        ("{:type :ok :process 0 :f :read :value #{1 2}}", "its operations are :read"),
        ("{:type :ok :process 0 :f :read :value [1 [2 3]]}", "its operations are :read"),
        ("{:type :ok :process 0 :f :cas :value [1 2 3]}", "its operations are :cas"),
        ("{:type :ok :process 0 :f :cas :value 1}", "its operations are :cas"),
        ("{:type :ok :process 0 :f :write :value nil}", "its operations are :write"),
        ("{:type :ok :process 0 :f :write :value [nil 1]}", "its operations are :write"),
        ("{:type :ok :process 0 :f :read}{:type :ok :process 0 :f :transfer :value {:from 1}}", ":read, :transfer"),
        (
            "{:type :ok :process 0 :f :write :value 1}{:type :ok :process 1 :f :write :value 1}"
            "{:type :ok :process 2 :f :read :value 1}",
            "ambiguous read: T3 read value 1 of key 'register', which two transactions wrote",
        ),
    ],
)
def test_unsupported_registers_are_rejected(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        history(tmp_path, text)
    assert "\n" not in str(error.value)


# --- Elle JSON

ELLE = [
    {"type": "invoke", "f": "txn", "process": 0, "value": [["w", "x", 2], ["r", "y", None]]},
    {"type": "ok", "f": "txn", "process": 0, "value": [["w", "x", 2], ["r", "y", None]], "text": 'a"]}\\'},
    {"type": "info", "f": "kill", "process": "nemesis", "value": {"a": [1]}},
    {"type": "fail", "f": "txn", "process": 1, "value": [["append", 1, 2], ["r", 3, [4]]]},
]
ELLE_SESSIONS = {
    0: [("committed", [("w", "x", 2), ("r", "y", None)])],
    1: [("aborted", [("append", 1, 2), ("r", 3, (4,))])],
}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (json.dumps(ELLE), [1, 1]),
        ("\n" + json.dumps(ELLE, indent=1).replace("\n", "\r\n"), None),
        ("[" + ",\n".join(map(json.dumps, ELLE)) + "]", [2, 4]),
        ("\n".join(map(json.dumps, ELLE)), [2, 4]),
        ("\ufeff" + "\n\n".join(map(json.dumps, ELLE)) + "\n", [3, 7]),
        ("\ufeff" + json.dumps(ELLE), [1, 1]),
    ],
)
def test_elle_json(compiled, tmp_path, text, lines):
    loaded = history(tmp_path, text, "h.json", "elle-json")
    assert sessions(loaded) == ELLE_SESSIONS
    if lines:
        assert loaded.txn_line is not None
        assert loaded.txn_line.tolist() == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"type": "ok", "process": 1, "f": "add", "value": 3}]', r"its operations are add\)"),
        ('[{"type": "ok", "process": 1, "value": [["r", 1, {}]]}]', r'line 1: a map as a value: \["r",1,{}\]'),
        ('[{"type": "ok", "process": 1, "value": [["r", 1, [2, null]]]}]', r'null inside a list: \["r",1,\[2,null\]\]'),
        ('[{"type": "ok", "process": 1, "value": [["r", 1, [[2]]]]}]', r'inside a list: \["r",1,\[\[2\]\]\]'),
        ('{"type": "ok", "process": 1, "value": []}\n{"type": 3}', r"line 2: not an operation"),
        ('[{"type": "ok"}', "ends too early"),
        ('[{"type": "ok"},\n 3]', "expected"),
        ('{"type": "info", "process": "x"}\n[3]', "line 2"),
    ],
)
def test_broken_elle_json(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        history(tmp_path, text, "h.json", "elle-json")


# --- damage ---------------------------------------------------------------------------------------------------------

SMALL = b"""; two operations
[{:type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r 2 nil]], :time 1.5, :error [#inst "2" \\a "\\u00e9"]}
 #_ {:gone #{1 2}}
 {:type :ok, :process 0, :f :txn, :value [[:append :x 1] [:r 2 [3 4]]]}
 {:type :info, :process :nemesis, :value {"n" :k}}
 {:type :fail, :process 1, :f :txn, :value [[:append 2 3] [:append 2 4N]]}]
"""


def survives(tmp_path, text, name, format):
    try:
        assert isinstance(history(tmp_path, text, name, format), History)
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(("text", "format"), [(SMALL, "edn"), (json.dumps(ELLE).encode(), "elle-json")])
def test_damaged_files_are_input_errors(tmp_path, text, format):
    for end in range(len(text)):
        survives(tmp_path, text[:end], "h", format)
    rng = random.Random(7)
    for _ in range(1500):
        damaged = bytearray(text)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(damaged))
            if rng.random() < 0.3:
                del damaged[at : at + rng.randint(1, 8)]
            else:
                damaged[at] = (
                    rng.choice(b'[](){}#_"\\:;,u019 \n\xff\x00/N.e-+') if rng.random() < 0.8 else rng.randrange(256)
                )
        survives(tmp_path, bytes(damaged), "h", format)
