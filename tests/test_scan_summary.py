"""The results file, the shapes of violations, the summary, its page, and the comparison of two scans."""

import fcntl
import json
import os
import random
import re
import resource
from pathlib import Path

import pytest
from chromium import CHROMIUM, Browser
from click.testing import CliRunner
from test_html import HOSTILE as HOSTILE_TEXTS
from test_html import fractured, stale, thin_air

import plume_py
from plume_py.cli.main import cli
from plume_py.cli.scan_progress import line as progress_line
from plume_py.errors import IsocheckError
from plume_py.history.generate import generate
from plume_py.history.inject import RECIPES, inject
from plume_py.report.verdict import LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.scan import summary as summary_module
from plume_py.scan.diff import compare
from plume_py.scan.page import document
from plume_py.scan.results import Reader, Writer, open_results, parse
from plume_py.scan.run import Tally
from plume_py.scan.settings import Answer, Settings, Task, spell_bytes
from plume_py.scan.shape import shape_of
from plume_py.scan.summary import summed_up
from plume_py.scan.task import _answer
from plume_py.scan.text import render

# Paths may hold surrogates, and are spelled out early; what a history holds is valid text.
HOSTILE = [text.replace("\ud800", "") for text in HOSTILE_TEXTS]


def made_line(path, violations=(), ok=True, seconds=0.1, digest="d", size=10, error=None):
    """A line as a worker makes it."""
    taps = tuple(dict.fromkeys(v.tap for v in violations))
    verdicts = {} if error else {"RA": LevelVerdict(False if taps else ok, taps, None if ok is not None else "why")}
    result = Result(path, "json", 1, 2, 3, verdicts, tuple(violations), dict.fromkeys(taps, 2), error=error,
                    seconds={"load": seconds, "check": seconds})  # fmt: skip
    return _answer(Task(0, path, size), Settings(), result, digest, Settings().key()).payload


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

    closed = violation.steps and violation.steps[-1].target == violation.steps[0].source
    turn = rng.randrange(len(violation.steps)) if closed else 0
    steps = [*violation.steps[turn:], *violation.steps[:turn]]
    txns = [
        ShownTransaction(new(t.id), new(("s", t.session)), "", 0, t.status,
                         tuple((kind, new(key), value) for kind, key, value in t.ops), 7)
        for t in violation.transactions
    ]  # fmt: skip
    rng.shuffle(txns)
    keys = tuple(map(new, violation.keys))
    return Violation(violation.tap, "", violation.level, keys, tuple(txns), tuple(map(step, steps)), "")


def test_names_and_the_first_step_do_not_matter():
    for path in sorted(Path(__file__).parent.parent.glob("histories/**/*.json")):
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


# The file.


def test_torn_damaged_and_doubled_lines(tmp_path):
    a, b, c = made_line("a"), made_line("b"), made_line("c")
    newer = made_line("a", [stale()])
    path = written(tmp_path / "r.jsonl", a, b"\0" * 50 + b"\n", b, newer, b'{"history":"x"}\n', c[:-5])
    reader = Reader(str(path))
    assert (reader.count, reader.superseded, reader.damaged) == (2, 1, 3)
    assert {line.history: line.outcome for line in reader} == {"a": "violated", "b": "holds"}
    with Writer(str(path), resume=True) as writer:
        assert sorted(writer.known) == [os.path.abspath("a"), os.path.abspath("b")]
        writer.write("c", c)
    assert path.read_bytes() == b + newer + c


def test_a_link_to_results_stays_one(tmp_path):
    path = written(tmp_path / "r.jsonl", made_line("a"), made_line("b"), made_line("a"))
    (tmp_path / "link").symlink_to(path)
    with Writer(str(tmp_path / "link"), resume=True):
        pass
    assert (tmp_path / "link").is_symlink() and path.read_bytes() == made_line("b") + made_line("a")


def test_two_scans_cannot_write_one_file(tmp_path):
    path = str(tmp_path / "r.jsonl")
    with Writer(path, resume=False), pytest.raises(IsocheckError, match="another scan"):
        Writer(path, resume=True)
    with Writer(path, resume=False):
        pass


