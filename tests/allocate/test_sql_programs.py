"""SQL as programs: every possible read is in the sets, and only certain writes protect (module sql)."""

import pytest

from plume_py.base.errors import InputError
from plume_py.reasoning.allocate import Workload
from plume_py.reasoning.allocate.driver import answer_allocation
from plume_py.reasoning.allocate.read_write_sets import gather
from plume_py.reasoning.allocate.sql import load_sql
from plume_py.reasoning.infer.program.load import load

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
        ("SELECT u.v INTO q FROM u JOIN t ON u.a = t.a WHERE t.b = :x;", "t.b_*_x"),
        ("SELECT u.v INTO q FROM u LEFT JOIN t ON u.a = t.a WHERE t.b = :x;", "t.b_*_*"),
        ("SELECT v INTO q FROM u UNION SELECT w FROM t;", "t.w_*_*"),
        ("SELECT v, COUNT(*) FROM u GROUP BY v HAVING MAX(w) > 1;", "u.w_*"),
        ("WITH c AS (SELECT v FROM u) SELECT v INTO q FROM c;", "u.v_*"),
        ("SELECT v INTO q FROM (SELECT v FROM u WHERE w > 1) AS d;", "u.w_*"),
        ("SELECT DISTINCT v INTO q FROM u WHERE a = :x;", "u.v_*"),
    ],
)
def test_every_possible_read_is_in_the_read_set(body, cell, tmp_path) -> None:
    assert cell in sets(tmp_path, body)[0]


def test_a_changed_key_writes_the_target_row(tmp_path) -> None:
    may = sets(tmp_path, "UPDATE u SET a = :y WHERE a = :x;", "SELECT v INTO q FROM u WHERE a = :x;")[1]
    assert {"u.(row)_*", "u.v_*"} <= may


def test_a_name_inside_a_subquery_may_be_a_column_outside(tmp_path) -> None:
    """``w`` is an argument, but in here the column of the row that the outer query looks at."""
    (tmp_path / "app.sql").write_text(
        f"{SCHEMA}-- transaction: T(w)\nSELECT b INTO q FROM t WHERE EXISTS (SELECT 1 FROM n WHERE name = w);\n"
    )
    (program,) = load_sql(str(tmp_path / "app.sql"))
    assert "r(n.(row)_*)" in map(str, program.accesses)


def test_constants_that_a_collation_may_identify_become_parameters(tmp_path) -> None:
    first, second = programs(
        tmp_path, "UPDATE n SET v = 1 WHERE name = 'Bob';", "UPDATE n SET v = 1 WHERE name = 'BOB';"
    )
    assert first.params and second.params
    same, _ = programs(tmp_path, *2 * ["UPDATE n SET v = 1 WHERE name = 'Bob';"])
    assert not same.params and str(same.accesses[-1]) == "w(n.v_'Bob')"


def test_a_loop_reads_twice(tmp_path) -> None:
    """Two rounds at READ COMMITTED may see two versions of the same cell."""
    loop = "FOR r IN SELECT a FROM t WHERE b = :y LOOP SELECT v INTO q FROM u WHERE a = :x; END LOOP;"
    both = programs(tmp_path, loop, "UPDATE u SET v = 1 WHERE a = :x;")
    assert answer_allocation(Workload([], [], both), catalogue="postgresql").levels[0] != "RC"


def test_a_locking_read_in_innodb_does_not_read_the_snapshot(tmp_path) -> None:
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
@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO n VALUES (:x, 1);",
        "INSERT INTO n VALUES (:x, 1) ON CONFLICT (name) DO UPDATE SET v = n.v + 1;",
        "INSERT INTO n VALUES (:x, 1) ON CONFLICT (name) DO UPDATE SET v = 1;",
    ],
)
def test_inserts_of_a_row_that_disappears_do_not_conflict(engine, gone, by_others, insert, tmp_path) -> None:
    """Whoever waited for a row that is gone again inserts it, and goes on with its old snapshot."""
    bodies = [
        f"{insert} SELECT {mine} INTO q FROM u WHERE a = :x; UPDATE u SET {theirs} = :q WHERE a = :x;"
        for mine, theirs in ("vw", "wv")
    ]
    assert levels(tmp_path, *bodies, engine="postgresql") == ["SI", "SI"]  # here it stays
    bodies = [*bodies, gone] if by_others else [f"{body} {gone}" for body in bodies]
    assert levels(tmp_path, *bodies, engine=engine)[:2] == ["SER", "SER"]


