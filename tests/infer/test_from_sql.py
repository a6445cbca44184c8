"""SQL files: tests of program.from_sql, inserts and sql_expressions."""

import pytest
from click.testing import CliRunner
from paths import EXAMPLES

from plume_py.base.errors import InputError
from plume_py.base.sql.access import accesses
from plume_py.base.sql.files import parse
from plume_py.cli.main import cli
from plume_py.reasoning.infer.driver import InferOptions, infer
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.from_sql import translate
from plume_py.reasoning.infer.program.load import load, require_dialect, validate
from plume_py.reasoning.infer.statement_models import STORES

SCHEMA = "CREATE TABLE t (k INT PRIMARY KEY, v INT);\nCREATE TABLE u (w INT);\n"


def program(text):
    return validate(translate(parse(SCHEMA + text)))


def body(text):
    return program("-- transaction: f(a, b)\n" + text).transactions[0].body


def test_each_kind_of_statement_is_translated():
    select, let, update, insert, delete = body(
        "SELECT v INTO x FROM t WHERE k = :a;\n"
        "UPDATE t SET v = v + x WHERE k = :a AND v BETWEEN 0 AND 5;\n"
        "INSERT INTO t (v, k) VALUES (x, :b);\n"
        "DELETE FROM u WHERE w IN (1, 2);\n"
    )
    assert isinstance(select, ir.SelectOne) and select.line == 4
    assert isinstance(let, ir.Let) and let.names == ("x",)
    assert isinstance(update, ir.Update) and update.line == 5
    assert isinstance(insert, ir.Insert) and insert.values == (ir.Arg("b"), ir.Local("x"))
    assert isinstance(delete, ir.Delete) and delete.line == 7


def test_several_aggregates_become_one_let():
    (let,) = body("SELECT COUNT(*), COALESCE(MAX(v), -1) INTO n, m FROM t WHERE v > :a;")
    assert let.names == ("n", "m")
    assert [value.kind for value in let.values] == ["count", "max"]


def test_if_and_loops_are_translated():
    loop_read, loop, choice = body(
        "BEGIN;\nFOR r IN SELECT * FROM u WHERE w > 0 LOOP\n  UPDATE t SET v = r.w WHERE k = r.w;\nEND LOOP;\n"
        "IF :a > 1 THEN ROLLBACK; ELSIF :a = 0 THEN DELETE FROM u; ELSE INSERT INTO u VALUES (1); END IF;\nCOMMIT;"
    )
    assert isinstance(loop_read, ir.SelectAll) and isinstance(loop, ir.ForEach)
    assert isinstance(choice.then[0], ir.Require) and isinstance(choice.otherwise[0], ir.If)


def test_constraints_become_enforced_clauses():
    found = parse(
        "CREATE TABLE p (k INT PRIMARY KEY, c INT UNIQUE, d INT CHECK (d > 0));\n"
        "CREATE TABLE q (a INT, b INT REFERENCES p (k), PRIMARY KEY (a, b), FOREIGN KEY (a) REFERENCES p);\n"
        "-- transaction: f\nDELETE FROM q;\n"
    )
    translated = translate(found)
    assert translated.table("q").key == ("a", "b")
    assert [clause.name for clause in translated.enforced] == [
        "unique p(c)",
        "check 1 of p",
        "foreign key q(b)",
        "foreign key q(a)",
    ]


def test_enforced_constraints_are_never_violated():
    text = (
        "CREATE TABLE p (k INT PRIMARY KEY);\nCREATE TABLE q (a INT {});\n"
        "-- transaction: add(k)\nSELECT k INTO x FROM p WHERE k = :k;\nINSERT INTO q VALUES (x);\n"
        "-- transaction: remove(k)\n"
        "IF NOT EXISTS (SELECT 1 FROM q WHERE a = :k) THEN DELETE FROM p WHERE k = :k; END IF;\n"
        "-- invariant: refers: NOT EXISTS (SELECT 1 FROM q WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.k = q.a))\n"
    )
    for constraint, expected in (("", ["SER", "SER"]), ("REFERENCES p (k)", ["RC", "RC"])):
        result = infer(validate(translate(parse(text.format(constraint)))), STORES["mysql"], (), InferOptions(steps=1))
        assert [txn.weakest.level.name for txn in result.transactions] == expected


