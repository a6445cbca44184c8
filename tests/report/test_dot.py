"""``report.dot`` and ``report.dot_layout``: an edge per step, safe with any history, and without Graphviz."""

import json
import re
import shutil
import stat
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from paths import HISTORIES
from program import wait_until

import plume_py
from plume_py.base.errors import IsocheckError
from plume_py.base.text import display
from plume_py.checking.result import Ends, Result, ShownTransaction, Step, Violation
from plume_py.levels import WEAK
from plume_py.levels.patterns import PATTERNS
from plume_py.report import dot
from plume_py.report.dot_layout import Picture, columns_of, node_of, rows_of
from plume_py.report.graphviz import INSTALL_HINT, TROUBLES, Album, draw, slug

EXAMPLES = sorted(HISTORIES.glob("*/*.json"))
HOSTILE = {
    "markup": '"><script>alert(1)</script>',
    "closing": "</td></tr></table>> ] } x [label=y",
    "entities": "&amp; &#60;b&#62; &",
    "expansions": "\\N\\G\\E\\l\\",
    "controls": "a\nb\r\x00\x1b[31m\x07\ud800",
    "directions": "\u202eevil\u2066\u200f",
    "long": "k" * 10_000,
    "record": "{a|<p> b}",
    "empty": "",
    "blank": " ",
}
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")


def check(path: Path) -> Result:
    return plume_py.check(plume_py.load(path), WEAK, name=path.name)


def violations() -> list[Violation]:
    return [violation for path in EXAMPLES for violation in check(path).violations]


def hostile(text: str) -> Violation:
    """A fractured read in which everything that a history can say is ``text``."""
    writer = ShownTransaction(text, text, text, 1, "committed", (("w", text, text), ("w", "y", 1)))
    reader = ShownTransaction("T2", text, text, 2, "committed", (("r", text, (1, text)), ("r", "y", 1)))
    read = Step(text, "T2", "WR", "y", text, 1, source_op=1, target_op=1)
    asked = Step(text, "T2", "WR", text, text, text, source_op=0, target_op=0)
    forced = Step("T2", text, "CM", text, text, reader="T2", evidence=(read,), target_op=0, reader_op=0, question=asked)
    return Violation(
        PATTERNS["k"], "RA", (text, "y"), (writer, reader), (asked, forced), Ends.CLOSED, text, text, ((1, 0),)
    )


def drawn(text: str, folder: Path) -> ET.Element:
    assert draw(text, folder / "picture.svg") == ""
    return ET.fromstring((folder / "picture.svg").read_bytes())


def words(svg: ET.Element) -> str:
    return " ".join(element.text or "" for element in svg.iter() if element.tag.endswith("}text"))


