"""Text from files in all outputs: control characters, CI commands and line breaks are escaped everywhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from program import PATIENCE

from plume_py.base.errors import IsocheckError
from plume_py.base.text import display, one_line, visible, wrapped
from plume_py.cli.main import cli, exit_code_of

ROOT = Path(__file__).parent.parent.parent
LONG = "a" * 30
ATOMS = [
    "::error::pwn", " ::add-mask::s", f"{LONG} ::stop-commands::x ", "\n::error::x", "\r\n::error::x",
    "\t::warning::x", "##[error]x", "a ##[add-path]x", "##vso[task.complete]x", "%0A::error::x", "\u2028::error::x",
    "\x85::error::x", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\u202eevil", "\u2066x\u2069", "\x00",
    "\x7f", "\u200b", "\ufeff", "<img src=x onerror=alert(1)>", "</script>", "]]>", '"];x [label="', "\\", "\ud800",
]  # fmt: skip

_COMMAND = re.compile(r"^\s*::|##\[|##vso\[", re.MULTILINE)


def harmless(text, ours=()):
    text = re.sub(r"^\t+", "", text, flags=re.M)  # Graphviz's way to indent
    odd = {c for c in text if not c.isprintable() and c != "\n"}
    assert not odd, f"{odd!r} in {text[:400]!r}"
    for line in text.split("\n"):
        if not line.startswith(ours or "\0"):
            assert _COMMAND.search(line) is None, line
    return text


def plain(atoms):
    """Without what no file in UTF-8 can hold."""
    return [atom for atom in atoms if "\ud800" not in atom]


@pytest.mark.parametrize("atom", ATOMS)
def test_single_atoms(atom):
    harmless(visible(atom))
    harmless(display(atom))
    for room in range(60, 80):
        harmless("\n".join(wrapped("  ", "w" * room + " " + visible(atom) + " " + visible(atom), "  ")))


def history(tmp_path, atom):
    """A violation of every kind of level, all names in it hostile."""
    other = f"{LONG} {atom}"
    txns = [
        [{"id": f"{atom}1", "ops": [["w", atom, f"{atom}v"], ["w", other, 1]]}],
        [{"id": f"{atom}2", "ops": [["r", atom, f"{atom}v"], ["w", other, f"{atom}w"]]}, {"id": f"{atom}4", "ops": []}],
        [{"id": f"{atom}3", "ops": [["r", other, f"{atom}w"], ["r", atom, None], ["r", other, f"{atom}nobody"]]}],
    ]
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"sessions": txns}))
    return path


def run(*arguments):
    """What a command prints, and how it ends; the last line of ``main`` included."""
    done = CliRunner().invoke(cli, [*map(str, arguments)])
    if isinstance(done.exception, IsocheckError):
        harmless(one_line(f"isocheck: {done.exception}"))
        done.exit_code = exit_code_of(done.exception)
    else:
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.parametrize("output", ["text", "json", "jsonl", "junit", "sarif", "github", "dot", "elle"])
@pytest.mark.parametrize("atom", plain(ATOMS))
def test_check_in_every_format(tmp_path, atom, output):
    done = run("check", history(tmp_path, atom), "--level", "all", "--format", output, "--verbose")
    assert done.exit_code == 1
    ours = ("::error file=", "::warning file=", "::notice file=") if output == "github" else ()
    harmless(done.stdout, ours)
    harmless(done.stderr)


@pytest.mark.parametrize("atom", plain(ATOMS))
def test_other_commands_on_histories(tmp_path, atom):
    path = history(tmp_path, atom)
    report = tmp_path / "r.json"
    report.write_text(run("check", path, "--level", "all", "--format", "json", "--max-examples", "3").stdout)
    for arguments in (
        ["stats", path],
        ["stats", path, "--format", "json"],
        ["verify", path, report],
        ["predict", path],
        ["predict", path, "--format", "json", "--even-if-broken"],
        ["convert", path, tmp_path / "h.txt"],
        ["check", path, "--level", "declared"],
        ["check", path, "--level", "TCC", "--minimize", tmp_path / "m.json"],
    ):
        done = run(*arguments)
        assert done.exit_code in (0, 1, 3, 4), arguments
        harmless(done.stdout)
        harmless(done.stderr)


@pytest.mark.parametrize("atom", ATOMS)
def test_workloads(tmp_path, atom):
    path = tmp_path / "w.json"
    operations = [
        {"type": "READ", "key": atom, "params": [atom]},
        {"type": "WRITE", "key": f"{atom}2", "params": [atom]},
    ]
    mirror = [{**op, "type": kind} for op, kind in zip(operations, ("WRITE", "READ"), strict=True)]
    templates = [
        {"name": atom, "params": [atom], "operations": operations},
        {"name": f"{atom}x", "params": [atom], "operations": mirror},
    ]
    for content in (
        {"templates": templates},
        {"templates": templates, "sessions": [[atom, f"{atom}nobody"]]},
        {"templates": [{**templates[0], "operations": [{"type": atom, "key": "x"}]}]},
        {"templates": [{"name": atom, "operations": operations, "level": atom}]},
    ):
        path.write_text(json.dumps(content))
        for command in (["allocate"], ["allocate", "--format", "json"], ["robust"]):
            done = run(command[0], path, *command[1:])
            assert done.exit_code in (0, 1, 2, 3, 4)
            harmless(done.stdout)
            harmless(done.stderr)


SQL = """CREATE TABLE t (a INT PRIMARY KEY, b INT);
-- transaction: f(x)
SELECT b INTO v FROM t WHERE a = :x;
UPDATE t SET b = 1 WHERE a = :x;
-- transaction: g(x)
SELECT b INTO v FROM t WHERE a = :x AND b = 'ATOM';
{}
-- invariant: ok: NOT EXISTS (SELECT * FROM t WHERE b < 0)
"""
STATEMENTS = [
    'ALTER TABLE "ATOM" FROBNICATE;', "ATOM;", "SELECT 'ATOM' FROM;", "SELECT * FROM \"ATOM\";", "IF ATOM THEN",
    "FOR r IN ()", 'CREATE TABLE "ATOM" (a ATOM);', "-- transaction: h(x ATOM)", "-- transaction: ATOM",
    "-- transaction: h(ATOM)", "-- invariant: ATOM", "-- assume: ATOM", 'UPDATE "ATOM" SET "ATOM" = 1;',
    "SELECT a" + " + 1" * 1000 + " FROM t;", "SELECT " + "(" * 3000 + "a" + ")" * 3000 + " FROM t;",
    "IF x THEN " * 200, "FOR r IN (SELECT a FROM t) LOOP " * 200, "SELECT CASE " + "WHEN a THEN CASE " * 500 + "END;",
    "SELECT 1 FROM t WHERE" + " NOT" * 2000 + " a;", "-- transaction: f(x c)",
    "-- transaction: h" + " " * 20_000 + "x", "-- transaction: h()" + " " * 20_000 + "x",
    "-- invariant: x" + "\n" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sql(tmp_path, statement):
    """What sqlglot logs goes round click: hence a process of its own."""
    pytest.importorskip("sqlglot")
    path = tmp_path / "w.sql"
    script = "import sys; from plume_py.cli.main import cli\nfor f in sys.argv[2:]:\n try: cli.main([sys.argv[1], f])\n"
    script += " except SystemExit as e: assert e.code in (0, 1, 2, 3, 4), e.code\n"
    script += " except Exception as e:\n  if type(e).__module__ != 'plume_py.base.errors': raise\n"
    script += "  from plume_py.base.text import one_line; print(one_line(str(e)), file=sys.stderr)"
    files = []
    for number, atom in enumerate(plain(ATOMS) if "ATOM" in statement else ["x"]):
        files.append(path.with_name(f"{number}.sql"))
        files[-1].write_text(SQL.format(statement).replace("ATOM", atom), newline="")
    for command in ("allocate", "infer"):
        done = subprocess.run(
            [sys.executable, "-c", script, command, *files],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        harmless(done.stdout)
        harmless(done.stderr)


@pytest.mark.parametrize("atom", [atom for atom in ATOMS if "\0" not in atom and "/" not in atom])
def test_names_of_files(tmp_path, atom, monkeypatch):
    name = tmp_path / os.fsdecode(os.fsencode(atom) if "\ud800" not in atom else b"\xff::x")
    name.write_text('{"sessions": [')
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["check", name.name],
        ["stats", name.name],
        ["verify", name.name, name.name],
        ["allocate", name.name],
    ):
        done = run(*arguments[:1], "--", *arguments[1:])
        assert done.exit_code in (2, 4)
        harmless(done.stdout)
    good = history(tmp_path, "x").rename(tmp_path / f"{name.name}.json")
    harmless(run("check", "--", good.name).stdout)
    harmless(run("scan", "--no-times", ".").stdout)
