"""Tests of base/sql/casts: removed casts, and the parameters that others become."""

import pytest

from plume_py.base.sql.casts import without_casts
from plume_py.base.sql.files import parse
from plume_py.base.sql.model import Param

P = Param("p", "int")
TEXT = Param("p", "text", "TEXT")
CASES = {
    "x = :p::INTEGER AND y = CAST(:p AS bigint) AND z = :p": "x = :p AND y = :p AND z = :p",
    "x = CAST(CAST(:p AS numeric) AS int)::smallint": "x = :p",
    "x = (:p)::int AND y IN (:p::int)": "x = :p AND y IN (:p)",
    "x = '7'::int AND y = 07::bigint AND z = (0)::numeric": "x = 7 AND y = 7 AND z = 0",
    "x = -'-7'::int": "x = - -7",
    "x = 7::text AND y = 'ab'::varchar(2) AND z = 'a''b'::text": "x = '7' AND y = 'ab' AND z = 'a''b'",
    "VALUES (1), (:p::int), (NULL::integer)": "VALUES (1), (:p), (NULL)",
    "x = '2026-01-31'::date": "x = '2026-01-31'",
    # what may change a value stays
    "x = 7.5::int": "x = 7.5::int",
    "x = 'abc'::varchar(2)": "x = 'abc'::varchar(2)",
    "x = 'abc'::char(3)": "x = 'abc'::char(3)",
    "x = '7.50'::numeric(3, 1)": "x = '7.50'::numeric(3, 1)",
    "x = 'today'::date": "x = 'today'::date",
    "x = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid": "x = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid",
    "x::int = :p AND CAST(y AS text) = :p": "x::int = :p AND CAST(y AS text) = :p",
    "x = (:p + 1)::int AND lower(:p)::text = y": "x = (:p + 1)::int AND lower(:p)::text = y",
    # a use of another family is a parameter of its own
    "x = :p::varchar(3) AND y = :p": "x = :p_varchar_3 AND y = :p",
    "x = :p::real AND y = :p::bit varying(2)": "x = :p AND y = :p_bit_varying_2",
}


@pytest.mark.parametrize("text", CASES)
def test_casts_that_change_no_value_are_removed(text) -> None:
    assert without_casts(text, 1, [P])[0] == CASES[text]


def test_a_text_and_its_cast_to_a_number_are_two_parameters() -> None:
    """'7' and '07' are one number."""
    text, params = without_casts("x = :p AND y = :p::int", 1, [TEXT])
    assert text == "x = :p AND y = :p_int" and [(q.name, q.type) for q in params] == [("p", "text"), ("p_int", "int")]
    fraction = Param("p", "int", "DECIMAL")
    assert without_casts("x = :p AND y = :p::int AND z = :p::numeric", 1, [fraction])[0] == (
        "x = :p AND y = :p_int AND z = :p"
    )


def test_the_casts_of_the_only_family_determine_the_type_of_a_parameter() -> None:
    body = "SET a = :p::varchar(9);\nSET b =\n  :p ::\n character varying(9);\nSET c = 1;"
    file = parse(f"-- transaction: f(p INT)\n{body}")
    (found,) = file.transactions
    assert [(q.name, q.type) for q in found.params] == [("p", "text")]
    assert [stmt.line for stmt in found.body] == [2, 3, 6]
