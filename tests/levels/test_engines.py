"""Tests of the behaviour of real engines that allocate and infer rely on: two connections, stepped by hand."""

import pytest
from stepped_connections import server

RC, RR = "READ COMMITTED", "REPEATABLE READ"
T = ("CREATE TABLE t (id INT PRIMARY KEY, g INT, v INT)", "INSERT INTO t VALUES (1, 0, 0), (2, 1, 0), (3, 1, 0)")
M = ("CREATE TABLE m (id INT PRIMARY KEY)",)


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def engine(request):
    with server(request.param) as made:
        yield made


@pytest.fixture
def begin(engine):
    """A server with the tables, and a way to begin transactions on it."""
    engine.tables(*T, *M)
    yield engine.begin
    engine.close_all()


def is_postgresql(engine):
    return engine.kind == "postgresql"


STATEMENTS = {
    "UPDATE t SET v = 9 WHERE id = 1": (0, 1),
    "DELETE FROM t WHERE id = 1": (0, 1),
    "SELECT v FROM t WHERE id = 1 FOR UPDATE": ([], [(5,)]),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_waited_misses_a_replaced_row(statement, engine, begin) -> None:
    """PostgreSQL follows the deleted version and finds nothing; InnoDB finds the row that has the key now."""
    other, one = begin(RC), begin(RC)
    other("DELETE FROM t WHERE id = 1"), other("INSERT INTO t VALUES (1, 0, 5)")
    one.waits(statement)
    other.commit()
    assert one.result() == STATEMENTS[statement][0 if is_postgresql(engine) else 1]


def test_a_replaced_row_is_a_conflict_at_repeatable_read(engine, begin) -> None:
    """PostgreSQL's REPEATABLE READ fails there; InnoDB's goes on with the newest version."""
    other, one = begin(RR), begin(RR)
    one("SELECT COUNT(*) FROM t")
    other("DELETE FROM t WHERE id = 1"), other("INSERT INTO t VALUES (1, 0, 5)")
    one.waits("UPDATE t SET v = v + 1 WHERE id = 1")
    other.commit()
    assert one.result() == 1 if not is_postgresql(engine) else "serialize" in str(one.result())


@pytest.mark.parametrize("upsert", [False, True])
def test_an_insert_that_waited_goes_on_with_its_old_snapshot(upsert, engine, begin) -> None:
    """The row that was in its way is gone again, so it fails nowhere; nor does it see what the other has written."""
    conflict = " ON CONFLICT (id) DO UPDATE SET id = 1" if is_postgresql(engine) else " ON DUPLICATE KEY UPDATE id = 1"
    other, one = begin(RR), begin(RR)
    assert one("SELECT v FROM t WHERE id = 1") == [(0,)]
    other("INSERT INTO m VALUES (1)"), other("UPDATE t SET v = 1 WHERE id = 1"), other("DELETE FROM m WHERE id = 1")
    one.waits("INSERT INTO m VALUES (1)" + (conflict if upsert else ""))
    other.commit()
    assert one.result() == 1 and one("SELECT v FROM t WHERE id = 1") == [(0,)]
    one.commit()


def test_an_insert_of_a_key_that_stays_fails(engine, begin) -> None:
    other, one = begin(RR), begin(RR)
    one("SELECT COUNT(*) FROM t")
    other("INSERT INTO m VALUES (1)")
    one.waits("INSERT INTO m VALUES (1)")
    other.commit()
    assert "uplicate" in str(one.result())


SCANS = ["SELECT id, v FROM t WHERE g = 1 ORDER BY id FOR UPDATE", "UPDATE t SET v = v + 1 WHERE g = 1"]


@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_that_locks_is_no_snapshot_at_read_committed(scan, engine, begin) -> None:
    """It takes row 2 as the other has left it, but not row 1, which the other has put into the group as well."""
    other, one = begin(RC), begin(RC)
    other("UPDATE t SET v = 7 WHERE id = 2")
    one.waits(scan)
    assert other("UPDATE t SET g = 1 WHERE id = 1") == 1
    other.commit()
    if scan.startswith("SELECT"):
        assert one.result() == [(2, 7), (3, 0)]
        return
    assert one.result() == 2
    one.commit()
    assert engine.ask("SELECT v FROM t ORDER BY id") == [(0,), (8,), (1,)]


@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_that_locks_is_one_at_repeatable_read(scan, engine, begin) -> None:
    """PostgreSQL's fails where a row has changed; InnoDB's keeps every row it went over: one of the two has to go."""
    other, one = begin(RR), begin(RR)
    other("UPDATE t SET v = 7 WHERE id = 2")
    one.waits(scan)
    first = other("UPDATE t SET g = 1 WHERE id = 1")
    if is_postgresql(engine):
        other.commit()
    assert any(word in str(answer) for answer in (first, one.result()) for word in ("serialize", "Deadlock"))


@pytest.mark.parametrize("level", [RC, RR])
def test_a_row_that_is_locked_stays_and_the_lock_is_not_seen(level, engine, begin) -> None:
    other, one = begin(level), begin(level)
    one("SELECT COUNT(*) FROM m")
    assert other("SELECT v FROM t WHERE id = 1 FOR UPDATE") == [(0,)]
    one.waits("UPDATE t SET v = 3 WHERE id = 1")
    assert other("SELECT v FROM t WHERE id = 1") == [(0,)]
    other.commit()
    assert one.result() == 1
    one.commit()


def test_a_select_reads_one_snapshot_at_read_committed(engine, begin) -> None:
    """What is committed while it runs is not in it: here it waits in the middle, for a lock that is no row's."""
    other, one = begin(RC), begin(RC)
    if is_postgresql(engine):
        other("SELECT pg_advisory_lock(1)")
        pause = "(CASE WHEN pg_advisory_xact_lock_shared(1) IS NULL THEN 0 ELSE 1 END)"
        one.waits(f"SELECT id, v FROM t WHERE {pause} >= 0 ORDER BY id")
        other("UPDATE t SET v = 7"), other.commit(), other("SELECT pg_advisory_unlock(1)")
        assert one.result() == [(1, 0), (2, 0), (3, 0)]
    else:
        assert one("SELECT SUM(v) FROM t") == [(0,)]
        other("UPDATE t SET v = 7")
        assert one("SELECT SUM(v) FROM t") == [(0,)]
        other.commit()
        assert one("SELECT SUM(v) FROM t") == [(21,)]


GUARDS = {
    "UPDATE t SET v = 9 WHERE id = 1 AND g = 1": 0,
    "SELECT v FROM t WHERE id = 1 AND g = 1 FOR UPDATE": [],
    "SELECT v FROM t WHERE id = 4 FOR UPDATE": [],
}


@pytest.mark.parametrize("statement", GUARDS)
def test_a_missing_row_is_not_locked(statement, engine, begin) -> None:
    """The row is not there, or the condition does not hold of it: others go on to change just that.

    InnoDB's FOR UPDATE of a row by its key keeps the lock whatever else the condition says; that is not counted on.
    """
    one, other = begin(RC), begin(RC)
    assert one(statement) == GUARDS[statement]
    if not is_postgresql(engine) and "id = 1 AND g = 1 FOR" in statement:
        other.waits("UPDATE t SET g = 1 WHERE id = 1")
        one.commit()
        assert other.result() == 1
        return
    assert other("UPDATE t SET g = 1 WHERE id = 1") == 1 and other("INSERT INTO t VALUES (4, 1, 0)") == 1
    other.commit()
    one.commit()


def test_a_guarded_update_that_waited_looks_again_and_holds_its_row(engine, begin) -> None:
    """It is the newest version that counts, both for the condition and for the value; then the row is held."""
    other, one = begin(RC), begin(RC)
    other("UPDATE t SET v = 5 WHERE id = 1")
    one.waits("UPDATE t SET v = v - 3 WHERE id = 1 AND v >= 0")
    other.commit()
    assert one.result() == 1
    later = begin(RC)
    later.waits("UPDATE t SET v = v - 3 WHERE id = 1 AND v >= 3")
    one.commit()
    assert later.result() == 0
    later.commit()
    assert engine.ask("SELECT v FROM t WHERE id = 1") == [(2,)]


def test_another_transaction_may_insert_a_row_that_was_not_found(engine, begin) -> None:
    """One, at READ COMMITTED, has found nothing to lock, and writes what the other, serializable, has read before."""
    one, other = begin(RC), begin("SERIALIZABLE")
    assert one("UPDATE t SET v = 9 WHERE id = 1 AND g = 1") == 0
    assert other("SELECT v FROM t WHERE id = 2") == [(0,)] and other("UPDATE t SET g = 1 WHERE id = 1") == 1
    other.commit()
    assert one("UPDATE t SET v = 5 WHERE id = 2") == 1
    one.commit()


def test_a_row_locked_at_repeatable_read_is_the_one_of_the_snapshot(engine, begin) -> None:
    """PostgreSQL refuses to lock what has changed since; InnoDB locks and shows the newest version."""
    other, one = begin(RR), begin(RR)
    one("SELECT COUNT(*) FROM t")
    other("UPDATE t SET v = 5 WHERE id = 1"), other.commit()
    found = one("SELECT v FROM t WHERE id = 1 FOR UPDATE")
    assert found == [(5,)] if not is_postgresql(engine) else "serialize" in str(found)


def test_a_row_that_another_has_locked_is_left_out_or_waited_for(engine, begin) -> None:
    """SKIP LOCKED takes the next row that matches; without it, LIMIT 1 waits, and takes one that still matches."""
    other, one, two = begin(RC), begin(RC), begin(RC)
    pick = "SELECT id FROM t WHERE g = 1 ORDER BY id LIMIT 1 FOR UPDATE"
    assert other(pick) == [(2,)]
    assert one(f"{pick} SKIP LOCKED") == [(3,)]
    one.commit()
    two.waits(pick)
    other("UPDATE t SET g = 0 WHERE id = 2"), other.commit()
    assert two.result() == [(3,)]


def test_insert_select_reads_what_a_select_reads_in_postgresql_only(engine, begin) -> None:
    """At REPEATABLE READ InnoDB's INSERT … SELECT and FOR SHARE read the newest rows, not the snapshot."""
    other, one = begin(RR), begin(RR)
    assert one("SELECT v FROM t WHERE id = 1") == [(0,)]
    other("INSERT INTO t VALUES (4, 4, 0)"), other.commit()
    assert one("INSERT INTO m SELECT id FROM t WHERE id = 4") == (0 if is_postgresql(engine) else 1)
    assert one(
        "SELECT id FROM t WHERE id = 4 FOR SHARE"
        if is_postgresql(engine)
        else "SELECT id FROM t WHERE id = 4 LOCK IN SHARE MODE"
    ) == ([] if is_postgresql(engine) else [(4,)])


def test_update_from_does_not_ask_the_other_table_again(engine, begin) -> None:
    """PostgreSQL at READ COMMITTED: the row to be changed is the newest, the row of the other table is not."""
    if not is_postgresql(engine):
        return
    other, one = begin(RC), begin(RC)
    other("UPDATE t SET v = 10")
    one.waits("UPDATE t SET v = t.v + s.v FROM t s WHERE s.id = 2 AND t.id = 1")
    other.commit()
    assert one.result() == 1
    one.commit()
    assert engine.ask("SELECT v FROM t WHERE id = 1") == [(10,)]


@pytest.mark.parametrize("level", [RC, RR])
@pytest.mark.parametrize("does", ["nothing", "update"])
def test_an_insert_on_conflict_reads_the_newest_row(does, level, engine, begin) -> None:
    """A row that the snapshot still shows is gone, so it is inserted, whatever was to be done instead."""
    insert = {
        ("postgresql", "nothing"): "INSERT INTO t VALUES (1, 5, 5) ON CONFLICT DO NOTHING",
        ("postgresql", "update"): "INSERT INTO t VALUES (1, 5, 5) ON CONFLICT (id) DO UPDATE SET v = 9",
        ("mariadb", "nothing"): "INSERT IGNORE INTO t VALUES (1, 5, 5)",
        ("mariadb", "update"): "INSERT INTO t VALUES (1, 5, 5) ON DUPLICATE KEY UPDATE v = 9",
    }[engine.kind, does]
    other, one = begin(level), begin(level)
    assert one("SELECT v FROM t WHERE id = 1") == [(0,)]
    other("DELETE FROM t WHERE id = 1"), other.commit()
    assert one(insert) == 1
    one.commit()
    assert engine.ask("SELECT v FROM t WHERE id = 1") == [(5,)]


def test_an_old_snapshot_shows_a_deleted_row_next_to_the_new_one(engine, begin) -> None:
    """In PostgreSQL, which refuses to update it, though; in InnoDB they are versions of one record."""
    other, one = begin(RR), begin(RR)
    assert one("SELECT COUNT(*) FROM t") == [(3,)]
    other("DELETE FROM t WHERE id = 1"), other.commit()
    assert one("INSERT INTO t VALUES (1, 5, 5)") == 1
    assert one("SELECT COUNT(*) FROM t") == [(4 if is_postgresql(engine) else 3,)]
    changed = one("UPDATE t SET v = v + 1 WHERE id = 1")
    assert "serialize" in str(changed) if is_postgresql(engine) else changed == 1


@pytest.mark.parametrize(
    "statement", ["SELECT v FROM t WHERE id = 9 FOR UPDATE", "SELECT v FROM t WHERE v = 9 FOR UPDATE"]
)
def test_a_transaction_that_finds_no_row_holds_no_lock(statement, begin) -> None:
    other, one = begin(RC), begin(RC)
    assert one(statement) == []
    assert other("INSERT INTO t VALUES (9, 0, 9)") == 1 and other("UPDATE t SET v = 9 WHERE id = 1") == 1
    other.commit()


def test_an_update_that_changes_nothing_is_no_version_in_innodb(engine, begin) -> None:
    """The row is held, but a snapshot goes on showing what was there before; PostgreSQL would refuse."""
    other, one = begin(RR), begin(RR)
    assert one("SELECT v FROM t WHERE id = 1") == [(0,)]
    other("UPDATE t SET v = 1 WHERE id = 1"), other.commit()
    changed = one("UPDATE t SET v = 1 WHERE id = 1")
    if is_postgresql(engine):
        assert "serialize" in str(changed)
        return
    assert one("SELECT v FROM t WHERE id = 1") == [(0,)]
    other = begin(RR)
    other.waits("UPDATE t SET v = 2 WHERE id = 1")
    one.commit()
    assert other.result() == 1
