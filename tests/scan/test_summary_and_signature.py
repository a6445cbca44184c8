"""The shapes of violations, the summary and its page (scan/violation_signature.py, summary.py, page.py)."""

import random
import re

import pytest
from paths import ROOT
from violations import HOSTILE as HOSTILE_TEXTS
from violations import fractured, stale, thin_air

import plume_py
from plume_py.checking.result import Ends, LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.cli.scan import status_text
from plume_py.history.generate import generate
from plume_py.history.inject import RECIPES, inject
from plume_py.scan import summary as summary_module
from plume_py.scan.page import document
from plume_py.scan.results import Reader
from plume_py.scan.settings import ScanTask, Settings, TaskAnswer, bytes_text
from plume_py.scan.summary import Tally, render, summarize
from plume_py.scan.violation_signature import shape_of
from plume_py.scan.worker import answer_of

# Paths may hold surrogates, and are spelled out early; what a history holds is valid text.
HOSTILE = [text.replace("\ud800", "") for text in HOSTILE_TEXTS]


def made_line(path, violations=(), ok=True, seconds=0.1, digest="d", size=10, error=None):
    """A line as a worker makes it."""
    taps = tuple(dict.fromkeys(v.tap for v in violations))
    verdicts = {} if error else {"RA": LevelVerdict(False if taps else ok, taps, None if ok is not None else "why")}
    result = Result(path, "json", 1, 2, 3, verdicts, tuple(violations), dict.fromkeys(taps, 2), error=error,
                    seconds={"load": seconds, "check": seconds})  # fmt: skip
    return answer_of(ScanTask(0, path, size), Settings(), result, digest, Settings().key()).payload


def written(path, *made):
    path.write_bytes(b"".join(made))
    return path


# Shapes.


def shapes(history):
    return {name for name, _ in map(shape_of, plume_py.check(history, ["CI", "TCC"]).violations)}


@pytest.mark.parametrize("tap", sorted(RECIPES))
def test_the_same_pattern_elsewhere_has_the_same_shape(tap):
    """Other keys, other transactions around it, sessions in another order: one of as many shapes as recipes."""
    seen = set()
    for seed in range(12):
        base = generate("TCC", sessions=2 + seed % 3, transactions=3, operations=3, keys=5 + seed, seed=seed)
        found = shapes(inject(base, {tap: 1}, seed)[0])
        assert any(name.startswith(f"{tap}-") for name in found)
        seen |= {name for name in found if name.startswith(f"{tap}-")}
    assert len(seen) <= len(RECIPES[tap])


def test_different_recipes_have_different_shapes():
    base = generate("TCC", sessions=1, transactions=1, operations=1)
    found = {}
    for tap in "km":
        for seed in range(20):
            for name in shapes(inject(base, {tap: 1}, seed)[0]):
                if name.startswith(tap):
                    found.setdefault(tap, set()).add(name)
    assert len(found["k"]) == len(RECIPES["k"]) and len(found["m"]) == len(RECIPES["m"])


def renamed(violation, seed):
    """Other names throughout, and the cycle begun elsewhere."""
    rng = random.Random(seed)
    names = {}

    def new(name):
        return names.setdefault(name, f"n{rng.random()}") if name != "(initial state)" else name

    def step(s):
        reader = None if s.reader is None else new(s.reader)
        key = None if s.key is None else new(s.key)
        return Step(new(s.source), new(s.target), s.relation, key, "other words", s.value, reader,
                    tuple(map(step, s.evidence)))  # fmt: skip

    turn = rng.randrange(len(violation.steps)) if violation.ends is Ends.CLOSED else 0
    steps = [*violation.steps[turn:], *violation.steps[:turn]]
    txns = [
        ShownTransaction(new(t.id), new(("s", t.session)), "", 0, t.status,
                         tuple((kind, new(key), value) for kind, key, value in t.ops), 7)
        for t in violation.transactions
    ]  # fmt: skip
    rng.shuffle(txns)
    keys = tuple(map(new, violation.keys))
    steps = tuple(map(step, steps))
    return Violation(violation.pattern, violation.level, keys, tuple(txns), steps, violation.ends, "", "")


def test_names_and_the_first_step_do_not_matter():
    for path in sorted(ROOT.glob("histories/**/*.json")):
        for violation in plume_py.check(plume_py.load(path), ["CI", "TCC"], max_examples=3).violations:
            for seed in range(5):
                assert shape_of(renamed(violation, seed)) == shape_of(violation), path


def test_the_length_of_a_causal_chain_does_not_matter():
    def stale_after(hops):
        builder = plume_py.HistoryBuilder(initial=0)
        builder.add(0, [("w", "x", 1), ("w", "k0", 1)])
        for i in range(hops):
            builder.add(i + 1, [("r", f"k{i}", 1), ("w", f"k{i + 1}", 1)])
        builder.add("last", [("r", f"k{hops}", 1), ("r", "x", 0)])
        return shapes(builder.build())

    assert stale_after(1) == stale_after(2) == stale_after(9)
    assert stale_after(0) != stale_after(1), "read from the writer itself, it is a fractured read"


