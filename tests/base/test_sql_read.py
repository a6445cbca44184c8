"""Tests of base/sql (files, blocks, statements, schema): SQL is read completely, or rejected with its line."""

import pytest
from paths import ROOT

from benchmarks.accepted import application
from plume_py.base.errors import InputError
from plume_py.base.sql import If, RollbackStatement, Select, Update
from plume_py.base.sql.files import parse
from plume_py.reasoning.allocate.sql import load_sql
from plume_py.reasoning.infer.program.load import load

SCHEMA = "CREATE TABLE a (id INT PRIMARY KEY, v INT NOT NULL);\nCREATE TABLE b (id INT PRIMARY KEY, v INT NOT NULL);\n"
SKEW = "SELECT v INTO q FROM a WHERE id = :x;\nUPDATE b SET v = :q + 1 WHERE id = :x;\n"


def body(text, header="-- transaction: f(x, y)\n"):
    return parse(SCHEMA + header + text, any_query=True).transactions[-1].body


@pytest.fixture
def both(tmp_path):
    """A file as both commands read it."""

    def read(text):
        path = tmp_path / "app.sql"
        path.write_text(text)
        found = []
        for reader in (load_sql, load):
            try:
                found.append(reader(str(path)))
            except InputError as error:
                found.append(str(error))
        return found

    return read


