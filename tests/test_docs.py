"""What the documentation shows is what isocheck prints."""

import re
import runpy
import shlex
import subprocess
import sys

import click
import pytest
from paths import ROOT

from plume_py import __version__
from plume_py.cli import scan
from plume_py.cli.main import COMMANDS, cli

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Folders of a reader, of which pages speak.
FOREIGN_FOLDERS = {"archive", "histories"}


def anchors(page):
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def options():
    """Return every option of every command."""
    with click.Context(cli) as ctx:
        commands = [cli.get_command(ctx, name) for name in COMMANDS]
    commands += [scan.diff]
    return {name: {option for p in command.params for option in (*p.opts, *p.secondary_opts) if option[0] == "-"}
            for command in commands for name in [command.name]}  # fmt: skip


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
    for target, anchor in re.findall(r"\]\(<?(?!http)([^)#>]*)(?:#([^)>]+))?>?\)", text):
        assert (page.parent / target).exists(), target
        if anchor:
            assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"
    for target in re.findall(r"\bhistories/[\w+/-]+\.json", text):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_in_backticks_exist(page):
    """A path of sources, tests, benchmarks or documentation names a file, as it is or below one of these folders."""
    for name in re.findall(r"`([\w./*-]+/[\w.*-]+\.(?:py|md|json|jsonl|sql|csv|js))`", page.read_text()):
        bases = [ROOT, page.parent, *(ROOT / folder for folder in ("plume_py", "docs", "tests", "benchmarks"))]
        assert (
            any(any(base.glob(name.replace("NAME", "*"))) for base in bases) or name.split("/")[0] in FOREIGN_FOLDERS
        ), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_commands_exist(page):
    """Every option that a page shows behind ``isocheck COMMAND`` is one of that command."""
    known = options()
    blocks = re.findall(r"```(?:console|sh|bash|)\n(.*?)```", page.read_text(), re.S)
    shown = [line for block in blocks for line in re.sub(r"\\\n|\n {4,}(?=\[?--)", " ", block).splitlines()]
    for line in [*shown, *re.findall(r"`(isocheck [^`]+)`", page.read_text())]:
        for call in re.findall(r"\bisocheck (.*?)(?= \| |[;&#`]|\bisocheck |$)", line):
            words = call.replace("[check]", "check").split()
            command = words[0] if words and words[0] in known else "check"
            command = "diff" if words[:2] == ["scan", "diff"] else command
            given = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", call))
            assert given <= known[command] | {"--help", "--version"}, f"isocheck {call}"


def test_every_option_is_documented():
    """In the pages, the reference of the command line included; ``--help`` and the manual have them all anyway."""
    text = "".join(page.read_text() for page in PAGES)
    missing = {f"{name} {option}" for name, known in options().items() for option in known
               if option.startswith("--") and not re.search(rf"{re.escape(option)}(?![\w-])", text)}  # fmt: skip
    assert not missing


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
