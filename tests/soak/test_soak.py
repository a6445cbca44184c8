"""A little of ``make soak``: the same few kills every time."""

import random

import pytest

from soak.commands import COMMANDS
from soak.disturb import round_of
from soak.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("soak") / "site")


@pytest.mark.parametrize("name", ["convert", "scan --results", "collect", "test", "synth --out"])
def test_what_is_disturbed_leaves_nothing_behind(name, site):
    (command,) = [each for each in COMMANDS if each.name == name]
    assert round_of(site, command, ["kill all", "term", "closed streams"], random.Random(name)) == []
