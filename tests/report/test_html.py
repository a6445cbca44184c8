"""``report.html``: its content, that hostile texts remain text, and, in headless Chromium, that it works."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import Browser
from violations import HOSTILE, fractured, stale, thin_air

from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.levels.patterns import TAPS
from plume_py.report.html import document


def result(violations: list[Violation], name: str = "history.json") -> Result:
    taps = tuple(dict.fromkeys(v.tap for v in violations))
    verdicts = {"RC": LevelVerdict("a" not in taps, ("a",) * ("a" in taps)), "RA": LevelVerdict(not taps, taps)}
    counts = {tap: sum(v.tap == tap for v in violations) for tap in taps}
    return Result(
        name, "json", 3, 3, 6, verdicts, tuple(violations), counts, notes=("a note",), seconds={"check": 0.25}
    )


def hostile_result() -> Result:
    violations = [fractured(n, text, text[::-1]) for n, text in enumerate(HOSTILE)]
    violations += [thin_air(text) for text in HOSTILE]
    return result(violations, HOSTILE[0])


def many(count: int) -> Result:
    return result([fractured(n, f"x{n}", f"y{n}") for n in range(count - 1)] + [thin_air()])


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


class Elements(HTMLParser):
    """The elements of a page, as a browser without scripts sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


# without a browser


def test_one_page_without_references_to_anything_else() -> None:
    page = document([many(3)])
    elements = Elements(page)
    assert elements.names.count("script") == 2
    assert elements.names.count("style") == 1
    assert not [value for name, value in elements.attributes if name in ("src", "href")]
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "innerHTML" not in page


def test_data_has_verdicts_patterns_and_counts() -> None:
    data = data_of(document([many(5), result([], "fine.json")]))
    assert data["histories"][0]["levels"]["RA"] == {"ok": False, "taps": ["k", "a"], "reason": None}
    assert data["histories"][0]["counts"] == {"k": 4, "a": 1}
    assert data["histories"][1]["ok"] is True
    assert data["patterns"]["k"]["description"] == TAPS["k"].description
    assert len(data["examples"]) == 5


def test_edges_run_from_operation_to_operation() -> None:
    first, second = data_of(document([result([fractured(1)])]))["examples"][0]["steps"]
    assert (first["from"], first["to"], first["cells"]) == (0, 1, [0, 0])
    assert (second["from"], second["to"], second["cells"]) == (1, 0, [1, 0])
    assert second["reader"] == [2, 0]


def test_reason_of_a_commit_edge_begins_with_the_read_in_question() -> None:
    evidence = data_of(document([result([fractured(1)])]))["examples"][0]["steps"][1]["evidence"]
    assert [(step["relation"], step["from"], step["to"]) for step in evidence] == [("WR", 0, 2), ("WR", 1, 2)]
    assert evidence[1]["cells"] == [2, 1]


def test_initial_state_is_no_transaction() -> None:
    example = data_of(document([result([stale()])]))["examples"][0]
    assert example["steps"][0]["to"] == -1
    assert example["cycle"]
    assert "before the initial state" in example["conclusion"]


def test_culprit_is_marked() -> None:
    example = data_of(document([result([thin_air()])]))["examples"][0]
    assert example["culprits"] == [[0, 1]]
    assert example["conclusion"] == "t9 read q = 1, which nobody wrote."


def test_hostile_texts_create_no_elements() -> None:
    page = document([hostile_result()])
    assert Elements(page).names.count("script") == 2
    assert "img" not in Elements(page).names
    inner = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert inner is not None
    assert not set("<>&\u2028\u2029\x00\x1b\u202e\u200f") & set(inner[1])
    page.encode("utf-8")


def test_long_texts_are_kept_once_and_within_a_budget() -> None:
    assert len(document([hostile_result()])) < 200_000
    long = [fractured(n, f"{n}" * 300_000, "y") for n in range(1, 100)]
    page = document([result(long)])
    assert len(page.encode()) < 2_000_000
    assert "300,000 characters in all" in page


def test_size_for_a_hundred_and_a_thousand() -> None:
    assert len(document([many(100)]).encode()) < 300_000
    assert len(document([many(1000)]).encode()) < 2_000_000