def test_a_locking_scan_reads_twice(tmp_path) -> None:
    """It waits for one row and then sees it as it is now, and others as they were."""
    raise_some = "UPDATE u SET v = v + 1 WHERE w = :x;"
    scan = "SELECT SUM(v) INTO s FROM u"
    assert levels(tmp_path, f"{scan};", raise_some)[0] == "RC"
    assert levels(tmp_path, "FOR r IN SELECT v FROM u FOR UPDATE LOOP SET s = r.v; END LOOP;", raise_some)[0] != "RC"


@pytest.mark.parametrize("statement", ["UPDATE u SET v = 1 WHERE a = :x;", "DELETE FROM u WHERE a = :x;"])
def test_a_locking_search_may_miss_a_replaced_row(statement, tmp_path) -> None:
    """A statement that waited for a deleted row does not find the one that the same transaction has inserted."""
    delete, insert = "DELETE FROM u WHERE a = :x;", "INSERT INTO u VALUES (:x, 1, 1);"
    assert levels(tmp_path, f"{statement} UPDATE n SET v = 1 WHERE name = :y;", f"{delete} {insert}")[0] != "RC"


def test_a_locked_row_is_read_once(tmp_path) -> None:
    read = "SELECT v INTO q FROM u WHERE a = :x"
    write = "UPDATE u SET v = :q + 1 WHERE a = :x;"
    assert levels(tmp_path, f"{read}; {write}") == ["SI"]
    assert levels(tmp_path, f"{read} FOR UPDATE; {write}") == ["RC"]


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
@pytest.mark.parametrize(
    "bodies",
    [
        [
            f"SELECT v INTO q FROM {one} WHERE {a} = :x FOR UPDATE; IF q IS NULL THEN INSERT INTO {two} (v, {b}) "
            "VALUES (1, :x); END IF;"
            for one, a, two, b in (("u", "a", "n", "name"), ("n", "name", "u", "a"))
        ],
        [
            "SELECT v INTO q FROM u WHERE a = :x AND w = 0 FOR UPDATE;"
            " IF q IS NULL THEN UPDATE n SET v = 1 WHERE name = :x; END IF;",
            "SELECT v INTO q FROM n WHERE name = :x FOR UPDATE; IF q = 0 THEN UPDATE u SET w = 0 WHERE a = :x; END IF;",
        ],
    ],
)
def test_a_locking_read_without_a_row_holds_no_lock(bodies, engine, tmp_path) -> None:
    """Two look for what the other is about to bring: a row, or one that matches."""
    assert levels(tmp_path, *bodies, engine=engine)[0] == "SER"


