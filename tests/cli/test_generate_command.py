"""``isocheck generate`` (cli/generate.py): presets, planted patterns, and errors for bad parameters."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from oracle import patterns, verdicts

from plume_py import load
from plume_py.base.errors import IsocheckError
from plume_py.cli import generate as module
from plume_py.cli.convert import WRITABLE
from plume_py.cli.main import cli
from plume_py.history import generate as engine
from plume_py.history.inject import RECIPES
from plume_py.levels.orders import level_of

SMALL = ["--sessions", "3", "--transactions", "2", "--operations", "3", "--keys", "3"]


def run(*args, code=0):
    result = CliRunner().invoke(cli, ["generate", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def whole_process(*args):
    script = "from plume_py.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, "generate", *map(str, args)], capture_output=True, text=True, check=False
    )


def plain(history):
    return [[(txn.status, txn.ops) for txn in session] for session in history]


def test_the_tables_of_the_command_line_are_those_of_the_generator():
    assert module.GUARANTEES == engine.GUARANTEES
    assert module.DISTRIBUTIONS == engine.DISTRIBUTIONS
    assert set(module.LETTERS) == set(RECIPES)


def test_the_defaults_are_those_of_the_paper(tmp_path):
    result = run(tmp_path / "h.txt")
    history = load(tmp_path / "h.txt")
    assert (history.sessions, history.transactions, history.operations) == (25, 5_000, 100_000)
    assert len(history.key_code) == pytest.approx(10_000, rel=0.01)
    assert result.output == f"isocheck: wrote {tmp_path / 'h.txt'}: 5,000 transactions, 100,000 operations\n"


@pytest.mark.parametrize("name", WRITABLE)
def test_every_writable_format(tmp_path, name):
    run(tmp_path / "h", "--to", name, *SMALL, "--inject", "k=1")
    history = load(tmp_path / "h")
    assert history.format == name
    assert patterns(plain(history), history.initial_value) == {"k"}


@pytest.mark.parametrize("guarantee", module.GUARANTEES)
def test_generated_histories_satisfy_their_guarantee(tmp_path, guarantee):
    for seed in range(5):
        run(tmp_path / "h.json", "--guarantee", guarantee.lower(), *SMALL, "--seed", seed)
        assert verdicts(plain(load(tmp_path / "h.json")))[level_of(guarantee)]


def test_the_same_seed_gives_the_same_file(tmp_path):
    wishes = [*SMALL, "--inject", "a..n=1", "--seed", "7"]
    first, second = (run("-", "--to", "jsonl", *wishes).stdout_bytes for _ in range(2))
    assert first == second
    assert first != run("-", "--to", "jsonl", *wishes[:-1], "8").stdout_bytes


@pytest.mark.parametrize("name", ["json", "jsonl", "plume", "edn"])
def test_planted_patterns_are_at_the_printed_transactions(tmp_path, name):
    result = run(tmp_path / "h", "--to", name, *SMALL, "--inject", "k=2,h=1", "--inject", "m=1")
    *lines, _ = result.stderr.splitlines()
    assert sorted(re.findall(r"^planted (.):", result.stderr, re.M)) == ["h", "k", "k", "m"]
    told = {int(t): int(s) for line in lines for t, s in re.findall(r"(\d+) \(session (\d+)\)", line)}
    history = load(tmp_path / "h")
    by_id = dict(enumerate(txn for session in history for txn in session))
    assert name == "edn" or all(txn.id == t for t, txn in by_id.items())  # EDN has them as :index only
    keys = {int(key) for line in lines for key in line.split("; keys ")[1].split()}
    for t, session in told.items():
        assert by_id[t].session == session
        assert {op.key for op in by_id[t].ops} <= keys
    assert not keys & {op.key for t, txn in by_id.items() if t not in told for op in txn.ops}


def test_ranges_and_repetitions_of_inject_add_up():
    assert module.pattern_counts(("a..c=1, b=2", "b=1")) == {"a": 1, "b": 4, "c": 1}
    assert module.pattern_counts(()) == {}


@pytest.mark.parametrize(
    "wish", ["", "z=1", "a", "a=-1", "a=x", "a=1,,b=1", "a..z=1", "A=1", "a=9999999", "n=" + "9" * 99]
)
def test_bad_injections(wish):
    with pytest.raises(IsocheckError, match="--inject"):
        module.pattern_counts((wish,))


@pytest.mark.parametrize(
    "wishes",
    [
        ["h.json", "--sessions", "-1"],
        ["h.json", "--read-share", "1.5"],
        ["h.json", "--read-share", "nan"],
        ["h.json", "--keys", "0"],
        ["h.json", "--seed", "-1"],
        ["h.json", "--guarantee", "CI"],
        ["h.json", "--inject", "q=1"],
        ["h.json", "--sessions", "100000", "--transactions", "100000"],
        ["h.json", "--keys", "9999999999"],
        ["h.unknown"],
        ["-"],
        ["no/such/folder/h.json", "--sessions", "1"],
        ["h.txt", "--operations", "0"],  # an empty transaction has no line in Plume text
    ],
)
def test_bad_parameters_are_a_usage_error_and_write_nothing(tmp_path, monkeypatch, wishes):
    monkeypatch.chdir(tmp_path)
    done = whole_process(*wishes)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    # Either our single line or click's, below its reminder of how the command is used.
    assert done.stderr.splitlines()[-1].startswith(("isocheck: ", "Error: "))
    assert list(tmp_path.iterdir()) == []


def test_help_needs_no_numpy():
    script = (
        "import sys; from plume_py.cli.main import cli\n"
        "cli.main(['generate', '--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
