"""Violations that an engine may overlook: all of bounded_search, explorer and prove must handle them."""

import json
import sys

import pytest
from click.testing import CliRunner
from paths import ROOT

from plume_py.cli.main import cli
from plume_py.reasoning.infer.bounded.bounded_search import NONE, VIOLATED, BoundedSearch
from plume_py.reasoning.infer.embed import App, Id, Int, ListOf, by, else_, for_each, if_, require
from plume_py.reasoning.infer.execution.explorer import Explorer
from plume_py.reasoning.infer.execution.replay import replay
from plume_py.reasoning.infer.program.load import validate
from plume_py.reasoning.infer.proof.prove import prove
from plume_py.reasoning.infer.statement_models import STORES

RC_PG, SI, SER = STORES["postgresql"].levels
RC, RR_INNODB, _ = STORES["mysql"].levels
RR_ANSI = STORES["ansi"].levels[1]
RR_LITERAL = STORES["literal"].levels[2]
LOCKING = (RC, RC_PG, RR_INNODB, RR_ANSI, SI, SER)


def is_broken(app, name, level, explores=True):
    """Assert that all engines find a violation at this level and that the counterexample replays."""
    program = validate(app.program())
    (clause,) = program.invariant
    answer = BoundedSearch(program, name, level, 2, 1).search(clause)
    assert answer.outcome == VIOLATED
    assert clause.name in replay(program, answer.example).broken
    assert not explores or Explorer(program, 2, 1).explore(name, level).examples
    assert not prove(program, name, level, 3).proved


@pytest.mark.parametrize("level", LOCKING, ids=lambda level: level.title)
def test_a_row_is_deleted_and_inserted_again(level):
    app = App("replace")
    account = app.table("account", key="id", id=Id, balance=Int)

    @app.txn(i=Id)
    def replace(i):
        old = account.get(id=i)
        account.delete(id=i)
        account.insert(id=i, balance=old.balance - 1)

    @app.invariant
    def positive():
        return account.all(lambda row: row.balance >= 0)

    is_broken(app, "replace", level)


@pytest.mark.parametrize("level", LOCKING, ids=lambda level: level.title)
def test_a_loop_has_the_same_insert_twice_once_conditionally(level):
    app = App("helper")
    order = app.table("orders", key="id", id=Id, lines=Int)
    line = app.table("line", order=Id)

    @app.txn(i=Id, items=ListOf(n=Int))
    def add(i, items):
        def one_more():
            line.insert(order=i)

        order.get(id=i)
        with for_each(items) as item:
            one_more()
            with if_(item.n >= 1):
                one_more()
        order.update(by(id=i), lines=lambda row: row.lines + 2 * items.size)

    @app.invariant
    def counted():
        return order.all(lambda row: row.lines == line.count(order=row.id))

    is_broken(app, "add", level, explores=False)


def test_an_iteration_inserts_a_row_that_another_deleted():
    app = App("iterations")
    account = app.table("account", key="id", id=Id, kind=Int)
    card = app.table("card", account=Id)

    @app.txn(items=ListOf(new=Id, old=Id))
    def renew(items):
        with for_each(items) as item:
            account.insert(id=item.new, kind=0)
            account.delete(id=item.old)

    @app.enforce
    def refers():
        return card.refers("account", account)

    @app.invariant
    def good_cards():
        return card.all(lambda row: account.all(lambda other: other.kind == 1, id=row.account))

    is_broken(app, "renew", SER, explores=False)


def counting(prelude):
    """Return an application whose counter is locked, then read again and written back."""
    app = App("counting")
    counter = app.table("counter", key="id", id=Id, value=Int)
    event = app.table("event", counter=Id)

    @app.txn(i=Id, items=ListOf(id=Id))
    def count(i, items):
        prelude(counter, i, items)
        counter.get_for_update(id=i)
        mine = counter.get(id=i)
        counter.update(by(id=i), value=mine.value + 1)
        event.insert(counter=i)

    @app.invariant
    def counted():
        return counter.all(lambda row: row.value == event.count(counter=row.id))

    return app


def read_in_a_loop(counter, _, items):
    with for_each(items) as item:
        counter.get(id=item.id)


def test_the_snapshot_is_taken_inside_a_loop():
    is_broken(counting(read_in_a_loop), "count", RR_INNODB, explores=False)


def test_a_lock_is_taken_later_than_the_snapshot():
    is_broken(counting(lambda counter, i, _: counter.get(id=i)), "count", RR_LITERAL)


def test_a_set_that_was_read_is_queried_for_each_row():
    app = App("marks")
    item = app.table("item", key="id", id=Id, mark=Int)
    chosen = app.table("chosen", item=Id)

    @app.txn()
    def mark():
        rows = chosen.where()
        item.update(lambda row: rows.count(lambda other: other.item == row.id) >= 1, mark=5)
        require(item.exists(lambda row: row.mark == 5))
        # Only if some rows are in the set and some are not.
        require(item.all(lambda row: ((row.id == 1) & (row.mark == 5)) | ((row.id == 2) & (row.mark == 3))))
        require(item.exists(id=2))

    @app.invariant
    def low():
        return item.all(lambda row: row.mark <= 4)

    app.explore(item__mark=(3,))
    is_broken(app, "mark", SER)