@pytest.mark.parametrize(
    "text",
    [
        SKEW,
        f"BEGIN;\n{SKEW}COMMIT;",
        f"BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE;\n{SKEW}END;",
        f"BEGIN\n{SKEW}END;",
        f"BEGIN\n{SKEW}END",
        f"BEGIN\nBEGIN\n{SKEW}END;\nEND;",
        f"main: BEGIN\nDECLARE q INT;\nSTART TRANSACTION;\n{SKEW}COMMIT;\nEND main;",
        f"DECLARE\n  q INT;\n  r INT NOT NULL := 0;\nBEGIN\n{SKEW}RETURN;\nEND;",
        f"BEGIN\nDECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;\n{SKEW}END;",
        f"BEGIN\n{SKEW}EXCEPTION WHEN OTHERS THEN ROLLBACK; RAISE; END;",
        f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\nSAVEPOINT s;\n{SKEW}RELEASE SAVEPOINT s;",
        f"IF :x = 1 THEN ROLLBACK; RETURN; END IF;\n{SKEW}",
        "SELECT v FROM a WHERE id = :x INTO q;\nUPDATE b SET v = q + 1 WHERE id = :x;",
        "SELECT INTO q v FROM a WHERE id = :x;\nUPDATE b SET v = q + 1 WHERE id = :x;",
        "SELECT v INTO STRICT q FROM a WHERE id = :x;\nUPDATE b SET v = q + 1 WHERE id = :x;",
        "SELECT v INTO @q FROM `a` WHERE `id` = :x;\nUPDATE b SET v = @q + 1 WHERE id = :x;",
    ],
)
def test_every_way_to_write_a_block_keeps_its_statements(text) -> None:
    found = [stmt for stmt in body(text) if isinstance(stmt, Select | Update)]
    rest = [stmt for stmt in body(text) if isinstance(stmt, If)]
    found += [stmt for choice in rest for stmt in choice.otherwise]
    assert [type(stmt) for stmt in found] == [Select, Update]
    assert found[0].into == ("q",)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"{SKEW}COMMIT;\nUPDATE a SET v = 0 WHERE id = :x;", 6, "COMMIT ends the transaction here; line 7 belongs"),
        (f"BEGIN;\n{SKEW}COMMIT;\nBEGIN;\n{SKEW}COMMIT;", 7, "COMMIT ends the transaction here; line 9 belongs"),
        (f"IF :x = 1 THEN COMMIT; END IF;\n{SKEW}", 4, "COMMIT ends the transaction here"),
        (f"FOR r IN SELECT * FROM a LOOP\n{SKEW}COMMIT;\nEND LOOP;", 7, "COMMIT ends the transaction here"),
        (f"{SKEW}ROLLBACK;\n{SKEW}", 6, "ROLLBACK ends the transaction; line 7 belongs"),
        (f"{SKEW}BEGIN;\n{SKEW}COMMIT;", 6, "a transaction begins here, but statements come before it"),
        (f"BEGIN;\n{SKEW}BEGIN;\n{SKEW}", 7, "a transaction begins here, inside another one"),
        (f"BEGIN\n{SKEW}", 4, "BEGIN without END"),
        (f"{SKEW}COMMIT AND CHAIN;", 6, "COMMIT AND CHAIN is not supported"),
        (f"SAVEPOINT s;\n{SKEW}ROLLBACK TO SAVEPOINT s;", 7, "ROLLBACK TO SAVEPOINT is not supported; test before"),
        (f"IF :x = 1 THEN\n{SKEW}ROLLBACK TO s;\nEND IF;", 7, "ROLLBACK TO SAVEPOINT is not supported"),
        (f"{SKEW}SELECT transfer(:x);", 6, "the function transfer is not known; write the statements of the function"),
        (f"{SKEW}SELECT app.transfer(:x);", 6, "the function transfer is not known"),
        (f"{SKEW}PERFORM transfer(:x);", 6, "the function transfer is not known"),
        (f"{SKEW}IF transfer(:x) > 0 THEN ROLLBACK; END IF;", 6, "the function transfer is not known"),
        (f"{SKEW}CALL transfer(:x);", 6, "CALL is not supported in a transaction; write the statements"),
        (f"{SKEW}EXECUTE 'DELETE FROM a';", 6, "EXECUTE is not supported"),
        (f"{SKEW}LOCK TABLE a;", 6, "LOCK is not supported"),
        (f"{SKEW}TRUNCATE a;", 6, "TRUNCATE is not supported in a transaction; write DELETE FROM"),
        (f"{SKEW}MERGE INTO a USING b ON TRUE WHEN MATCHED THEN DELETE;", 6, "MERGE is not supported"),
        ("DECLARE c CURSOR FOR SELECT v FROM a;\nOPEN c;", 4, "a cursor is not supported; write FOR row IN SELECT"),
        (f"DECLARE\n  c REFCURSOR;\nBEGIN\n{SKEW}END;", 5, "a cursor is not supported"),
        ("FETCH c INTO q;", 4, "FETCH is not supported"),
        ("BEGIN\nDECLARE CONTINUE HANDLER FOR NOT FOUND SET q = 1;\nEND;", 5, "a handler that goes on"),
        ("SELECT w INTO q FROM a WHERE id = :x;", 4, "w is neither a column nor a variable"),
        ("SELECT a.w INTO q FROM a WHERE id = :x;", 4, "a has no column w"),
        ("UPDATE a SET w = 1 WHERE id = :x;", 4, "a has no column w"),
        ("UPDATE a SET v = w WHERE id = :x;", 4, "w is neither a column nor a variable"),
        ("DELETE FROM a WHERE w = 1;", 4, "w is neither a column nor a variable"),
        ("INSERT INTO a (id, w) VALUES (1, 2);", 4, "a has no column w"),
        ("INSERT INTO a VALUES (1, 2, 3);", 4, "INSERT has 3 values for 2 columns"),
        ("INSERT INTO a (id) VALUES (1, 2);", 4, "INSERT has 2 values for 1 columns"),
        ("UPDATE a SET v = :z WHERE id = :x;", 4, "z is n"),
        ("SELECT v INTO q FROM c WHERE id = :x;", 4, "no table c"),
        ("UPDATE a SET v = 1 WHERE id = ? AND v = ? AND v = ?;", 4, "3 placeholders for 2 arguments"),
        ("SELECT v INTO q FROM a WHERE id = $3;", 4, "3 placeholders for 2 arguments"),
        ("SET CONSTRAINTS ALL DEFERRED;", 4, "cannot read this assignment"),
        ("NOTIFY x;", 4, "NOTIFY is not supported"),
        (f"{SKEW}RAISE NOTICE 'left: %', (SELECT v FROM a WHERE id = :y);", 6, "brackets are not supported here"),
        ("FOR i IN 1..(SELECT COUNT(*) FROM a) LOOP DELETE FROM b; END LOOP;", 4, "brackets are not supported here"),
        (f"SET autocommit = 1;\n{SKEW}", 4, "SET AUTOCOMMIT = 1 is not supported here"),
        ("SELECT z FROM a WHERE id = :x;", 4, "z is neither a column nor a variable"),
        ("INSERT INTO a VALUES (:x, 1) RETURNING z;", 4, "z is neither a column nor a variable"),
        ("DELETE FROM a WHERE id = :x RETURNING z;", 4, "z is neither a column nor a variable"),
        ("SELECT w AS w INTO q FROM a WHERE id = :x;", 4, "w is neither a column nor a variable"),
        (f"{SKEW}/*!50001 DELETE FROM a */;", 6, "a comment that MySQL executes"),
        (f"{SKEW}-- transaction h(x)\n{SKEW}", 6, "a header without its colon"),
        ("UPDATE a SET v = CASE WHEN v > 0 THEN 1 ELSE 2 WHERE id = :x; DELETE FROM a; SET q = 1 END;", 4, ""),
        ("UPDATE a SET v = (1 WHERE id = :x; DELETE FROM b);", 4, ""),
        ("SET q = (1; DELETE FROM b);", 4, "several statements where one should be"),
    ],
)
def test_unsupported_statements_are_rejected_by_allocate_and_infer(text, line, said, both) -> None:
    for found in both(f"{SCHEMA}-- transaction: f(x, y)\n{text}\n-- transaction: g(x)\n{SKEW}"):
        assert isinstance(found, str), found
        assert f"line {line}: " in found
        assert said in found


