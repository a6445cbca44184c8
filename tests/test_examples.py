"""The examples in histories/: the folder names the strongest levels that hold, a file name tap-x-… its pattern."""

from pathlib import Path

import pytest

import plume_py
from plume_py.levels import NAMES, WEAK, weaker_levels

FOLDER = Path(__file__).parent.parent / "histories"
EXAMPLES = sorted(FOLDER.glob("*/*.json"))


def claimed(folder: str) -> set[str]:
    named = {level for level in folder.split("+") if level in NAMES}
    return named.union(*(weaker_levels(level) for level in named))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_folder_names_what_holds(path):
    result = plume_py.check(plume_py.load(path), WEAK)
    holding = {level for level, verdict in result.levels.items() if verdict.ok}
    assert holding == claimed(path.parent.name) & set(WEAK)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/tap-*.json")), ids=lambda path: path.stem)
def test_file_name_names_the_pattern(path):
    letter = path.stem.split("-")[1]
    result = plume_py.check(plume_py.load(path), WEAK)
    also = {"j": {"j", "k"}}  # a non-repeatable read is a fractured one, too
    assert set(result.counts) == also.get(letter, {letter})


def test_every_pattern_has_an_example():
    assert {path.stem.split("-")[1] for path in FOLDER.glob("*/tap-*.json")} == set("abcdefghijklmn")