def test_inserts_beside_the_tables_are_initial_rows():
    assert load(str(EXAMPLES / "booking.sql")).rows[0] == ("student", (1,))


def test_accesses_of_statements_are_found():
    file = parse(
        SCHEMA + "-- transaction: f(a)\nUPDATE t SET v = v + 1 WHERE k = :a;\nSELECT COUNT(*) INTO n FROM u;\n"
    )
    (write,) = accesses(file.transactions[0].body[0], file)
    assert (write.kind, write.columns, write.equal) == ("update", ("v",), (("k", ":a"),))
    assert write.in_place == ("v",) and write.by_key and write.exact
    (count,) = accesses(file.transactions[0].body[1], file)
    assert (count.table, count.by_key) == ("u", False)


def test_generated_values_become_arguments():
    found = validate(
        translate(
            parse(
                "CREATE TABLE o (id SERIAL PRIMARY KEY, v INT NOT NULL DEFAULT 7, at TIMESTAMP NOT NULL);\n"
                "-- transaction: f()\nINSERT INTO o (at) VALUES (now()) RETURNING id INTO n;\n"
                "UPDATE o SET v = 1 WHERE id = n;\n"
            )
        )
    ).transactions[0]
    assert [param.name for param in found.params] == ["new_id", "now"]
    let, insert, _ = found.body
    assert let.values == (ir.Arg("new_id"),) and insert.values == (ir.Arg("new_id"), ir.Const(7), ir.Arg("now"))
    with pytest.raises(InputError, match="inside a loop is not supported"):
        program("-- transaction: f\nFOR r IN SELECT * FROM u LOOP UPDATE t SET v = RANDOM() WHERE k = 1; END LOOP;")


def test_returning_locks_the_row_first():
    read, let, write = body("UPDATE t SET v = v - 1 WHERE k = :a AND v > 0 RETURNING v, k INTO x, y;")
    assert isinstance(read, ir.SelectOne) and read.lock
    assert isinstance(write, ir.Update) and ir.fixed_columns(write.where, write.var).keys() == {"k"}
    assert isinstance(let.values[0], ir.Operation) and isinstance(let.values[1], ir.Field)


def test_on_conflict_looks_for_the_row():
    look, choice = body("INSERT INTO t VALUES (:a, 1) ON CONFLICT (k) DO UPDATE SET v = t.v + EXCLUDED.v;")
    assert look.lock and isinstance(choice.then[0], ir.Insert)
    (update,) = choice.otherwise
    assert update.sets[0][1].args[1] == ir.Const(1)
    look, choice = body("INSERT INTO t VALUES (:a, 1) ON CONFLICT DO NOTHING;")
    assert not look.lock and choice.otherwise == ()


def test_rows_are_counted_before_found_and_row_count():
    read, let, write, choice = body("UPDATE t SET v = 1 WHERE k = :a AND v = 0; IF NOT FOUND THEN ROLLBACK; END IF;")
    assert read.lock and let.names == ("row_count",)
    assert isinstance(write, ir.If) and isinstance(choice.condition, ir.Operation)
    assert len(body("UPDATE t SET v = 1 WHERE k = :a; IF ROW_COUNT() = 0 THEN ROLLBACK; END IF;")) == 4
    with pytest.raises(InputError, match="need a row by its primary key"):
        body("UPDATE t SET v = 1 WHERE v = 0; IF NOT FOUND THEN ROLLBACK; END IF;")


def test_select_star_binds_a_row_variable():
    _, update = body("SELECT * INTO r FROM t WHERE k = :a FOR UPDATE NOWAIT; UPDATE t SET v = r.v + 1 WHERE k = :b;")
    assert isinstance(update, ir.Update)


