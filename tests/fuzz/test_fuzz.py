"""A little of ``make fuzz``, and what it found before; compiled and not compiled answer alike."""

import random
import re
import sys
from pathlib import Path

import pytest
from paths import ROOT

from fuzz.mutate import damage
from fuzz.run import command, run, write
from fuzz.seeds import HISTORIES
from plume_py import load
from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch

CORPUS = sorted((ROOT / "tests" / "fuzz" / "corpus").iterdir())


@pytest.fixture(autouse=True)
def _not_compiled(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    monkeypatch.setenv("ISOCHECK_DEBUG", "1")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_input_is_answered(seed, tmp_path):
    tally = run(seed, 250, tmp_path, None)
    assert tally.problems == []
    assert tally.codes["load", 0] > 20 < tally.codes["load", 4], "neither harmless nor hopeless"


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_stays_mended(path, tmp_path):
    """The name of a file says which command it is for."""
    name = path.name.split("-")[0]
    limits = {"check": ["--timeout", "5"], "infer": ["--rows", "1", "--steps", "1", "--timeout", "5"]}
    code, _, err = command([name, str(path), *limits.get(name, [])])
    assert code in (0, 1, 3, 4)
    assert code != 4 or len(err.splitlines()) == 1


def answers(folder, count):
    """What is printed about damaged histories, whatever the path is."""
    for number in range(count):
        rng = random.Random(f"alike {number}")
        given = write(folder, {"h": damage(HISTORIES[rng.choice(("json", "jsonl", "plume", "edn"))], rng)})
        level = rng.choice(("weak", "SI", "SER"))
        code, out, err = command(["check", str(given), "--level", level, "--format", "jsonl"])
        yield code, re.sub(r'"seconds":\{.*?\}', "", out), err


def test_compiled_and_not_compiled_answer_alike(tmp_path, monkeypatch):
    plain = list(answers(tmp_path, 60))
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    assert list(answers(tmp_path, 60)) == plain
    dispatch.uncompile(*(module for name, module in sys.modules.items() if name.endswith("_kernels")))


def test_the_reader_itself_says_what_is_wrong_in_one_line():
    with pytest.raises(InputError) as error:
        load(Path(__file__).parent / "corpus" / "check-newline-in-an-operation.edn")
    assert "\n" not in str(error.value)
