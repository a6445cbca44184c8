"""``report.html.framed``: each result in a notebook is a separate frame, which changes nothing around it."""

from pathlib import Path

import pytest
from chromium import Browser
from paths import HISTORIES
from violations import HOSTILE, fractured

import plume_py
from plume_py.checking.result import LevelVerdict, Result

# What the page around the frames must keep, and what a hostile history could try to change.
AROUND = "<style>h1 { color: rgb(1, 2, 3); margin: 7px }</style><h1>A notebook</h1><p id='page'>mine</p>"


def hostile() -> Result:
    text = HOSTILE[0] + "\"'></iframe><script>parent.document.body.innerHTML = ''</script>"
    violations = tuple(fractured(n, text, text) for n in range(3))
    return Result(text, "json", 3, 3, 6, {"RA": LevelVerdict(False, ("k",))}, violations, {"k": 3})


@pytest.fixture
def results() -> list[Result]:
    return [plume_py.check(HISTORIES / "demo.json"), plume_py.check(HISTORIES / "demo.json", "SER"), hostile()]


def test_each_result_is_one_frame_without_rights(results: list[Result]) -> None:
    for result in results:
        shown = result._repr_html_()
        assert shown is not None and shown.startswith("<iframe ") and shown.endswith("></iframe>")
        assert shown.count("<") == 2, "all of the page is within an attribute"
        assert 'sandbox="allow-scripts"' in shown and "allow-same-origin" not in shown


def test_every_result_of_a_notebook_is_drawn(results: list[Result], browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    frames = "".join(f"<div>{result._repr_html_()}</div>" for result in results)
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{AROUND}{frames}")
    browser.open(path)
    around = "getComputedStyle(document.querySelector('h1'))"
    assert browser.run(f"{around}.color") == "rgb(1, 2, 3)" and browser.run(f"{around}.marginTop") == "7px"
    assert browser.run("document.getElementById('page').textContent") == "mine"
    assert browser.run("document.querySelectorAll('iframe').length") == len(results)
    heights = browser.run("[...document.querySelectorAll('iframe')].map((frame) => frame.offsetHeight)")
    assert min(heights) > 300
    drawn = browser.run_in_frames("[origin, document.querySelectorAll('.picture').length > 0, innerHeight > 300]")
    assert drawn == [["null", True, True]] * len(results)
    browser.run_in_frames("document.querySelector('a[href=\"#examples\"]').click()")
    browser.run_in_frames("toggleTheme()")
    assert browser.run_in_frames("[location.href, scrollY > 0]") == [["about:srcdoc#examples", True]] * len(results)
    assert browser.complaints() == []


def test_repr_is_one_line(results: list[Result]) -> None:
    whole, one, bad = map(repr, results)
    assert whole == f"<Result {HISTORIES}/demo.json: 4 transactions, CI RC RA hold, TCC PC PSI SI SER violated>"
    assert one.endswith("4 transactions, SER violated>")
    for text in (bad, *map(repr, results[2].violations), *map(repr, results[0].violations)):
        assert text.isprintable() and len(text) < 400