def test_a_subquery_in_a_declaration_is_read(tmp_path) -> None:
    path = tmp_path / "app.sql"
    path.write_text(
        f"{SCHEMA}-- transaction: f(x)\nDECLARE q INT := (SELECT v FROM a WHERE id = :x);\n"
        "BEGIN\nUPDATE b SET v = q WHERE id = :x;\nEND;\n"
    )
    assert "r(a.v_x)" in map(str, load_sql(str(path))[0].accesses)


def test_statements_after_a_conditional_return_move_to_the_other_branch() -> None:
    (choice,) = body(f"IF :x = 1 THEN UPDATE a SET v = 0 WHERE id = :x; COMMIT; RETURN; END IF;\n{SKEW}COMMIT;")
    assert [type(stmt) for stmt in choice.then] == [Update]
    assert [type(stmt) for stmt in choice.otherwise] == [Select, Update]
    (choice,) = body("IF :x = 1 THEN ROLLBACK; ELSE DELETE FROM a; COMMIT; END IF;")
    assert isinstance(choice.then[0], RollbackStatement)


def test_the_number_of_copied_statements_is_bounded() -> None:
    many = 60 * "IF :x = 1 THEN IF :y = 1 THEN RETURN; END IF; END IF;\n"
    with pytest.raises(InputError, match="too many ways"):
        body(many)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE PROCEDURE move(IN x INT, y INT)\nBEGIN\n{}END;",
        "DELIMITER //\nCREATE PROCEDURE move(IN x INT, y DECIMAL(10, 2))\nBEGIN\n{}END//\nDELIMITER ;",
        "CREATE OR REPLACE FUNCTION move(x INT, y INT) RETURNS void AS $$\nDECLARE q INT;\nBEGIN\n{}END;\n"
        "$$ LANGUAGE plpgsql;",
        "CREATE OR REPLACE PROCEDURE public.move(x INT, y INT) LANGUAGE plpgsql AS $body$\nBEGIN\n{}END;\n$body$;",
    ],
)
def test_procedures_of_both_dialects_are_transactions(text, both) -> None:
    programs, application = both(SCHEMA + text.format(SKEW) + f"\n{text.format(SKEW).replace('move', 'back')}\n")
    assert [program.name for program in programs] == ["move", "back"]
    assert "r(a.v_x)" in map(str, programs[0].accesses) and "w(b.v_x)" in map(str, programs[0].accesses)
    assert [param.name for param in application.transactions[0].params] == ["x", "y"]


@pytest.mark.parametrize("sign", ["?", "%s", "$1", ":x", "%(x)s", "@x"])
def test_placeholders_of_all_drivers_are_arguments(sign, both) -> None:
    programs, application = both(f"{SCHEMA}-- transaction: f(x)\nUPDATE a SET v = 5 WHERE id = {sign};\n")
    assert [str(a) for a in programs[0].accesses] == ["r(a.(row)_x)", "w(a.v_x)"]
    assert application.transactions[0].body[0].where.args[1].name == "x"


def test_placeholders_without_a_header_are_numbered() -> None:
    text = f"{SCHEMA}-- transaction: f\nUPDATE a SET v = ? WHERE id = ? AND v % 5 = 1;\n"
    assert [param.name for param in parse(text).transactions[0].params] == ["p1", "p2"]


