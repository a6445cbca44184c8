"""Reading and writing workload files, and SQL files with their errors (modules workload_files, sql)."""

import json

import pytest
from paths import EXAMPLES

from plume_py.base.errors import InputError
from plume_py.reasoning.allocate import Workload, read, update, write
from plume_py.reasoning.allocate.driver import BENCHMARKS, answer_allocation, draw
from plume_py.reasoning.allocate.sql import load_sql
from plume_py.reasoning.allocate.workload_files import encode_programs, encode_workload, load_workload, parse_workload


@pytest.mark.parametrize("name", BENCHMARKS)
def test_programs_and_instances_are_unchanged_after_writing_and_reading(name, tmp_path) -> None:
    programs = list(BENCHMARKS[name])
    (tmp_path / "p.json").write_text(json.dumps(encode_programs(programs)))
    assert load_workload(tmp_path / "p.json").programs == programs
    drawn = draw(programs, 50, 20, 1)
    (tmp_path / "w.json").write_text(json.dumps(encode_workload(drawn, ["SI"] * 50)))
    again = load_workload(tmp_path / "w.json")
    assert [i.name for i in again.instances] == [i.name for i in drawn.instances]
    assert [[str(a) for a in i.accesses] for i in again.instances] == [
        [str(a) for a in i.accesses] for i in drawn.instances
    ]
    assert set(again.levels) == {"SI"} and again.instances[0].program == programs[0].name


def test_sessions_and_conditions_are_unchanged_after_writing_and_reading(tmp_path) -> None:
    document = {
        "templates": [
            {"name": "A", "session": "s", "operations": [{"type": "WRITE", "key": "x", "conditional": True}]},
            {"name": "B", "operations": [{"type": "READ", "key": "t", "params": ["*"]}]},
            {"name": "C", "session": "s", "isolationLevel": "SNAPSHOT_ISOLATION", "operations": []},
        ]
    }
    workload = parse_workload(document)
    assert workload.session == [0, 1, 0] and workload.levels == [None, None, "SI"]
    assert workload.instances[0].accesses == (write("x", conditional=True),)
    again = parse_workload(encode_workload(workload))
    assert again.session == workload.session and again.instances[1].accesses == (read("t", "*"),)


def test_two_spellings_of_a_cell_are_one_cell() -> None:
    document = {
        "templates": [
            {"name": "A", "operations": [{"type": "UPDATE", "key": "t_5"}]},
            {"name": "B", "operations": [{"type": "UPDATE", "key": "t", "params": "5"}]},
        ]
    }
    first, second = parse_workload(document).instances
    assert first.accesses == second.accesses


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", "no list `templates`"),
        ("{", "not JSON"),
        ('{"templates": [5]}', r"templates\[0\]: neither a template nor an instance"),
        ('{"templates": [{"operations": []}]}', r"templates\[0\]: no `name`"),
        ('{"templates": [{"name": "A", "operations": [{"key": "x", "type": "EAT"}]}]}', r"operations\[0\]: type 'EAT'"),
        ('{"templates": [{"name": "A", "operations": [{"type": "READ"}]}]}', "needs a `type` and a `key`"),
        (
            '{"templates": [{"name": "A", "isolationLevel": "HIGH", "operations": []}]}',
            "unknown level 'HIGH'",
        ),
        ('{"templates": [{"name": "A", "operations": []}, {"name": "A", "operations": []}]}', "used twice"),
        ('{"templates": [{"name": "A", "params": [1], "operations": []}]}', "not a list of names"),
        *(
            (
                f'{{"templates": [{{"name": "A", "operations": [{{"type": "READ", "key": "", "{name}": {value}}}]}}]}}',
                "true or false",
            )
            for name in ("conditional", "locks")
            for value in ("1", '"true"', "[]", "null")
        ),
        ('{"templates": [{"name": "A", "percentage": 7, "operations": []}]}', "from 0 to 1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"templates": [], "session": []}', "unknown field 'session'; did you mean sessions"),
        ('{"templates": [{"name": "A", "param": ["x"], "operations": []}]}', r"templates\[0\]: unknown field 'param'"),
        (
            '{"templates": [{"name": "A", "params": [], "operations": [{"type": "READ", "key": "k", "param": "x"}]}]}',
            r"operations\[0\]: unknown field 'param'; did you mean params",
        ),
        (
            '{"templates": [{"name": "A", "operations": [{"type": "WRITE", "key": "k", "condition": true}]}]}',
            "unknown field 'condition'; did you mean conditional",
        ),
        ('{"templates": [{"name": "A", "params": [], "session": "s", "operations": []}]}', "unknown field 'session'"),
        ('{"templates": [{"name": "A", "operations": []}], "sessions": [["A"]]}', "`sessions` is for templates"),
        ('{"templates": [{"name": "A", "name": "B", "operations": []}]}', "'name' is given twice in one object"),
        ('{"templates": [{"name": "A", "isolationlevel": "SER", "operations": []}]}', "did you mean isolationLevel"),
    ],
)
def test_errors_in_workload_files_are_one_line(document, message, tmp_path) -> None:
    (tmp_path / "bad.json").write_text(document)
    with pytest.raises(InputError, match=message) as caught:
        load_workload(tmp_path / "bad.json")
    assert "\n" not in str(caught.value) and "bad.json" in str(caught.value)