def structure(text: str) -> str:
    """A graph without what its labels say: each tag of a label stays."""
    return re.sub(r">[^<>]*<", "><", text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_step_has_its_edge(path: Path) -> None:
    for violation in check(path).violations:
        picture, text = Picture(violation), dot.render(violation)
        assert [arrow.step for arrow in picture.arrows if arrow.number] == list(violation.steps)
        for number, step in enumerate(violation.steps, 1):
            assert text.count(f'class="{step.relation} step-{number}"') == 1
        for transaction in violation.transactions:
            assert f"\t{picture.nodes[transaction.id]} [label=" in text


def test_edges_join_the_operations_that_they_are_about() -> None:
    picture = Picture(check(HISTORIES / "CI+RC/tap-k-fractured-read-co.json").violations[0])
    ends = [(arrow.step.relation, arrow.tail, arrow.head) for arrow in picture.arrows]
    # T1 wrote x and y; T2 read the initial x, and y from T1.
    assert ends == [("CM", "t0:o0", "initial:k0"), ("WR", "initial:k0", "t1:o0"), ("WR", "t0:o1", "t1:o1")]
    assert picture.initial_keys == {"x": 0}


def test_a_list_read_is_matched_by_its_last_element() -> None:
    picture = Picture(check(HISTORIES / "CI/list-version-order-cycle.json").violations[0])
    ends = [(arrow.step.relation, arrow.tail, arrow.head) for arrow in picture.arrows]
    assert ends[:2] == [("WW", "t0:o0", "t1:o0"), ("WW", "t1:o1", "t0:o1")]
    assert ends[2:] == [("WR", "t1:o0", "t2:o0"), ("WR", "t0:o1", "t3:o0")]


def test_evidence_and_reason_are_shown() -> None:
    text = dot.render(check(HISTORIES / "RA/tap-n-conflict-cm.json").violations[0], "a history")
    assert "TAP-n ConflictCM" in text
    assert "disagree on who wrote" in text
    assert "a history" in text
    assert re.search(r"T6 read<.*x from T3,<.*saw T1<", text)
    assert text.count('class="WR evidence"') == 4
    assert text.count('class="SO evidence"') == 2


def test_the_wrong_read_is_marked() -> None:
    text = dot.render(check(HISTORIES / "CI/tap-f-intermediate-read.json").violations[0])
    assert text.count("#FFC9C9") == 1
    assert "T2 read x = 1, which T1 overwrote" in text


def test_time_runs_down_in_every_session_and_no_edge_is_level() -> None:
    for violation in violations():
        picture = Picture(violation)
        columns = columns_of(picture)
        rows = rows_of(picture, columns)
        for column in columns:
            assert [rows[node] for node in column] == sorted({rows[node] for node in column})
        for arrow in picture.arrows:
            assert rows[node_of(arrow.tail)] != rows[node_of(arrow.head)]


def test_many_operations_are_cut_to_those_that_matter() -> None:
    ops = tuple(("w", "x", i) for i in range(30))
    writer = ShownTransaction("T1", 0, "", 0, "committed", ops)
    reader = ShownTransaction("T2", 1, "", 0, "aborted", (("r", "x", 7),))
    steps = (Step("T1", "T2", "WR", "x", "", 7, source_op=7, target_op=0),)
    text = dot.render(Violation(PATTERNS["f"], "RC", ("x",), (writer, reader), steps, Ends.OPEN, "why.", "why"))
    assert "w(x, 7)" in text
    assert "w(x, 8)" not in text
    assert "and 29 more" in text
    assert "(aborted)" in text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_does_not_change_the_graph(text: str) -> None:
    rendered = dot.render(hostile(text), f"of {text}")
    assert structure(rendered) == structure(dot.render(hostile("plain"), "of plain"))
    assert re.sub(r"\n\t*", "", rendered).isprintable()
    assert len(rendered) < 20_000


@needs_dot
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_drawn_as_text(text: str, tmp_path: Path) -> None:
    svg, plain = (drawn(dot.render(hostile(t), t), tmp_path) for t in (text, "plain"))
    spelled = display(text, dot.LIMIT)
    # A version of Graphviz that does not halve them shows two backslashes.
    assert spelled in re.sub(r"\\+", r"\\", words(svg)).replace("\xa0", " ") or not spelled
    assert {element.tag for element in svg.iter()} == {element.tag for element in plain.iter()}


@needs_dot
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_be_drawn(path: Path, tmp_path: Path) -> None:
    for violation in check(path).violations:
        svg = drawn(dot.render(violation, path.name), tmp_path)
        classes = [element.get("class", "") for element in svg.iter()]
        assert sum("step-" in name for name in classes) == len(violation.steps)
        assert sum("transaction" in name for name in classes) == len(violation.transactions)
        assert all(str(transaction.id) in words(svg) for transaction in violation.transactions)


def written(result: Result, folder: Path, *formats: str) -> list[str]:
    album = Album(folder, formats or ("svg",))
    dot.write_pictures(result, album)
    return album.notes


def program(folder: Path, script: str) -> None:
    folder.mkdir()
    (folder / "dot").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "dot").chmod(stat.S_IRWXU)


def test_without_dot_the_graph_stays_and_the_hint_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = check(HISTORIES / "none/same-key-backwards.json")
    notes = written(result, tmp_path / "out", "svg", "png")
    assert notes == [INSTALL_HINT]
    assert "apt-get install graphviz" in notes[0]
    assert "brew install graphviz" in notes[0]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"same-key-backwards.json-tap-{tap}-1.dot" for tap in "hj"]
    assert (tmp_path / "out" / names[0]).read_text().startswith("digraph")