def test_joins_are_noted(tmp_path) -> None:
    (program,) = programs(tmp_path, "SELECT u.v INTO q FROM u LEFT JOIN t ON u.a = t.a WHERE u.a = :x;")
    assert [note for note in program.notes if "every row of t, u" in note]
    assert not any(access.writes for access in program.accesses)
    with pytest.raises(InputError, match="this join is not supported"):  # for who has to know what they mean
        load(str(tmp_path / "app.sql"))


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE u LEFT JOIN t ON u.a = t.a SET u.v = 1;",
        "UPDATE u JOIN t ON u.a = t.a SET u.v = 1, t.v = 1;",
        "UPDATE u SET v = 1 WHERE a = :x LIMIT 1;",
        "DELETE FROM u WHERE a = :x LIMIT 1;",
        "INSERT INTO u SELECT a, v FROM t;",
        "INSERT INTO u VALUES (1, 2, 3) ON CONFLICT (v, z) DO NOTHING;",
        "DELETE FROM u, t USING u JOIN t ON u.a = t.a;",
        "SELECT v INTO q FROM f(3);",
        "SELECT v INTO q FROM u JOIN nowhere ON u.a = nowhere.a;",
    ],
)
def test_unsupported_sql_is_rejected(body, tmp_path) -> None:
    with pytest.raises(InputError, match="line 5"):
        programs(tmp_path, body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # one row by its key, by way of another table
        (
            "SELECT u.v, t.w INTO p, q FROM u, t WHERE u.a = :x AND t.a = u.a AND t.b = :y;",
            {"r(u.v_x)", "r(t.w_x_y)"},
        ),
        ("SELECT t.w INTO q FROM u JOIN t ON t.a = u.a AND t.b = :y WHERE u.a = :x;", {"r(t.w_x_y)", "r(u.(row)_x)"}),
        # a value that is read leads to any row
        ("SELECT t.w INTO q FROM u JOIN t ON t.a = u.v AND t.b = :y WHERE u.a = :x;", {"r(t.w_*_y)", "r(u.v_x)"}),
        ("UPDATE u SET v = v - 1 WHERE a = :x RETURNING w INTO q;", {"rw(u.v_x)", "r(u.w_x)"}),
        ("DELETE FROM u WHERE a = :x RETURNING v INTO q;", {"r(u.v_x)", "w(u.(row)_x)?"}),
        ("INSERT INTO u VALUES (:x, 1, 1) ON CONFLICT DO NOTHING;", {"rw(u.(row)_x)?", "w(u.v_x)?"}),
        ("INSERT IGNORE INTO u VALUES (:x, 1, 1);", {"rw(u.(row)_x)?", "w(u.v_x)?"}),
        (
            "INSERT INTO u VALUES (:x, 1, 1) ON CONFLICT (a) DO UPDATE SET v = u.v + EXCLUDED.v;",
            {"rw(u.(row)_x)?", "rw(u.v_x)"},
        ),
        ("INSERT INTO u VALUES (:x, 1, 1) ON DUPLICATE KEY UPDATE v = VALUES(v);", {"w(u.v_x)"}),
        (
            "INSERT INTO u VALUES (:x, 1, 1) ON CONFLICT (a) DO UPDATE SET v = 2 WHERE u.w > 3;",
            {"w(u.v_x)?", "r(u.w_x)"},
        ),
        ("INSERT INTO u SELECT a, v, w FROM t WHERE a = :x;", {"r(t.v_x_*)", "w(u.v_*)?"}),
        (
            "INSERT INTO u SELECT :x, 1, 1 WHERE NOT EXISTS (SELECT 1 FROM n WHERE v = 3);",
            {"r(n.v_*)", "rw(u.(row)_x)?"},
        ),
        ("UPDATE u SET v = t.w FROM t WHERE u.a = t.a AND t.a = :x AND t.b = :y;", {"r(t.w_x_y)", "w(u.v_x)?"}),
        ("UPDATE u JOIN t ON u.a = t.a SET u.v = t.w WHERE t.b = :y;", {"r(t.w_*_y)", "w(u.v_*)?"}),
        ("DELETE FROM u USING t WHERE u.a = t.a AND t.w = 1;", {"r(t.w_*_*)", "w(u.(row)_*)?"}),
        ("SELECT v INTO q FROM u WHERE a = :x FOR SHARE;", {"r(u.v_x)?"}),
        ("SELECT v INTO q FROM u WHERE a = :x FOR UPDATE NOWAIT;", {"r(u.v_x)"}),
        ("SELECT a INTO q FROM u WHERE v = 0 LIMIT 1 FOR UPDATE SKIP LOCKED;", {"r(u.v_*)?"}),
        ("WHILE :x > 0 LOOP UPDATE u SET v = v - 1 WHERE a = :x; END LOOP;", {"rw(u.v_x)?"}),
        ("FOR i IN 1..5 LOOP UPDATE u SET v = v - 1 WHERE a = i; END LOOP;", {"rw(u.v_*)?"}),
        (
            "BEGIN INSERT INTO u VALUES (:x, 1, 1); EXCEPTION WHEN unique_violation THEN "
            "UPDATE u SET v = 2 WHERE a = :x; END;",
            {"rw(u.(row)_x)?", "w(u.v_x)?"},
        ),
        ("SELECT COUNT(*) INTO q FROM u WHERE a IN (:x, :y) AND v BETWEEN 1 AND 5;", {"r(u.v_*)", "r(u.(row)_*)"}),
        ("UPDATE u SET (v, w) = (w, 1) WHERE a = :x;", {"w(u.v_x)", "rw(u.w_x)"}),
    ],
)
def test_statements_of_applications_become_cells(body, expected, tmp_path) -> None:
    (program,) = programs(tmp_path, body)
    assert expected <= {str(access) for access in program.accesses}