def test_without_scripts_the_verdicts_can_be_read() -> None:
    page = document([hostile_result(), Result("bad<b>.json", error="line 1: <oops>")])
    inner = re.search(r"<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert inner is not None
    assert "RA violated" in inner[1]
    assert "bad&lt;b&gt;.json: not read: line 1: &lt;oops&gt;" in inner[1]


def test_empty_and_fine_results() -> None:
    assert data_of(document([]))["examples"] == []
    assert "1 histories" not in document([result([])])


# in a browser


@pytest.fixture
def shown(browser: Browser, tmp_path: Path):
    """Open a report; whatever the test does, the page must not complain."""

    def show(*results: Result, fragment: str = "") -> Browser:
        path = tmp_path / "report.html"
        path.write_text(document(results), encoding="utf-8")
        browser.open(path, fragment)
        return browser

    yield show
    assert browser.complaints() == []


def count(browser: Browser, selector: str) -> int:
    return int(browser.run(f"document.querySelectorAll({json.dumps(selector)}).length"))


def words(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def click(browser: Browser, selector: str) -> None:
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def test_every_kind_of_result_opens(shown) -> None:
    page = shown(many(3), result([stale()]), result([]), Result("x", error="cannot be read"))
    assert count(page, ".history") == 4
    assert words(page, ".headline") == "2 violated1 fine1 not read"
    assert count(shown(result([])), "#examples") == 0
    assert count(shown(), ".history") == 0


def test_picture_has_lanes_cells_and_the_cycle(shown) -> None:
    page = shown(result([fractured(1)]))
    assert (count(page, ".picture .lane"), count(page, ".picture .txn"), count(page, ".picture .cell")) == (3, 3, 6)
    assert (count(page, ".picture .line"), count(page, ".edge.cycle .line[marker-end]")) == (4, 4)
    assert count(page, ".picture .txn.cycle") == 2
    assert count(shown(result([stale()])), ".picture .txn.initial") == 1


def test_steps_by_keys_and_click(shown) -> None:
    page = shown(result([fractured(1)]))
    page.press("j")
    assert page.run("location.hash") == "#c=1&s=1"
    assert words(page, ".step.current .relation") == " WR(x) → "
    assert count(page, ".picture.stepping .txn.lit") == 2
    assert page.run("document.querySelector('.edge.lit').classList.contains('WR')")
    page.press("ArrowDown")  # the focus is in the proof by now
    assert words(page, ".step.current .relation") == " CM(x) → "
    assert count(page, ".cell.lit") == 3  # both writes, and the read that is the reason
    page.press("k")
    click(page, "[data-step='1'] .go")
    assert words(page, "[aria-live]").startswith("Step 2 of 2")
    assert count(page, "[aria-current=step]") == 1


def test_commit_edge_opens_into_its_evidence(shown) -> None:
    page = shown(result([fractured(1)]))
    assert page.run("document.querySelector('.proof .evidence').hidden")
    page.press("e")
    assert not page.run("document.querySelector('.proof .evidence').hidden")
    assert page.run("document.querySelector('.why').getAttribute('aria-expanded')") == "true"
    assert count(page, ".edge.evidence.lit .line") == 2
    assert "although t1.2 wrote it too" in words(page, ".proof .evidence")
    click(page, ".why")
    assert count(page, ".edge.evidence.lit .line") == 0


def test_search_finds_transactions_and_keys(shown) -> None:
    page = shown(many(1000))
    page.press("/")
    page.type("t12.2")
    assert words(page, "[role=status]") == "1 of 1,000 counterexamples"
    assert count(page, ".picture .txn.found") == 1
    page.run("document.querySelector('[name=q]').select()")
    page.type("X7")
    assert words(page, ".entry b") == "#8 TAP-k"  # the exact hit first, then x70 …
    page.type("nobody has this")
    assert words(page, ".detail") == "No counterexample matches these filters."


def test_filters_links_and_paging(shown) -> None:
    page = shown(many(1000))
    assert count(page, ".entry") == 20
    click(page, ".pager [aria-label^=Last]")
    assert words(page, ".entry b") == "#981 TAP-k"
    click(page, "li:last-child .entry")
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert words(page, "#example-title") == "#1000 TAP-a ThinAirRead [garbage-read]"
    assert count(page, ".cell.blamed") == 1
    page.press("p")
    assert words(page, "#example-title").startswith("#999 ")
    page.run("location.hash = 'l=RC'; new Promise((done) => setTimeout(done, 50))")
    assert words(page, "[role=status]") == "1 of 1,000 counterexamples"
    page.run("const p = document.querySelector('[name=p]'); p.value = 'k'; p.dispatchEvent(new Event('change'))")
    assert words(page, "[role=status]") == "0 of 1,000 counterexamples"
    page = shown(many(1000), fragment="#c=500&s=2")
    assert words(page, "#example-title").startswith("#500 ")
    assert count(page, ".step.current") == 1


def test_theme_toggle_and_print(shown) -> None:
    page = shown(many(3))
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.press("t")
    assert page.run(ground) != light
    click(page, ".theme")
    assert page.run(ground) == light
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert count(page, ".only-print .picture") == 3
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.pdf().startswith(b"%PDF")


def test_hostile_texts_stay_texts(shown) -> None:
    page = shown(hostile_result())
    for _ in range(2 * len(HOSTILE)):
        page.press("e")
        page.press("n")
        assert count(page, "#page script, #page img") == 0
    assert page.run("typeof window.hacked") == "undefined"
    page.run("location.hash = 'c=9'; new Promise((done) => setTimeout(done, 50))")
    assert "10,000 characters" in words(page, ".unfold")
    click(page, ".unfold")
    assert len(words(page, ".long .atom")) == 10_000
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_fragments_do_no_harm(shown) -> None:
    for fragment in (
        "#c=<img src=x>&s=zz",
        "#%E0%A4%A",
        "#c=99999",
        "#h=9&p=<b>&l=__proto__&q=%00",
        "#history-7",
        "#\"'",
    ):
        assert count(shown(result([fractured(1)]), fragment=fragment), "img") == 0
