"""Help and completion of all commands, and the messages about written files (cli/common_options.py)."""

import json
import re
import shlex

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from paths import ROOT

from plume_py.cli.main import COMMANDS, cli
from plume_py.cli.scan import diff

HOLDS = str(ROOT / "histories/SER/two-deposits.json")
BREAKS = str(ROOT / "histories/TCC/lost-update.json")


def command(name):
    return diff if name == "diff" else cli.get_command(click.Context(cli), name)


def examples():
    """Every line of an Examples section, as the words of its commands."""
    for name in (*COMMANDS, "diff"):
        block = (command(name).help or "").split("Examples:\n")[-1]
        for line in block.splitlines():
            written = re.split(r"  +(?=[a-z])", line.strip())[0]  # two spaces begin a remark
            for piece in re.split(r"[;|]", written.split(" > ")[0]):
                words = shlex.split(piece)
                if words and words[0] == "isocheck":
                    yield pytest.param(name, words[1:], id=piece.strip())


@pytest.mark.parametrize("name", [*COMMANDS, "diff"])
def test_every_command_has_examples(name):
    assert (command(name).help or "").count("isocheck ") >= 2


@pytest.mark.parametrize("name, words", list(examples()))
def test_examples_are_commands(name, words):
    """The options exist, and take what is given."""
    if words[0] not in COMMANDS:
        words = ["check", *words]
    if words[:2] == ["scan", "diff"]:
        words = words[1:]
    with click.Context(command(words[0])) as ctx:
        parsed, rest, _ = ctx.command.make_parser(ctx).parse_args(words[1:])
        assert rest == []
        for param in ctx.command.get_params(ctx):
            if isinstance(param.type, click.Choice):
                param.type_cast_value(ctx, parsed.get(param.name))


def completed(*words):
    """What the shell offers for the last word."""
    shell = ShellComplete(cli, {}, "isocheck", "_ISOCHECK_COMPLETE")
    return [(item.type, item.value) for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_completion():
    plain = [("plain", level) for level in ("PC", "PSI")]
    assert completed("history.json", "--level", "p") == plain
    assert ("plain", "all") in completed("check", "history.json", "-l", "")
    assert completed("relate", "SI", "P") == plain
    assert completed("synth", "--allow", "se") == [("plain", "SER")]
    assert completed("check", "h.json", "--format", "js") == [("plain", "json"), ("plain", "jsonl")]
    assert completed("check", "--input-format", "dbcop-j") == [("plain", "dbcop-json")]
    assert completed("explain", "TAP-k")[0][1].startswith("TAP-k")
    assert completed("rob") == [("plain", "robust")]
    assert completed("histories/de") == [("file", "histories/de")], "a history may come first"


def run(*words):
    return CliRunner().invoke(cli, list(map(str, words)))


def test_many_histories_are_summed_up(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert run(HOLDS, BREAKS, BREAKS).stdout.endswith("\n\n3 histories: 1 holds, 2 violated\n")
    assert run(HOLDS, HOLDS, broken).stdout.endswith("\n3 histories: 2 hold, 1 unreadable\n")
    assert "2 histories:" not in run(HOLDS, BREAKS, "--quiet").stdout
    assert "histories:" not in run(BREAKS).stdout
    for line in run(HOLDS, BREAKS, "--format", "jsonl").stdout.splitlines():
        json.loads(line)


def test_commands_print_which_files_they_wrote(tmp_path):
    page, pictures, order = tmp_path / "page.html", tmp_path / "pictures", tmp_path / "order.json"
    told = run(BREAKS, "--report", page, "--out", pictures)
    assert f"isocheck: wrote {pictures}: 1 counterexample\n" in told.stderr
    assert f"isocheck: wrote {page}\n" in told.stderr
    assert f"isocheck: wrote {order}\n" in run(HOLDS, "--level", "SER", "--witness", order).stderr
    assert run(BREAKS, "--report", page, "--quiet").stderr == ""
    saved = tmp_path / "levels.json"
    assert run("allocate", "smallbank", "--brief", "--save", saved).stderr == f"isocheck: wrote {saved}\n"


def test_generate_says_what_it_wrote_or_nothing(tmp_path):
    out = tmp_path / "out.txt"
    sizes = "--sessions", 2, "--transactions", 3, "--operations", 4
    assert run("generate", out, *sizes).stderr == f"isocheck: wrote {out}: 6 transactions, 24 operations\n"
    quiet = run("generate", out, *sizes, "--inject", "a=1", "--quiet")
    assert quiet.exit_code == 0 and quiet.stderr == ""
    assert "wrote" not in run("generate", "-", *sizes, "--to", "plume").stderr


NAMED = """{"initial": null}
{"session": "alice", "id": "a", "ops": [["r", 1, null], ["w", 1, 2]]}
{"session": "bob", "id": "b", "ops": [["r", 1, 2]]}
"""
IDS, SESSIONS = "the ids of transactions are not kept", "the names of sessions are not kept"


@pytest.mark.parametrize(
    "target, lost",
    [
        ("jsonl", []),
        ("json", [SESSIONS]),
        ("plume", ["transactions are numbered from 0", SESSIONS]),
        ("dbcop", [IDS, SESSIONS]),
        ("dbcop-json", [IDS, SESSIONS]),
        ("edn", [IDS, SESSIONS]),
    ],
)
def test_convert_prints_what_a_format_does_not_keep(target, lost, tmp_path):
    (tmp_path / "in.jsonl").write_text(NAMED)
    told = run("convert", tmp_path / "in.jsonl", tmp_path / "out", "--to", target)
    assert told.exit_code == 0
    *notes, last = told.stderr.splitlines()
    assert last == f"isocheck: wrote {tmp_path / 'out'}"
    assert len(notes) == len(lost) and all(f"note: {what}" in note for what, note in zip(lost, notes, strict=True))
