"""Build tables from CREATE TABLE, ALTER TABLE and CREATE INDEX: columns, keys, UNIQUE, foreign keys, CHECK.

``files`` passes each statement of the schema to ``Schema.take``. Statements that do not change rows are counted and
ignored. Triggers, rules, policies and unknown functions become the ``side_effect`` of their table.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from plume_py.base.errors import InputError
from plume_py.base.sql.model import Condition, ForeignKey, SideEffect, SqlColumn, SqlTable
from plume_py.base.sql.syntax import condition, data_type, engine, statement, unknown_functions, wrong
from plume_py.base.text import nearest

_NUMBERS = re.compile(
    r"U?(BIG|SMALL|TINY|MEDIUM)?INT|U?INT\d+|U?DECIMAL\d*|MONEY|SMALLMONEY|FLOAT|DOUBLE|UDOUBLE|BIT|YEAR"
)
_TIMES = re.compile(r"DATE\w*|TIME\w*|TIMESTAMP\w*|INTERVAL|SMALLDATETIME")
_SERIAL = re.compile(r"(BIG|SMALL)?SERIAL")
_NAME = r'(?:[\w]+\.|"[^"]+"\.|`[^`]+`\.)*["`]?([\w]+)["`]?'
# Statements that have no effect on rows.
_NO_ROWS = re.compile(
    r"DROP\s|SET\s|USE\s|COMMENT\s|GRANT\s|REVOKE\s|ANALYZE\b|VACUUM\b|(UN)?LOCK\s+TABLES?\b|BEGIN\b|COMMIT\b|"
    r"START\s+TRANSACTION|SELECT\s+(pg_catalog\.)?(setval|set_config)\s*\(|SECURITY\s+LABEL\b|REFRESH\s|DO\s+(NOTHING|SETVAL)\b|"
    r"(CREATE|ALTER)\s+(OR\s+REPLACE\s+)?((TEMP(ORARY)?|UNLOGGED|TRUSTED|PROCEDURAL|DEFINER\s*=\s*\S+)\s+)*"
    r"(SEQUENCE|EXTENSION|DATABASE|SCHEMA|TYPE|DOMAIN|ROLE|USER|COLLATION|STATISTICS|LANGUAGE|PUBLICATION|SUBSCRIPTION|"
    r"SERVER|FOREIGN\s+DATA\s+WRAPPER|TEXT\s+SEARCH|ACCESS\s+METHOD|EVENT|AGGREGATE|OPERATOR|CAST|CONVERSION|"
    r"TRANSFORM)\b|"
    r"ALTER\s+(INDEX|SEQUENCE|DATABASE|SCHEMA|TYPE|DEFAULT\s+PRIVILEGES|VIEW|FOREIGN\s+TABLE|MATERIALIZED\s+VIEW|FUNCTION|PROCEDURE|"
    r"AGGREGATE|OPERATOR|TRIGGER|POLICY|EVENT\s+TRIGGER|LARGE\s+OBJECT)\b|CREATE\s+INDEX\b",
    re.IGNORECASE,
)
_DOMAIN = re.compile(
    rf"CREATE\s+DOMAIN\s+{_NAME}\s+AS\s+([\w.\"]+(?:\s+(?:varying|precision))?(?:\s*\([\d, ]*\))?)", re.IGNORECASE
)
_ENUM = re.compile(rf"CREATE\s+TYPE\s+{_NAME}\s+AS\s+ENUM\b", re.IGNORECASE)
_VIEW = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:ALGORITHM|DEFINER)\s*=\s*\S+\s+|SQL\s+SECURITY\s+\w+\s+|MATERIALIZED\s+|RECURSIVE\s+)*"
    rf"VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}|CREATE\s+(?:OR\s+REPLACE\s+)?RULE\s+\"_RETURN\"\s.*?\bTO\s+{_NAME}",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN = re.compile(rf"CREATE\s+FOREIGN\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_SIDE_EFFECT = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?(?:CONSTRAINT\s+)?(TRIGGER|RULE|POLICY)\s+(\S+)"
    rf".*?\s(?:ON|TO)\s+(?:ONLY\s+)?{_NAME}(?=[^\w.]|$)",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(rf"CREATE\s+(?:OR\s+REPLACE\s+)?RULE\s+(\S+)\s+AS\s+ON\s+(\w+)\s+TO\s+{_NAME}", re.IGNORECASE)
_ALTER = re.compile(rf"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?{_NAME}\s+(.*)", re.IGNORECASE | re.DOTALL)
# Changes of a table that have no effect on its rows.
_SAME_ROWS = re.compile(
    r"OWNER\s|SET\s|RESET\s|CLUSTER\s|REPLICA\s|(ENABLE|DISABLE|FORCE|NO\s+FORCE)\s|VALIDATE\s|"
    r"(ENGINE|AUTO_INCREMENT|COMMENT)\b|(DEFAULT\s+)?(CHARSET|CHARACTER\s+SET)\b|CONVERT\s+TO\b|ADD\s+(KEY|INDEX)\b[^,]*\Z|"
    r"ALTER\s+(COLUMN\s+)?\S+\s+(SET\s+(STATISTICS|STORAGE|COMPRESSION|\()|RESET\b)|ADD\s+CONSTRAINT\s+\S+\s+EXCLUDE\b",
    re.IGNORECASE,
)
_OF_COLUMN = re.compile(
    r"ALTER\s+(?:COLUMN\s+)?[\"`]?(\w+)[\"`]?\s+(SET\s+DEFAULT\s+(.*)|DROP\s+DEFAULT|(?:SET|DROP)\s+NOT\s+NULL|"
    r"ADD\s+GENERATED\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_MODIFY = re.compile(r"MODIFY\s+(?:COLUMN\s+)?[\"`]?(\w+)[\"`]?\s[^,]*\bAUTO_INCREMENT\b[^,]*", re.IGNORECASE)
_PARTITIONED = re.compile(
    r"\s*\b(WITH\s+SYSTEM\s+VERSIONING\b|PARTITION\s+BY\s+(LINEAR\s+)?(RANGE|LIST|HASH|KEY|SYSTEM_TIME)\b).*",
    re.IGNORECASE | re.DOTALL,
)
_PARTITION = re.compile(rf"CREATE\s+(?:UNLOGGED\s+)?TABLE\s+{_NAME}\s+PARTITION\s+OF\s+{_NAME}", re.IGNORECASE)
_ATTACH = re.compile(rf"ATTACH\s+PARTITION\s+{_NAME}", re.IGNORECASE)
_KIND = re.compile(r"(?:(?:CREATE|ALTER)\s+(?:DEFAULT\s+)?)?\w+", re.IGNORECASE)
# Types that the parser does not know; they become text, which can only be compared for equality.
_BITS = re.compile(r"\bbit\s+varying\b(?:\s*\(\d+\))?|(?<!')\"char\"", re.IGNORECASE)
_MYSQL = re.compile(
    r"\bAUTO_INCREMENT\b|\bENGINE\s*=|[,(]\s*(UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?(KEY|INDEX)\b|\bUNSIGNED\b|\bENUM\s*\(",
    re.IGNORECASE,
)


def type_of(name: str, line: int) -> str:
    """Return int for numbers and times, which have an order, bool, or text, which can only be compared for equality."""
    return _column_type(data_type(name, line))


def _column_type(kind: str) -> str:
    if kind == "BOOLEAN":
        return "bool"
    numeric = _NUMBERS.fullmatch(kind) or _TIMES.fullmatch(kind) or _SERIAL.fullmatch(kind)
    return "int" if numeric else "text"


class Schema:
    """The tables that the statements so far create."""

    def __init__(self) -> None:
        self.made: dict[str, _TableBuilder] = {}
        self.parts: dict[str, str] = {}  # partition -> its table
        self.side_effects: list[tuple[str, SideEffect]] = []
        self.enums: set[str] = set()
        self.domains: dict[str, str] = {}  # the type of each domain
        self.ignored: Counter[str] = Counter()
        self.notes_made: list[str] = []

    def tables(self) -> list[SqlTable]:
        """Return the tables, each with its side effect."""
        for part, whole in self.parts.items():
            self.existing(whole, 1)
            self.notes_made.append(f"the partition {part} is read as a part of {whole}")
        by_table = {
            self.parts.get(name, name): item for name, item in sorted(self.side_effects, key=lambda u: u[1].of_reads)
        }
        self.notes_made += [f"{item.what} matters only where {name} is accessed" for name, item in by_table.items()]
        return [
            replace(made.table(), side_effect=by_table.get(name))
            for name, made in self.made.items()
            if name not in self.parts
        ]

    def notes(self) -> tuple[str, ...]:
        """Return notes on what was ignored."""
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(self.ignored.items()))
        made = [note for table in self.made.values() for note in table.notes_made]
        return (
            *([f"statements that do not change rows are ignored: {kinds}"] if kinds else []),
            *self.notes_made,
            *made,
        )

    def take(self, text: str, line: int) -> None:
        """Read CREATE TABLE, ALTER TABLE, CREATE INDEX, or a statement without effect on rows."""
        exp = engine().exp
        if self.take_other(text, line):
            return
        text = _BITS.sub("text", _PARTITIONED.sub("", text))
        text = (
            re.sub(r"(\sON\s+)ONLY\b", r"\1", text, count=1, flags=re.IGNORECASE) if "INDEX" in text.upper() else text
        )
        tree = statement(text, line, mysql_first=_MYSQL.search(text) is not None, any_function=True)
        if isinstance(tree, exp.Create) and tree.args.get("kind") == "TABLE" and isinstance(tree.this, exp.Schema):
            name = tree.this.this.name.lower()
            if name in self.made:
                raise wrong(f"a second table {name}; the first is in line {self.made[name].line}", line)
            if tree.find(exp.InheritsProperty):
                raise wrong(
                    "INHERITS is not supported", line, "a query of the parent also reads the rows of this table"
                )
            self.calls(name, tree, line)
            self.made[name] = made = _TableBuilder(name, line, self.domains)
            for item in tree.this.expressions:
                made.item(item)
        elif isinstance(tree, exp.Create) and tree.args.get("kind") == "INDEX":
            self.index(tree, line)
        elif isinstance(tree, exp.Alter) and str(tree.args.get("kind")) == "TABLE":
            made = self.existing(tree.this.name.lower(), line)
            self.calls(made.name, tree, line)
            for action in tree.args.get("actions") or ():
                made.alter(action, line)
        else:
            hint = "give the tables, and leave out what is not read or written by the transactions"
            what = " ".join(text.split()[:2]).upper()
            said = (
                f"only CREATE TABLE with a list of columns, ALTER TABLE and CREATE INDEX are supported, not {what:.60}"
            )
            raise wrong(said, line, hint)

    def take_other(self, text: str, line: int) -> bool:
        """Read a statement that creates no table, and note its effect on tables; return False for other statements."""
        if view := _VIEW.match(text):
            self.notes_made.append(f"the view {view[1] or view[2]} is ignored; a transaction cannot use it")
        elif foreign := _FOREIGN.match(text):
            self.notes_made.append(f"the foreign table {foreign[1]} is ignored; a transaction cannot use it")
        elif rule := _RULE.match(text):
            of_reads = rule[2].upper() == "SELECT"
            self.side_effects.append((rule[3].lower(), SideEffect(f"the rule {rule[1]:.60}", line, of_reads)))
        elif hidden := _SIDE_EFFECT.match(text):
            kind = hidden[1].lower()
            name = hidden[2].strip('`"')
            item = SideEffect(f"the {kind} {name:.60}", line, kind == "policy")
            self.side_effects.append((hidden[3].lower(), item))
        elif part := _PARTITION.match(text):
            self.parts[part[1].lower()] = part[2].lower()
        elif altered := _ALTER.match(text):
            return self.alter(altered[1].lower(), altered[2], line)
        elif _NO_ROWS.match(text):
            if text[:4].upper() == "DROP" and any(word.strip('";,').lower() in self.made for word in text.split()):
                raise wrong("DROP of a table that was created above", line, "leave out both")
            if made := _ENUM.match(text):
                self.enums.add(made[1].lower())
            if made := _DOMAIN.match(text):
                base = made[2].split(".")[-1].strip('"').lower()
                self.domains[made[1].lower()] = self.domains.get(base) or _type_or_text(made[2], line)
            self.ignore(text)
        else:
            return False
        return True

    def calls(self, name: str, tree: Any, line: int) -> None:
        """Note the side effect of an unknown function in a default or CHECK: it may read and write other tables."""
        for function in unknown_functions(tree, engine().exp)[:1]:
            self.side_effects.append((name, SideEffect(f"the function {function:.60}", line, of_reads=False)))

    def ignore(self, text: str) -> None:
        """Count an ignored statement by its first words."""
        kind = _KIND.match(text)
        self.ignored[" ".join(kind[0].upper().split()) if kind is not None else "others"] += 1

    def alter(self, name: str, action: str, line: int) -> bool:
        """Read the forms of ALTER TABLE in dumps; return False for the forms that the parser reads."""
        if attached := _ATTACH.match(action):
            self.parts[attached[1].lower()] = name
        elif _SAME_ROWS.match(action) and not re.search(r",\s*(ADD|ALTER|DROP|MODIFY)\s", action, re.IGNORECASE):
            if " EXCLUDE " in f" {action.upper()} ":
                if name in self.made:
                    self.made[name].partly_unique = True
                self.notes_made.append(f"an EXCLUDE constraint of {name} is ignored: the answer does not count on it")
            self.ignored["ALTER TABLE"] += 1
        elif of_column := _OF_COLUMN.fullmatch(action):
            if name not in self.parts:
                self.existing(name, line).change(of_column[1].lower(), of_column[2], of_column[3], line)
        elif modified := _MODIFY.match(action):
            self.existing(name, line).change(modified[1].lower(), "ADD GENERATED", None, line)
        else:
            return name in self.parts and name not in self.made
        return True

    def existing(self, name: str, line: int) -> "_TableBuilder":
        """Return a table that was created, or raise an error."""
        if name not in self.made:
            raise wrong(f"there is no table {name:.60}", line, "write its CREATE TABLE before")
        return self.made[name]

    def index(self, tree: Any, line: int) -> None:
        """Read CREATE INDEX: a unique index of columns is a constraint; a unique index of others forbids some rows."""
        exp = engine().exp
        made = self.existing(tree.this.args["table"].name.lower(), line)
        params = tree.this.args.get("params")
        columns = [part.this if isinstance(part, exp.Ordered) else part for part in params.args.get("columns") or ()]
        if tree.args.get("unique"):
            if not params.args.get("where") and all(isinstance(c, exp.Column) for c in columns):
                made.unique.append(tuple(_name(column) for column in columns))
            else:
                made.partly_unique = True


class _TableBuilder:
    """A table under construction."""

    def __init__(self, name: str, line: int, domains: Mapping[str, str]) -> None:
        self.name, self.line, self.domains = name, line, domains
        self.columns: list[SqlColumn] = []
        self.primary: list[str] = []
        self.unique: list[tuple[str, ...]] = []
        self.foreign: list[ForeignKey] = []
        self.checks: list[Condition] = []
        self.partly_unique = False
        self.notes_made: list[str] = []

    def change(self, name: str, action: str, default: str | None, line: int) -> None:
        """Apply SET DEFAULT, DROP DEFAULT, NOT NULL or GENERATED to a column."""
        index = next((i for i, column in enumerate(self.columns) if column.name == name), None)
        if index is None:
            raise wrong(f"{self.name} has no column {name:.60}", line, nearest(name, [c.name for c in self.columns]))
        column, first = self.columns[index], action.upper()
        if default is not None:
            tree = condition(default, line)
            generated = tree.find(engine().exp.Anonymous, engine().exp.NextValueFor) is not None
            column = replace(column, generated=generated, default=None if generated else tree)
        elif first.startswith("ADD GENERATED"):
            column = replace(column, generated=True, nullable=False)
        elif first.startswith("DROP DEFAULT"):
            column = replace(column, generated=False, default=None)
        else:
            column = replace(column, nullable=first.startswith("DROP"))
        self.columns[index] = column

    def table(self) -> SqlTable:
        """Return the table; raise an error if a key has an unknown column."""
        known = {column.name for column in self.columns}
        for name in {
            *self.primary,
            *(c for group in (*self.unique, *(f.columns for f in self.foreign)) for c in group),
        }:
            if name not in known:
                raise wrong(f"{self.name} has no column {name}", self.line, nearest(name, known))
        keys = tuple(dict.fromkeys(self.primary))
        columns = tuple(replace(c, nullable=c.nullable and c.name not in keys) for c in self.columns)
        parts = (keys, tuple(self.unique), tuple(self.foreign), tuple(self.checks))
        return SqlTable(self.name, columns, *parts, self.line, partly_unique=self.partly_unique)

    def alter(self, action: Any, line: int) -> None:
        """Apply ADD of a column or constraint; raise an error for other actions."""
        exp = engine().exp
        if isinstance(action, exp.ColumnDef):
            self.item(action)
        elif isinstance(action, exp.AddConstraint):
            for part in action.expressions:
                self.item(part)
        else:
            said = action.sql(dialect="postgres") if isinstance(action, exp.Expression) else str(action)
            hint = "write the table as it is in the end, with CREATE TABLE"
            raise wrong(f"ALTER TABLE … {said:.60} is not supported", line, hint)

    def line_of(self, node: Any) -> int:
        """Return the line of a node, or of the table if sqlglot has not recorded it."""
        for part in node.walk():
            at = part.meta.get("line") if hasattr(part, "meta") else None
            if at:
                return self.line + int(at) - 1
        return self.line

    def item(self, node: Any) -> None:
        """Add a column or a constraint of the table."""
        exp = engine().exp
        if isinstance(node, exp.ColumnDef):
            line = self.line_of(node)
            if node.kind is None:
                raise wrong(f"the column {node.name} has no type", line)
            kinds = [constraint.kind for constraint in node.args.get("constraints") or ()]
            if any(isinstance(kind, exp.ComputedColumnConstraint) for kind in kinds):
                self.notes_made.append(
                    f"the computed column {node.name} of {self.name} is ignored; a transaction cannot name it"
                )
                return
            self.columns.append(_column(node, kinds, line, self.domains))
            for kind in kinds:
                self.constraint(kind, (node.name.lower(),))
            return
        for part in node.expressions if isinstance(node, exp.Constraint) else (node,):
            self.constraint(part, ())

    def constraint(self, node: Any, column: tuple[str, ...]) -> None:
        """Add a key, UNIQUE, foreign key or CHECK to the table.

        EXCLUDE becomes a note. Raise an error for a constraint that is not supported.
        """
        exp = engine().exp
        line = self.line_of(node)
        if isinstance(node, exp.PrimaryKeyColumnConstraint | exp.PrimaryKey):
            self.primary += column or [_name(part) for part in node.expressions]
            self.partly_unique |= any(isinstance(part, exp.ColumnPrefix) for part in node.expressions)
        elif isinstance(node, exp.UniqueColumnConstraint):
            listed = node.this.expressions if isinstance(node.this, exp.Schema) else ()
            if all(isinstance(part, exp.Identifier | exp.Column | exp.Ordered) and _name(part) for part in listed):
                self.unique.append(column or tuple(_name(part) for part in listed))
            else:  # of expressions, or of prefixes
                self.partly_unique = True
        elif isinstance(node, exp.Reference):
            self.foreign.append(_reference(node, column, line))
        elif isinstance(node, exp.ForeignKey):
            columns = tuple(_name(part) for part in node.expressions)
            effects = [f"ON {kind.upper()} {node.args[kind]}" for kind in ("delete", "update") if node.args.get(kind)]
            self.foreign.append(_reference(node.args["reference"], columns, line, effects))
        elif isinstance(node, exp.CheckColumnConstraint):
            self.checks.append(Condition(node.this, node.this.sql(dialect="postgres", comments=False), line))
        elif isinstance(node, exp.ExcludeColumnConstraint):
            self.partly_unique = True
            self.notes_made.append(f"an EXCLUDE constraint of {self.name} is ignored: the answer does not count on it")
        elif not isinstance(node, _harmless()):
            said = node.sql(dialect="postgres")
            raise wrong(f"this constraint is not supported: {said:.60}", line, "leave it out if it does not matter")


def _type_or_text(name: str, line: int) -> str:
    try:
        return type_of(name, line)
    except InputError:
        return "text"


def _column(node: Any, kinds: list[Any], line: int, domains: Mapping[str, str]) -> SqlColumn:
    exp = engine().exp
    kind = str(node.kind.this.name if hasattr(node.kind.this, "name") else node.kind.this).upper()
    made_up = exp.AutoIncrementColumnConstraint | exp.GeneratedAsIdentityColumnConstraint
    generated = _SERIAL.fullmatch(kind) is not None or any(isinstance(part, made_up) for part in kinds)
    default = next((part.this for part in kinds if isinstance(part, exp.DefaultColumnConstraint)), None)
    if default is not None and default.find(exp.Anonymous) is not None:  # nextval('…')
        generated, default = True, None
    filled = any(isinstance(part, exp.NotNullColumnConstraint) and not part.args.get("allow_null") for part in kinds)
    touched = any(isinstance(part, exp.OnUpdateColumnConstraint) for part in kinds)
    named = str(node.kind.args.get("kind") or "").lower().split(".")[-1].strip('"')
    known = domains.get(named) or _column_type(kind)
    return SqlColumn(node.name.lower(), known, line, not filled and not generated, generated, default, touched)


def _harmless() -> tuple[type, ...]:
    """Return the types of constraints that need no entry here: they restrict no rows, or ``_column`` reads them."""
    exp = engine().exp
    names = "NotNull Default AutoIncrement GeneratedAsIdentity Comment Collate CharacterSet OnUpdate Encode Compress"
    names += " Invisible"
    found = [getattr(exp, f"{name}ColumnConstraint", None) for name in names.split()]
    return tuple(kind for kind in (*found, getattr(exp, "IndexColumnConstraint", None)) if kind is not None)


def _reference(node: Any, columns: tuple[str, ...], line: int, effects: Sequence[str] = ()) -> ForeignKey:
    exp = engine().exp
    said = [str(option).upper() for option in (*effects, *(node.args.get("options") or ()))]
    cascades = [
        option for option in said if option.startswith("ON ") and not option.endswith(("RESTRICT", "NO ACTION"))
    ]
    target = node.this
    to = tuple(_name(part) for part in target.expressions) if isinstance(target, exp.Schema) else ()
    name = (target.this if isinstance(target, exp.Schema) else target).name.lower()
    return ForeignKey(columns, name, to, line, " ".join(cascades))


def _name(node: Any) -> str:
    return str(node.name).lower()