def test_a_file_that_was_replaced_meanwhile_is_not_written_to(tmp_path, monkeypatch):
    """Between opening and locking, the scan before this one may have put a mended file in its place."""
    path = written(tmp_path / "r.jsonl", made_line("a"))
    flock, replaced = fcntl.flock, []

    def late(*arguments):
        if not replaced:
            replaced.append(written(tmp_path / "mended", made_line("a")).rename(path))
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", late)
    with Writer(str(path), resume=True) as writer:
        writer.write("b", made_line("b"))
    assert path.read_bytes() == made_line("a") + made_line("b")


def test_a_full_disk_is_told_and_leaves_whole_lines(tmp_path):
    path, line = tmp_path / "r.jsonl", made_line("a")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Writer(str(path), resume=False) as writer:
        writer.write("a", line)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(line) + 20, before[1]))
        try:
            with pytest.raises(IsocheckError, match=r"cannot write .*: .*go on with --resume"):
                writer.write("b", made_line("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == line


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "pipe"])
def test_results_are_in_a_file(tmp_path, device):
    """They are read again for the summary."""
    os.mkfifo(tmp_path / "pipe")
    for use in (lambda path: Writer(path, resume=False), open_results):
        with pytest.raises(IsocheckError, match="not a regular file"):
            use(str(tmp_path / device))


