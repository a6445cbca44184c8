"""Read statements and control flow of a transaction: blocks and declarations of both dialects, IF, loops.

``files`` calls ``BlockReader`` on the text of a transaction, then ``remove_ends`` on its statements. A statement that
is not supported is an error with its line; none is ignored.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from plume_py.base.sql.model import (
    Assign,
    Attempt,
    Condition,
    End,
    If,
    Loop,
    Repeat,
    RollbackStatement,
    Statement,
    all_statements,
)
from plume_py.base.sql.statements import into_names, read_select, read_statement
from plume_py.base.sql.syntax import condition, tokens, wrong

DEPTH = 50  # IF inside IF inside …

# After these tokens, BEGIN starts a transaction; after any other token, it starts a block.
_OF_BEGIN = (";", "", "TRANSACTION", "TRAN", "WORK", "ISOLATION", "READ", "DEFERRABLE", "NOT", "IMMEDIATE", "EXCLUSIVE")
_ONLY_SAID = ("NOTICE", "DEBUG", "LOG", "INFO", "WARNING")
_HINTS = {
    "CALL": "write the statements of the procedure here",
    "EXECUTE": "write the statement itself",
    "PREPARE": "write the statement itself",
    "CASE": "write IF … ELSIF … END IF",
    "MERGE": "write INSERT … ON CONFLICT DO UPDATE, or IF EXISTS (…) THEN UPDATE … ELSE INSERT … END IF",
    "REPLACE": "write INSERT … ON DUPLICATE KEY UPDATE",
    "TRUNCATE": "write DELETE FROM table",
    "LOCK": "write SELECT … FOR UPDATE of the rows that are meant",
    "COPY": "write INSERT",
    "OPEN": "write FOR row IN SELECT … LOOP … END LOOP",
    "FETCH": "write FOR row IN SELECT … LOOP … END LOOP",
    "CLOSE": "write FOR row IN SELECT … LOOP … END LOOP",
}
_WORDS = (
    "SELECT INSERT UPDATE DELETE SET IF FOR BEGIN DECLARE WHILE LOOP REPEAT START COMMIT ROLLBACK RETURN PERFORM WITH "
    "SAVEPOINT RELEASE RAISE SIGNAL END EXCEPTION GET NULL EXIT LEAVE CONTINUE ITERATE FOREACH VALUES"
)
_STARTS = frozenset(_WORDS.split())
SPLIT = (
    "write two transactions: begin the second with a line `-- transaction: name_2(…)` "
    "and give it what the first one read as arguments"
)
# The statements after an IF that may RETURN are copied into its branches; more copies than this are rejected.
MOST = 10_000


class TokenReader:
    """The tokens of a text, and the index of the next token."""

    def __init__(self, text: str, first: int) -> None:
        self.text, self.first = text, first
        self.tokens = tokens(text, first)
        self.at = 0

    def word(self, ahead: int = 0) -> str:
        """Return the next token in capitals, or the one ``ahead`` tokens after it; "" at the end."""
        at = self.at + ahead
        return str(self.tokens[at].text).upper() if at < len(self.tokens) else ""

    def line(self) -> int:
        """Return the line of the next token."""
        at = min(self.at, len(self.tokens) - 1)
        return self.first + (self.tokens[at].line - 1 if self.tokens else 0)

    def until(self, *ends: str) -> tuple[list[Any], str]:
        """Read up to one of these words outside brackets and CASE; return the tokens and their text."""
        begin, depth, inner = self.at, 0, 0
        while self.at < len(self.tokens) and (depth or inner or self.word() not in ends):
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            inner += {"CASE": 1, "END": -1}.get(self.word(), 0) if inner or self.word() == "CASE" else 0
            self.at += 1
        taken = self.tokens[begin : self.at]
        if not taken:
            raise wrong(f"something is missing before {self.word() or 'the end'}", self.line())
        return taken, self.text[taken[0].start : taken[-1].end + 1]

    def rest(self) -> str:
        """Read the remaining tokens of this statement; return their text in one line, perhaps empty."""
        return "" if self.word() in ("", ";") else " ".join(self.until(";")[1].split())

    def expect(self, *words: str) -> None:
        """Read these words in this order, or raise an error."""
        for word in words:
            if self.word() != word:
                raise wrong(f"{word} expected, not {self.word() or 'the end'}", self.line())
            self.at += 1

    def plain(self, taken: list[Any], line: int) -> None:
        """Raise an error if these tokens may read a table: brackets contain a subquery or arguments of a function."""
        if any(token.text == "(" for token in taken):
            raise wrong("brackets are not supported here", line, "compute the value before, with SET or SELECT … INTO")


class BlockReader(TokenReader):
    """Reads the statements of a transaction. ``touched``: a statement that may read or write a table was read."""

    def __init__(self, text: str, first: int, any_query: bool) -> None:
        super().__init__(text, first)
        self.any_query = any_query
        self.begun = self.touched = False
        self.labels: list[str] = []
        self.variables: set[str] = set()

    # -- blocks --

    def whole(self) -> tuple[Statement, ...]:
        """Return all statements; BEGIN and COMMIT are optional."""
        body = self.block((), 0)
        if self.at < len(self.tokens):
            raise wrong(f"{self.word()} without its beginning", self.line())
        return body

    def block(self, ends: tuple[str, ...], depth: int) -> tuple[Statement, ...]:
        """Return the statements up to one of these words."""
        if depth > DEPTH:
            raise wrong("too many blocks inside each other", self.line())
        found: list[Statement] = []
        while self.at < len(self.tokens) and self.word() not in ends:
            if self.word() == ";":
                self.at += 1
            else:
                found += self.statement(depth)
        return tuple(found)

    def statement(self, depth: int) -> tuple[Statement, ...]:
        """Read the next statement; return it, none or several if it declares variables."""
        self.label()
        word = self.word()
        compound: dict[str, Callable[[int], Statement]] = {"IF": self.choice, "FOR": self.loop}
        compound |= dict.fromkeys(("WHILE", "LOOP", "REPEAT", "FOREACH"), self.repeat)
        if word in compound:
            return (compound[word](depth),)
        if word == "BEGIN" and self.word(1) not in _OF_BEGIN:
            return self.begin(depth)
        if word == "DECLARE":
            return self.declarations()
        if word in ("EXIT", "LEAVE", "CONTINUE", "ITERATE"):
            return self.jump()
        control = self.control(word)
        return control if control is not None else self.single()

    def label(self) -> None:
        """Skip a label: "label: BEGIN", or "<<label>>"."""
        if self.word() == "<" and self.word(1) == "<":
            self.at += 2
            self.until(">")
            self.expect(">", ">")
        elif self.word(1) == ":" and self.word(2) in ("BEGIN", "LOOP", "WHILE", "REPEAT"):
            if self.word(2) == "BEGIN":
                self.labels.append(self.word())
            self.at += 2

    def begin(self, depth: int) -> tuple[Statement, ...]:
        """Read BEGIN … [EXCEPTION WHEN … THEN …] END."""
        line = self.line()
        self.at += 1
        if self.word() == "TRY":
            raise wrong("BEGIN TRY is not supported", line, "write what is done if nothing fails")
        body = self.block(("END", "EXCEPTION"), depth + 1)
        handlers: list[tuple[Statement, ...]] = []
        if self.word() == "EXCEPTION":
            self.at += 1
            while self.word() == "WHEN":
                self.until("THEN")
                self.expect("THEN")
                handlers.append(self.block(("END", "WHEN"), depth + 1))
        if self.word() != "END":
            raise wrong("BEGIN without END", line, "write BEGIN; for a transaction, BEGIN … END for a block")
        self.at += 1
        if self.word() not in (";", ""):  # the label again
            self.at += 1
        if all(any(isinstance(stmt, RollbackStatement) for stmt in handler) for handler in handlers):
            return body
        if any(isinstance(stmt, RollbackStatement) for stmt in all_statements(body)):
            hint = "test before, with IF, and leave out the handler"
            raise wrong("giving up inside a block whose handler goes on is not supported", line, hint)
        return (Attempt(line, "BEGIN … EXCEPTION", body, tuple(s for handler in handlers for s in handler)),)

    def choice(self, depth: int) -> If:
        """Read IF … THEN … [ELSIF …] [ELSE …] END IF."""
        line = self.line()
        self.at += 1
        inner = self.line()
        _, text = self.until("THEN")
        test = Condition(condition(text, inner), " ".join(text.split()), inner)
        self.touched = self.touched or "SELECT" in text.upper()
        self.expect("THEN")
        then = self.block(("ELSE", "ELSIF", "ELSEIF", "END"), depth + 1)
        otherwise: tuple[Statement, ...] = ()
        if self.word() in ("ELSIF", "ELSEIF"):
            otherwise = (self.choice(depth + 1),)
            return If(line, f"IF {test.text}", test, then, otherwise)
        if self.word() == "ELSE":
            self.at += 1
            otherwise = self.block(("END",), depth + 1)
        self.expect("END", "IF")
        return If(line, f"IF {test.text}", test, then, otherwise)

    def loop(self, depth: int) -> Loop | Repeat:
        """Read FOR row IN SELECT … LOOP … END LOOP, or a loop over numbers."""
        line = self.line()
        name = self.word(1).lower()
        self.at += 2
        self.expect("IN")
        inner = self.line()
        taken, text = self.until("LOOP", "DO")
        self.variables.add(name)
        outer = 0  # brackets around it
        while 2 * outer < len(taken) and taken[outer].text == "(" and taken[-1 - outer].text == ")":
            outer += 1
        rows = taken[outer : len(taken) - outer]
        if not rows or rows[0].text.upper() not in ("SELECT", "WITH"):
            if ".." not in text.replace(" ", ""):
                hint = "write FOR row IN SELECT … LOOP … END LOOP"
                raise wrong("FOR goes over the rows of a SELECT, or from a number to another", inner, hint)
            self.plain(taken, inner)
            self.at += 1
            return Repeat(line, f"FOR {name} IN {' '.join(text.split())}", None, self.loop_body(depth), name)
        text = self.text[rows[0].start : rows[-1].end + 1]
        query = read_select(rows, text, inner, self.any_query)
        self.touched = True
        self.at += 1
        return Loop(line, f"FOR {name} IN {' '.join(text.split())}", name, query, self.loop_body(depth))

    def loop_body(self, depth: int) -> tuple[Statement, ...]:
        """Read the statements up to END LOOP, END WHILE and so on."""
        body = self.block(("END",), depth + 1)
        self.expect("END")
        if self.word() in ("LOOP", "FOR", "WHILE", "REPEAT"):
            self.at += 1
        if self.word() not in (";", ""):
            self.at += 1
        return body

    def repeat(self, depth: int) -> Repeat:
        """Read WHILE … LOOP, WHILE … DO, LOOP, REPEAT … UNTIL, or FOREACH … IN ARRAY."""
        line, word = self.line(), self.word()
        self.at += 1
        test, name = None, ""
        if word == "WHILE":
            inner = self.line()
            test = condition(self.until("LOOP", "DO")[1], inner)
            self.at += 1
        elif word == "FOREACH":
            name = self.word().lower()
            self.variables.add(name)
            self.plain(self.until("LOOP")[0], line)
            self.at += 1
        if word != "REPEAT":
            return Repeat(line, word, test, self.loop_body(depth), name)
        body = self.block(("UNTIL",), depth + 1)
        self.expect("UNTIL")
        inner = self.line()
        test = condition(self.until("END")[1], inner)
        self.expect("END", "REPEAT")
        return Repeat(line, word, test, body)

    def jump(self) -> tuple[Statement, ...]:
        """Read EXIT, LEAVE, CONTINUE or ITERATE; a loop runs any number of times anyway, and LEAVE may end all."""
        line, word = self.line(), self.word()
        self.at += 1
        if word == "LEAVE" and self.word() in self.labels:
            self.at += 1
            return (End(line, "RETURN"),)
        if self.word() not in (";", "", "WHEN"):
            self.at += 1
        if self.word() == "WHEN":
            self.at += 1
            inner = self.line()
            text = self.until(";")[1]
            return (Assign(line, text, "", condition(text, inner)),)
        return ()

    # -- declarations --

    def declarations(self) -> tuple[Statement, ...]:
        """Read DECLARE name type := value; in PL/pgSQL several declarations up to BEGIN."""
        found: list[Statement] = []
        self.at += 1
        while True:
            found += self.declaration()
            while self.word() == ";":
                self.at += 1
            follows = self.word(1) in (":=", ":", "=", ".", "(", "")
            if self.at >= len(self.tokens) or self.word() in _STARTS or follows:
                return tuple(found)

    def declaration(self) -> tuple[Statement, ...]:
        """Read name [, name] type [NOT NULL] [:= value]."""
        line = self.line()
        if self.word() in ("EXIT", "CONTINUE", "UNDO") and self.word(1) == "HANDLER":
            return self.handler(line)
        begin = self.at
        names = [self.word().lower()]
        self.at += 1
        while self.word() == ",":
            names.append(self.word(1).lower())
            self.at += 2
        if self.word() in ("CURSOR", "SCROLL", "NO", "REFCURSOR", "ALIAS") or self.word(1) == "CURSOR":
            what = "an ALIAS" if self.word() == "ALIAS" else "a cursor"
            hint = "write FOR row IN SELECT … LOOP … END LOOP" if what == "a cursor" else "use the argument's own name"
            raise wrong(f"{what} is not supported", line, hint)
        if self.word() == "CONDITION":
            self.rest()
            return ()
        while self.word() not in (";", "", ":=", "=", "DEFAULT", ":"):
            self.at += 1
        if not all(name.isidentifier() for name in names) or self.at < begin + 2:
            raise wrong(
                "cannot read this declaration", line, "write DECLARE name TYPE, or DECLARE name TYPE DEFAULT value"
            )
        self.variables.update(names)
        if self.word() in (";", ""):
            return ()
        self.at += 2 if self.word() == ":" else 1
        inner = self.line()
        text = self.until(";")[1]
        self.touched = self.touched or "SELECT" in text.upper()
        return tuple(Assign(line, text, name, condition(text, inner)) for name in names)

    def handler(self, line: int) -> tuple[Statement, ...]:
        """Read DECLARE EXIT HANDLER FOR … ROLLBACK, which yields no statement: a run that reaches it rolls back."""
        kind = self.word()
        while self.word() not in ("BEGIN", "ROLLBACK", "SET", ";", ""):
            self.at += 1
        self.touched, before = False, self.touched
        body = self.begin(1) if self.word() == "BEGIN" else self.statement(1)
        self.touched = before
        if kind != "EXIT" or not any(isinstance(stmt, RollbackStatement) for stmt in body):
            hint = "test with IF, or with EXISTS, before; only EXIT HANDLER … ROLLBACK is understood"
            raise wrong(f"a handler that goes on ({kind} HANDLER) is not supported", line, hint)
        return ()

    # -- single statements --

    def control(self, word: str) -> tuple[Statement, ...] | None:
        """Read a statement that starts, ends or divides transactions or has no effect on tables; else return None."""
        line = self.line()
        if word in ("BEGIN", "START"):
            return self.start(line)
        if word in ("COMMIT", "ROLLBACK", "ABORT", "END"):
            return self.finish(line, "COMMIT" if word == "END" else "ROLLBACK" if word == "ABORT" else word)
        if word in ("SAVEPOINT", "RELEASE", "RAISE", "SIGNAL", "RESIGNAL", "NULL", "RETURN", "GET"):
            return self.minor(line, word)
        if word == "SET" and self.word(1) in ("TRANSACTION", "SESSION", "LOCAL", "GLOBAL", "AUTOCOMMIT"):
            said = self.rest().upper()
            if self.touched or "GLOBAL" in said or ("AUTOCOMMIT" in said and not said.endswith(("0", "OFF"))):
                raise wrong(f"{said:.60} is not supported here", line, "leave it out")
            return ()
        if word in _HINTS:
            raise wrong(f"{word} is not supported in a transaction", line, _HINTS[word])
        return None

    def start(self, line: int) -> tuple[Statement, ...]:
        """Read BEGIN or START TRANSACTION, which must precede all reads and writes."""
        self.rest()
        if self.begun and not self.touched:
            raise wrong("a second BEGIN", line, "leave it out")
        if self.touched and not self.begun:
            hint = "begin with it, or write what comes before as a transaction of its own"
            raise wrong("a transaction begins here, but statements come before it", line, hint)
        if self.touched:
            # remove_ends reports the COMMIT before it, or this BEGIN if there is none
            return (End(line, "BEGIN"),)
        self.begun = True
        return ()

    def finish(self, line: int, word: str) -> tuple[Statement, ...]:
        """Read COMMIT or ROLLBACK of the whole transaction."""
        self.at += 1
        said = re.sub(r"^(WORK|TRANSACTION|TRAN)\b ?", "", self.rest(), flags=re.IGNORECASE).upper()
        if said.startswith("TO"):
            hint = "test before you write, with IF, so that nothing has to be undone"
            raise wrong("ROLLBACK TO SAVEPOINT is not supported", line, hint)
        if said and said not in ("AND NO CHAIN", "NO RELEASE"):
            raise wrong(f"{word} {said:.40} is not supported", line, f"write {word}")
        return (RollbackStatement(line, "ROLLBACK"),) if word == "ROLLBACK" else (End(line, "COMMIT"),)

    def minor(self, line: int, word: str) -> tuple[Statement, ...]:
        """Read SAVEPOINT, RAISE, RETURN and so on; a value that they compute becomes an assignment."""
        self.at += 1
        inner, begin = self.line(), self.at
        text = self.rest()
        upper = text.upper()
        if word in ("SAVEPOINT", "RELEASE", "NULL"):
            return ()
        if word == "RETURN":
            if upper.startswith("QUERY"):
                raise wrong("RETURN QUERY is not supported", line, "write SELECT")
            if text and upper not in ("NEW", "OLD", "NEXT"):
                return Assign(line, text, "", condition(text, inner)), End(line, "RETURN")
            return (End(line, "RETURN"),)
        if word == "GET":
            names = [name.lower() for name in re.findall(r"(\w+) *:?= *ROW_COUNT", text, re.IGNORECASE)]
            if not names:
                raise wrong("GET DIAGNOSTICS is understood for ROW_COUNT", line, "write GET DIAGNOSTICS n = ROW_COUNT")
            return (Assign(line, text, names[0], condition("ROW_COUNT()", inner)),)
        if word == "RAISE":
            self.plain(self.tokens[begin : self.at], line)
        if (word == "RAISE" and upper.split(" ")[0] in _ONLY_SAID) or (word == "SIGNAL" and re.search("'0[012]", text)):
            return ()
        return (RollbackStatement(line, word),)

    def single(self) -> tuple[Statement, ...]:
        """Read a statement up to its semicolon."""
        line = self.line()
        taken, text = self.until(";")
        found = read_statement(taken, text, line, self.any_query)
        for stmt in found:
            self.touched = self.touched or not isinstance(stmt, Assign) or "SELECT" in text.upper()
            self.variables.update(name for name in into_names(stmt))
        return found


def remove_ends(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the statements without COMMIT and RETURN; raise an error if a statement follows COMMIT or ROLLBACK.

    Statements after an IF with a RETURN move into the branches that do not return.
    """
    return _EndRemover().block(body, True)


class _EndRemover:
    def __init__(self) -> None:
        self.seen = 0

    def block(self, body: tuple[Statement, ...], last: bool) -> tuple[Statement, ...]:
        """Return the statements without ends; ``last``: no statement follows these."""
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
    """Return whether a branch of an IF ends the transaction without rollback."""
    return isinstance(stmt, If) and any(isinstance(s, End) or _leaves(s) for s in (*stmt.then, *stmt.otherwise))


def _continued(branch: tuple[Statement, ...], rest: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return a branch with the statements that follow it. None follow RETURN; after COMMIT they are an error later."""
    over = bool(branch) and (
        isinstance(branch[-1], RollbackStatement) or (isinstance(branch[-1], End) and branch[-1].text == "RETURN")
    )
    return branch if over else (*branch, *rest)