def test_slow_dot_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "exec /bin/sleep 20")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    hint = draw("digraph {}", tmp_path / "x.svg", seconds=0.1)
    assert "more than 0.1 s" in hint
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("script", ["echo 'no such font' >&2; exit 1", "exit 0"])
def test_dot_is_given_up_after_a_few_failures(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", f"echo x >> {tmp_path}/calls; {script}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    result = check(HISTORIES / "none/same-key-backwards.json")
    result = Result(result.history, violations=result.violations * 3)
    (note,) = written(result, tmp_path / "out")
    assert note.startswith("Graphviz failed: ")
    assert len((tmp_path / "calls").read_text().split()) == TROUBLES
    assert len(list((tmp_path / "out").glob("*.dot"))) == 6
    assert not list((tmp_path / "out").glob("*.svg"))


@needs_dot
def test_pictures_are_written(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(json.dumps({"sessions": [[{"ops": [["r", "x", 1]]}]]}))
    assert written(check(tmp_path / "h.json"), tmp_path / "a" / "b", "svg", "png", "pdf") == []
    begins = {path.name: path.read_bytes()[:5] for path in (tmp_path / "a" / "b").iterdir()}
    assert begins == {
        "h.json-tap-a-1.dot": b"digra",
        "h.json-tap-a-1.svg": b"<?xml",
        "h.json-tap-a-1.png": b"\x89PNG\r",
        "h.json-tap-a-1.pdf": b"%PDF-",
    }


def test_children_of_a_slow_dot_are_stopped_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the pipes, so whoever only ends the script would wait for it."""
    program(tmp_path / "bin", f"/bin/sleep 60 &\necho $! > {tmp_path}/pid\nwait")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    seconds = 0.5
    while not (tmp_path / "pid").exists():  # on a busy machine the script may not have got that far
        assert "more than" in draw("digraph {}", tmp_path / "x.svg", seconds)
        seconds *= 2
    pid = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{pid}/stat")
    wait_until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IsocheckError, match="cannot write"):
        Album(tmp_path / "file" / "out").add("picture", "digraph {}")


def test_file_names_are_harmless_and_do_not_collide() -> None:
    names = ["a/h.json", "a-h.json", "a h.json", "../h.json", "/etc/h.json", "-", "", "x" * 300, "é\n\ud800", "h.json"]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,80}", slug) for slug in slugs)
    assert slug("h.json") == "h.json"


def test_opposite_edges_do_not_share_their_ends() -> None:
    """Else the head of each covers the tail of the other, as in every ConflictCM of two steps."""
    picture = Picture(check(HISTORIES / "RA/tap-n-conflict-cm.json").violations[0])
    first, second = (arrow for arrow in picture.arrows if arrow.number)
    assert (first.tail, first.head) == ("t0:o0", "t2:o0")
    assert (second.tail, second.head) == ("t2:h", "t0:h")
    for violation in violations():
        ends = [(arrow.tail, arrow.head) for arrow in Picture(violation).arrows]
        assert not {(head, tail) for tail, head in ends} & {*ends}


@needs_dot
def test_columns_are_in_the_order_of_the_sessions() -> None:
    for violation in violations():
        plain = subprocess.run(["dot", "-Tplain"], input=dot.render(violation), capture_output=True, text=True).stdout
        tops = re.findall(r"(?m)^node top(\d+) ([\d.]+)", plain)
        assert [int(number) for number, x in sorted(tops, key=lambda top: float(top[1]))] == list(range(len(tops)))


def test_opposite_edges_share_no_cell() -> None:
    """Else the head of one covers the tail of the other."""
    for violation in violations():
        arrows = Picture(violation).arrows
        for a in arrows:
            for b in arrows:
                if (node_of(a.tail), node_of(a.head)) == (node_of(b.head), node_of(b.tail)):
                    assert not {a.tail, a.head} & {b.tail, b.head} - {"initial:k0"}


def cycle(length: int, per_session: int = 1) -> Violation:
    """Each transaction reads what the one before it wrote, in a round."""
    transactions = [
        {"id": f"T{i}", "ops": [["w", f"k{i}", i + 1], ["r", f"k{i - 1 if i else length - 1}", i or length]]}
        for i in range(length)
    ]
    sessions = [transactions[i : i + per_session] for i in range(0, length, per_session)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"sessions": sessions}, file)
        file.flush()
        (violation,) = plume_py.check(plume_py.load(file.name), "RC").violations
    return violation


@pytest.mark.parametrize("length", [11, 30, 60, 300])
def test_the_middle_of_a_long_cycle_is_folded(length: int) -> None:
    violation = cycle(length)
    assert len(violation.steps) == length
    text, picture = dot.render(violation), Picture(violation)
    (fold,) = picture.folds
    assert f"… {length - 4} more …" in text
    assert f"steps 3 to {length - 3}" in text
    ids = [transaction.id for transaction in violation.transactions]
    ends = [violation.steps[at].source for at in (0, 1, -2, -1)]
    assert {i for i in ids if f"<b>{i}</b>" in text} == {*ends}
    assert {picture.nodes[i] for i in ids} - {*fold.members} == {picture.nodes[i] for i in ends}
    # the steps at its ends lead into it and out of it
    assert [arrow.number for arrow in picture.arrows] == [1, 2, length - 2, length - 1, length]
    assert [(arrow.tail, arrow.head).count(fold.node) for arrow in picture.arrows] == [0, 1, 1, 0, 0]


def test_a_short_cycle_is_shown_in_full() -> None:
    assert Picture(cycle(10)).folds == []


def test_wrong_reads_are_never_folded() -> None:
    violation = cycle(40)
    number = next(i for i, transaction in enumerate(violation.transactions) if transaction.id == "T20")
    picture = Picture(replace(violation, culprits=((number, 1),)))
    assert len(picture.folds) == 2
    assert all(f"t{number}" not in fold.members for fold in picture.folds)
    assert {f"t{number}"} < {node for column in columns_of(picture) for node in column}
    assert sum(len(fold.members) for fold in picture.folds) + sum(map(len, columns_of(picture))) == 40 + 2


def test_folding_leaves_session_order_alone() -> None:
    violation = cycle(40, per_session=3)
    picture = Picture(violation)
    (fold,) = picture.folds
    columns = columns_of(picture)
    assert [fold.node] in columns
    session = {picture.nodes[t.id]: t.session for t in violation.transactions}
    assert all(len({session[node] for node in column}) == 1 for column in columns if column != [fold.node])


@needs_dot
def test_a_long_cycle_is_drawn(tmp_path: Path) -> None:
    svg = drawn(dot.render(cycle(60)), tmp_path)
    assert "… 56 more …" in words(svg)
    assert sum("transaction" in element.get("class", "") for element in svg.iter()) == 4


@needs_dot
def test_several_counterexamples_are_one_graph(tmp_path: Path) -> None:
    found = [(violation, "a history") for violation in violations()]
    text = dot.render_all(found[:6])
    assert len(re.findall(r"(?m)^digraph", text)) == 1
    svg = drawn(text, tmp_path)
    classes = [element.get("class", "") for element in svg.iter()]
    assert sum("transaction" in name for name in classes) == sum(len(v.transactions) for v, _ in found[:6])
    assert sum("step-" in name for name in classes) == sum(len(v.steps) for v, _ in found[:6])
    plain = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True).stdout
    for number in range(1, 7):
        tops = re.findall(rf"(?m)^node v{number}_top(\d+) ([\d.]+)", plain)
        assert tops and sorted(tops, key=lambda top: float(top[1])) == sorted(tops, key=lambda top: int(top[0]))
    heights = [float(y) for y in re.findall(r"(?m)^node v\d+_head [\d.]+ ([\d.]+)", plain)]
    assert len(heights) == 6 and heights == sorted(heights, reverse=True)


def test_no_counterexample_is_a_graph_too() -> None:
    assert "no counterexample" in dot.render_all([])