def test_a_generated_key_identifies_one_row(tmp_path) -> None:
    text = (
        "CREATE TABLE o (id SERIAL PRIMARY KEY, v INT);\nCREATE TABLE l (o INT, i INT, PRIMARY KEY (o, i));\n"
        "-- transaction: T(x)\nINSERT INTO o (v) VALUES (:x) RETURNING id INTO n;\nINSERT INTO l VALUES (:n, 1);\n"
    )
    (tmp_path / "app.sql").write_text(text)
    (program,) = load_sql(str(tmp_path / "app.sql"))
    assert program.params == ("o_id_of_line_4",)
    assert {"w(o.v_o_id_of_line_4)", "w(l.i_o_id_of_line_4_1)"} <= {str(a) for a in program.accesses}


def test_cascading_foreign_keys_access_every_row_of_other_tables(tmp_path) -> None:
    text = (
        "CREATE TABLE p (id INT PRIMARY KEY);\n"
        "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE);\n"
        "CREATE TABLE d (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE SET NULL);\n"
        "-- transaction: T(x)\nDELETE FROM p WHERE id = :x;\n"
    )
    (tmp_path / "app.sql").write_text(text)
    (program,) = load_sql(str(tmp_path / "app.sql"))
    assert {"w(c.(row)_*)?", "w(d.c_*)?"} <= {str(a) for a in program.accesses}
    assert "line 5: foreign keys reach d: every row counts" in program.notes


@pytest.mark.parametrize(
    "body",
    [
        "SELECT w INTO z FROM u WHERE a = :x; UPDATE n SET v = 1 WHERE name = :z;",  # NULL is no key
        "SET z = NULL; UPDATE n SET v = 1 WHERE name = :z;",
        "SET z = NULLIF(:x, :y); UPDATE n SET v = 1 WHERE name = :z;",
        "SET z = CASE WHEN :x = 1 THEN 1 END; UPDATE n SET v = 1 WHERE name = :z;",
    ],
)
def test_a_key_that_may_be_null_makes_a_write_uncertain(body, tmp_path) -> None:
    _, may, must = sets(tmp_path, body)
    assert "n.v_z" in may and "n.v_z" not in must


SKEW = (
    "CREATE TABLE a (id INT PRIMARY KEY, v INT);\nCREATE TABLE b (id INT PRIMARY KEY, v INT);\n"
    "-- transaction: P(x)\nBEGIN\nSELECT v INTO q FROM a WHERE id = :x;\nUPDATE b SET v = :q + 1 WHERE id = :x;\nEND;\n"
    "-- transaction: Q(x)\nBEGIN\nSELECT v INTO q FROM b WHERE id = :x;\nUPDATE a SET v = :q + 1 WHERE id = :x;\nEND;\n"
)


@pytest.mark.parametrize("catalogue", ["postgresql", "mysql"])
def test_a_block_with_a_handler_does_not_hide_write_skew(catalogue, tmp_path) -> None:
    (tmp_path / "app.sql").write_text(SKEW)
    workload = Workload([], [], load_sql(str(tmp_path / "app.sql")))
    assert answer_allocation(workload, catalogue=catalogue).levels == ["SER", "SER"]


