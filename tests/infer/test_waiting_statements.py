"""Statements that wait for locks: tests of statement_models, locking_statements and prove."""

import pytest

from plume_py.reasoning.infer.driver import BOUNDED, PROVED, UNDECIDED, VIOLATED, InferOptions, infer
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES

TABLES = """CREATE TABLE t (id INT PRIMARY KEY, g INT, v INT);
CREATE TABLE s (id INT PRIMARY KEY, v INT);
INSERT INTO t VALUES (1, 0, 0); INSERT INTO s VALUES (1, 0);
"""


def answers(tmp_path, text, store="postgresql", **options):
    """Return the answers by transaction and level."""
    (tmp_path / "app.sql").write_text(TABLES + text)
    program = load(str(tmp_path / "app.sql"))
    result = infer(program, STORES[store], (), InferOptions(**options))
    return {txn.name: {verdict.level.name: verdict.answer for verdict in txn.levels} for txn in result.transactions}


REPLACE = """-- transaction: replace_row()
SELECT v INTO a FROM t WHERE id = 1 FOR UPDATE;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 0, :a);
-- invariant: there
EXISTS (SELECT 1 FROM t WHERE id = 1);
-- invariant: follows
NOT EXISTS (SELECT 1 FROM s WHERE id = 1 AND v = 1) OR EXISTS (SELECT 1 FROM t WHERE id = 1 AND v = 1);
"""


@pytest.mark.parametrize("engine", ["z3", "explore"])
@pytest.mark.parametrize(
    "taken",
    [
        "UPDATE t SET v = 1 WHERE id = 1;",
        "UPDATE t SET v = 1;",
        "FOR r IN SELECT id FROM t WHERE id = 1 FOR UPDATE LOOP UPDATE t SET v = 1 WHERE id = r.id; END LOOP;",
    ],
)
def test_a_statement_that_waited_misses_a_row_that_was_replaced(taken, engine, tmp_path) -> None:
    turn_on = f"-- transaction: turn_on()\n{taken}\nUPDATE s SET v = 1 WHERE id = 1;\n"
    found = answers(tmp_path, turn_on + REPLACE, engine=engine)["turn_on"]
    assert found["RC"] == VIOLATED and VIOLATED not in (found["SI"], found["SER"])
    assert answers(tmp_path, turn_on + REPLACE, "mysql", engine=engine)["turn_on"]["RR"] != VIOLATED


def test_nothing_is_proved_about_rows_that_may_be_missed(tmp_path) -> None:
    """The invariant holds even if the row is missed, but the proof cannot use that."""
    touch = "-- transaction: touch()\nUPDATE t SET g = 7 WHERE id = 1;\n"
    found = answers(tmp_path, touch + REPLACE, prove=True)
    assert found["touch"] == {"RC": BOUNDED, "SI": PROVED, "SER": PROVED}
    assert set(answers(tmp_path, touch + REPLACE, "mysql", prove=True)["touch"].values()) == {PROVED}


SCAN = """-- transaction: flush()
{scan}
-- transaction: move(i, j)
UPDATE t SET g = {group} WHERE id = :i;
UPDATE t SET g = 0 WHERE id = :j;
-- invariant: fine
NOT EXISTS (SELECT 1 FROM s WHERE v < 0);
"""


@pytest.mark.parametrize(
    "scan",
    [
        "UPDATE t SET v = 1 WHERE g = 1;",
        "DELETE FROM t WHERE g = 1;",
        "FOR r IN SELECT id FROM t WHERE g = 1 FOR UPDATE LOOP UPDATE t SET v = 1 WHERE id = r.id; END LOOP;",
    ],
)
def test_a_locking_scan_does_not_read_at_one_moment(scan, tmp_path) -> None:
    """While the scan goes from row to row, other transactions move rows behind and before it."""
    text = SCAN.format(scan=scan, group=1)
    innodb = answers(tmp_path, text, "mysql", prove=True)["flush"]
    assert innodb["RC"] == UNDECIDED and innodb["RR"] == PROVED
    assert answers(tmp_path, text, prove=True)["flush"]["RC"] in (BOUNDED, VIOLATED)


def test_a_scan_of_rows_that_never_change_reads_at_one_moment(tmp_path) -> None:
    text = SCAN.format(scan="UPDATE t SET v = 1 WHERE id > 1;", group=1)
    assert answers(tmp_path, text, "mysql", prove=True)["flush"]["RC"] == PROVED
    assert answers(tmp_path, text, prove=True)["flush"]["RC"] == PROVED


def test_a_locking_scan_sees_two_moments_at_read_committed(tmp_path) -> None:
    """Rows found before a wait, with values from after it: a sum that no state ever had."""
    text = """-- transaction: measure()
SET total = 0;
FOR r IN SELECT id, v FROM t WHERE g = 1 FOR UPDATE LOOP SET total = total + r.v; END LOOP;
UPDATE s SET v = :total WHERE id = 1;
-- transaction: exchange(i, j)
-- assume: i <> j
SELECT v INTO a FROM t WHERE id = :i AND g = 1 FOR UPDATE;
SELECT v INTO b FROM t WHERE id = :j AND g = 0 FOR UPDATE;
UPDATE t SET g = 0, v = 0 WHERE id = :i;
UPDATE t SET g = 1, v = :a WHERE id = :j;
-- invariant: one
(SELECT COUNT(*) FROM t WHERE g = 1) = 1;
-- invariant: five
NOT EXISTS (SELECT 1 FROM t WHERE g = 1 AND v <> 5);
-- invariant: measured
NOT EXISTS (SELECT 1 FROM s WHERE v <> 5);
"""
    for engine in ("z3",):
        found = answers(tmp_path, text, engine=engine)["measure"]
        assert found["RC"] == VIOLATED and VIOLATED not in (found["SI"], found["SER"])
