"""``report.plot``: every point has its place, and no text breaks the picture."""

import xml.etree.ElementTree as ET

import pytest

from plume_py.report.plot import HEIGHT, WIDTH, Axis, Band, line_plot

SVG = "{http://www.w3.org/2000/svg}"


def circles(text):
    return [(float(each.get("cx")), float(each.get("cy"))) for each in ET.fromstring(text).iter(f"{SVG}circle")]


@pytest.mark.parametrize("logarithmic", [False, True])
def test_larger_is_further_right_and_higher(logarithmic):
    axis = Axis("n", logarithmic)
    places = circles(line_plot("t", {"a": [(1, 3), (10, 40), (1000, 41)]}, axis, axis))
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in places)


def test_points_without_a_logarithm_are_left_out():
    text = line_plot("t", {"a": [(0, 1), (1, 0), (2, float("nan")), (3, 3)]}, Axis("x", True), Axis("y", True))
    assert len(circles(text)) == 1


@pytest.mark.parametrize("lines", [{}, {"a": []}, {"a": [(5, 5)]}, {"a": [(0, 0)]}])
def test_few_points_are_a_picture_too(lines):
    ET.fromstring(line_plot("t", lines, Axis("x"), Axis("y")))


def test_names_are_escaped():
    evil = "</text><script>alert(1)</script>"
    text = line_plot(evil, {evil: [(1, 1)]}, Axis(evil), Axis(evil))
    assert "<script" not in text
    assert sum(evil == each.text for each in ET.fromstring(text).iter(f"{SVG}text")) == 4


def test_bands_are_within_the_picture_and_named():
    bands = [Band(-5, 2, "kill of <n1>"), Band(3, 3, "pause"), Band(8, 1000, "delay")]
    picture = ET.fromstring(line_plot("t", {"a": [(0, 1), (10, 2)]}, Axis("x"), Axis("y"), bands))
    drawn = [each for each in picture.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    assert [each.find(f"{SVG}title").text for each in drawn] == ["kill of <n1>", "pause", "delay"]
    assert all(float(each.get("x")) > 0 and float(each.get("width")) >= 2 for each in drawn)
    assert all(float(each.get("x")) + float(each.get("width")) <= WIDTH for each in drawn)
