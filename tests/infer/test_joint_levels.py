"""Partners at their own levels, bounds and headlines: tests of joint_levels and driver."""

import json

import pytest
from click.testing import CliRunner

from plume_py.cli.main import cli
from plume_py.reasoning.infer.driver import InferOptions, infer, largest_count_compared, rows_for
from plume_py.reasoning.infer.joint_levels import check_joint_levels
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES

LOST_THEN_MEASURE = """CREATE TABLE r (id INT PRIMARY KEY, x INT);
CREATE TABLE s (id INT PRIMARY KEY, z INT);
-- transaction: bump(i, d)
-- assume: d >= 1
SELECT x INTO a FROM r WHERE id = :i;
UPDATE r SET x = :a + :d WHERE id = :i;
-- transaction: measure(i)
SELECT x INTO a FROM r WHERE id = :i;
SELECT x INTO b FROM r WHERE id = :i;
UPDATE s SET z = :b - :a WHERE id = :i;
-- invariant: nonneg
NOT EXISTS (SELECT 1 FROM s WHERE z < 0);
"""


def run(tmp_path, text, *more):
    """Return the exit code and the JSON report."""
    (tmp_path / "app.sql").write_text(text)
    result = CliRunner().invoke(cli, ["infer", str(tmp_path / "app.sql"), "--format", "json", *more])
    return result.exit_code, json.loads(result.stdout)


def headlines(document):
    return {txn["name"]: (txn["level"], txn["answer"], txn["candidate"]) for txn in document["transactions"]}


@pytest.mark.parametrize(("store", "level"), [("postgresql", "SI"), ("mysql", "RR")])
@pytest.mark.parametrize("prove", [False, True])
def test_a_partner_that_began_before_may_write_back_an_old_value(store, level, prove, tmp_path) -> None:
    """A lost update makes x smaller, which no serial run does; the loser read x before measure begins."""
    code, document = run(tmp_path, LOST_THEN_MEASURE, "--store", store, *(["--prove"] if prove else []))
    answer = "proved" if prove else "no violation found"
    assert code == 0
    assert headlines(document) == {"bump": ("RC", answer, "RC"), "measure": (level, answer, level)}
    refused = document["transactions"][1]["levels"]["RC"]
    assert refused["answer"] == "violated" and refused["note"] == "beside bump at RC"
    assert refused["counterexamples"][0]["schedule"][0]["by"] == "bump"


def test_transactions_that_were_not_named_are_partners(tmp_path) -> None:
    _, document = run(tmp_path, LOST_THEN_MEASURE, "--txn", "measure")
    assert headlines(document) == {"measure": ("SI", "no violation found", "SI")}


def test_a_transaction_that_partners_cannot_harm_keeps_its_level(tmp_path) -> None:
    """Updates in place lose nothing."""
    text = LOST_THEN_MEASURE.replace(
        "SELECT x INTO a FROM r WHERE id = :i;\nUPDATE r SET x = :a + :d", "UPDATE r SET x = x + :d"
    )
    _, document = run(tmp_path, text)
    assert headlines(document)["measure"][0] == "RC"


BOOK = """CREATE TABLE b (who INT);
-- transaction: book(w)
SELECT COUNT(*) INTO n FROM b;
{guard} THEN INSERT INTO b (who) VALUES (:w); END IF;
-- invariant: few
(SELECT COUNT(*) FROM b) <= {limit};
"""


@pytest.mark.parametrize("limit", [1, 4, 5, 8])
@pytest.mark.parametrize("store", ["postgresql", "mysql"])
def test_bounds_follow_the_constants_that_counts_are_compared_with(limit, store, tmp_path) -> None:
    text = BOOK.format(guard=f"IF n < {limit}", limit=limit)
    code, document = run(tmp_path, text, "--store", store)
    assert code == 0 and headlines(document)["book"][0] == "SER"


def test_variables_that_hold_counts_extend_the_bounds(tmp_path) -> None:
    (tmp_path / "app.sql").write_text(BOOK.format(guard="SET m = n + 1; IF m <= 7", limit=4).replace("<= 4", "<= 7"))
    program = load(str(tmp_path / "app.sql"))
    assert largest_count_compared(program) == rows_for(program) == 7
    assert rows_for(load("counters")) == 3


def test_a_count_beyond_the_bounds_is_undecided(tmp_path) -> None:
    text = BOOK.format(guard="IF n < 50", limit=50)
    code, document = run(tmp_path, text)
    assert code == 0 and headlines(document)["book"] == ("SER", "no violation found", "SER")
    assert "50 rows are counted" in document["transactions"][0]["levels"]["RC"]["note"]
    assert headlines(run(tmp_path, text, "--prove")[1])["book"] == ("SER", "proved", "SER")


def test_a_sum_over_three_accounts_needs_three_rows(tmp_path) -> None:
    """A sum over three rows is violated only with three rows."""
    text = """CREATE TABLE a (id INT PRIMARY KEY, v INT);
-- transaction: pass_on(i, j, k)
-- assume: i < j AND j < k
SELECT v INTO x FROM a WHERE id = :i;
SELECT v INTO y FROM a WHERE id = :j;
SELECT v INTO z FROM a WHERE id = :k;
IF x + y + z >= 1 THEN UPDATE a SET v = v - 1 WHERE id = :i; END IF;
-- invariant: together
(SELECT COUNT(*) FROM a) < 3 OR (SELECT SUM(v) FROM a) >= 0;
"""
    _, document = run(tmp_path, text)
    assert headlines(document)["pass_on"][0] != "RC"


def test_with_prove_the_headline_level_is_proved_and_sets_the_exit_code(tmp_path) -> None:
    """Nothing is proved at RC about rows that may be missed, so RC remains a candidate."""
    touch = """CREATE TABLE t (id INT PRIMARY KEY, v INT);
-- transaction: touch()
UPDATE t SET v = v + 1 WHERE id = 1;
-- transaction: renew()
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 0);
-- invariant: positive
NOT EXISTS (SELECT 1 FROM t WHERE v < 0);
"""
    code, document = run(tmp_path, touch)
    assert code == 0 and headlines(document)["touch"] == ("RC", "no violation found", "RC")
    code, document = run(tmp_path, touch, "--prove")
    assert code == 0 and headlines(document)["touch"] == ("SI", "proved", "RC")
    shown = CliRunner().invoke(cli, ["infer", str(tmp_path / "app.sql"), "--prove", "--brief"]).stdout
    assert "SI (REPEATABLE READ), proved; candidate: RC, no violation up to 3 rows" in shown
    code, document = run(tmp_path, touch, "--prove", "--store", "literal")
    assert code in (0, 3) and (code == 0) == all(answer == "proved" for _, answer, _ in headlines(document).values())


def test_a_proof_of_serializable_does_not_cover_weaker_partners() -> None:
    """PostgreSQL's SERIALIZABLE protects only from its own kind, so the proof does not cover a mix."""
    result = infer(load("doctors"), STORES["postgresql"], (), InferOptions(prove=True))
    check_joint_levels(result, InferOptions(prove=True))
    leave, come = result.transactions
    assert result.headline(leave).level.name == "SER" and result.headline(leave).answer == "no violation found"
    assert result.headline(come).answer == "proved"
