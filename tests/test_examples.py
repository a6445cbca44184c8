"""The examples in histories/: the folder names the strongest levels that hold, a file name tap-x-… its pattern."""

import re

import pytest
from paths import ROOT

import plume_py
from plume_py.levels import NAMES, WEAK, weaker_levels

FOLDER = ROOT / "histories"
# Those in found/ were recorded from databases; docs/gallery.md says what each breaks.
EXAMPLES = sorted(path for path in FOLDER.glob("*/*.json") if path.parent.name != "found")
FOUND = re.findall(r"^isocheck histories/(found/\S+) --level (\S+)$", (ROOT / "docs/gallery.md").read_text(), re.M)


def claimed(folder: str) -> set[str]:
    named = {level for level in folder.split("+") if level in NAMES}
    return named.union(*(weaker_levels(level) for level in named))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_folder_names_what_holds(path):
    claim = claimed(path.parent.name)
    levels = WEAK if claim <= set(WEAK) else NAMES  # the folder of a weak level speaks of weak levels only
    result = plume_py.check(plume_py.load(path), levels)
    holding = {level for level, verdict in result.levels.items() if verdict.ok}
    assert holding == claim


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/tap-*.json")), ids=lambda path: path.stem)
def test_file_name_names_the_pattern(path):
    letter = path.stem.split("-")[1]
    result = plume_py.check(plume_py.load(path), WEAK)
    also = {"j": {"j", "k"}}  # a non-repeatable read is a fractured one, too
    assert set(result.counts) == also.get(letter, {letter})


def test_every_pattern_has_an_example():
    assert {path.stem.split("-")[1] for path in FOLDER.glob("*/tap-*.json")} == set("abcdefghijklmn")


def test_every_history_that_was_found_is_in_the_gallery():
    assert sorted(name for name, _ in FOUND) == sorted(f"found/{path.name}" for path in FOLDER.glob("found/*.json"))


@pytest.mark.parametrize(("name", "level"), FOUND)
def test_what_was_found_breaks_its_level(name, level):
    history = plume_py.load(FOLDER / name)
    result = plume_py.check(history, level)
    assert result.levels[level].ok is False
    assert history.transactions <= 5