def test_a_join_by_key_becomes_a_select_per_table():
    schema = "CREATE TABLE c (id INT PRIMARY KEY, w INT NOT NULL, name TEXT NOT NULL);\n"
    read = (
        "SELECT s.v, c.name INTO x, y FROM c JOIN t AS s ON s.k = c.w AND s.v > 0 WHERE c.id = :a;",
        "SELECT v, name INTO x, y FROM t, c WHERE c.id = :a AND k = w AND v > 0;",
    )
    for text in read:
        first, second, let = program(f"{schema}-- transaction: f(a)\n{text}").transactions[0].body
        assert (first.table, second.table) == ("c", "t")
        assert ir.fixed_columns(second.where, second.row) == {"k": ir.Field(first.row, "w")}
        assert let.names == ("x", "y")


def test_a_query_whose_rows_are_not_used_only_reads():
    (look,) = body("SELECT u.w, COUNT(*) FROM t JOIN u ON u.w = t.k GROUP BY u.w ORDER BY 1 LIMIT 3;")
    assert isinstance(look, ir.SelectAll) and look.where == ir.Const(False)
    with pytest.raises(InputError, match="u has no column z"):
        body("SELECT u.z FROM t JOIN u ON u.w = t.k;")


def test_null_is_supported_in_a_column_that_is_only_written():
    schema = "CREATE TABLE j (id SERIAL PRIMARY KEY, who INT, state INT NOT NULL);\n-- transaction: f(a)\n"
    insert, update = (
        program(f"{schema}INSERT INTO j (state) VALUES (1); UPDATE j SET who = NULL WHERE id = :a;")
        .transactions[0]
        .body
    )
    assert insert.values[1] == ir.Const(0) and update.sets == (("who", ir.Const(0)),)
    with pytest.raises(InputError, match="line 5: NULL in the column who, which is read, is not supported"):
        program(f"{schema}INSERT INTO j (state) VALUES (1); UPDATE j SET who = who + 1 WHERE id = :a;")


def test_found_refers_to_the_previous_statement():
    with pytest.raises(InputError, match="FOUND and ROW_COUNT are understood after"):
        body("UPDATE t SET v = 1 WHERE k = :a; SET x = 1; IF NOT FOUND THEN ROLLBACK; END IF;")
    two = "UPDATE t SET v = 1 WHERE k = :a; IF NOT FOUND THEN ROLLBACK; END IF;"
    with pytest.raises(InputError, match="FOUND and ROW_COUNT are understood after"):
        body(f"{two} UPDATE t SET v = 2 WHERE k = :b; SET x = 1; IF NOT FOUND THEN ROLLBACK; END IF;")
    assert len(body(f"INSERT INTO t VALUES (:a, 1) ON CONFLICT DO NOTHING; {two[33:]}")) == 3


SEATS = """CREATE TABLE seat (id INT PRIMARY KEY, taken INT NOT NULL);
CREATE TABLE booking (id SERIAL PRIMARY KEY, seat INT NOT NULL);
-- transaction: book(s)
{}
INSERT INTO booking (seat) VALUES (:s);
-- invariant: once
NOT EXISTS (SELECT 1 FROM seat WHERE (SELECT COUNT(*) FROM booking WHERE booking.seat = seat.id) > seat.taken)
AND NOT EXISTS (SELECT 1 FROM seat WHERE taken > 1);
"""


