"""Statement-level models of the databases whose settings ``infer`` supports, made from ``levels/databases.py``.

A transaction runs statement by statement, and other transactions may commit between its statements. The model of a
level states three things: the state on which a read and a write are evaluated, the rows that stay locked until commit,
and the conditions that are checked at commit. All engines of ``infer`` use these models.
"""

from dataclasses import asdict, dataclass, replace

from plume_py.levels import STRONGEST
from plume_py.levels.databases import ANSI, MIXISO, MYSQL, POSTGRESQL, PRINTED, SERIAL, Database, Model, Setting
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.locking_statements import Locking, locks_rows, reuses_keys, row_of


@dataclass(frozen=True)
class LevelModel(Model):
    """The statement model of one level, under the name that reports use."""

    name: str = ""
    among_themselves: bool = False  # serializable against others of this level only


# A transaction that runs alone, on any database.
ALONE = LevelModel(name=STRONGEST, **asdict(SERIAL))


@dataclass(frozen=True)
class StoreModel:
    """A database: its levels, from the preferred one on, and the database's own names for them."""

    name: str
    levels: tuple[LevelModel, ...]
    setting_names: dict[str, str]
    beside_weaker: dict[str, str]  # level -> the level that it provides when partners run at weaker ones

    def beside_weaker_partners(self, level: LevelModel) -> LevelModel:
        """Return the model of ``level`` when some partners run at weaker levels."""
        if level.name not in self.beside_weaker:
            return level
        left = next(other for other in self.levels if other.name == self.beside_weaker[level.name])
        title = f"{level.title} among its own kind, {left.title}"
        return replace(left, name=level.name, title=title, among_themselves=True)

    def name_beside_weaker(self, level: LevelModel) -> str:
        """Return the name of the level that ``level`` provides when some partners run at weaker levels."""
        return self.beside_weaker.get(level.name, level.name)


def short_name(setting: Setting) -> str:
    """Return the level that a setting guarantees, or an abbreviation of the setting's name if it guarantees less."""
    if setting.promises is not None and setting.promises == setting.safe_as:
        return setting.promises
    words = setting.name.split()
    return "".join(word[0] for word in words) if len(words) > 1 else setting.name


def store(database: Database, name: str = "") -> StoreModel:
    """Return the settings of a database for which a statement model is known."""
    settings = [setting for setting in database.settings if setting.model is not None]
    return StoreModel(
        name or database.name,
        tuple(LevelModel(name=short_name(s), **asdict(s.model)) for s in settings if s.model is not None),
        {short_name(s): s.name for s in settings},
        {short_name(s): short_name(database[s.beside_weaker]) for s in settings if s.beside_weaker},
    )


STORES = {
    each.name: each
    for each in (store(POSTGRESQL), store(MYSQL), store(ANSI), store(MIXISO, "mixiso-levels"), store(PRINTED))
}


def as_executed(txn: ir.TransactionProgram, level: LevelModel, program: ir.Application) -> ir.TransactionProgram:
    """Return the transaction as the level runs it: statements that find rows, then lock them, are split in two.

    PostgreSQL's UPDATE, DELETE and FOR UPDATE find rows first. Then they lock the found rows that still match and still
    exist; others may commit in between. A statement is not split if its condition fixes the primary key and deleted
    rows of the table never return, because then both steps see the same row. Subqueries are evaluated once, before the
    first step.
    """
    if not level.find_then_lock:
        return txn
    return replace(txn, body=_split(txn.body, program))


def _split(body: tuple[ir.Stmt, ...], program: ir.Application) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, Locking) and locks_rows(stmt):
            if isinstance(stmt, ir.Update | ir.Delete):
                asked, stmt = _subqueries_before(stmt)
                out += asked
            row = row_of(stmt)
            if ir.fixes_key(stmt.where, row, program.table(stmt.table)) and not reuses_keys(program, stmt.table):
                out.append(stmt)
                continue
            found = f"found_{row}"
            out.append(ir.SelectAll(stmt.line, found, stmt.table, row, stmt.where))
            out.append(replace(stmt, within=found))
        elif isinstance(stmt, ir.If):
            out.append(replace(stmt, then=_split(stmt.then, program), otherwise=_split(stmt.otherwise, program)))
        elif isinstance(stmt, ir.ForEach):
            out.append(replace(stmt, body=_split(stmt.body, program)))
        else:
            out.append(stmt)
    return tuple(out)


def _subqueries_before(stmt: ir.Update | ir.Delete) -> tuple[list[ir.Stmt], ir.Update | ir.Delete]:
    """Move the subqueries of an UPDATE or DELETE into a ``Let`` before it; return that and the changed statement.

    A subquery that depends on the row to be changed stays, unless the condition fixes the value that it uses.
    """
    known = {column: value for column, value in ir.fixed_columns(stmt.where, stmt.var).items() if not ir.queries(value)}
    names: dict[ir.Expr, str] = {}

    def column(part: ir.Expr) -> ir.Expr | None:
        return known.get(part.column) if isinstance(part, ir.Field) and part.row == stmt.var else None

    def ask(part: ir.Expr) -> ir.Expr | None:
        if not isinstance(part, ir.Query) or part.is_local:
            return None
        query = ir.rewritten(part, column)
        if any(isinstance(node, ir.Field | ir.Same) and stmt.var in _rows(node) for node in ir.walk(query)):
            return part
        return ir.Local(names.setdefault(query, f"asked_{stmt.var}{len(names) + 1}"))

    changed = replace(stmt, where=ir.rewritten(stmt.where, ask))
    if isinstance(changed, ir.Update):
        changed = replace(changed, sets=tuple((name, ir.rewritten(value, ask)) for name, value in changed.sets))
    return ([ir.Let(stmt.line, tuple(names.values()), tuple(names))] if names else []), changed


def _rows(node: ir.Field | ir.Same) -> tuple[str, ...]:
    return (node.row,) if isinstance(node, ir.Field) else (node.left, node.right)
