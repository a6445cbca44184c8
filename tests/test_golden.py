"""What people and scripts see, word for word: every history in histories/ in every format, and every --help.

A difference is either a mistake or meant; if it is meant, ``ISOCHECK_GOLDEN=write pytest tests/test_golden.py`` writes
the files anew, and the commit shows what changed.
"""

import json
import os
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py import __version__
from plume_py.cli.common_options import OUTPUT_FORMATS
from plume_py.cli.main import cli

GOLDEN = Path(__file__).parent / "golden"
HISTORIES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "histories").rglob("*.json") if path.parent.name != "found"
)

# What differs from run to run and from version to version.
VARYING = (
    (re.compile(r'"seconds":\s*\{[^}]*\}'), '"seconds":{}'),
    (re.compile(r'time(stamp)?="[^"]*"'), 'time=""'),
    (re.compile(r"\b[0-9.]+ s\b"), "N s"),
    (re.compile(re.escape(__version__)), "VERSION"),
)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")
    monkeypatch.setenv("COLUMNS", "80")


def run(*arguments):
    output = CliRunner().invoke(cli, list(arguments)).stdout
    for pattern, constant in VARYING:
        output = pattern.sub(constant, output)
    return output


def compare(name, output):
    path = GOLDEN / name
    if os.environ.get("ISOCHECK_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(output)
    assert path.read_text().splitlines() == output.splitlines(), f"golden/{name} differs"


@pytest.mark.parametrize("output", OUTPUT_FORMATS)
def test_formats(output):
    compare(f"{output}.txt", run("check", *HISTORIES, "--level", "all", "--format", output))


def test_the_page(tmp_path):
    """Of the page only its data: style and scripts are files of their own."""
    data = {}
    for history in HISTORIES:
        page = tmp_path / "page.html"
        run("check", history, "--level", "all", "--report", str(page))
        found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
        text = found[1]
        for pattern, constant in VARYING:
            text = pattern.sub(constant, text)
        data[history] = json.loads(text)
    compare("page.json", json.dumps(data, indent=1, ensure_ascii=False))


def test_help():
    def pages(command, words):
        command._help_option = None  # click keeps that of whoever asked first, with that one's settings
        yield f"=== {' '.join(words)}\n{run(*words[1:], '--help')}\n"
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                yield from pages(command.get_command(click.Context(command), name), [*words, name])

    compare("help.txt", "".join(pages(cli, ["isocheck"])))
