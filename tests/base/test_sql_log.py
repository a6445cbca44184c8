"""Tests of base/sql (log_entries, log_programs): transactions, values and sessions of a log, and malformed logs."""

import pytest

from plume_py.base.errors import InputError
from plume_py.base.sql import log_entries, log_programs
from plume_py.base.sql.log_entries import given_values, shape
from plume_py.base.sql.log_programs import load_log

TABLES = "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, name TEXT)"


def log(tmp_path, *lines, prefix="2026-11-18 12:00:00.000 UTC [{}] ", name="postgresql.log"):
    """A log of (session, severity, message); a session alone says nothing."""
    path = tmp_path / name
    text = "".join(f"{prefix.format(session)}{severity}:  {message}\n" for session, severity, message in lines)
    path.write_text(text)
    return str(path)


def statements(session, *texts):
    return [(session, "LOG", f"statement: {text}") for text in texts]


def listing(path, **options):
    found = load_log(path, None, any_query=True, **options)
    return [line for line in found.listing if line and not line.startswith("-- seen")], found.summary


def test_transactions_are_separated_by_session(tmp_path) -> None:
    one = statements(11, TABLES, "BEGIN", "UPDATE t SET v = v + 1 WHERE id = 5", "COMMIT")
    two = statements(12, "BEGIN", "SELECT v FROM t WHERE id = 7", "UPDATE t SET v = 8 WHERE id = 7", "COMMIT")
    mixed = [*one[:2], two[0], one[2], two[1], two[2], one[3], two[3]]
    assert listing(log(tmp_path, *mixed))[0] == [
        "-- transaction: update_t(p1 INT, p2 INT)",
        "UPDATE t SET v = v + :p1 WHERE id = :p2;",
        "-- transaction: update_t_2(p1 INT, p2 INT)",
        "SELECT v FROM t WHERE id = :p1;",
        "UPDATE t SET v = :p2 WHERE id = :p1;",
    ]


@pytest.mark.parametrize("prefix", ["5a0b1c2d.{:x} ", "[{}] ", "%t [{}-1] app@db ", "user,db,{},x "])
def test_prefixes_with_a_session(prefix, tmp_path) -> None:
    lines = statements(17, TABLES, "BEGIN", "UPDATE t SET v = 1 WHERE id = 2", "COMMIT")
    assert listing(log(tmp_path, *lines, prefix=prefix))[1] == "1 transaction of 1 program"


def test_values_that_were_equal_in_every_run_are_one_parameter(tmp_path) -> None:
    def run(a, b, c):
        return statements(1, "BEGIN", f"UPDATE t SET v = {a} WHERE id = {b}", f"DELETE FROM t WHERE id = {c}", "END")

    once = log(tmp_path, *statements(1, TABLES), *run(3, 3, 3))
    assert "UPDATE t SET v = :p1 WHERE id = :p1;" in listing(once)[0]
    more = log(tmp_path, *statements(1, TABLES), *run(3, 3, 3), *run(4, 5, 5), *run(5, 5, 5))
    assert listing(more)[0][1:] == ["UPDATE t SET v = :p1 WHERE id = :p2;", "DELETE FROM t WHERE id = :p2;"]
    assert listing(more)[1] == "3 transactions of 1 program"


def test_parameters_of_prepared_statements(tmp_path) -> None:
    lines = [
        *statements(1, TABLES),
        (1, "LOG", "execute <unnamed>: UPDATE t SET name = $1, v = v - $2 WHERE id = $3"),
        (1, "DETAIL", "parameters: $1 = 'it''s, $2 = ''x''', $2 = '-4', $3 = '17'"),
        (1, "LOG", "execute s1: UPDATE t SET name = $1, v = v - $2 WHERE id = $3"),
        (1, "DETAIL", "Parameters: $1 = NULL, $2 = '5', $3 = '17'"),
        (1, "LOG", "execute fetch from s1: UPDATE t SET name = $1, v = v - $2 WHERE id = $3"),
    ]
    assert listing(log(tmp_path, *lines))[0] == [
        "-- transaction: update_t(p1 TEXT, p2 INT, p3 INT)",
        "UPDATE t SET name = :p1 , v = v - :p2 WHERE id = :p3;",
        "-- transaction: update_t_2(p1 INT, p2 INT)",
        "UPDATE t SET name = NULL, v = v - :p1 WHERE id = :p2;",
    ]