@pytest.mark.parametrize(
    ("way", "level"),
    [
        ("UPDATE seat SET taken = 1 WHERE id = :s AND taken = 0; IF NOT FOUND THEN ROLLBACK; END IF;", "RC"),
        ("UPDATE seat SET taken = taken + 1 WHERE id = :s AND taken = 0 RETURNING id INTO x;", "RC"),
        (
            "SELECT taken INTO x FROM seat WHERE id = :s; IF NOT FOUND OR x > 0 THEN ROLLBACK; END IF;"
            "UPDATE seat SET taken = 1 WHERE id = :s;",
            "SI",
        ),
    ],
)
def test_a_guarded_update_is_safe_at_read_committed(way, level):
    found = infer(validate(translate(parse(SEATS.format(way)))), STORES["postgresql"], (), InferOptions())
    assert [txn.weakest.level.name for txn in found.transactions] == [level]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT v INTO x FROM t JOIN u ON w = k;", "line 4: this join is not supported; join tables by their whole"),
        ("SELECT v INTO x FROM t LEFT JOIN t s ON s.k = t.v WHERE t.k = 1;", "line 4: this join is not supported"),
        ("\n\nUPDATE t SET z = 1;", "line 6: t has no column z; it has k, v"),
        ("UPDATE t SET v = nope WHERE k = 1;", "line 4: nope is neither a column nor a variable with a value here"),
        ("SELECT v INTO x FROM s;", "line 4: there is no table s"),
        ("INSERT INTO t (v) VALUES (1);", "line 4: INSERT gives no value for k"),
        ("SELECT MAX(v) INTO x FROM t;", "line 4: MAX of no rows is NULL"),
        ("SELECT v INTO x FROM t ORDER BY k LIMIT 2;", "line 4: ORDER BY and LIMIT are not supported; use MIN or MAX"),
        ("SELECT v INTO x FROM t GROUP BY v;", "line 4: GROUP BY is not supported"),
        ("UPDATE t SET v = NULL WHERE v = 1;", "line 4: NULL in the column v, which is read, is not supported"),
        ("DELETE FROM t WHERE v IS NULL;", "line 4: NULL is not supported"),
        ("UPDATE t SET v = 0.5;", "line 4: 0.5 is no whole number"),
        ("UPDATE t SET v = sqrt(v);", "line 4: not supported: SQRT(v)"),
        ("MERGE INTO t USING u ON TRUE;", "line 4: MERGE is not supported in a transaction"),
        ("INSERT INTO u VALUES (1) ON CONFLICT DO NOTHING;", "line 4: ON CONFLICT does not say which key it means"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (v) DO NOTHING;", "line 4: ON CONFLICT does not say which key"),
        ("INSERT INTO t SELECT * FROM t;", "line 4: INSERT … SELECT * is not supported; list the columns"),
        ("INSERT INTO t SELECT k FROM t;", "line 4: INSERT has 1 values for 2 columns"),
        ("SELECT w INTO x FROM u LIMIT 1;", "line 4: LIMIT 1 of a table without primary key"),
        ("SELECT v INTO x FROM t ORDER BY z LIMIT 1;", "line 4: t has no column z"),
        ("UPDATE t SET v = w FROM u;", "line 4: this UPDATE … FROM is not supported; fix the other table's row"),
        ("WHILE :a > 0 LOOP DELETE FROM t; END LOOP;", "line 4: WHILE is not supported; use FOR row IN SELECT"),
        (
            "BEGIN DELETE FROM t; EXCEPTION WHEN OTHERS THEN DELETE FROM u; END;",
            "line 4: a block whose handler goes on is not supported",
        ),
        ("IF :a > 1 THEN DELETE FROM t;", "line 4: END expected, not the end"),
        ("IF :a > 1 THEN SET x = 1; END IF; UPDATE t SET v = x;", "line 4: x is neither a column nor a variable"),
        ("SELECT v, k INTO x FROM t;", "line 4: SELECT gives 2 values to 1 variables"),
        ("UPDATE t SET k = 1;", "line 4: k is in the primary key of t and cannot be updated"),
        ("UPDATE t SET v = v = 1;", "line 4: the value of v is a condition, but should be a number"),
        ("DELETE FROM t WHERE (v;", "line 4: cannot read this SQL"),
        ("UPDATE t SET v = 1, v = 2;", "line 4: UPDATE sets v twice"),
        ("DELETE FROM t LIMIT 1;", "line 4: DELETE with LIMIT is not supported"),
        ("SELECT v INTO x FROM t FOR SHARE;", "line 4: FOR SHARE needs a row by its primary key"),
        ("SELECT v INTO x FROM t FOR UPDATE SKIP LOCKED;", "line 4: SKIP LOCKED is not supported"),
        ("FOR r IN SELECT v FROM t FOR SHARE LOOP DELETE FROM t; END LOOP;", "line 4: FOR SHARE needs a row"),
        ("SELECT COUNT(*) INTO x FROM t FOR UPDATE;", "line 4: an aggregate cannot be FOR UPDATE"),
        ("DELETE FROM t WHERE k IN (SELECT k, v FROM t);", "line 4: a SELECT after IN must have one column"),
        ("DELETE FROM t WHERE k IN (SELECT MAX(k) FROM t);", "line 4: a SELECT after IN must have one column"),
        ("SET a = 1;", "line 4: a is an argument and cannot be assigned"),
    ],
)
def test_errors_point_at_the_line(text, said):
    with pytest.raises(InputError) as caught:
        body(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-- invariant: i: (SELECT SUM(v) FROM t)", "line 3: the invariant i is a number, but should be a condition"),
        ("-- invariant: i\n", "line 3: the invariant i has no condition"),
        ("-- invariant: i\n\nNOT EXISTS (SELECT 1 FROM t WHERE z < 0)", "line 5: z is neither a column nor"),
        ("-- transaction: f(1)\nDELETE FROM t;", "line 3: '1' is no argument"),
        (
            "-- transaction: f\nDELETE FROM t;\n-- transaction: f\n",
            "line 5: a second transaction f; the first is in line 3",
        ),
        ("-- assume: x > 0", "line 3: assume belongs below a transaction"),
        ("CREATE VIEW s AS SELECT 1;\n-- transaction: f\nDELETE FROM s;", "line 5: there is no table s"),
        ("CREATE WIDGET s (x int);", "line 3: "),
        (
            "CREATE TABLE s (a INT REFERENCES t (k) ON DELETE CASCADE);\n-- transaction: f\nDELETE FROM t;",
            "line 5: ON DELETE CASCADE of s is not supported; delete the rows of s by a statement of its own",
        ),
        ("DELETE FROM t WHERE v = 'open", "not SQL"),
    ],
)
def test_errors_of_files(text, said):
    with pytest.raises(InputError) as caught:
        program(text + "\n-- transaction: g\nDELETE FROM u;\n")
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["a; SELECT 1", 'a""b', "a'b", "a b", "1a", "a--"])
@pytest.mark.parametrize("place", ["table", "field", "alias", "variable"])
def test_names_that_are_not_identifiers_are_rejected(name, place):
    """Names become part of statements, which --run sends to a server."""
    words = {"table": "t1", "field": "f1", "alias": "a1", "variable": "v1"}
    text = """
CREATE TABLE {table} (k INT PRIMARY KEY, {field} INT);
-- transaction: f()
SELECT {field} INTO {variable} FROM {table} WHERE k = 1;
-- invariant: I
NOT EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.{field} < 0);
"""
    parse(text.format(**words | {place: '"word"'}))
    with pytest.raises(InputError, match="letters, digits and underscores"):
        parse(text.format(**words | {place: f'"{name}"'}))