# The summary.


def hostile_summary(tmp_path):
    made = [made_line(f"d/{i}{text}", [fractured(i, text), thin_air(text)]) for i, text in enumerate(HOSTILE)]
    made += [made_line(f"e/{text}", error=f"e/{text}: broken {text}", digest="") for text in HOSTILE]
    made += [made_line("f/u", ok=None), made_line("f/h", seconds=3)]
    return summarize(Reader(str(written(tmp_path / "r.jsonl", *made))))


def test_the_summary_counts_outcomes_levels_and_patterns(tmp_path):
    found = hostile_summary(tmp_path)
    assert found.outcomes == {"holds": 1, "violated": 10, "undecided": 1, "unreadable": 10}
    assert found.taps == {"a": {"histories": 10, "instances": 20}, "k": {"histories": 10, "instances": 20}}
    assert found.lowest == {"RA": 10} and found.reasons == {"why": 1}
    assert {shape[0]: group.histories for shape, group in found.groups.items()} == {"a": 10, "k": 10}
    assert found.slowest[0][:2] == (6.0, "f/h")
    assert {folder: sum(row.values()) for folder, row in found.folders.rows.items() if "/" not in folder}["f"] == 2
    assert all(not why.startswith("e/") for _, why in found.unreadable)


def test_the_summary_does_not_depend_on_the_order_of_the_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "LISTED", 5)
    made = [made_line(f"{i % 7}/{i % 3}/{i}", [stale()] * (i % 2), digest=str(i), seconds=i) for i in range(40)]
    made += [made_line(f"x/{i}", error="broken") for i in range(30)]
    first = summary_module.plain(summarize(Reader(str(written(tmp_path / "a", *made)))))
    random.Random(1).shuffle(made)
    assert summary_module.plain(summarize(Reader(str(written(tmp_path / "b", *made))))) == first
    assert [row["history"] for row in first["unreadable"]] == ["x/0", "x/1", "x/10", "x/11", "x/12"]


def test_many_folders_are_summed_up_by_those_above(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "FOLDERS", 10)
    made = [made_line(f"top/{i % 5}/{i}/h.json") for i in range(60)]
    found = summarize(Reader(str(written(tmp_path / "r", *made))))
    assert {name: row["holds"] for name, row in found.folders.rows.items()} == {f"top/{i}": 12 for i in range(5)}


def test_hostile_texts_are_harmless_on_the_terminal(tmp_path):
    tally = Tally(30, 100)
    tally.count(ScanTask(0, "skip\x1b[31m", 1), TaskAnswer(0, "skipped", b"not a history"))
    printed = render(hostile_summary(tmp_path), tally)
    assert all(character.isprintable() or character == "\n" for character in printed)
    assert max(map(len, printed.split("\n"))) < 400
    assert "1 file skipped (1 not a history)" in printed


def test_the_page_holds_hostile_texts_as_texts(tmp_path):
    page = document(hostile_summary(tmp_path))
    assert page.count("<script") == 1 and "<img" not in page and "onerror='" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_the_page_works(tmp_path, browser):
    path = tmp_path / "page.html"
    path.write_text(document(hostile_summary(tmp_path)), "utf-8", "backslashreplace")
    browser.open(path)
    assert browser.complaints() == []
    assert browser.run("window.hacked") is None
    first = "document.querySelector('td.path').closest('table').tBodies[0].rows[0].cells[0].textContent"
    before = browser.run(first)
    browser.run("document.querySelector('td.path').closest('table').querySelector('th button').click()")
    browser.run("document.querySelector('td.path').closest('table').querySelector('th button').click()")
    assert browser.run(first) != before, "a second click turns the order round"
    shown = "Array.from(document.querySelectorAll('tbody tr')).filter(row => !row.hidden).length"
    everything = browser.run(shown)
    browser.run("document.getElementById('find').focus()")
    browser.type("f/h")
    assert 0 < browser.run(shown) < everything
    assert browser.complaints() == []


# Odds and ends.


def test_progress():
    tally = Tally(1000, 1000 * 2_010)
    assert "at work" in status_text(tally)
    tally.started -= 10
    for i in range(250):
        tally.count(ScanTask(i, f"{i}", 10), TaskAnswer(i, "violated" if i % 5 == 0 else "holds", b""))
    text = status_text(tally)
    assert text.startswith("250/1,000 (25%)  25/s  0:30 left  200 holds, 50 violated")


def test_sizes_are_printed_with_units():
    assert [bytes_text(n) for n in (0, 1023, 1536, 100 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KB",
        "100 MB",
        "3 GB",
    ]
