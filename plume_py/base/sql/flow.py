"""Where a transaction ends: COMMIT and RETURN at the end of some way through it, and nowhere else."""

from collections.abc import Iterator
from dataclasses import replace

from plume_py.base.sql.model import Attempt, End, If, Loop, Repeat, RollbackStatement, Statement
from plume_py.base.sql.syntax import wrong

SPLIT = (
    "write two transactions: begin the second with a line `-- transaction: name_2(…)` "
    "and give it what the first one read as arguments"
)
# What follows an IF that may RETURN is repeated in its branches; beyond this, the program is not read.
MOST = 10_000


def ended(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements without COMMIT and RETURN; an error where something would be done after a COMMIT or ROLLBACK."""
    return _Ending().block(body, True)


class _Ending:
    def __init__(self) -> None:
        self.seen = 0

    def block(self, body: tuple[Statement, ...], last: bool) -> tuple[Statement, ...]:
        """``last``: nothing is done after these statements."""
        found: list[Statement] = []
        for i, stmt in enumerate(body):
            self.seen += 1
            if self.seen > MOST:
                raise wrong("too many ways through this transaction", stmt.line, "use IF … ELSE instead of RETURN")
            rest = body[i + 1 :]
            if isinstance(stmt, End):
                _allow_end(stmt, rest, last)
                break
            if isinstance(stmt, RollbackStatement):
                _allow_rollback(stmt, rest)
                found.append(stmt)
                break
            if isinstance(stmt, If) and _leaves(stmt):
                # What follows is only done on those ways that do not end here.
                then, otherwise = (self.block(_continued(part, rest), last) for part in (stmt.then, stmt.otherwise))
                found.append(replace(stmt, then=then, otherwise=otherwise))
                break
            found.append(self.inside(stmt, last and not rest))
        return tuple(found)

    def inside(self, stmt: Statement, last: bool) -> Statement:
        if isinstance(stmt, If):
            return replace(stmt, then=self.block(stmt.then, last), otherwise=self.block(stmt.otherwise, last))
        if isinstance(stmt, Loop | Repeat):
            return replace(stmt, body=self.block(stmt.body, False))
        if isinstance(stmt, Attempt):
            return replace(stmt, body=self.block(stmt.body, False), otherwise=self.block(stmt.otherwise, False))
        return stmt


def every(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those inside others included."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, If):
            yield from every((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Loop | Repeat):
            yield from every(stmt.body)
        elif isinstance(stmt, Attempt):
            yield from every((*stmt.body, *stmt.otherwise))


def _allow_end(stmt: End, rest: tuple[Statement, ...], last: bool) -> None:
    if stmt.text == "BEGIN":
        raise wrong("a transaction begins here, inside another one", stmt.line, SPLIT)
    real = [s for s in rest if not isinstance(s, End)]
    if stmt.text == "COMMIT" and (real or not last):
        follows = f"line {real[0].line} belongs" if real else "what follows belongs"
        raise wrong(f"COMMIT ends the transaction here; {follows} to another one", stmt.line, SPLIT)
    if real:
        raise wrong("this is after a RETURN", real[0].line, "leave out what is never done")
    if not last:
        raise wrong("RETURN inside a loop or a block with handlers is not supported", stmt.line, "use IF … ELSE")


def _allow_rollback(stmt: Statement, rest: tuple[Statement, ...]) -> None:
    for after in rest:
        if not isinstance(after, End | RollbackStatement):
            raise wrong(f"ROLLBACK ends the transaction; line {after.line} belongs to another one", stmt.line, SPLIT)


def _leaves(stmt: Statement) -> bool:
    """Does some way through an IF end the transaction without giving up?"""
    return isinstance(stmt, If) and any(isinstance(s, End) or _leaves(s) for s in (*stmt.then, *stmt.otherwise))


def _continued(branch: tuple[Statement, ...], rest: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A branch and what follows it; after a RETURN nothing does, after a COMMIT it does, which is an error."""
    over = bool(branch) and (
        isinstance(branch[-1], RollbackStatement) or (isinstance(branch[-1], End) and branch[-1].text == "RETURN")
    )
    return branch if over else (*branch, *rest)