def test_a_repeated_argument_is_one_parameter() -> None:
    text = f"{SCHEMA}-- transaction: f(x, y, x)\nUPDATE a SET v = ? + ? WHERE id = ?;\n"
    assert [param.name for param in parse(text).transactions[0].params] == ["x", "y"]


@pytest.mark.parametrize(
    "ddl",
    [
        "CREATE TABLE c (id SERIAL PRIMARY KEY, v INT NOT NULL DEFAULT 0);",
        "CREATE TABLE c (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v NUMERIC(9, 2) NOT NULL CHECK (v > 0));",
        "CREATE TABLE IF NOT EXISTS `c` (`id` int(11) unsigned NOT NULL AUTO_INCREMENT, `v` enum('x','y') NOT NULL,\n"
        "PRIMARY KEY (`id`), KEY `k` (`v`), UNIQUE KEY `u` (`v`)) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8;",
        "CREATE TABLE public.c (id integer NOT NULL, v timestamp without time zone DEFAULT now());\n"
        "ALTER TABLE ONLY public.c ADD CONSTRAINT pk PRIMARY KEY (id);\n"
        "ALTER TABLE c ADD FOREIGN KEY (id) REFERENCES a (id) ON DELETE RESTRICT;\nCREATE INDEX i ON c (v);\n"
        "CREATE UNIQUE INDEX j ON c USING btree (v);\nCREATE SEQUENCE s START WITH 1;\nSET search_path = public;\n"
        "COMMENT ON TABLE c IS 'x';",
        "DROP TABLE IF EXISTS c;\nCREATE TABLE c (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v jsonb,\n"
        "w bytea, x INT[], "
        'y double precision, z date, u money, t character varying(20) COLLATE "C", s inet, r boolean DEFAULT true);',
    ],
)
def test_tables_of_real_schemas_are_read(ddl) -> None:
    (table,) = [table for table in parse(SCHEMA + ddl).tables if table.name == "c"]
    assert table.primary_key == ("id",) and "key" not in table.names


@pytest.mark.parametrize(
    ("ddl", "note"),
    [
        ("CREATE VIEW s AS SELECT 1;", "the view s is ignored; a transaction cannot use it"),
        (
            "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION f();",
            "the trigger t matters only where a is accessed",
        ),
    ],
)
def test_views_and_triggers_of_a_schema_are_noted(ddl, note) -> None:
    assert parse(SCHEMA + ddl).notes == (note,)


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("CREATE TABLE s AS SELECT 1;", "line 3: only CREATE TABLE with a list of columns"),
        ("CREATE FUNCTION f(x INT) RETURNS INT AS 'SELECT 1';", "line 3"),
        ("CREATE TABLE s (id INT PRIMARY KEY) INHERITS (a);", "line 3: INHERITS is not supported"),
        ("ALTER TABLE a DROP COLUMN v;", "is not supported; write the table as it is in the end"),
        ("ALTER TABLE c ADD PRIMARY KEY (id);", "there is no table c"),
        ("ALTER TABLE a ADD UNIQUE (w);", "a has no column w; there is id, v"),
        ("DROP TABLE a;", "DROP of a table that was created above"),
        ("CREATE TABLE a (id INT);", "line 3: a second table a; the first is in line 1"),
    ],
)
def test_unsupported_statements_of_a_schema_are_rejected(ddl, said) -> None:
    with pytest.raises(InputError) as caught:
        parse(SCHEMA + ddl)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("ddl", "statement", "said"),
    [
        ("CREATE VIEW s AS SELECT 1;", "SELECT id FROM s WHERE id = :x;", "no table s; give its CREATE TABLE"),
        (
            "CREATE TRIGGER t AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION f();",
            "UPDATE a SET v = 1 WHERE id = :x;",
            "the trigger t on a (line 3 of the schema) is not supported",
        ),
    ],
)
def test_what_a_schema_may_say_if_no_transaction_uses_it(both, ddl, statement, said) -> None:
    header = f"{SCHEMA}{ddl}\n-- transaction: f(x)\n"
    assert parse(header + SKEW).notes
    assert not any(isinstance(found, str) for found in both(header + SKEW))
    for refused in both(header + statement):
        assert said in refused and "line 5" in refused


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "applications").glob("*.sql")), ids=lambda path: path.stem
)
def test_applications_are_read_whole_by_allocate(path) -> None:
    found = load_sql(str(path))
    assert all(program.accesses for program in found)
    assert {program.name for program in found} == set(application(path).transactions)
