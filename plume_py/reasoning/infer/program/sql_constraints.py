"""Tables of SQL files in the intermediate form, and what the database itself enforces."""

from typing import Any

from plume_py.base import sql
from plume_py.base.errors import InputError
from plume_py.base.sql.syntax import wrong
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.ir import Field, Operation
from plume_py.reasoning.infer.program.sql_expressions import Translator


def table_of(table: sql.SqlTable) -> ir.Table:
    """The table with the sorts of its columns."""
    ids = {*table.primary_key, *(column for key in table.foreign_keys for column in key.columns)}
    columns: list[tuple[str, ir.Sort]] = []
    for column in table.columns:
        kind: Any = "id" if column.name in ids and column.type == "int" else column.type
        columns.append((column.name, kind))
    return ir.Table(table.name, tuple(columns), table.primary_key, table.line)


def enforced(table: sql.SqlTable, file: sql.File, notes: list[str]) -> list[ir.Clause]:
    """Return UNIQUE, FOREIGN KEY and CHECK, which the database sees to; those left out become ``notes``."""
    found = []
    for columns in table.unique:
        same = ir.conjunction([Operation("=", (Field("b", c), Field("a", c))) for c in columns])
        alone = ir.Query("forall", table.name, "b", same, ir.Same("b", "a"))
        name = f"unique {table.name}({', '.join(columns)})"
        ddl = ((table.name, f"UNIQUE ({', '.join(columns)})"),)
        found.append(ir.Clause(name, ir.Query("forall", table.name, "a", ir.TRUE, alone), table.line, ddl=ddl))
    for key in table.foreign_keys:
        parent = file.table(key.table)
        if parent is None:
            raise wrong(f"there is no table {key.table}", key.line)
        to = key.to or parent.primary_key
        if len(to) != len(key.columns):
            raise wrong(f"the foreign key to {key.table} has {len(key.columns)} columns for {len(to)}", key.line)
        match = [Operation("=", (Field("p", b), Field("c", a))) for a, b in zip(key.columns, to, strict=True)]
        there = ir.Query("exists", parent.name, "p", ir.conjunction(match))
        name = f"foreign key {table.name}({', '.join(key.columns)})"
        ddl = ((table.name, f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {parent.name} ({', '.join(to)})"),)
        found.append(ir.Clause(name, ir.Query("forall", table.name, "c", ir.TRUE, there), key.line, ddl=ddl))
    for number, check in enumerate(table.checks, 1):
        translator = Translator(file, check.line, [("", table, "r")])
        try:
            condition = ir.Query("forall", table.name, "r", ir.TRUE, translator.expr(check.tree))
        except InputError:  # with fewer constraints more can happen, never less
            notes.append(f"CHECK ({check.text:.60}) of {table.name} is ignored: the answer does not count on it")
            continue
        ddl = ((table.name, f"CHECK ({check.text})"),)
        found.append(ir.Clause(f"check {number} of {table.name}", condition, check.line, ddl=ddl))
    return found