def test_a_statement_that_the_store_does_not_have_is_rejected(tmp_path):
    path = tmp_path / "app.sql"
    path.write_text(f"{SCHEMA}-- transaction: f(a)\nINSERT INTO t VALUES (:a, 1) ON CONFLICT (k) DO NOTHING;\n")
    require_dialect(load(str(path)), "postgresql")
    with pytest.raises(InputError, match="line 4: ON CONFLICT is not in MySQL; write INSERT … ON DUPLICATE KEY"):
        require_dialect(load(str(path)), "mysql")
    with pytest.raises(InputError, match="line 4: INSERT IGNORE is not supported"):
        body("INSERT IGNORE INTO t VALUES (:a, 1);")


JOBS = """CREATE TABLE job (id INT PRIMARY KEY, worker INT NOT NULL, at TIMESTAMP NOT NULL);
CREATE TABLE paid (job INT NOT NULL);
-- transaction: claim(w)
-- assume: :w > 0
SELECT id INTO j FROM job WHERE worker = 0 ORDER BY at LIMIT 1{};
UPDATE job SET worker = :w WHERE id = j;
INSERT INTO paid VALUES (j);
-- invariant: once
NOT EXISTS (SELECT 1 FROM job WHERE (SELECT COUNT(*) FROM paid WHERE paid.job = job.id) > 1)
AND NOT EXISTS (SELECT 1 FROM paid WHERE EXISTS (SELECT 1 FROM job WHERE job.id = paid.job AND job.worker = 0))
"""


