"""``isocheck infer``: tests of the driver, the joint levels, the replay, the reports and pictures, and errors."""

import json
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from paths import EXAMPLES

from plume_py.cli.main import cli
from plume_py.reasoning.infer.bounded.bounded_search import BoundedSearch
from plume_py.reasoning.infer.driver import InferOptions, infer
from plume_py.reasoning.infer.execution.replay import replay
from plume_py.reasoning.infer.execution.schedule import Commit, Counterexample, ReplayError
from plume_py.reasoning.infer.joint_levels import check_joint_levels
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES

RC, SI, _ = STORES["mixiso-levels"].levels


def run(*args):
    return CliRunner().invoke(cli, ["infer", *(str(arg) for arg in args)], catch_exceptions=False)


def levels(app, store, rows=2):  # with as many steps as rows
    result = infer(load(app), STORES[store], (), InferOptions(rows=rows, steps=rows))
    return {txn.name: txn.weakest.level.name for txn in result.transactions}


@pytest.mark.parametrize("rows", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("mysql", {"new_order": "SER", "delivery": "SER"}),
        ("postgresql", {"new_order": "SI", "delivery": "SI"}),
    ],
)
def test_levels_agree_with_table_1_of_the_paper(store, expected, rows):
    rest = dict.fromkeys(("payment", "order_status", "stock_level"), "RC")
    assert levels("tpcc", store, rows) == {**expected, **rest}


@pytest.mark.parametrize(("store", "cancel"), [("mysql", "SER"), ("postgresql", "SI")])
@pytest.mark.parametrize("app", ["courseware", EXAMPLES / "courseware.sql"])
def test_levels_of_courseware_agree_with_the_paper(store, cancel, app):
    expected = {"register": "RC", "add_course": "RC", "enroll": "SER", "cancel_course": cancel, "deregister": "SER"}
    assert levels(str(app), store) == expected


