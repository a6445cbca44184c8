"""SQL attacked: what a statement may read must be in the sets, what it may fail to write must not protect anybody."""

import pytest

from plume_py.allocate import Workload
from plume_py.allocate.driver import answer_allocation
from plume_py.allocate.sets import gather
from plume_py.allocate.sql import load_sql
from plume_py.base.errors import InputError
from plume_py.base.sql.files import load

SCHEMA = """CREATE TABLE t (a INT, b INT, v INT, w INT, PRIMARY KEY (a, b));
CREATE TABLE u (a INT PRIMARY KEY, v INT, w INT);
CREATE TABLE n (name TEXT PRIMARY KEY, v INT);
"""


def programs(tmp_path, *bodies):
    text = "".join(f"-- transaction: T{i}(x, y)\n{body}\n" for i, body in enumerate(bodies))
    (tmp_path / "app.sql").write_text(SCHEMA + text)
    return load_sql(str(tmp_path / "app.sql"))


def sets(tmp_path, *bodies):
    """External reads, possible and certain writes of the first transaction, with parameters named as they are."""
    program = programs(tmp_path, *bodies)[0]
    found = gather(Workload([program(*program.params)]))
    return [{found.names[x] for x in rows.of(0)} for rows in (found.reads, found.may, found.must)]


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE u SET v = 7 WHERE a = :x AND v = :y;",  # compare and swap
        "UPDATE u SET v = 7 WHERE a = :x AND :y > 0;",
        "UPDATE u SET v = 7 WHERE a = :x AND a = :y;",
        "UPDATE u SET v = 7 WHERE a = :x AND EXISTS (SELECT 1 FROM n WHERE v = 3);",
        "UPDATE u SET v = 7 WHERE a = :x AND 1 = 0;",
        "IF :x > 0 THEN SET z = :x; END IF; UPDATE u SET v = 7 WHERE a = :z;",
        "UPDATE u SET v = 7 WHERE a = :z; SET z = :x;",
        "SELECT a INTO z FROM t WHERE v = :x; UPDATE u SET v = 7 WHERE a = :z;",
        "UPDATE n SET v = 7 WHERE name = 'a' || :x || 'b';",
        "UPDATE u SET a = :y WHERE a = :x;",
        "DELETE FROM u WHERE a = :x;",
    ],
)
def test_writes_that_may_not_happen_are_not_certain(body, tmp_path) -> None:
    _, may, must = sets(tmp_path, body)
    assert may and not must


@pytest.mark.parametrize(
    ("body", "cell"),
    [
        ("UPDATE u SET v = 7 WHERE a = :x AND v = :y;", "u.v_x"),
        ("SELECT v INTO q FROM u WHERE a = :x AND w = :y;", "u.w_x"),
        ("SELECT v INTO q FROM u ORDER BY w LIMIT 1;", "u.w_*"),
        ("SELECT *, (SELECT MAX(v) FROM n) FROM u WHERE a = :x;", "u.w_x"),
        ("SELECT v INTO q FROM u WHERE a = :x AND EXISTS (SELECT 1 FROM n WHERE n.v = u.w);", "u.w_x"),
        ("SELECT v INTO q FROM u WHERE EXISTS (SELECT 1 FROM n JOIN t ON n.v = t.w);", "t.w_*_*"),
        ("IF :x > 0 THEN UPDATE u SET v = 0 WHERE a = :x; ELSE UPDATE u SET v = v + 1 WHERE a = :x; END IF;", "u.v_x"),
        (
            "IF :x > 0 THEN UPDATE u SET v = 0 WHERE a = :x; "
            "ELSE SELECT v INTO q FROM u WHERE a = :x; UPDATE u SET v = q WHERE a = :x; END IF;",
            "u.v_x",
        ),
        ("INSERT INTO u VALUES (:x, 1, 1);", "u.(row)_x"),
        ("SELECT u.v INTO q FROM u JOIN t ON u.a = t.a WHERE t.b = :x;", "t.b_*_*"),
        ("SELECT v INTO q FROM u UNION SELECT w FROM t;", "t.w_*_*"),
        ("SELECT v, COUNT(*) FROM u GROUP BY v HAVING MAX(w) > 1;", "u.w_*"),
        ("WITH c AS (SELECT v FROM u) SELECT v INTO q FROM c;", "u.v_*"),
        ("SELECT v INTO q FROM (SELECT v FROM u WHERE w > 1) AS d;", "u.w_*"),
        ("SELECT DISTINCT v INTO q FROM u WHERE a = :x;", "u.v_*"),
    ],
)
def test_whatever_may_be_read_is(body, cell, tmp_path) -> None:
    assert cell in sets(tmp_path, body)[0]


def test_the_row_that_a_changed_key_leads_to_is_written(tmp_path) -> None:
    may = sets(tmp_path, "UPDATE u SET a = :y WHERE a = :x;", "SELECT v INTO q FROM u WHERE a = :x;")[1]
    assert {"u.(row)_*", "u.v_*"} <= may


def test_a_name_inside_a_subquery_may_be_a_column_outside(tmp_path) -> None:
    """``w`` is an argument, but in here the column of the row that the outer query looks at."""
    (tmp_path / "app.sql").write_text(
        f"{SCHEMA}-- transaction: T(w)\nSELECT b INTO q FROM t WHERE EXISTS (SELECT 1 FROM n WHERE name = w);\n"
    )
    (program,) = load_sql(str(tmp_path / "app.sql"))
    assert "r(n.(row)_*)" in map(str, program.accesses)


