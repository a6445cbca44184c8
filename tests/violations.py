"""Violations made by hand, for tests of reports, and texts that try to inject markup or terminal codes."""

from plume_py.checking.result import Ends, ShownTransaction, Step, Violation
from plume_py.history.model import INITIAL_ID
from plume_py.levels.patterns import TAPS

HOSTILE = (
    '"><script>window.hacked = 1</script>',
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hacked = 1'>",
    "tab\tnewline\nescape\x1b[31m null\x00 bell\x07",
    "right\u202eto\u200fleft \u05d0\u05d1\u05d2 isolate\u2066",
    "line\u2028paragraph\u2029 surrogate\ud800",
    "javascript:window.hacked=1",
    "é" * 10_000,
    "&lt;b&gt; ${window.hacked=1} {{7*7}}",
)


def txn(name: str | int, session: str | int, *ops: tuple[object, ...], **more: object) -> ShownTransaction:
    status = str(more.get("status", "committed"))
    return ShownTransaction(name, session, f"sessions[{session}]", 0, status, ops, int(str(more.get("hidden", 0))))


def fractured(n: int, key: str = "x", other: str = "y") -> Violation:
    """t3 sees t2's y beside the x that t2 overwrote: a WR step, and a CM step with its reason."""
    t1, t2, t3 = f"t{n}.1", f"t{n}.2", f"t{n}.3"
    saw = Step(t2, t3, "WR", other, f"{t3} read {other} = 1 from {t2}", 1, source_op=2, target_op=1)
    asked = Step(
        t1, t3, "WR", key, f"{t3} read {key} from {t1}, although {t2} wrote it too", 1, source_op=0, target_op=0
    )
    because = f"{t2} must commit before {t1}"
    steps = (
        Step(t1, t2, "WR", key, f"{t2} read {key} = 1 from {t1}", 1, source_op=0, target_op=0),
        Step(t2, t1, "CM", key, because, None, t3, (saw,), False, 1, 0, 0, asked),
    )
    txns = (
        txn(t1, 0, ("w", key, 1)),
        txn(t2, 1, ("r", key, 1), ("w", key, 2), ("w", other, 1), hidden=4),
        txn(t3, 2, ("r", key, 1), ("r", other, 1)),
    )
    words = "; ".join(step.because for step in steps)
    end = f"Hence {t1} would have to come before itself: a contradiction."
    line = f"{t3} read {key} from {t1}, although {t2}, from which it also read {other}, had overwritten it"
    return Violation(TAPS["k"], "RA", (key, other), txns, steps, Ends.CLOSED, end, words, headline=line)


def thin_air(name: str = "t9") -> Violation:
    txns = (txn(name, "s", ("r", "q", 12), ("r", "q", 1)),)
    words = f"{name} read q = 1, which nobody wrote"
    return Violation(TAPS["a"], "RC", ("q",), txns, (), Ends.OPEN, f"{words}.", words, ((0, 1),), words)


def stale() -> Violation:
    saw = Step("t1", "t2", "SO", because="t1 comes before t2 in session 0")
    step = Step(
        "t1", INITIAL_ID, "CM", "x", "t2 read the initial x", reader="t2", evidence=(saw,), source_op=0, reader_op=0
    )
    txns = (txn("t1", 0, ("w", "x", 1)), txn("t2", 0, ("r", "x", 0)))
    end = "Hence t1 would have to come before the initial state: a contradiction."
    return Violation(
        TAPS["k"],
        "RA",
        ("x",),
        txns,
        (step,),
        Ends.BEFORE_START,
        end,
        step.because,
        headline="t2 read the initial x, although t1 had overwritten it",
    )
