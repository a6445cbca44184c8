"""``report.graphviz``: text remains text whatever it contains, in every format that dot draws."""

import ast
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from paths import ROOT

from plume_py.base.text import display
from plume_py.report.graphviz import FORMATS, MONO, Graph, Markup, bold, cell, draw, font, lines, table, text

PACKAGE = ROOT / "plume_py"
HOSTILE = {
    "quotes": '"a" \'b\' \\"',
    "backslashes": "\\ \\\\ \\",
    "expansions": "\\N \\G \\E \\T \\H \\L \\l \\r \\n",
    "markup": '<b>bold</b> <br/> <img src="/etc/passwd"/>',
    "closing": "</td></tr></table>> ] } x [label=y",
    "html-like": "<<b>x</b>>",
    "comment": "<!-- x --> // y /* z",
    "entities": "&amp; &#60;b&#62; &lt &",
    "record": "{a|<p> b}",
    "port": "t0:o1:e",
    "semicolons": "a; b -> c {",
    "lines": "a\nb\r\n\tc",
    "controls": "\x00\x01\x1b[31m\x07\x7f\x85",
    "bidi": "\u202eevil\u2066\u200f\u061c",
    "surrogate": "\ud800",
    "noncharacters": "\ufffe\uffff",
    "long": "k" * 10_000,
    "empty": "",
    "blanks": "   ",
    "keyword": "digraph",
    "emoji": "🙂 é 中文",
}
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")


def picture(words: str) -> str:
    """Every place that text can have."""
    graph = Graph("hostile", label=text(words))
    graph.node("plain", text(words), shape="box")
    graph.node("ports", table([[cell(font(words, face=MONO), port="o1")], [cell(bold(text(words)))]]), shape="plain")
    graph.edge("plain", "ports:o1:e", lines([text(words), font(words, point_size=9)], align="left"), class_="step-1")
    with graph.subgraph("cluster_0", label=text(words)) as cluster:
        cluster.node("inner", lines([text("first"), text(words)]))
    return graph.source


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_text_does_not_change_the_graph(words: str) -> None:
    source = picture(words)
    assert source == picture("a mark of ours").replace("a mark of ours", text(words))
    assert not re.search(r"[<>\"\\]", text(words))
    assert re.sub(r"\n\t*", "", source).isprintable()
    assert len(source) < 12_000


@needs_dot
@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_text_is_drawn_as_it_is(words: str, tmp_path: Path) -> None:
    for name, said in (("hostile", words), ("plain", "plain")):
        assert draw(picture(said), tmp_path / f"{name}.svg") == ""
    svg, plain = (ET.fromstring((tmp_path / f"{name}.svg").read_bytes()) for name in ("hostile", "plain"))
    assert [element.tag for element in svg.iter()] == [element.tag for element in plain.iter()] or not words.strip()
    drawn = [element.text or "" for element in svg.iter() if element.tag.endswith("}text")]
    # Some versions of Graphviz do not halve backslashes, and blanks do not break.
    drawn = [re.sub(r"\\+", r"\\", said).replace("\xa0", " ") for said in drawn]
    if words.strip():
        assert drawn.count(re.sub(r"\\+", r"\\", display(words, 600))) == 8


@needs_dot
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_hostile_text(form: str, tmp_path: Path) -> None:
    graph = Graph("all")
    for number, words in enumerate(HOSTILE.values()):
        graph.node(f"n{number}", text(words, 40))
    target = tmp_path / f"all.{form}"
    assert draw(graph.source, target) == ""
    magic = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[form]
    assert target.read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@needs_dot
def test_dot_prints_no_warnings() -> None:
    said = subprocess.run(["dot", "-Tsvg"], input=picture("plain").encode(), capture_output=True, check=True).stderr
    assert said == b""


def test_names_of_parts_are_kept_apart() -> None:
    graph = Graph("parts")
    for prefix in ("a_", "b_"):
        with graph.subgraph("part", prefix=prefix) as part:
            part.node("x", Markup(""))
            part.edge("x:o1", "y")
            with part.subgraph("inner") as inner:
                inner.node("z")
    assert re.findall(r"[ab]_\w+(?::\w+)?", graph.source) == [
        *("a_x", "a_x:o1", "a_y", "a_inner", "a_z"),
        *("b_x", "b_x:o1", "b_y", "b_inner", "b_z"),
    ]


def test_only_the_graphviz_module_writes_graphviz_source() -> None:
    """Of pictures, all other modules only know nodes, edges and text."""
    language = re.compile(r"\bdigraph\b|\bsubgraph\b|</?(?:td|tr|font|table|br)\b")
    pages = {"scan/page.py", "report/html.py", "matrix/tables.py"}  # which are HTML indeed
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        if name == "report/graphviz.py" or name in pages:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not language.search(node.value), (name, node.lineno)