def test_constants_that_a_collation_may_take_for_one_are_open(tmp_path) -> None:
    first, second = programs(
        tmp_path, "UPDATE n SET v = 1 WHERE name = 'Bob';", "UPDATE n SET v = 1 WHERE name = 'BOB';"
    )
    assert first.params and second.params
    same, _ = programs(tmp_path, *2 * ["UPDATE n SET v = 1 WHERE name = 'Bob';"])
    assert not same.params and str(same.accesses[-1]) == "w(n.v_'Bob')"


def test_a_loop_reads_again(tmp_path) -> None:
    """Two rounds at READ COMMITTED may see two versions of the same cell."""
    loop = "FOR r IN SELECT a FROM t WHERE b = :y LOOP SELECT v INTO q FROM u WHERE a = :x; END LOOP;"
    both = programs(tmp_path, loop, "UPDATE u SET v = 1 WHERE a = :x;")
    assert answer_allocation(Workload([], [], both), catalogue="postgresql").levels[0] != "RC"


def test_a_locking_read_is_no_snapshot_read_in_innodb(tmp_path) -> None:
    plain = "SELECT v INTO q FROM u WHERE a = :x; SELECT v INTO p FROM n WHERE name = :y"
    writers = ["UPDATE u SET v = 1 WHERE a = :x; UPDATE n SET v = 1 WHERE name = :y;"]
    for body, level in ((f"{plain};", "PC"), (f"{plain} FOR UPDATE;", "SER")):
        workload = Workload([], [], programs(tmp_path, body, *writers))
        assert answer_allocation(workload, catalogue="mysql").levels[0] == level


def levels(tmp_path, *bodies, engine="postgresql"):
    return answer_allocation(Workload([], [], programs(tmp_path, *bodies)), catalogue=engine, explain=False).levels


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "sqlserver", "mixiso"])
@pytest.mark.parametrize(
    "gone", ["DELETE FROM n WHERE name = :x;", "DELETE FROM n;", "UPDATE n SET name = 'z' WHERE name = :x;"]
)
@pytest.mark.parametrize("by_others", [False, True])
def test_a_row_that_does_not_stay_is_no_conflict(engine, gone, by_others, tmp_path) -> None:
    """Whoever waited for a row that is gone again inserts it, and goes on with its old snapshot."""
    bodies = [
        "INSERT INTO n VALUES (:x, 1);"
        f" SELECT {mine} INTO q FROM u WHERE a = :x; UPDATE u SET {theirs} = :q WHERE a = :x;"
        for mine, theirs in ("vw", "wv")
    ]
    assert levels(tmp_path, *bodies, engine="postgresql") == ["SI", "SI"]  # here it stays
    bodies = [*bodies, gone] if by_others else [f"{body} {gone}" for body in bodies]
    assert levels(tmp_path, *bodies, engine=engine)[:2] == ["SER", "SER"]


def test_a_scan_that_locks_is_no_snapshot(tmp_path) -> None:
    """It waits for one row and then sees it as it is now, and others as they were."""
    raise_some = "UPDATE u SET v = v + 1 WHERE w = :x;"
    scan = "SELECT SUM(v) INTO s FROM u"
    assert levels(tmp_path, f"{scan};", raise_some)[0] == "RC"
    assert levels(tmp_path, "FOR r IN SELECT v FROM u FOR UPDATE LOOP SET s = r.v; END LOOP;", raise_some)[0] != "RC"


@pytest.mark.parametrize("statement", ["UPDATE u SET v = 1 WHERE a = :x;", "DELETE FROM u WHERE a = :x;"])
def test_a_row_that_is_replaced_may_be_missed(statement, tmp_path) -> None:
    """A statement that waited for a deleted row does not find the one that the same transaction has inserted."""
    delete, insert = "DELETE FROM u WHERE a = :x;", "INSERT INTO u VALUES (:x, 1, 1);"
    assert levels(tmp_path, f"{statement} UPDATE n SET v = 1 WHERE name = :y;", f"{delete} {insert}")[0] != "RC"


def test_a_row_that_is_locked_is_read_once(tmp_path) -> None:
    read = "SELECT v INTO q FROM u WHERE a = :x"
    write = "UPDATE u SET v = :q + 1 WHERE a = :x;"
    assert levels(tmp_path, f"{read}; {write}") == ["SI"]
    assert levels(tmp_path, f"{read} FOR UPDATE; {write}") == ["RC"]


def test_joins_are_told(tmp_path) -> None:
    (program,) = programs(tmp_path, "SELECT u.v INTO q FROM u JOIN t ON u.a = t.a WHERE u.a = :x;")
    assert [note for note in program.notes if "every row of t, u" in note]
    assert not any(access.writes for access in program.accesses)
    with pytest.raises(InputError, match="joins are not supported"):  # for who has to know what they mean
        load(str(tmp_path / "app.sql"))


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE u JOIN t ON u.a = t.a SET v = 1;",
        "UPDATE u SET v = 1 WHERE a = :x LIMIT 1;",
        "DELETE FROM u WHERE a = :x LIMIT 1;",
        "INSERT INTO u SELECT a, v, w FROM t;",
        "SELECT v INTO q FROM f(3);",
        "SELECT v INTO q FROM u JOIN nowhere ON u.a = nowhere.a;",
    ],
)
def test_what_cannot_be_understood_is_refused(body, tmp_path) -> None:
    with pytest.raises(InputError, match="line 5"):
        programs(tmp_path, body)
