"""docs/papers/plume.md: the measurements, and the page that is written from them."""

import sys
from xml.etree import ElementTree

import pytest

from benchmarks.papers import page, plume, plume_measure
from benchmarks.papers.plume_peers import Peer, peers
from benchmarks.tables import save


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "DOCS", tmp_path / "docs")
    return tmp_path


def test_the_page_is_written_from_kept_measurements(folder):
    row = {"sessions": 10, "made": "TCC", "clock": "tree", "cpu s": 1.5, "clocks s": 0.5, "edges s": 0.25, "MB": 90}
    slow = row | {"sessions": 100, "cpu s": "> 40", "clocks s": None, "edges s": None}
    save(folder / "results" / "plume" / "clocks.csv", [row, slow])
    text = plume.PAPER.write(quick=False).read_text()
    assert "| 100 | TCC | tree | > 40 |" in text
    assert "Not measured yet." in text  # the other sections
    ElementTree.parse(folder / "docs" / "pictures" / "plume-clocks-tcc.svg")


def test_a_section_without_new_rows_keeps_earlier_measurements(folder, monkeypatch):
    monkeypatch.delenv("PLUME_ARTIFACT", raising=False)
    plume.PAPER.measure(["lists"], quick=False)
    assert not (folder / "results").exists()


def test_a_tool_without_a_path_is_left_out(monkeypatch):
    for name in ("AWDIT", "PLUME", "POLYSI", "VERISTRONG"):
        monkeypatch.delenv(name, raising=False)
    assert peers() == {}
    monkeypatch.setenv("AWDIT", "somewhere/awdit")
    assert peers()["AWDIT"].command[0] == "somewhere/awdit"


def test_a_tool_that_exceeds_its_time_has_no_answer(tmp_path):
    busy = Peer("busy", "TCC", "txt", (sys.executable, "-c", "while True: pass"), "")
    assert busy.judge(tmp_path / "x.txt", 1) is None


def test_a_row_has_the_figures_of_both(monkeypatch):
    at = plume_measure.point(sessions=10)
    found = plume_measure.Measured(at, "holds", 1.0, 0.9, 100.4)
    row = plume_measure._compared("sessions", 10, found, {"AWDIT": None, "Plume": (2.0, 50.2)}, ["AWDIT", "Plume", "X"])
    assert (row["isocheck s"], row["AWDIT s"], row["Plume MB"], row["X s"]) == (0.9, "stopped", 50, None)
    assert row["paper: Plume s"] == 0.64