def test_the_explorer_runs_without_z3(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    for name in ("bounded", "symbolic", "prove", "abstract"):
        monkeypatch.delitem(sys.modules, f"plume_py.reasoning.infer.{name}", raising=False)
    result = infer(load("counters"), STORES["mysql"], (), InferOptions(engine="explore"))
    assert [txn.weakest.level.name for txn in result.transactions] == ["SER", "RC"]


def test_a_missing_z3_is_reported_in_one_line(monkeypatch):
    monkeypatch.setattr("plume_py.reasoning.infer.driver.find_spec", lambda name: None)
    from plume_py.base.errors import IsocheckError

    with pytest.raises(IsocheckError, match=r"pip install z3-solver"):
        infer(load("counters"), STORES["mysql"], (), InferOptions(engine="z3"))


def test_a_missing_sqlglot_is_reported_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    from plume_py.base.errors import IsocheckError

    with pytest.raises(IsocheckError, match=r"pip install sqlglot"):
        load(str(EXAMPLES / "courseware.sql"))


def test_the_text_report_prints_the_schedule():
    result = run("courseware", "--txn", "deregister")
    assert result.exit_code == 0
    assert "deregister  SER (SERIALIZABLE)" in result.output
    assert "RC   violated: I1" in result.output
    assert "SER  no violation up to 3 rows, alone" in result.output
    assert "meanwhile enroll(" in result.output
    assert "DELETE FROM student WHERE s_id = " in result.output
    assert "broken: I1: An enrollment refers to a student and to a course." in result.output


def test_the_json_report_has_answers_and_counterexamples():
    document = json.loads(run("bank", "--format", "json", "--prove").output)
    assert document["tool"]["name"] == "isocheck"
    withdraw, deposit = document["transactions"]
    # proved alone, but SERIALIZABLE does not protect from a deposit at RC
    assert (withdraw["level"], withdraw["answer"]) == ("SER", "no violation found")
    assert withdraw["levels"]["SER"]["answer"] == "proved"
    assert (deposit["level"], deposit["answer"]) == ("RC", "proved")
    (example,) = withdraw["levels"]["SI"]["counterexamples"]
    assert example["clause"] == "not_overdrawn"
    assert sum(row["balance"] for row in example["final"]["account"]) < 0
    assert example["schedule"][-1] == {"statement": "COMMIT"}


def test_bounded_answers_are_not_called_proofs():
    document = json.loads(run("doctors", "--format", "json").output)
    answers = {level["answer"] for txn in document["transactions"] for level in txn["levels"].values()}
    assert answers == {"violated", "no violation found"}


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_pictures_survive_hostile_names(tmp_path):
    app = tmp_path / "app.py"
    evil = '<b>"x"&\\\\N'
    app.write_text(
        "from plume_py.reasoning.infer.embed import App, Text, by\n"
        "app = App('a')\n"
        "t = app.table('t', key='k', k=Text, v=Text)\n"
        "@app.txn()\n"
        f"def change():\n    row = t.get(k='{evil}')\n    t.update(by(k='{evil}'), v=row.v)\n"
        "@app.txn()\n"
        f"def spoil():\n    t.update(by(k='{evil}'), v='bad')\n"
        "@app.invariant\n"
        "def good():\n    return t.all(lambda row: row.v != 'bad')\n"
    )
    result = run(app, "--out", tmp_path / "pictures")
    assert result.exit_code == 1  # spoil violates it even alone
    svgs = list((tmp_path / "pictures").glob("*.svg"))
    assert svgs and all(svg.read_text().rstrip().endswith("</svg>") for svg in svgs)
    for svg in svgs:
        assert "<b>" not in svg.read_text()


def test_serializability_mode_finds_lost_updates():
    output = run("counters", "--serializability", "--brief").output
    assert "read_and_write  SI" in output
    assert "in_place        RC" in output
    assert "serial order" in output


def test_both_engines_agree_in_serializability_mode():
    for engine in ("z3", "explore"):
        document = json.loads(run("unique_ids", "--serializability", "--engine", engine, "--format", "json").output)
        assert [txn["level"] for txn in document["transactions"]] == ["SER", "SI"], engine


def test_postgresql_serializable_raises_its_partners_to_serializable():
    """A count before a lock needs SERIALIZABLE. Then the partner, which is safe at RC alone, needs it too."""
    result = infer(load(str(EXAMPLES / "booking.sql")), STORES["postgresql"])
    assert [txn.weakest.level.name for txn in result.transactions] == ["SER", "RC"]
    together = check_joint_levels(result, InferOptions())
    assert {name: level.name for name, level in together.levels.items()} == dict.fromkeys(together.levels, "SER")
    assert together.raised == {"lock_then_count": "RC"}
    assert together.raising_violations


def test_for_update_under_a_snapshot_does_not_prevent_stale_reads():
    """FOR UPDATE waits, but the snapshot is older: READ COMMITTED is safe where REPEATABLE READ is not."""
    result = infer(load(str(EXAMPLES / "booking.sql")), STORES["postgresql"], ("lock_then_count",))
    answers = {verdict.level.name: verdict.answer for verdict in result.transactions[0].levels}
    assert answers == {"RC": "no violation found", "SI": "violated", "SER": "no violation found"}
    explored = infer(
        load(str(EXAMPLES / "booking.sql")),
        STORES["mixiso-levels"],
        ("lock_then_count",),
        InferOptions(rows=2, steps=1),
    )
    assert {v.level.name: v.answer for v in explored.transactions[0].levels} == answers


def test_the_first_transaction_that_violates_the_invariant_is_reported():
    """Only the first transaction that violates the invariant is reported, not later ones."""
    program = load("counters")
    partners = {"read_and_write": RC, "in_place": RC}
    assert BoundedSearch(program, "in_place", RC, 2, 2, partners=partners).search(program.invariant[0]).example is None
    answer = BoundedSearch(program, "read_and_write", RC, 2, 2, partners=partners).search(program.invariant[0])
    assert answer.example is not None
    assert replay(program, answer.example).broken == ["counted"]
    assert (
        BoundedSearch(program, "in_place", RC, 2, 2, partners={"read_and_write": SI, "in_place": RC})
        .search(program.invariant[0])
        .example
        is None
    )


def test_replay_rejects_impossible_schedules():
    program = load("counters")
    start = ((((1,), (1, 0)),), ())
    own = (("i", 1),)

    def example(level, events, initial=start):
        return Counterexample("read_and_write", level, own, initial, events, "counted")

    other = Commit("in_place", own)
    assert replay(program, example(RC, (None, other, None, None))).broken == ["counted"]
    for events, why in (
        ((None, None, None), "holds at the end"),
        ((None, None, other, None), "wait for a lock"),
        ((None, None), "has not reached its end"),
        ((None,) * 4, "no statement left"),
    ):
        with pytest.raises(ReplayError, match=why):
            replay(program, example(RC, events))
    with pytest.raises(ReplayError, match="cannot commit"):
        replay(program, example(SI, (None, other, None, None)))
    with pytest.raises(ReplayError, match="break counted already"):
        replay(program, example(RC, (None, other, None, None), ((((1,), (1, 5)),), ())))


WRONG = {
    "unknown column": (
        "t = app.table('t', key='k', k=Int)\n@app.txn()\ndef f():\n    t.insert(k=1, z=2)\n",
        "line 6: t has no column z",
    ),
    "missing value": (
        "t = app.table('t', key='k', k=Int, v=Int)\n@app.txn()\ndef f():\n    t.insert(k=1)\n",
        "line 6: insert into t gives no value for v",
    ),
    "python if": (
        "t = app.table('t', key='k', k=Int)\n@app.txn(a=Int)\ndef f(a):\n    if a > 1:\n        t.insert(k=1)\n",
        "line 6: a symbolic value is neither true nor false yet",
    ),
    "key update": (
        "t = app.table('t', key='k', k=Int)\n@app.txn()\ndef f():\n    t.update(None, k=1)\n",
        "line 6: k is in the primary key of t and cannot be updated",
    ),
    "sorts": (
        "t = app.table('t', key='k', k=Int, b=Bool)\n@app.txn()\ndef f():\n    t.insert(k=True, b=1)\n",
        "line 6: the value of k is a condition, but should be a number",
    ),
    "wrong invariant": (
        "t = app.table('t', key='k', k=Int)\n@app.txn()\ndef f():\n    t.insert(k=1)\n"
        "@app.invariant\ndef i():\n    return t.sum(lambda r: r.k)\n",
        "line 7: the invariant i is a number, but should be a condition",
    ),
    "python error": ("x = 1 / 0\n", "line 3: ZeroDivisionError"),
    "syntax": ("def\n", "line 3: not Python"),
    "no transaction": ("", "the program has no transaction"),
    "argument": ("@app.txn(a=Int)\ndef f(b):\n    pass\n", "f(b) and its declaration (a) differ"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_programs_are_reported(tmp_path, case):
    body, said = WRONG[case]
    path = tmp_path / "app.py"
    path.write_text("from plume_py.reasoning.infer.embed import *\napp = App('a')\n" + body)
    result = subprocess.run(
        [sys.executable, "-c", "from plume_py.cli.main import main; main()", "infer", path],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 4
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_deeply_nested_expressions_are_rejected(tmp_path):
    from plume_py.base.errors import InputError

    path = tmp_path / "deep.sql"
    for deep in ("+".join(["v"] * 5000), "(" * 3000 + "v" + ")" * 3000, "NOT " * 3000 + "v > 0"):
        path.write_text(f"CREATE TABLE t (v INT);\n-- transaction: f\nDELETE FROM t WHERE {deep} > 0;\n")
        with pytest.raises(InputError):
            load(str(path))


def test_the_explorer_reports_when_its_bounds_cut_the_search(tmp_path):
    path = tmp_path / "wide.sql"
    columns = ", ".join(f"c{i} INT" for i in range(12))
    path.write_text(
        f"CREATE TABLE t ({columns});\n-- transaction: f\nDELETE FROM t;\n"
        "-- invariant: i: NOT EXISTS (SELECT 1 FROM t WHERE c0 < 0)\n"
    )
    result = infer(load(str(path)), STORES["mysql"], (), InferOptions(engine="explore", steps=0, rows=1, seconds=20))
    assert {verdict.answer for verdict in result.transactions[0].levels} == {"undecided"}


def test_an_unknown_application_exits_with_4():
    result = subprocess.run(
        [sys.executable, "-c", "from plume_py.cli.main import main; main()", "infer", "nothing"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 4
    assert "nothing: no such file, and no example of this name; give a file, or an example: courseware" in result.stderr


def test_help_does_not_import_z3():
    code = "import sys\nimport plume_py.cli.infer\nassert not {'z3', 'sqlglot', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Each query of the solver takes more than a second.
LARGE = ("tpcc", "--rows", 6, "--steps", 4)


@pytest.mark.parametrize("engine", ["z3", "explore"])
def test_the_timeout_covers_the_whole_run(engine, monkeypatch):
    """The engines check the limit. On a busy machine the enforced limit may come first."""
    monkeypatch.setattr("plume_py.base.limits.GRACE_SECONDS", 600)
    result = run(*LARGE, "--engine", engine, "--timeout", 1, "--format", "json")
    assert result.exit_code == 3
    transactions = json.loads(result.stdout)["transactions"]
    notes = [level["note"] for txn in transactions for level in txn["levels"].values()]
    assert notes[-1] == "stopped after 1 s"
    assert sum(note != "stopped after 1 s" for note in notes) < len(notes) / 2


def test_the_solver_is_not_called_after_the_timeout(monkeypatch):
    from plume_py.base.limits import Limits

    asked = []
    monkeypatch.setattr(BoundedSearch, "search", lambda *_: asked.append(1))
    result = infer(load("doctors"), STORES["postgresql"], (), InferOptions(prove=True, limits=Limits(0)))
    assert not asked
    assert {level.answer for txn in result.transactions for level in txn.levels} == {"undecided"}
    together = check_joint_levels(
        infer(load("doctors"), STORES["postgresql"], (), InferOptions(engine="explore")), InferOptions(limits=Limits(0))
    )
    assert not asked
    assert {verdict.answer for verdict in together.verdicts.values()} == {"undecided"}


def test_violations_found_before_the_timeout_are_reported(monkeypatch):
    from plume_py.base.errors import LimitError
    from plume_py.reasoning.infer.driver import SymbolicSearch

    def late(*_):
        raise LimitError("stopped after 1 s")

    monkeypatch.setattr(SymbolicSearch, "_shorten", late)
    result = run("doctors", "--brief")
    assert "violated" in result.output and "undecided" not in result.output


def test_a_python_program_that_never_ends_is_stopped(tmp_path):
    path = tmp_path / "app.py"
    path.write_text("while True:\n    pass\n")
    result = subprocess.run(
        [sys.executable, "-c", "from plume_py.cli.main import main; main()", "infer", path, "--timeout", "0.5"],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (3, "isocheck: stopped after 0.5 s\n")