@pytest.mark.parametrize("store", ["postgresql", "mysql"])
def test_limit_1_may_return_any_row(store):
    """A job is paid twice unless it is locked when it is taken. SKIP LOCKED may leave out locked jobs."""
    weakest = {}
    for lock in ("", " FOR UPDATE", " FOR UPDATE SKIP LOCKED"):
        app = validate(translate(parse(JOBS.format(lock))))
        (found,) = infer(app, STORES[store], (), InferOptions(rows=2, steps=1)).transactions
        weakest[lock] = next(verdict.answer for verdict in found.levels)
    assert weakest == {
        "": "violated",
        " FOR UPDATE": "no violation found",
        " FOR UPDATE SKIP LOCKED": "no violation found",
    }


def test_a_subquery_of_one_row_is_read_before_its_statement():
    look, let, update = body(
        "UPDATE t SET v = 1 WHERE k = (SELECT k FROM t WHERE v = :a LIMIT 1 FOR UPDATE SKIP LOCKED);"
    )
    assert isinstance(look, ir.SelectAll) and look.lock and ir.fixed_columns(look.where, look.var)["k"]
    assert isinstance(let, ir.Let) and len(let.names) == 2
    assert ir.fixed_columns(update.where, update.var)["k"] == ir.Local(let.names[1])


def test_a_comparison_with_max_of_no_rows_is_false():
    (look, _) = body(
        "SELECT v INTO x FROM t WHERE k = (SELECT MAX(k) FROM t WHERE v > :a) AND v <> (SELECT MIN(v) FROM t);"
    )
    kinds = [node.kind for node in ir.walk(look.where) if isinstance(node, ir.Query)]
    assert sorted(kinds) == ["exists", "exists", "max", "min"]
    with pytest.raises(InputError, match="MAX of no rows is NULL"):
        body("SELECT v INTO x FROM t WHERE NOT (k = (SELECT MAX(k) FROM t));")


def test_insert_select_inserts_row_by_row():
    look, loop = body("INSERT INTO t (v, k) SELECT :b, w FROM u WHERE w > :a;")
    assert isinstance(look, ir.SelectAll) and look.table == "u" and isinstance(loop, ir.ForEach)
    assert loop.body == (ir.Insert(4, "t", (ir.Field(loop.var, "w"), ir.Arg("b"))),)
    let, insert = body("INSERT INTO t SELECT COALESCE(MAX(k), 0) + 1, :a FROM t;")
    assert isinstance(let, ir.Let) and insert.values == tuple(map(ir.Local, let.names))


def test_update_from_reads_one_row_of_another_table():
    schema = "CREATE TABLE o (d INT, k INT, n INT NOT NULL, PRIMARY KEY (d, k));\n"
    text = "-- transaction: f(a, b)\nUPDATE t SET v = t.v + o.n FROM o WHERE o.k = t.k AND o.d = :b AND t.k = :a;\n"
    found = validate(translate(parse(SCHEMA + schema + text))).transactions[0].body
    assert [type(stmt).__name__ for stmt in found] == ["SelectAll", "Let", "Update"]
    assert ir.fixed_columns(found[0].where, found[0].var) == {"k": ir.Arg("a"), "d": ir.Arg("b")}
    for wrong in ("o.k = t.k AND t.k = :a", "o.k = t.v AND o.d = :b AND t.k = :a", "o.d = :b"):
        with pytest.raises(InputError, match="this UPDATE … FROM is not supported"):
            translate(parse(SCHEMA + schema + f"-- transaction: f(a, b)\nUPDATE t SET v = o.n FROM o WHERE {wrong};\n"))