@pytest.mark.parametrize("level", LOCKING, ids=lambda level: level.title)
def test_both_branches_of_an_if_insert(level):
    app = App("choice")
    entry = app.table("entry", amount=Int)

    @app.txn(i=Int)
    def add(i):
        with if_(i >= 1):
            entry.insert(amount=1)
        with else_():
            entry.insert(amount=-1)

    @app.invariant
    def positive():
        return entry.all(lambda row: row.amount >= 0)

    is_broken(app, "add", level)


def test_a_loop_goes_over_more_rows_than_there_were():
    app = App("copies")
    entry = app.table("entry", amount=Int)
    copy = app.table("copy", amount=Int)

    @app.txn()
    def add():
        entry.insert(amount=1)
        entry.insert(amount=2)

    @app.txn()
    def copy_all():
        require(entry.count() <= 2)
        require(copy.count() == 0)
        rows = entry.where()
        with for_each(rows) as row:
            copy.insert(amount=row.amount)

    @app.invariant
    def few():
        return copy.count() <= 3

    app.explore(rows={"copy": 0}, entry__amount=(1,))
    is_broken(app, "copy_all", RC)


@pytest.mark.parametrize("engine", ["z3", "explore"])
def test_an_unsatisfiable_invariant_is_undecided(tmp_path, engine):
    path = tmp_path / "many.sql"
    path.write_text(
        "CREATE TABLE b (y INT PRIMARY KEY);\n-- transaction: add(i)\nINSERT INTO b VALUES (:i);\n"
        "-- invariant: many: (SELECT COUNT(*) FROM b) >= 3\n"
    )
    result = CliRunner().invoke(cli, ["infer", str(path), "--engine", engine, "--prove", "--rows", "2"])
    assert result.exit_code == 3
    assert "undecided: no state of up to 2 rows per table satisfies the invariant; raise --rows" in result.output
    assert "proved" not in result.output


def test_innodb_takes_its_snapshot_at_the_first_select():
    safe = validate(counting(lambda *_: None).program())
    (clause,) = safe.invariant
    assert BoundedSearch(safe, "count", RR_INNODB, 2, 2).search(clause).outcome == NONE
    assert not Explorer(safe, 2, 1).explore("count", RR_INNODB).examples
    assert prove(safe, "count", RR_INNODB, 3).is_complete
    is_broken(counting(lambda counter, i, _: counter.get(id=i)), "count", RR_INNODB)


def test_the_first_select_depends_on_the_path():
    def sometimes(counter, i, items):
        with if_(items.size >= 1):
            counter.get(id=i)

    is_broken(counting(sometimes), "count", RR_INNODB)


@pytest.mark.parametrize("correlated", [False, True])
def test_postgresql_evaluates_subqueries_of_an_update_once(correlated):
    """Two inserts, then two UPDATEs of one row: the second waits for the lock, but counted before."""
    app = App("totals")
    total = app.table("total", key="id", id=Id, n=Int)
    event = app.table("event", total=Id)

    @app.txn(i=Id)
    def add(i):
        event.insert(total=i)
        total.update(by(id=i), n=lambda row: event.count(total=row.id if correlated else i))

    @app.invariant
    def counted():
        return total.all(lambda row: row.n == event.count(total=row.id))

    is_broken(app, "add", RC_PG)


