"""SQL files: what is understood, and the line of what is not."""

import pytest
from paths import EXAMPLES

from plume_py.base.errors import InputError
from plume_py.base.sql.access import accesses
from plume_py.base.sql.files import parse
from plume_py.infer.driver import InferOptions, infer
from plume_py.infer.language import ir
from plume_py.infer.language.from_sql import translate
from plume_py.infer.language.load import load
from plume_py.infer.language.wellformed import validate
from plume_py.infer.stores import STORES

SCHEMA = "CREATE TABLE t (k INT PRIMARY KEY, v INT);\nCREATE TABLE u (w INT);\n"


def program(text):
    return validate(translate(parse(SCHEMA + text)))


def body(text):
    return program("-- transaction: f(a, b)\n" + text).transactions[0].body


def test_statements():
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


def test_aggregates_at_once():
    (let,) = body("SELECT COUNT(*), COALESCE(MAX(v), -1) INTO n, m FROM t WHERE v > :a;")
    assert let.names == ("n", "m")
    assert [value.kind for value in let.values] == ["count", "max"]


def test_control_flow():
    loop_read, loop, choice = body(
        "BEGIN;\nFOR r IN SELECT * FROM u WHERE w > 0 LOOP\n  UPDATE t SET v = r.w WHERE k = r.w;\nEND LOOP;\n"
        "IF :a > 1 THEN ROLLBACK; ELSIF :a = 0 THEN DELETE FROM u; ELSE INSERT INTO u VALUES (1); END IF;\nCOMMIT;"
    )
    assert isinstance(loop_read, ir.SelectAll) and isinstance(loop, ir.ForEach)
    assert isinstance(choice.then[0], ir.Require) and isinstance(choice.otherwise[0], ir.If)


def test_constraints_become_known():
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


def test_what_the_database_enforces_cannot_break():
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


def test_first_rows_are_read():
    assert load(str(EXAMPLES / "booking.sql")).rows[0] == ("student", (1,))


def test_accesses():
    file = parse(
        SCHEMA + "-- transaction: f(a)\nUPDATE t SET v = v + 1 WHERE k = :a;\nSELECT COUNT(*) INTO n FROM u;\n"
    )
    read, write = accesses(file.transactions[0].body[0], file)
    assert (read.kind, read.columns, read.by_key) == ("read", ("v",), True)
    assert (write.kind, write.columns, write.equal) == ("update", ("v",), (("k", ":a"),))
    (count,) = accesses(file.transactions[0].body[1], file)
    assert (count.table, count.by_key) == ("u", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT v INTO x FROM t JOIN u ON w = k;", "line 4: joins are not supported; write WHERE EXISTS"),
        ("\n\nUPDATE t SET z = 1;", "line 6: t has no column z; it has k, v"),
        ("UPDATE t SET v = nope WHERE k = 1;", "line 4: nope is neither a column nor a variable with a value here"),
        ("SELECT v INTO x FROM s;", "line 4: there is no table s"),
        ("INSERT INTO t (k) VALUES (1);", "line 4: INSERT gives no value for v"),
        ("SELECT MAX(v) INTO x FROM t;", "line 4: MAX of no rows is NULL"),
        ("SELECT v INTO x FROM t ORDER BY k LIMIT 1;", "line 4: ORDER BY and LIMIT are not supported; use MIN or MAX"),
        ("SELECT v INTO x FROM t GROUP BY v;", "line 4: GROUP BY is not supported"),
        ("UPDATE t SET v = NULL;", "line 4: NULL is not supported"),
        ("UPDATE t SET v = 0.5;", "line 4: 0.5 is no whole number"),
        ("UPDATE t SET v = sqrt(v);", "line 4: not supported: SQRT(v)"),
        ("MERGE INTO t USING u ON TRUE;", "line 4: MERGE is not supported in a transaction"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING;", "line 4: INSERT with ON CONFLICT is not supported"),
        ("IF :a > 1 THEN DELETE FROM t;", "line 4: END expected, not the end"),
        ("IF :a > 1 THEN SET x = 1; END IF; UPDATE t SET v = x;", "line 4: x is neither a column nor a variable"),
        ("SELECT v, k INTO x FROM t;", "line 4: SELECT gives 2 values to 1 variables"),
        ("UPDATE t SET k = 1;", "line 4: k is in the primary key of t and cannot be updated"),
        ("UPDATE t SET v = v = 1;", "line 4: the value of v is a condition, but should be a number"),
        ("DELETE FROM t WHERE (v;", "line 4: cannot read this SQL"),
        ("UPDATE t SET v = 1, v = 2;", "line 4: UPDATE sets v twice"),
        ("DELETE FROM t LIMIT 1;", "line 4: DELETE with LIMIT is not supported"),
        ("SELECT v INTO x FROM t FOR SHARE;", "line 4: FOR SHARE is not supported; use FOR UPDATE"),
        ("SELECT v INTO x FROM t FOR UPDATE SKIP LOCKED;", "line 4: NOWAIT and SKIP LOCKED are not supported"),
        ("SELECT v INTO x FROM t FOR UPDATE NOWAIT;", "line 4: NOWAIT and SKIP LOCKED are not supported"),
        ("FOR r IN SELECT v FROM t FOR SHARE LOOP DELETE FROM t; END LOOP;", "line 4: FOR SHARE is not supported"),
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
        ("CREATE TABLE s (d DATE);", "line 3: columns of type DATE are not supported"),
        ("CREATE VIEW s AS SELECT 1;", "line 3: only CREATE TABLE"),
        ("CREATE TABLE s (a INT REFERENCES t (k) ON DELETE CASCADE);", "ON DELETE CASCADE are not supported"),
        ("DELETE FROM t WHERE v = 'open", "not SQL"),
    ],
)
def test_errors_of_files(text, said):
    with pytest.raises(InputError) as caught:
        program(text + "\n-- transaction: g\nDELETE FROM u;\n")
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["a; SELECT 1", 'a""b', "a'b", "a b", "1a", "a--"])
@pytest.mark.parametrize("place", ["table", "field", "alias", "variable"])
def test_names_are_words(name, place):
    """They become part of statements, which --run sends to a server."""
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