def test_failed_and_rolled_back_writers_are_skipped(tmp_path) -> None:
    update = "UPDATE t SET v = 1 WHERE id = 2"
    lines = [
        *statements(1, TABLES, "BEGIN", update),
        (1, "ERROR", "could not serialize access"),
        (1, "STATEMENT", update),
        *statements(1, "ROLLBACK", "BEGIN", update, "ROLLBACK", update),
        (1, "ERROR", "canceling statement"),
        *statements(1, "BEGIN", update, "COMMIT"),
        (1, "ERROR", "could not serialize access at commit"),
        *statements(1, "SET search_path = x", "SELECT * FROM pg_catalog.pg_type", "SELECT version()"),
        *statements(1, "BEGIN", "DELETE FROM t WHERE id = 3", "COMMIT"),
        *statements(2, "BEGIN", update),
        *statements(3, "BEGIN", update),
        (3, "FATAL", "terminating connection"),
    ]
    found, summary = listing(log(tmp_path, *lines))
    assert found == ["-- transaction: delete_t(p1 INT)", "DELETE FROM t WHERE id = :p1;"]
    assert summary == (
        "1 transaction of 1 program; left out: 1 rolled back, 4 failed, 1 not ended, 3 statements about the session"
        " or the system"
    )


READ = ["SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 2"]
READER = [
    "-- transaction: read_t(p1 INT, p2 INT)",
    "SELECT v FROM t WHERE id = :p1;",
    "SELECT v FROM t WHERE id = :p2;",
]
LOST = (1, "FATAL", "terminating connection due to administrator command")
FAILED = [
    *statements(1, "SELECT v / 0 FROM t"),
    (1, "ERROR", "division by zero"),
    (1, "STATEMENT", "SELECT v / 0 FROM t"),
]
CONFLICT = (1, "ERROR", "could not serialize access due to read/write dependencies among transactions")
ENDS = {
    "rolled back": (statements(1, "ROLLBACK"), True),
    "closed": ([], True),
    "closed, and its number given to another": (statements(1, "BEGIN", "COMMIT"), True),
    "lost": ([LOST], True),
    "an error": ([*FAILED, *statements(1, "ROLLBACK")], True),
    "an error in any language": (
        [FAILED[0], (1, "ERROR", "Teilung durch 0"), *statements(1, "COMMIT")],
        True,
    ),
    "an error of a statement that the log does not have": ([(1, "ERROR", "x"), (1, "STATEMENT", "FROB")], True),
    "a serialization failure": ([FAILED[0], CONFLICT, FAILED[2], *statements(1, "ROLLBACK")], False),
    "a serialization failure at the end": ([*statements(1, "COMMIT"), CONFLICT, (1, "STATEMENT", "COMMIT")], False),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("writes", [False, True])
def test_a_transaction_that_only_read_counts_as_committed(end, writes, tmp_path) -> None:
    """The application has the answers. A transaction that wrote has left nothing, and a conflict takes answers back."""
    more, counts = ENDS[end]
    write = statements(1, "UPDATE t SET v = 0 WHERE id = 1") if writes else []
    other = statements(2, "DELETE FROM t WHERE id = 3")
    path = log(tmp_path, *statements(2, TABLES), *statements(1, "BEGIN", *READ), *write, *more, *other)
    found, summary = listing(path)
    assert ({*READER} <= {*found} and len(found) == 5) if counts and not writes else len(found) == 2
    assert ("1 of which only read and did not commit" in summary) == (counts and not writes)


QUERIES = {
    "(SELECT v FROM t WHERE id = 7) UNION (SELECT 8)": "(SELECT v FROM t WHERE id = :p1 ) UNION (SELECT 8);",
    "COPY t (id, v) TO STDOUT": "SELECT id, v FROM t;",
    "COPY public.t TO '/a.csv' WITH (FORMAT csv, DELIMITER ',')": "SELECT * FROM public.t;",
    "COPY (SELECT v FROM t WHERE id = 7) TO STDOUT (FORMAT csv, DELIMITER ',')": "SELECT v FROM t WHERE id = :p1;",
    "CREATE TEMPORARY TABLE u ON COMMIT DROP AS SELECT v FROM t WHERE id = 7": "SELECT v FROM t WHERE id = :p1;",
}


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("query", QUERIES)
def test_copy_and_temporary_tables_count_as_queries(query, end, tmp_path) -> None:
    listed, _ = listing(log(tmp_path, *statements(1, TABLES, "BEGIN", query, end)))
    assert listed[1:] == [QUERIES[query]]


def test_a_chained_transaction_begins_at_once(tmp_path) -> None:
    texts = (
        "BEGIN",
        "SELECT v FROM t",
        "COMMIT AND CHAIN",
        "SELECT id FROM t",
        "SELECT v FROM t",
        "COMMIT AND NO CHAIN",
    )
    listed, _ = listing(log(tmp_path, *statements(1, TABLES, *texts, "SELECT name FROM t")))
    assert [line.startswith("--") for line in listed] == [True, False, True, False, False, True, False]


def test_a_table_of_the_application_is_no_system_table(tmp_path) -> None:
    schema = tmp_path / "s.sql"
    schema.write_text("CREATE TABLE pg_games (id INT PRIMARY KEY, v INT NOT NULL);")
    path = log(tmp_path, *statements(1, "SELECT v FROM pg_games", "SELECT oid FROM pg_class"))
    found = load_log(path, str(schema), any_query=True)
    assert len(found.file.transactions) == 1 and "1 statement about the session or the system" in found.summary


def test_a_log_without_begin_may_lack_statements(tmp_path) -> None:
    texts = ("UPDATE t SET v = 1 WHERE id = 2", "SELECT v FROM t WHERE id = 2")
    assert "no BEGIN: each statement counts" in listing(log(tmp_path, *statements(1, TABLES, *texts)))[1]
    assert "no BEGIN" not in listing(log(tmp_path, *statements(1, TABLES, "BEGIN", *texts, "COMMIT")))[1]


def test_the_process_in_brackets_is_the_session(tmp_path) -> None:
    texts = ("BEGIN", "SELECT v FROM t", "COMMIT")
    mixed = [line for pair in zip(statements(1, *texts), statements(2, *texts), strict=True) for line in pair]
    path = log(tmp_path, *statements(3, TABLES), *mixed, prefix="2026-11-18 12:00:00 UTC 00000 [{}] ")
    assert "2 transactions of 1 program" in listing(path)[1]


def test_numbers_in_a_type_are_a_part_of_the_statement(tmp_path) -> None:
    text = "SELECT v FROM t WHERE name = $1::VARCHAR(2) AND v = CAST($2 AS NUMERIC(8, 2)) AND id = 7"
    lines = [(1, "LOG", f"execute <unnamed>: {text}"), (1, "DETAIL", "parameters: $1 = 'abc', $2 = '3.50'")]
    listed, _ = listing(log(tmp_path, *statements(1, TABLES), *lines))
    assert listed[0] == "-- transaction: read_t(p1 TEXT, p2 DECIMAL, p3 INT)"
    assert listed[1].endswith("name = :p1 ::VARCHAR(2) AND v = CAST( :p2 AS NUMERIC(8, 2)) AND id = :p3;")


def test_an_error_belongs_to_the_statement_that_it_quotes(tmp_path) -> None:
    """A statement that cannot be parsed is not logged; the one before it has not failed."""
    lines = [*statements(1, TABLES, "UPDATE t SET v = 1 WHERE id = 2"), (1, "ERROR", "x"), (1, "STATEMENT", "FROB")]
    lines += [
        *statements(1, "BEGIN", "DELETE FROM t WHERE id = 3", "COMMIT"),
        (1, "ERROR", "x"),
        (1, "STATEMENT", "FROB"),
    ]
    assert listing(log(tmp_path, *lines))[1] == "2 transactions of 2 programs"
    assert "1 failed" in listing(log(tmp_path, *lines[:-1], (1, "STATEMENT", "COMMIT")))[1]


def test_rollback_to_a_savepoint_undoes_writes_and_keeps_reads(tmp_path) -> None:
    """What was written after a savepoint that is gone back to is undone; what was read was read."""
    insert = "INSERT INTO t (id, v) VALUES (1, 2)"
    caught = [*statements(1, insert), (1, "ERROR", "duplicate key"), (1, "STATEMENT", insert)]
    lines = [
        *statements(1, TABLES, "BEGIN", "SAVEPOINT sa_savepoint_1", READ[0], "UPDATE t SET v = 3 WHERE id = 4"),
        *statements(1, "ROLLBACK TO SAVEPOINT sa_savepoint_1", "DELETE FROM t WHERE id = 5", "COMMIT"),
        *statements(1, "BEGIN", 'SAVEPOINT "_pg3_1"', *[]),
        *caught,
        *statements(1, 'ROLLBACK TO "_pg3_1"', 'RELEASE "_pg3_1"', "DELETE FROM t WHERE id = 5", "COMMIT"),
    ]
    assert listing(log(tmp_path, *lines))[0] == [
        "-- transaction: delete_t(p1 INT, p2 INT)",
        "SELECT v FROM t WHERE id = :p1;",
        "SELECT * FROM t;",
        "DELETE FROM t WHERE id = :p2;",
        "-- transaction: delete_t_2(p1 INT)",
        "SELECT * FROM t;",
        "DELETE FROM t WHERE id = :p1;",
    ]


def test_statements_logged_by_duration_prepare_or_cursor_are_read(tmp_path) -> None:
    """By duration, after the end; by PREPARE and EXECUTE; by a cursor of the server."""
    lines = [
        *statements(1, TABLES),
        (1, "LOG", "duration: 0.071 ms  execute <unnamed>: UPDATE t SET v = $1 WHERE id = $2"),
        (1, "DETAIL", "parameters: $1 = '3', $2 = '4'"),
        (1, "ERROR", "syntax error"),
        *statements(1, "PREPARE s (int, text) AS DELETE FROM t WHERE id = $1 AND name = $2", "EXECUTE s(7, 'a, b')"),
        (1, "DETAIL", "prepare: PREPARE s (int, text) AS DELETE FROM t WHERE id = $1 AND name = $2"),
        *statements(1, "BEGIN", 'DECLARE "c 1" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT v FROM t WHERE id = 1'),
        *statements(1, 'FETCH FORWARD 5 FROM "c 1"', 'CLOSE "c 1"', "ROLLBACK"),
    ]
    assert listing(log(tmp_path, *lines))[0] == [
        "-- transaction: update_t(p1 INT, p2 INT)",
        "UPDATE t SET v = :p1 WHERE id = :p2;",
        "-- transaction: delete_t(p1 INT, p2 TEXT)",
        "DELETE FROM t WHERE id = :p1 AND name = :p2;",
        "-- transaction: read_t(p1 INT)",
        "SELECT v FROM t WHERE id = :p1;",
    ]


def test_several_statements_in_one_are_one_transaction(tmp_path) -> None:
    both = "UPDATE t SET name = 'a;b' WHERE id = 1; /* ; */ DELETE FROM t WHERE id = 2 -- ;"
    found, _ = listing(log(tmp_path, *statements(1, TABLES, both)))
    assert found[1:] == ["UPDATE t SET name = :p1 WHERE id = :p2;", "DELETE FROM t WHERE id = :p3;"]


def test_entries_of_several_lines(tmp_path) -> None:
    path = log(tmp_path, *statements(1, TABLES, "UPDATE t SET\n\t    v = 1\n\tWHERE id = 2"))
    assert listing(path)[0][1:] == ["UPDATE t SET v = :p1 WHERE id = :p2;"]


def test_repeated_statements_are_folded_to_two(tmp_path) -> None:
    block = [s for i in range(9) for s in (f"SELECT v FROM t WHERE id = {i}", f"UPDATE t SET v = 0 WHERE id = {i}")]
    path = log(tmp_path, *statements(1, TABLES, "BEGIN", *block, "COMMIT"))
    assert len(listing(path, fold=True)[0]) == 1 + 4 and len(listing(path)[0]) == 1 + 18


def test_csvlog_is_read(tmp_path) -> None:
    path = tmp_path / "postgresql.csv"
    whose, when = '12:00:00 UTC,"u","d",{pid},"[local]",5a0b.{pid:x}', '1,"x",2026-11-18,3/1,0'
    row = whose + "," + when + ',{kind},00000,"{text}",{detail},,,,,,,,""\n'
    rows = [
        row.format(pid=1, kind="LOG", text=f"statement: {TABLES}", detail=""),
        row.format(pid=1, kind="LOG", text="statement: BEGIN", detail=""),
        row.format(
            pid=1,
            kind="LOG",
            text='execute <unnamed>: UPDATE t SET name = ""x""\n, v = $1 WHERE id = $2'.replace('""x""', "'a'"),
            detail="\"parameters: $1 = '1', $2 = '2'\"",
        ),
        row.format(pid=2, kind="LOG", text="statement: SELECT v FROM t WHERE id = 9", detail=""),
        row.format(pid=1, kind="LOG", text="statement: COMMIT", detail=""),
    ]
    path.write_text("".join(rows))
    assert listing(str(path))[0] == [
        "-- transaction: update_t(p1 TEXT, p2 INT, p3 INT)",
        "UPDATE t SET name = :p1 , v = :p2 WHERE id = :p3;",
        "-- transaction: read_t(p1 INT)",
        "SELECT v FROM t WHERE id = :p1;",
    ]
    path.write_text('a,b,"c\n')
    with pytest.raises(InputError, match=r"postgresql\.csv, line 1: not csvlog"):
        load_log(str(path), None)
    path.write_text("a,b,c\n")
    with pytest.raises(InputError, match="line 1: not a line of csvlog"):
        load_log(str(path), None)


SAYS, RUNS = "x [1] LOG:  statement: ", "x [1] LOG:  execute a: "
BAD = {
    "no prefix": (["LOG:  statement: BEGIN"], "line 1: no session in the prefix"),
    "no statement": (["x [1] LOG:  connection received", "nonsense", "\t\x1b[31m"], "no transaction that has"),
    "an open quote": ([f"{SAYS}UPDATE t SET v = 'a", f"{SAYS}COMMIT"], "line 1: a quote"),
    "no values": ([f"{RUNS}UPDATE t SET v = $1", f"{SAYS}COMMIT"], r"line 1: no value of \$1"),
    "cut values": ([f"{RUNS}UPDATE t SET v = $1", "x [1] DETAIL:  parameters: $1 = 'ab..."], "line 2: cannot read"),
    "to savepoint": ([f"{SAYS}BEGIN; SAVEPOINT a; ROLLBACK TO b; COMMIT"], "line 1: ROLLBACK TO b is not"),
    "a table of its own": ([f"{SAYS}CREATE TABLE u AS SELECT v FROM t"], "line 1: CREATE is not"),
    "INTO a table": ([f"{SAYS}SELECT v INTO TEMP u FROM t"], "line 1: SELECT … INTO a new table"),
    "tables of the system, and others": ([f"{SAYS}SELECT 7 FROM pg_class, t"], "line 1: no table pg_class"),
    "no SQL": ([f"{SAYS}FROBNICATE t", f"{SAYS}COMMIT"], "line 1: "),
    "no table": (["", f"{SAYS}UPDATE u SET v = 1 WHERE id = 2"], "line 2: no table u"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_have_one_line(case, tmp_path) -> None:
    from plume_py.reasoning.allocate.sql import load_sql_log

    lines, told = BAD[case]
    path = tmp_path / "a.log"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=told) as error:
        load_sql_log(str(path), None)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


def test_limits_on_the_size_of_a_log(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(log_programs, "MOST_PROGRAMS", 2)
    monkeypatch.setattr(log_programs, "MOST_STATEMENTS", 3)
    monkeypatch.setattr(log_programs, "MOST_SESSIONS", 2)
    monkeypatch.setattr(log_entries, "MAX_ENTRY", 200)
    texts = [f"UPDATE t SET v{i} = 1" for i in range(4)]
    with pytest.raises(InputError, match="more than 2 different programs"):
        load_log(log(tmp_path, *statements(1, *texts)), None)
    with pytest.raises(InputError, match="more than 3 statements"):
        load_log(log(tmp_path, *statements(1, "BEGIN", *texts, "COMMIT")), None)
    with pytest.raises(InputError, match="more than 2 sessions"):
        load_log(log(tmp_path, *(statements(i, "BEGIN")[0] for i in range(3))), None)
    with pytest.raises(InputError, match="line 1: a line of more than"):
        load_log(log(tmp_path, *statements(1, "SELECT " + "x" * 300)), None)
    with pytest.raises(InputError, match="an entry of more than"):
        load_log(log(tmp_path, *statements(1, "SELECT\n\t" + "x\n\t" * 300)), None)
    monkeypatch.setattr(log_entries, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="larger than"):
        load_log(log(tmp_path, *statements(1, "SELECT 1")), None)
    with pytest.raises(InputError, match="cannot read"):
        load_log(str(tmp_path / "none.log"), None)


def test_values_are_taken_out_of_statements() -> None:
    text = "SELECT 1, a1 FROM \"t 2\" WHERE d > DATE '2020-01-01' AND e = E'a\\'b' AND f = $q$x;1$q$ LIMIT 10"
    assert shape(text, {}).values == ("a\\'b",)
    assert shape("UPDATE t SET v = -1.5e3, w = 'a''b' WHERE id = $2", {2: "x"}).values == ("-1.5e3", "a'b", "x")
    assert given_values("") == {}