GUARDED = "UPDATE u SET v = v - :y WHERE a = :x AND v >= :y;"


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_a_guarded_update_of_one_row_needs_no_more_than_read_committed(engine, tmp_path) -> None:
    """It holds the row that it changes; and where it changes nothing, it has looked at one row, once."""
    assert levels(tmp_path, GUARDED, "UPDATE u SET v = v + :y WHERE a = :x;", engine=engine) == ["RC", "RC"]
    both = f"{GUARDED} IF NOT FOUND THEN ROLLBACK; END IF; UPDATE u SET v = v + :y WHERE a = :z;"
    transfer = f"SET z = :x + 1; {both}"
    assert levels(tmp_path, transfer, "SELECT v INTO q FROM u WHERE a = :x;", engine=engine) == ["RC", "RC"]
    state = "UPDATE u SET v = 2 WHERE a = :x AND v = 1;"
    assert levels(tmp_path, state, "UPDATE u SET v = 1 WHERE a = :x;", engine=engine) == ["RC", "RC"]


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_rows_locked_by_key_need_no_more_than_read_committed(engine, tmp_path) -> None:
    both = "SELECT v INTO q FROM u WHERE a = :x FOR UPDATE; SELECT v INTO r FROM u WHERE a = :y FOR UPDATE;"
    skew = f"{both} IF q + r > 1 THEN UPDATE u SET v = v - 1 WHERE a = :x; END IF;"
    assert levels(tmp_path, skew, engine=engine) == ["RC"]
    assert levels(tmp_path, skew.replace(" FOR UPDATE", ""), engine=engine) == ["SER"]


MISSES = {
    "a condition that does not hold": (
        "SELECT v INTO q FROM u WHERE a = :x AND v = 1 FOR UPDATE;",
        "UPDATE u SET v = 1",
    ),
    "an update that does not happen": ("UPDATE u SET w = 1 WHERE a = :x AND v = 1;", "UPDATE u SET v = 1"),
    "a lock on one way only": (
        "IF :y > 0 THEN SELECT v INTO q FROM u WHERE a = :x;"
        " ELSE SELECT v INTO q FROM u WHERE a = :x FOR UPDATE; END IF;",
        "UPDATE u SET v = 1",
    ),
    "a row that is not there yet": ("SELECT v INTO q FROM u WHERE a = :x FOR UPDATE;", None),
}


@pytest.mark.parametrize("case", MISSES)
@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_a_row_that_is_not_found_is_not_locked(engine, case, tmp_path) -> None:
    """One looks in vain and goes on to write n; meanwhile the other changes what it looked for, having read n."""
    looks, change = MISSES[case]
    changes = f"{change} WHERE a = :x;" if change else "INSERT INTO u VALUES (:x, 1, 1);"
    one = f"{looks} UPDATE n SET v = 5 WHERE name = 'k';"
    other = f"SELECT v INTO q FROM n WHERE name = 'k'; {changes}"
    assert levels(tmp_path, one, other, engine=engine) == ["SER", "SER"]


def test_a_program_has_the_execution_paths_of_its_branches(tmp_path) -> None:
    """Each way has what happens on it, for certain; too many ways are taken as one."""
    (program,) = programs(tmp_path, f"{GUARDED} IF :y > 0 THEN UPDATE n SET v = 1 WHERE name = 'k'; END IF;")
    hit, miss = ["r(u.(row)_x)", "rw(u.v_x)"], ["r(u.(row)_x)?", "r(u.v_x)?"]
    more = ["r(n.(row)_'k')", "w(n.v_'k')"]
    assert [[str(a) for a in way] for way in program.execution_paths] == [[*hit, *more], hit, [*miss, *more], miss]
    (many,) = programs(tmp_path, " ".join(f"UPDATE u SET v = {i} WHERE a = :x AND w = {i};" for i in range(9)))
    assert many.execution_paths == (many.accesses,)
