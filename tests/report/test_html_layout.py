"""The HTML report in headless Chromium: layout on desktop and phone, light and dark (``report.html``, its assets)."""

import json
import re
from pathlib import Path

import pytest
from chromium import Browser

from plume_py import HistoryBuilder, check
from plume_py.checking.result import Result
from plume_py.report.dot import render
from plume_py.report.html import document
from plume_py.report.styles import LOOKS

DESK, PHONE = (1280, 900), (390, 844)


def chain(sessions: int, names: str = "s", others: int = 0) -> Result:
    """A stale read at the end of a chain of reads through all sessions, in which every key has a long name."""
    keys = [f"account:balance:{i}" for i in range(sessions + 1)]
    builder = HistoryBuilder(initial=0)
    for at in reversed(range(sessions)):  # the sessions come in the wrong order
        ops = [("r", keys[at], 1)] if at else [("w", keys[0], 1)]
        ops += [("w", keys[0], 2)] if at == 1 else []
        ops += [("r", keys[0], 1)] if at == sessions - 1 else [("w", keys[at + 1], 1)]
        builder.add(f"{names}{at + 6}", ops, id=f"t{at}")
    for other in range(others):
        builder.add("z", [("w", "elsewhere", other + 1)])
    result = check(builder.build(), "TCC", name="chain.json")
    assert result.ok is False
    return result


@pytest.fixture
def shown(browser: Browser, tmp_path: Path):
    def show(result: Result, size: tuple[int, int] = DESK, scheme: str = "light") -> Browser:
        width, height = size
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        path = tmp_path / "report.html"
        path.write_text(document([result]), "utf-8")
        browser.open(path)
        return browser

    yield show
    assert browser.complaints() == []
    browser.run("localStorage.clear()")  # which remembers the theme that was chosen
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.call("Emulation.setEmulatedMedia", features=[])


def texts(browser: Browser, selector: str) -> list[str]:
    return list(browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"))


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_clicking_through_causes_no_errors_and_no_overflow(shown, size, scheme) -> None:
    page = shown(chain(6, others=3), size, scheme)
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert page.run(overflow) <= 0
    for selector in ("button.go", "button.why", ".moves button", "button.bar-txn", "button.fit", "summary", ".theme"):
        page.run(f"document.querySelectorAll({json.dumps(selector)}).forEach((b) => b.click())")
        assert page.complaints() == [], selector
        assert page.run(overflow) <= 0, selector
    click = "e.dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    page.run(f"document.querySelectorAll('.edge .hit').forEach((e) => {click})")
    assert page.run(overflow) <= 0


def test_sessions_are_in_the_order_of_their_names(shown) -> None:
    page = shown(chain(6))
    assert [name.split()[1] for name in texts(page, ".lane text")] == [f"s{i}session" for i in range(6, 12)]
    assert texts(page, ".session-name") == [f"s{i}" for i in range(6, 12)]
    dot = render(chain(6).violations[0])
    assert re.findall(r"session (s\d+)", dot) == [f"s{i}" for i in range(6, 12)]


def test_six_transactions_are_seen_whole(shown) -> None:
    page = shown(chain(6))
    assert page.run("(([f]) => f.scrollWidth - f.clientWidth)(document.querySelectorAll('figure'))") <= 0
    assert page.run("document.querySelector('.sideways').hidden") is True


def test_a_picture_that_is_too_wide_says_so_and_can_be_made_to_fit(shown) -> None:
    page = shown(chain(12))
    wider = "document.querySelector('figure').scrollWidth > document.querySelector('figure').clientWidth + 1"
    assert page.run(wider) and page.run("document.querySelector('.sideways').checkVisibility()")
    page.run("document.querySelector('.fit').click()")
    assert not page.run(wider)
    page.run("document.querySelector('.fit').click()")
    assert page.run(wider)


def test_keys_are_whole_where_there_is_room(shown) -> None:
    page = shown(chain(3))
    assert "w(account:balance:0, 2)" in " ".join(texts(page, ".cell text"))
    assert any("account:balance:0" in label for label in texts(page, ".label text"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_relation_has_one_colour_in_page_and_picture(shown, scheme) -> None:
    page = shown(chain(3), DESK, scheme)
    for name, look in LOOKS.items():
        colour = page.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        assert colour == (look.colour if scheme == "light" else look.night)
    assert LOOKS["CM"].colour in render(chain(3).violations[0])


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_colours_can_be_read_by_day_and_by_night(look) -> None:
    assert contrast(look.colour, "#ffffff") >= 4.5
    assert contrast(look.night, "#171b21") >= 4.5


def contrast(one: str, other: str) -> float:
    """As the guidelines for accessible pages have it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# The timeline


def test_a_small_history_is_seen_whole_in_the_timeline(shown) -> None:
    page = shown(chain(3, others=5))
    assert len(texts(page, ".bar-txn")) == 8
    assert texts(page, "button.bar-txn") == ["t2", "t1", "t0"]


def test_a_large_history_has_the_transactions_of_the_example_there(shown) -> None:
    page = shown(chain(3, others=100))
    assert sorted(texts(page, ".bar-txn")) == ["t0", "t1", "t2"]
    lefts = page.run(
        "Object.fromEntries([...document.querySelectorAll('.bar-txn')].map((b) => [b.textContent, b.offsetLeft]))"
    )
    assert lefts["t0"] < lefts["t1"] < lefts["t2"]


def test_a_step_and_a_click_light_up_the_timeline(shown) -> None:
    page = shown(chain(3))
    page.press("j")
    assert set(texts(page, ".bar-txn.lit")) == {"t0", "t1"}
    page.run("[...document.querySelectorAll('button.bar-txn')].find((b) => b.textContent === 't2').click()")
    assert texts(page, ".bar-txn.lit") == ["t2"]
    assert texts(page, ".txn.lit .id") == ["t2"]
