"""CREATE TABLE: columns, primary key, foreign keys, UNIQUE and CHECK."""

from typing import Any

from plume_py.base.sql.model import Condition, ForeignKey, SqlColumn, SqlTable
from plume_py.base.sql.syntax import data_type, engine, statement, wrong

_TYPES = {
    "INT": "int",
    "BIGINT": "int",
    "SMALLINT": "int",
    "TINYINT": "int",
    "MEDIUMINT": "int",
    "DECIMAL": "int",
    "BOOLEAN": "bool",
    "TEXT": "text",
    "VARCHAR": "text",
    "CHAR": "text",
    "NCHAR": "text",
    "NVARCHAR": "text",
    "UUID": "text",
}


def type_of(name: str, line: int) -> str:
    """int, bool or text."""
    return _known(data_type(name, line), line)


def _known(kind: str, line: int) -> str:
    if kind in ("SERIAL", "BIGSERIAL", "SMALLSERIAL"):
        raise wrong("SERIAL columns are not supported", line, "leave the column out: rows have hidden numbers anyway")
    if kind not in _TYPES:
        raise wrong(f"columns of type {kind} are not supported", line, "use INT, BOOLEAN or TEXT")
    return _TYPES[kind]


def table(text: str, line: int) -> SqlTable:
    """The table that a CREATE TABLE statement makes."""
    exp = engine().exp
    tree = statement(text, line)
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "TABLE" or not isinstance(tree.this, exp.Schema):
        raise wrong("only CREATE TABLE with a list of columns is supported", line)
    made = _Making(text, line)
    for item in tree.this.expressions:
        made.item(item)
    keys = tuple(made.primary)
    for name in {*keys, *(c for group in made.unique for c in group), *(c for f in made.foreign for c in f.columns)}:
        if name not in {column.name for column in made.columns}:
            raise wrong(f"{tree.this.this.name} has no column {name}", line)
    return SqlTable(
        tree.this.this.name.lower(),
        tuple(made.columns),
        keys,
        tuple(made.unique),
        tuple(made.foreign),
        tuple(made.checks),
        line,
    )


class _Making:
    """What has been seen of a table so far."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.line = text, line
        self.columns: list[SqlColumn] = []
        self.primary: list[str] = []
        self.unique: list[tuple[str, ...]] = []
        self.foreign: list[ForeignKey] = []
        self.checks: list[Condition] = []

    def place(self, node: Any) -> int:
        """The line of a node, as far as sqlglot remembers."""
        for part in node.walk():
            at = part.meta.get("line") if hasattr(part, "meta") else None
            if at:
                return self.line + int(at) - 1
        return self.line

    def item(self, node: Any) -> None:
        """A column, or a constraint of the table."""
        exp = engine().exp
        if isinstance(node, exp.ColumnDef):
            line = self.place(node)
            if node.kind is None:
                raise wrong(f"the column {node.name} has no type", line)
            self.columns.append(SqlColumn(node.name.lower(), _known(node.kind.this.name, line), line))
            for constraint in node.args.get("constraints") or ():
                self.constraint(constraint.kind, (node.name.lower(),))
            return
        for part in node.expressions if isinstance(node, exp.Constraint) else (node,):
            self.constraint(part, ())

    def constraint(self, node: Any, column: tuple[str, ...]) -> None:
        """PRIMARY KEY, UNIQUE, REFERENCES, CHECK; NOT NULL says nothing here, since there is no NULL."""
        exp = engine().exp
        line = self.place(node)
        if isinstance(node, exp.PrimaryKeyColumnConstraint | exp.PrimaryKey):
            self.primary += column or [_name(part) for part in node.expressions]
        elif isinstance(node, exp.UniqueColumnConstraint):
            listed = node.this.expressions if isinstance(node.this, exp.Schema) else ()
            self.unique.append(column or tuple(_name(part) for part in listed))
        elif isinstance(node, exp.Reference):
            self.foreign.append(_reference(node, column, line))
        elif isinstance(node, exp.ForeignKey):
            columns = tuple(_name(part) for part in node.expressions)
            if node.args.get("delete") or node.args.get("update"):
                raise wrong("foreign keys with ON DELETE or ON UPDATE are not supported", line)
            self.foreign.append(_reference(node.args["reference"], columns, line))
        elif isinstance(node, exp.CheckColumnConstraint):
            self.checks.append(Condition(node.this, node.this.sql(dialect="postgres"), line))
        elif not isinstance(node, exp.NotNullColumnConstraint | exp.DefaultColumnConstraint):
            raise wrong(f"this constraint is not supported: {node.sql(dialect='postgres')[:60]}", line)


def _reference(node: Any, columns: tuple[str, ...], line: int) -> ForeignKey:
    exp = engine().exp
    if node.args.get("options"):
        raise wrong(f"foreign keys with {node.args['options'][0]} are not supported", line, "leave it out")
    target = node.this
    if isinstance(target, exp.Schema):
        return ForeignKey(columns, target.this.name.lower(), tuple(_name(part) for part in target.expressions), line)
    return ForeignKey(columns, target.name.lower(), (), line)


def _name(node: Any) -> str:
    return str(node.name).lower()