GOOD = {"history": "a", "outcome": "holds", "levels": {"TCC": {"ok": True}}, "counts": {}, "shapes": {}, "size": 1,
        "hash": "", "settings": ""}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "odd"}, {"levels": {"TCC": {}}}, {"levels": {"TCC": {"ok": []}}}, {"levels": {"TCC": 1}},
        {"size": 10**40}, {"seconds": {"load": "long"}}, {"counts": {"a": 1.5}}, {"history": 7}, {"shapes": []},
    ],
)  # fmt: skip
def test_a_line_of_another_making_is_damaged(tmp_path, change):
    assert parse(json.dumps(GOOD).encode() + b"\n") is not None
    assert parse(json.dumps(GOOD | change).encode() + b"\n") is None
    assert parse(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n") is None


@pytest.mark.parametrize(
    "violation",
    [
        7, {"tap": "k"}, {"tap": ["k"]}, {"tap": "k", "transactions": [1], "steps": [{}], "explanation": 1},
        {"tap": "k", "transactions": [{"id": 1, "session": 1, "place": "", "ops": [[1]]}], "steps": [],
         "explanation": ""},
    ],
)  # fmt: skip
def test_an_example_of_another_making_is_left_out(tmp_path, violation):
    line = GOOD | {"outcome": "violated", "shapes": {"k-1": "text"}, "violations": [violation]}
    found = summed_up([parse(json.dumps(line).encode() + b"\n")])
    assert found.groups["k-1"].violation is None and "<code>text</code>" in document(found)


def test_one_history_has_one_line_however_its_path_is_spelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/h.json").write_text('{"sessions":[]}')
    more = ["--results", "r.jsonl", "--format", "json", "--jobs", "1"]
    CliRunner().invoke(cli, ["scan", "d", *more])
    run = json.loads(CliRunner().invoke(cli, ["scan", "./d//h.json", *more, "--resume"]).output)["run"]
    assert (run["same"], run["checked"]) == (1, 0)
    Path("d/h.json").write_text('{"sessions":[[]]}')
    found = json.loads(CliRunner().invoke(cli, ["scan", str(tmp_path), *more, "--resume"]).output)
    assert found["run"]["checked"] == found["summary"]["histories"] == 1


def test_a_page_that_cannot_be_written_does_not_cost_the_summary(tmp_path, monkeypatch):
    (tmp_path / "h.json").write_text('{"sessions":[]}')

    def full(*arguments):
        raise IsocheckError("No space left on device")

    monkeypatch.setattr("plume_py.files.write_atomically", full)
    done = CliRunner().invoke(cli, ["scan", str(tmp_path), "--report", str(tmp_path / "page.html"), "--jobs", "1"])
    assert isinstance(done.exception, IsocheckError) and done.output.startswith("1 histories")


def test_results_of_other_histories_are_said_to_count(tmp_path):
    (tmp_path / "h.json").write_text('{"sessions":[]}')
    target = written(tmp_path / "r.jsonl", made_line("a", [stale()]), b"damaged\n", made_line("b"))
    done = CliRunner().invoke(cli, ["scan", str(tmp_path / "h.json"), "--results", str(target), "--resume", "-j", "1"])
    assert done.exit_code == 1
    assert "2 histories that are only in the results are counted, too\n" in done.output
    assert f"isocheck: {target}: 1 damaged line left out\n" in done.output


# The summary.


def hostile_summary(tmp_path):
    made = [made_line(f"d/{i}{text}", [fractured(i, text), thin_air(text)]) for i, text in enumerate(HOSTILE)]
    made += [made_line(f"e/{text}", error=f"e/{text}: broken {text}", digest="") for text in HOSTILE]
    made += [made_line("f/u", ok=None), made_line("f/h", seconds=3)]
    return summed_up(Reader(str(written(tmp_path / "r.jsonl", *made))))


def test_counters(tmp_path):
    found = hostile_summary(tmp_path)
    assert found.outcomes == {"holds": 1, "violated": 10, "undecided": 1, "unreadable": 10}
    assert found.taps == {"a": {"histories": 10, "instances": 20}, "k": {"histories": 10, "instances": 20}}
    assert found.lowest == {"RA": 10} and found.reasons == {"why": 1}
    assert {shape[0]: group.histories for shape, group in found.groups.items()} == {"a": 10, "k": 10}
    assert found.slowest[0][:2] == (6.0, "f/h")
    assert {folder: sum(row.values()) for folder, row in found.folders.rows.items() if "/" not in folder}["f"] == 2
    assert all(not why.startswith("e/") for _, why in found.unreadable)


def test_the_order_of_the_lines_does_not_show(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "LISTED", 5)
    made = [made_line(f"{i % 7}/{i % 3}/{i}", [stale()] * (i % 2), digest=str(i), seconds=i) for i in range(40)]
    made += [made_line(f"x/{i}", error="broken") for i in range(30)]
    first = summary_module.plain(summed_up(Reader(str(written(tmp_path / "a", *made)))))
    random.Random(1).shuffle(made)
    assert summary_module.plain(summed_up(Reader(str(written(tmp_path / "b", *made))))) == first
    assert [row["history"] for row in first["unreadable"]] == ["x/0", "x/1", "x/10", "x/11", "x/12"]


def test_many_folders_are_summed_up_by_those_above(tmp_path, monkeypatch):
    monkeypatch.setattr(summary_module, "FOLDERS", 10)
    made = [made_line(f"top/{i % 5}/{i}/h.json") for i in range(60)]
    found = summed_up(Reader(str(written(tmp_path / "r", *made))))
    assert {name: row["holds"] for name, row in found.folders.rows.items()} == {f"top/{i}": 12 for i in range(5)}


def test_hostile_texts_are_harmless_on_the_terminal(tmp_path):
    tally = Tally(30, 100)
    tally.count(Task(0, "skip\x1b[31m", 1), Answer(0, "skipped", b"not a history"))
    printed = render(hostile_summary(tmp_path), tally)
    assert all(character.isprintable() or character == "\n" for character in printed)
    assert max(map(len, printed.split("\n"))) < 400
    assert "1 files skipped (1 not a history)" in printed


def test_the_page_holds_hostile_texts_as_texts(tmp_path):
    page = document(hostile_summary(tmp_path))
    assert page.count("<script") == 1 and "<img" not in page and "onerror='" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_works(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(document(hostile_summary(tmp_path)), "utf-8", "backslashreplace")
    profile = tmp_path / "profile"
    profile.mkdir()
    browser = Browser(profile)
    try:
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
    finally:
        browser.close()


# What changed.


def test_diff(tmp_path):
    old = written(tmp_path / "old.jsonl", made_line("a"), made_line("b", [stale()]), made_line("c", [stale()]),
                  made_line("d"), made_line("e", ok=None), made_line("same", seconds=1))  # fmt: skip
    new = written(tmp_path / "new.jsonl", made_line("same", seconds=2), made_line("a", [stale()]), made_line("b"),
                  made_line("c", [thin_air()]), made_line("e"), made_line("f", [stale()]), made_line("g"))  # fmt: skip
    found = compare(Reader(str(old)), Reader(str(new)))
    kinds = {kind: [name for name, _, _ in rows] for kind, rows in found.kinds.items()}
    assert kinds == {"new": ["a", "f"], "fixed": ["b"], "changed": ["c", "e"], "gone": ["d"], "added": ["g"]}
    assert found.equal == 1
    done = CliRunner().invoke(cli, ["scan", "diff", str(old), str(new)])
    assert done.exit_code == 1
    assert done.output.startswith("2 new, 1 fixed, 2 changed, 1 gone, 1 added, 1 as before\n")
    assert "  b: violates RA (TAP k) -> holds\n" in done.output
    assert CliRunner().invoke(cli, ["scan", "diff", str(old), str(old)]).exit_code == 0
    document = json.loads(CliRunner().invoke(cli, ["scan", "diff", str(old), str(new), "--format", "json"]).output)
    assert document["fixed"][0]["history"] == "b" and document["fixed"][0]["new"]["outcome"] == "holds"


def test_diff_of_two_folders(tmp_path):
    old = written(tmp_path / "old", made_line("/x/mon/a/1"), made_line("/x/mon/b/2", [stale()]))
    new = written(tmp_path / "new", made_line("/y/tue/a/1"), made_line("/y/tue/b/2"))
    assert compare(Reader(str(old)), Reader(str(new))).equal == 0
    found = compare(Reader(str(old)), Reader(str(new)), relative=True)
    assert found.equal == 1 and [name for name, _, _ in found.kinds["fixed"]] == ["b/2"]


def test_diff_says_when_the_scans_asked_for_other_levels(tmp_path):
    old = written(tmp_path / "old", made_line("a"), made_line("broken", error="x"))
    other = written(tmp_path / "other", made_line("a").replace(b'"RA"', b'"TCC"'))
    for new, said in ((old, False), (other, True)):
        done = CliRunner().invoke(cli, ["scan", "diff", str(old), str(new)])
        assert ("did not ask for the same levels: RA, and TCC" in done.output) is said
        document = json.loads(CliRunner().invoke(cli, ["scan", "diff", str(old), str(new), "--format", "json"]).output)
        assert document["levels"] == {"old": ["RA"], "new": ["TCC"] if said else ["RA"]}


def test_diff_of_what_is_no_result(tmp_path):
    (tmp_path / "x").write_text("hello\n")
    os.mkfifo(tmp_path / "pipe")
    for name in ("x", "none", "pipe"):
        done = CliRunner().invoke(cli, ["scan", "diff", str(tmp_path / name), str(tmp_path / "x")])
        assert done.exit_code == 1 and done.exception is not None and name in str(done.exception)


def test_a_folder_named_diff_can_be_scanned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diff").mkdir()
    (tmp_path / "diff/h.json").write_text('{"sessions":[]}')
    assert CliRunner().invoke(cli, ["scan", "./diff", "--jobs", "1"]).exit_code == 0


# Odds and ends.


def test_progress():
    tally = Tally(1000, 1000 * 2_010)
    assert "at work" in progress_line(tally, 200)
    tally.started -= 10
    for i in range(250):
        tally.count(Task(i, f"{i}", 10), Answer(i, "violated" if i % 5 == 0 else "holds", b""))
    text = progress_line(tally, 200)
    assert text.startswith("250/1,000 (25%)  25/s  0:30 left  200 holds, 50 violated")
    assert len(progress_line(tally, 40)) == 39


def test_sizes_for_people():
    assert [spell_bytes(n) for n in (0, 1023, 1536, 100 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KB",
        "100 MB",
        "3 GB",
    ]
