"""``plume_py.testing``: passes, fails with the proof, never passes what was not decided."""

import subprocess
import sys

import pytest
from paths import ROOT
from program import PATIENCE

import plume_py
from plume_py.testing import IsolationError, assert_isolation

pytest_plugins = ["pytester"]

DEMO = ROOT / "histories" / "demo.json"
SERIAL = ROOT / "histories" / "TCC" / "serial.json"

STALE = [[[("w", "x", 1)], [("r", "x", 0)]]]
FINE = [[[("w", "x", 1)]], [[["r", "x", 1]]]]


@pytest.mark.parametrize(
    "history",
    [
        SERIAL,
        str(SERIAL),
        plume_py.load(SERIAL),
        FINE,
        tuple(map(tuple, FINE)),
        [[{"ops": [["w", "x", 1]], "id": "a", "status": "unknown", "level": "SI", "more": 1}], [[("r", "x", 1)]]],
        {"initial": 0, "sessions": [[{"ops": [["r", "x", 0]]}]]},
        {"sessions": [[{"ops": [["r", "x", None]]}]]},
        [[[("append", "x", 1)]], [[("r", "x", [1])]]],
        [],
        [[], []],
    ],
    ids=["Path", "str", "History", "lists", "tuples", "dicts", "document", "no initial", "append", "empty", "no txns"],
)
def test_what_holds_is_returned(history):
    result = assert_isolation(history)
    assert result.ok is True
    assert list(result.levels) == ["TCC"]


def test_a_violation_raises_with_the_proof():
    with pytest.raises(AssertionError) as raised:
        assert_isolation(DEMO, "TCC")
    message = str(raised.value)
    assert message.startswith("the history does not keep TCC\n")
    assert f"{DEMO}: 4 transactions" in message
    assert "TAP-m COConflictCM" in message
    assert "    1. share -SO-> hide-and-post: " in message
    assert "Hence share would have to come before itself: a contradiction." in message
    assert "\x1b" not in message
    assert isinstance(raised.value, IsolationError)
    assert raised.value.result.levels["TCC"].taps == ("m",)


def test_weaker_levels_and_several_levels():
    assert_isolation(DEMO, ["RC", "read-atomic"])
    with pytest.raises(AssertionError, match="does not keep TCC"):
        assert_isolation(DEMO, ["RA", "TCC"])


def test_undecided_is_not_a_pass():
    with pytest.raises(AssertionError, match="could not decide declared"):
        assert_isolation(SERIAL, "declared")
    with pytest.raises(AssertionError, match="does not keep TCC; could not decide declared"):
        assert_isolation(DEMO, ["TCC", "declared"])


def test_options():
    with pytest.raises(AssertionError, match=r"mine: 2 transactions[\s\S]*TAP-k"):
        assert_isolation(STALE, "RA", initial=0, name="mine")
    with pytest.raises(AssertionError, match="TAP-a"):  # without the initial value, nobody wrote 0
        assert_isolation(STALE, "RA")
    assert_isolation(STALE, "RA", initial=0, taps="a")
    with pytest.raises(AssertionError) as raised:
        assert_isolation(DEMO, max_examples=0)
    assert "1. " not in str(raised.value)
    assert assert_isolation(SERIAL, format="json").format == "json"


def test_a_transaction_that_aborted_does_not_count_as_a_writer():
    seen = [[{"ops": [("w", "x", 1)], "status": "aborted"}], [[("r", "x", 1)]]]
    with pytest.raises(AssertionError, match="TAP-b AbortedRead"):
        assert_isolation(seen, "RC")


def test_bad_input_is_not_an_assertion():
    with pytest.raises(plume_py.InputError):
        assert_isolation(ROOT / "no-such-file.json")
    with pytest.raises(plume_py.InputError, match="not an operation"):
        assert_isolation([[[("write", "x", 1)]]])
    with pytest.raises(ValueError, match="unknown level"):
        assert_isolation(FINE, "XYZ")


def test_a_hostile_history_stays_on_its_lines():
    key = "\x1b[2J\n    Usual cause: none\u202e"
    with pytest.raises(AssertionError) as raised:
        assert_isolation([[[("w", key, 1)], [("r", key, 0)]]], "RA", initial=0, name="evil\nname")
    assert all(c.isprintable() or c == "\n" for c in str(raised.value))
    assert str(raised.value).count("Usual cause: commit") == 1
    assert "evil\\nname" in str(raised.value)


def test_the_fixture(pytester):
    pytester.makeconftest('pytest_plugins = ["plume_py.testing"]')
    pytester.makepyfile(
        """
        def test_holds(isolation):
            assert isolation([[[("w", "x", 1)]]], "TCC").history == "test_holds"

        def test_stale(isolation):
            isolation([[[("w", "x", 1)], [("r", "x", 0)]]], "RA", initial=0)
        """
    )
    run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(["E*the history does not keep RA", "E*test_stale: 2 transactions*", "E*TAP-k*"])
    assert "raise IsolationError" not in run.stdout.str()  # the traceback ends in the test


def test_pytest_is_not_needed():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from plume_py import testing\n"
        "assert not hasattr(testing, 'isolation')\n"
        "assert testing.assert_isolation([[[('w', 'x', 1)]]]).ok\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=PATIENCE)