def test_without_z3_a_report_states_that_levels_were_not_checked_together(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    path = ROOT / "docs" / "examples" / "booking.sql"
    result = CliRunner().invoke(cli, ["infer", str(path), "--brief", "--steps", "1", "--engine", "explore"])
    mixed = "count_then_lock  SER" in result.output and "lock_then_count  RC" in result.output
    assert mixed and "note: these levels were not checked together, which needs z3" in result.output


def test_a_key_that_another_transaction_deleted_since_the_snapshot_is_inserted():
    """PostgreSQL lets it commit although the snapshot is older: the new row is not a version of the old one."""
    app = App("keys")
    door = app.table("door", key="id", id=Id, is_open=Int)
    guest = app.table("guest", key="id", id=Id)

    @app.txn(i=Id)
    def leave(i):
        guest.get(id=i)
        guest.delete(id=i)
        require(guest.count() == 0)
        door.update(is_open=0)

    @app.txn(i=Id)
    def enter(i):
        require(door.all(lambda row: row.is_open == 1))
        guest.insert(id=i)

    @app.invariant
    def nobody_inside():
        return guest.empty() | door.all(lambda row: row.is_open == 1)

    app.explore(rows={"door": 1}, door__is_open=(0, 1))
    is_broken(app, "enter", SI)


def told(tmp_path, store, name, text):
    """Return the answer for each level of a transaction."""
    path = tmp_path / "app.sql"
    path.write_text(text)
    done = CliRunner().invoke(cli, ["infer", str(path), "--store", store, "--prove", "--format", "json"])
    assert done.exit_code in (0, 1, 3), done.output
    (txn,) = (txn for txn in json.loads(done.stdout)["transactions"] if txn["name"] == name)
    return {name: level["answer"] for name, level in txn["levels"].items()}


@pytest.mark.parametrize("conflict", ["DO NOTHING", "(id) DO UPDATE SET v = t.v"])
def test_on_conflict_reads_the_newest_state(conflict, tmp_path):
    """Also at REPEATABLE READ: a row that the snapshot shows may be deleted, and is then inserted."""
    levels = told(
        tmp_path,
        "postgresql",
        "keep",
        f"""CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL);
CREATE TABLE s (id INT PRIMARY KEY, open INT NOT NULL);
-- transaction: keep()
SELECT open INTO o FROM s WHERE id = 1;
IF :o = 1 THEN INSERT INTO t VALUES (1, 0) ON CONFLICT {conflict}; END IF;
-- transaction: close()
UPDATE s SET open = 0 WHERE id = 1;
DELETE FROM t WHERE id = 1;
-- invariant: opened
(SELECT COUNT(*) FROM s WHERE id = 1 AND open = 1) = 0 OR (SELECT COUNT(*) FROM t WHERE id = 1) = 1;
-- invariant: closed
(SELECT COUNT(*) FROM s WHERE id = 1 AND open <> 1) = 0 OR (SELECT COUNT(*) FROM t WHERE id = 1) = 0;
""",
    )
    assert levels["SI"] == "violated" and levels["SER"] != "violated"


@pytest.mark.parametrize(
    "store, level, answer", [("postgresql", "SI", "violated"), ("mysql", "RR", "no violation found")]
)
def test_an_old_snapshot_shows_a_deleted_row_beside_the_new_one(store, level, answer, tmp_path):
    """PostgreSQL shows both rows. In InnoDB the new row is a version of the same record."""
    levels = told(
        tmp_path,
        store,
        "again",
        """CREATE TABLE t (id INT PRIMARY KEY);
CREATE TABLE u (id INT PRIMARY KEY, w INT NOT NULL);
-- transaction: again(i)
SELECT COUNT(*) INTO c FROM t;
INSERT INTO t VALUES (1);
SELECT COUNT(*) INTO d FROM t;
UPDATE u SET w = :d WHERE id = :i;
-- transaction: remove()
DELETE FROM t WHERE id = 1;
-- invariant: one
(SELECT COUNT(*) FROM t WHERE id <> 1) = 0;
-- invariant: most
(SELECT COUNT(*) FROM u WHERE w > 1) = 0;
""",
    )
    assert levels[level] == answer


@pytest.mark.parametrize("lock", ["", " FOR UPDATE"])
@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_select_into_may_return_any_of_several_rows(key, lock, tmp_path):
    """A scan returns rows in their physical order, not in the order of keys."""
    levels = told(
        tmp_path,
        "postgresql",
        "pick",
        f"""CREATE TABLE t (id INT{key} NOT NULL, g INT NOT NULL);
CREATE TABLE u (id INT PRIMARY KEY, w INT NOT NULL);
-- transaction: pick()
SELECT id INTO x FROM t WHERE g = 1{lock};
SELECT COUNT(*) INTO c FROM t WHERE g = 1 AND id < :x;
IF :c >= 1 THEN UPDATE u SET w = -1 WHERE id = 1; END IF;
-- invariant: positive
(SELECT COUNT(*) FROM u WHERE w < 0) = 0;
""",
    )
    assert set(levels.values()) == {"violated"}


def test_a_loop_takes_its_rows_in_any_order(tmp_path):
    levels = told(
        tmp_path,
        "postgresql",
        "climb",
        """CREATE TABLE t (id INT PRIMARY KEY);
CREATE TABLE u (id INT PRIMARY KEY, w INT NOT NULL, down INT NOT NULL);
-- transaction: climb()
UPDATE u SET w = 0 WHERE id = 1;
FOR r IN SELECT id FROM t WHERE id > 0 LOOP
  UPDATE u SET down = 1 WHERE id = 1 AND w > r.id;
  UPDATE u SET w = r.id WHERE id = 1;
END LOOP;
-- invariant: upwards
(SELECT COUNT(*) FROM u WHERE down = 1) = 0;
""",
    )
    assert set(levels.values()) == {"violated"}


def test_an_update_that_changes_nothing_creates_no_version_in_innodb(tmp_path):
    """After such an UPDATE, REPEATABLE READ still shows the row of the snapshot."""
    text = """CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL);
CREATE TABLE u (id INT PRIMARY KEY, w INT NOT NULL);
-- transaction: mark(i)
SELECT v INTO a FROM t WHERE id = :i;
UPDATE t SET v = 1 WHERE id = :i;
SELECT v INTO b FROM t WHERE id = :i;
UPDATE u SET w = :b WHERE id = :i;
-- invariant: marked
(SELECT COUNT(*) FROM u WHERE w <> 1) = 0;
"""
    levels = told(tmp_path, "mysql", "mark", text)
    assert levels["RR"] == "violated" and levels["RC"] != "violated" and levels["SER"] != "violated"
    assert told(tmp_path, "postgresql", "mark", text)["SI"] != "violated"