def test_programs_without_a_session_predecessor_need_weaker_levels() -> None:
    reader = {"name": "R", "params": ["x"], "operations": [{"type": "READ", "key": "t", "params": "x"}]}
    writer = {"name": "W", "params": ["x"], "operations": [{"type": "WRITE", "key": "t", "params": "x"}]}
    for sessions, level in ((None, "PC"), ([["R", "W"]], "RA"), ([["W", "R"]], "PC"), ([], "RA")):
        document = {"templates": [reader, writer]} | ({} if sessions is None else {"sessions": sessions})
        assert answer_allocation(parse_workload(document)).levels == [level, "RA"]
    with pytest.raises(InputError, match="no program is called 'X'"):
        parse_workload({"templates": [reader], "sessions": [["R", "X"]]})


def test_smallbank_in_sql_gets_the_levels_of_the_benchmark() -> None:
    programs = load_sql(str(EXAMPLES / "smallbank.sql"), str(EXAMPLES / "smallbank-schema.sql"))
    assert [p.name for p in programs] == ["Balance", "DepositChecking", "TransactSavings", "Amalgamate", "WriteCheck"]
    check = programs[-1]
    assert check.params == ("n", "c")
    told = [a for a in check.accesses if "(row)" not in a.table]
    assert told[:3] == [read("account.custid", "n"), read("savings.bal", "c"), read("checking.bal", "c")]
    # both branches of the IF update the balance, so that is certain
    assert set(told[3:]) == {update("checking.bal", "c")}


SCHEMA = (
    "CREATE TABLE t (a INT, b INT, v INT, w INT, PRIMARY KEY (a, b));\nCREATE TABLE u (a INT PRIMARY KEY, v INT);\n"
)


def cells(tmp_path, body, params="x, y"):
    (tmp_path / "app.sql").write_text(f"{SCHEMA}-- transaction: T({params})\n{body}\n")
    (program,) = load_sql(str(tmp_path / "app.sql"))
    return [str(a) for a in program.accesses if "(row)" not in a.table], program.notes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SELECT v INTO q FROM t WHERE a = :x AND b = :y;", ["r(t.v_x_y)"]),
        ("SELECT v INTO q FROM t WHERE a = x AND b = 3;", ["r(t.v_x_3)"]),
        ("SELECT v INTO q FROM t WHERE a = :x;", ["r(t.a_x_*)", "r(t.v_x_*)"]),
        ("SELECT v INTO q FROM u WHERE a > :x;", ["r(u.a_*)", "r(u.v_*)"]),
        ("UPDATE u SET v = v + 1 WHERE a = :x;", ["rw(u.v_x)"]),
        ("UPDATE u SET v = 7 WHERE a = :x;", ["w(u.v_x)"]),
        ("UPDATE u SET v = 7 WHERE a = :x AND v > 3;", ["r(u.v_x)", "w(u.v_x)?"]),
        ("UPDATE u SET v = 0;", ["w(u.v_*)?"]),
        ("INSERT INTO u VALUES (:x, 1);", ["w(u.a_x)", "w(u.v_x)"]),
        ("IF :x > 0 THEN UPDATE u SET v = 1 WHERE a = :x; END IF;", ["w(u.v_x)?"]),
        ("IF :x > 0 THEN ROLLBACK; END IF; UPDATE u SET v = 1 WHERE a = :x;", ["w(u.v_x)"]),
        ("SET z = :x; SET z = :y; UPDATE u SET v = 1 WHERE a = :z;", ["r(u.a_*)", "r(u.a_*)", "w(u.v_*)?"]),
        ("SET z = :x; UPDATE u SET v = 1 WHERE a = :z;", ["w(u.v_z)"]),
    ],
)
def test_statements_become_cells(body, expected, tmp_path) -> None:
    assert cells(tmp_path, body)[0] == expected


def test_updates_of_rows_that_come_and_go_are_uncertain(tmp_path) -> None:
    body = "UPDATE u SET v = 7 WHERE a = :x;\n-- transaction: D(x)\nDELETE FROM u WHERE a = :x;"
    (tmp_path / "app.sql").write_text(f"{SCHEMA}-- transaction: T(x)\n{body}\n")
    first, second = load_sql(str(tmp_path / "app.sql"))
    assert [str(a) for a in first.accesses] == ["r(u.(row)_x)", "w(u.v_x)?"]
    assert "w(u.(row)_x)?" in [str(a) for a in second.accesses]


def test_over_approximations_are_noted(tmp_path) -> None:
    _, notes = cells(tmp_path, "SELECT v INTO q FROM u WHERE a > :x;")
    assert notes == ("line 4: u is not accessed by its whole primary key: every row counts",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;", "line 1"),
        (f"{SCHEMA}", "no transactions"),
        ("-- transaction: T(x)\nUPDATE nowhere SET v = 1 WHERE a = :x;", "no table nowhere"),
        (f"{SCHEMA}-- transaction: T(x)\nINSERT INTO u SELECT a, v, w FROM t;", "INSERT has 3 values for 2 columns"),
    ],
)
def test_errors_in_sql_are_one_line(text, message, tmp_path) -> None:
    (tmp_path / "app.sql").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_sql(str(tmp_path / "app.sql"))
    assert "\n" not in str(caught.value)


def test_an_empty_workload_is_an_error() -> None:
    with pytest.raises(InputError, match="no transactions"):
        answer_allocation(Workload([], []))