def test_for_share_reads_one_row():
    look, _ = body("SELECT v INTO x FROM t WHERE k = :a FOR SHARE;")
    assert isinstance(look, ir.SelectOne) and not look.lock
    for again in ("DELETE FROM t WHERE k = :b; INSERT INTO t VALUES (:b, 1);",):
        with pytest.raises(InputError, match="FOR SHARE is not supported where rows of t are deleted and inserted"):
            body(f"SELECT v INTO x FROM t WHERE k = :a FOR SHARE; {again}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v INTO x FROM t WHERE k = :a FOR SHARE;",
        "INSERT INTO t SELECT w, 1 FROM u;",
        "UPDATE t SET v = s.v FROM t s WHERE s.k = :b AND t.k = :a;",
    ],
)
def test_statements_that_mysql_executes_differently_are_rejected(text):
    app = program(f"-- transaction: f(a, b)\n{text}")
    require_dialect(app, "postgresql")
    with pytest.raises(InputError, match=r"line 4: .* MySQL"):
        require_dialect(app, "mysql")


def test_arguments_stored_in_text_columns_are_texts():
    table = "CREATE TABLE n (k INT PRIMARY KEY, s TEXT NOT NULL);\n"
    app = validate(translate(parse(f"{table}-- transaction: f(a, b)\nINSERT INTO n VALUES (:a, :b);")))
    assert [param.sort for param in app.transactions[0].params] == ["int", "text"]


BAD_FILL = """CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL);
-- transaction: fill(i, n)
INSERT INTO t VALUES (:i, :n);
-- transaction: add(i)
SELECT v INTO a FROM t WHERE id = :i;
UPDATE t SET v = :a + 1 WHERE id = :i;
-- invariant: nonneg
NOT EXISTS (SELECT 1 FROM t WHERE v < 0);
"""


def test_a_transaction_that_violates_alone_comes_first_and_is_not_a_partner(tmp_path):
    """`add` loses updates, but satisfies this invariant at RC, even with `fill`."""
    path = tmp_path / "app.sql"
    path.write_text(BAD_FILL)
    options = ["infer", str(path), "--rows", "2", "--steps", "1", "--brief"]
    result = CliRunner().invoke(cli, options)
    lines = result.output.splitlines()
    assert result.exit_code == 1, result.output
    assert lines[1] == "  fill  no level keeps the invariant: it violates nonneg when it runs alone"
    assert "-- assume:" in result.output and "--exclude NAME" in result.output
    assert any(line.startswith("  add   RC (READ COMMITTED)") for line in lines)
    result = CliRunner().invoke(cli, [*options, "--exclude", "fill"])
    assert result.exit_code == 0 and "fill" not in result.output
    told = " ".join(result.output.split())
    assert "keep the invariant and nothing else" in told and "finds add REPEATABLE READ" in told
    refused = CliRunner().invoke(cli, [*options, "--exclude", "fil"])
    assert refused.exit_code != 0 and "did you mean fill?" in str(refused.exception)


def test_texts_of_a_log_get_the_sorts_of_their_columns() -> None:
    """psycopg 3 sends 't' for true; psycopg 2 sends the text '7' like a number."""
    table = "CREATE TABLE d (id INT PRIMARY KEY, code TEXT NOT NULL, free BOOLEAN NOT NULL);\n"
    body = "UPDATE d SET free = :a WHERE id = :x;\nSELECT id FROM d WHERE free IS TRUE AND code IN (:c) AND free = :b;"
    found = translate(parse(f"{table}-- transaction: f(a TEXT, x INT, c INT, b TEXT)\n{body}"))
    assert [param.sort for param in found.transactions[0].params] == ["bool", "int", "text", "bool"]
