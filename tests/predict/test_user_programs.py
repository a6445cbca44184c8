"""User programs: from a file to a validated prediction with assertions, and errors (module store.program)."""

import re

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.exploration import explore
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, failures, observed_run, program, run
from plume_py.reasoning.predict.store.replay import replay

THEATRE = f"{ROOT / 'docs/examples/theatre.py'}:Theatre"


def isocheck(*arguments):
    return CliRunner().invoke(cli, list(arguments))


def test_from_a_file_to_a_validated_prediction_with_a_failed_assertion() -> None:
    done = isocheck("predict", "--program", THEATRE, "--seed", "1", "--boundary", "relaxed")
    assert done.exit_code == 1
    assert "replayed: it comes true; the program does not diverge" in done.output
    assert "assertion failed: 2 tickets sold, and 2 of 3 seats free" in done.output
    assert isocheck("predict", "--program", THEATRE, "--seed", "1", "--level", "SI").exit_code == 0


def test_the_documentation_shows_the_example_unchanged() -> None:
    """But for its comments."""
    page = (ROOT / "docs/predict.md").read_text()
    shown = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class Theatre" in block)

    def code(text):
        text = re.sub(r'^ *""".*?"""\n', "", text, flags=re.M | re.S)
        return [line.partition("  #")[0] for line in text.splitlines() if line.strip()]

    assert code(shown) == code((ROOT / "docs/examples/theatre.py").read_text())


def test_a_user_program_can_be_explored() -> None:
    found = explore(program(THEATRE), "TCC", runs=10)
    assert found.failed and found.broken
    assert explore(program(THEATRE), "SER", runs=5).failed == 0
    done = isocheck("explore", THEATRE, "--runs", "10")
    assert done.exit_code == 1 and "assertions fail in" in done.output


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assertions_of_the_programs_hold_in_serial_runs(name) -> None:
    for seed in range(5):
        workload = SeededProgram(program(name), seed)
        assert failures(workload, run(workload)) == []


def test_assertions_fail_in_replayed_predictions() -> None:
    failed = 0
    for seed in range(3):
        workload = SeededProgram(program("smallbank"), seed)
        observed = observed_run(workload)
        for prediction in predict(observed, "TCC", boundary="relaxed").predictions:
            failed += bool(replay(workload, observed, prediction, "TCC").failures)
    assert failed


PROGRAM = """
from plume_py.reasoning.predict.store import PlannedTransaction
import random
class Own:
    def initial(self, key):
        return 0
    def plan(self, seed, sessions, transactions):
        return {plan}
class Other:
    pass
"""


def own(tmp_path, plan):
    file = tmp_path / "own.py"
    file.write_text(PROGRAM.format(plan=plan))
    return f"{file}:Own"


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ("None", "a plan is a list"),
        ("[[7]]", "a plan is a list"),
        ("1 / 0", "ZeroDivisionError"),
        ("[[PlannedTransaction(str(random.random()), print)]]", "another one each time"),
        ("[[PlannedTransaction('t', lambda txn: txn.read(7))]]", "a key is a text"),
        ("[[PlannedTransaction('t', lambda txn: {}['x'])]]", "t: KeyError"),
    ],
)
def test_errors_in_user_programs_are_one_line(tmp_path, plan, told) -> None:
    with pytest.raises(IsocheckError, match=told):
        observed_run(SeededProgram(program(own(tmp_path, plan)), 0))


@pytest.mark.parametrize("where", ["missing.py:Own", "no_such_module:Own", "os:nothing", "os:getpid", "nothing"])
def test_names_that_are_not_programs_are_one_line_errors(where) -> None:
    with pytest.raises(IsocheckError):
        program(where)


def test_an_assertion_that_fails_in_a_serial_run_is_an_error(tmp_path) -> None:
    plan = "[[PlannedTransaction('t', lambda txn: (_ for _ in ()).throw(AssertionError('never')))]]"
    done = isocheck("predict", "--program", own(tmp_path, plan))
    assert isinstance(done.exception, IsocheckError) and "fails in a serial run already" in str(done.exception)
