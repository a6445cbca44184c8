"""The page of a scan with its pictures, and the remains of crashed runs (scan/page.py)."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from paths import HISTORIES

from plume_py.cli.main import cli
from plume_py.scan import page

FOUND = ["SI/write-skew.json", "TCC/lost-update.json", "RA/tap-m-co-conflict-cm.json"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "an archive"
    folder.mkdir()
    for at, name in enumerate([*FOUND, FOUND[0]]):
        (folder / f"{at}-<b>&{name.rpartition('/')[2]}").write_bytes((HISTORIES / name).read_bytes())
    return folder


def scan(*arguments: object) -> str:
    ran = CliRunner().invoke(cli, ["scan", *map(str, arguments), "--jobs", "1"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return str(ran.output)


def links(page: str) -> list[str]:
    return [unquote(link).replace("&amp;", "&") for link in re.findall(r'href="([^"]*)"', page)]


def test_a_picture_for_each_shape_and_a_page_that_leads_to_them(archive, tmp_path) -> None:
    out = tmp_path / "out"
    told = scan(archive, "--out", out)
    page = (out / "index.html").read_text()
    shapes = {path.stem for path in out.glob("*.dot")}
    assert len(shapes) == page.count('class="drawn"') >= 3
    assert "the page is" in told and f"{len(shapes)} pictures" in told
    for link in links(page):
        assert link.startswith("./") and (out / link).resolve().exists(), link
    assert {(out / link).resolve() for link in links(page)} >= set(archive.iterdir())
    assert "<b>&" not in page


def test_the_page_can_be_in_another_folder_than_the_pictures(archive, tmp_path) -> None:
    (tmp_path / "pages").mkdir()
    scan(archive, "--out", tmp_path / "out", "--report", tmp_path / "pages/scan.html")
    page = (tmp_path / "pages/scan.html").read_text()
    drawn = [link for link in links(page) if "/out/" in link]
    assert drawn and all((tmp_path / "pages" / link).resolve().exists() for link in drawn)
    assert not (tmp_path / "out/index.html").exists()


def test_only_the_most_frequent_shapes_are_drawn(archive, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(page, "DRAWN", 1)
    told = scan(archive, "--out", tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.dot"))) == 1
    assert "the 1 most frequent of" in told


def test_a_picture_format_needs_a_folder(archive) -> None:
    assert "--picture says what --out draws" in scan(archive, "--picture", "png")


def crashed(folder: Path) -> Path:
    folder.mkdir()
    (folder / "cut.json").write_text('{"initial": 0, "sess')
    (folder / "half.jsonl").write_text('{"session": 1, "ops": [["w", "x", 1]]}\n{"session": 2, "ops": [["r"')
    (folder / "empty.json").touch()
    return folder


def test_remains_of_crashed_runs_are_named_as_such(tmp_path) -> None:
    folder = crashed(tmp_path / "runs")
    told = scan(folder, "--report", tmp_path / "page.html")
    assert "Unreadable: 3 (1 empty, 2 cut off, as a run leaves them that crashed)" in told
    assert "1 empty, 2 cut off, as a run leaves them that crashed" in (tmp_path / "page.html").read_text()
    summary = json.loads(scan(folder, "--format", "json"))["summary"]
    assert summary["remains"] == {"empty": 1, "cut off": 2}


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_desk_and_a_phone(archive, tmp_path, browser, width, height, scheme) -> None:
    crashed(archive / "runs")
    scan(archive, "--out", tmp_path / "out")
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(tmp_path / "out/index.html")
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert browser.run(overflow) <= 0
    for selector in ("summary", "th button"):
        browser.run(f"document.querySelectorAll('{selector}').forEach((e) => e.click())")
        assert browser.run(overflow) <= 0, selector
    assert browser.complaints() == []
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.call("Emulation.setEmulatedMedia", features=[])
