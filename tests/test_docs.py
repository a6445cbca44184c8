"""What the documentation shows is what isocheck prints."""

import re
import runpy
import shlex
import subprocess
import sys

import pytest
from paths import ROOT

from plume_py import __version__

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def console_examples():
    """Every `$ isocheck …` of a console block, with the output shown below it."""
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = example.partition("\n")
                yield pytest.param(command, output, id=f"{page.name}: {command}")


@pytest.mark.parametrize("command, output", list(console_examples()))
def test_console_example(command, output, tmp_path):
    program, *arguments = shlex.split(command)
    assert program == "isocheck"
    arguments = [str(tmp_path / a) if a.startswith("out.") else a for a in arguments]
    run = subprocess.run(
        [sys.executable, "-c", "from plume_py.cli.main import main; main()", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    pattern = re.escape(output.rstrip("\n")).replace(r"\.\.\.", ".*")
    printed = (run.stdout + run.stderr).replace(f"{tmp_path}/", "").rstrip("\n")
    assert re.fullmatch(pattern, printed), printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_example(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(compile(block, page.name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_files_exist(page):
    text = page.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text) + re.findall(r"\bhistories/[\w+/-]+\.json", text):
        base = ROOT if target.startswith("histories/") else page.parent
        assert (base / target).exists(), target


def test_the_pages_of_patterns_are_up_to_date():
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    assert (ROOT / "docs" / "taps.md").read_text() == generate["page"](), "run docs/generate.py"
    assert (ROOT / "docs" / "strong.md").read_text() == generate["strong_page"](), "run docs/generate.py"


def test_what_pages_say_of_databases_is_up_to_date():
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    assert (ROOT / "docs" / "databases.md").read_text() == generate["databases_page"](), "run docs/generate.py"
    assert generate["promises_table"]() + "\n" in (ROOT / "docs" / "collect.md").read_text(), "run docs/generate.py"
    assert generate["catalogues_table"]() + "\n" in (ROOT / "docs" / "allocate.md").read_text(), "run docs/generate.py"


def test_what_was_measured_of_predict_is_up_to_date():
    figures = runpy.run_path(str(ROOT / "docs" / "predict_figures.py"))
    assert (ROOT / "docs" / "predict.md").read_text() == figures["page"](), "run docs/predict_figures.py"


def test_the_manual_page_is_up_to_date():
    man = runpy.run_path(str(ROOT / "docs" / "man.py"))
    assert (ROOT / "docs" / "isocheck.1").read_text() == man["page"](), "run make man"


def test_the_changes_begin_with_this_version():
    """A version is either unreleased or has its day."""
    heading = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heading is not None and heading[1] == __version__
