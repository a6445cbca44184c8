"""Workloads: programs with parameters, their instances, and the sessions that run the instances.

An access names a cell by a table (or column) and the parameters of its key. It reads, writes, or updates (reads and
writes in one statement). A conditional access may or may not happen. It counts as a possible access where an access
does harm, and never as a certain one where an access protects.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.text import nearest, one_line

READ, WRITE, UPDATE = "READ", "WRITE", "UPDATE"
KINDS = (READ, WRITE, UPDATE)

# As a parameter: every row of the table.
EVERY = "*"


@dataclass(frozen=True)
class Access:
    """One operation of a program, or of an instance once values replace its parameters."""

    kind: str
    table: str
    key: tuple[str, ...] = ()
    conditional: bool = False
    locks: bool = False  # a read that locks its row, for example SELECT … FOR UPDATE
    # Inserts or deletes a row of a table with deletes: a transaction that waited for the row may not have seen it.
    fleeting: bool = False

    @cached_property
    def reads(self) -> bool:
        return self.kind != WRITE

    @cached_property
    def writes(self) -> bool:
        return self.kind != READ

    @cached_property
    def cell(self) -> str:
        """The name of the cell, as in MixIso's workload files."""
        return "_".join((self.table, *self.key))

    @cached_property
    def identity(self) -> str:
        """A unique key of the cell. Names may coincide, for example of rows (1_2, 3) and (1, 2_3)."""
        return "\x1f".join((self.table, *self.key))

    @cached_property
    def whole_table(self) -> bool:
        """Whether it ranges over all rows."""
        return EVERY in self.key

    def __str__(self) -> str:
        sign = {READ: "r", WRITE: "w", UPDATE: "rw"}[self.kind]
        return f"{sign}({self.cell}){'?' if self.conditional else ''}"


def read(table: str, *key: object, conditional: bool = False) -> Access:
    """Return an access that reads a cell."""
    return Access(READ, table, tuple(map(str, key)), conditional)


def write(table: str, *key: object, conditional: bool = False) -> Access:
    """Return an access that writes a cell without reading it."""
    return Access(WRITE, table, tuple(map(str, key)), conditional)


def update(table: str, *key: object, conditional: bool = False) -> Access:
    """Return an access that reads and writes a cell in one statement."""
    return Access(UPDATE, table, tuple(map(str, key)), conditional)


@dataclass(frozen=True)
class Instance:
    """One execution of a program, with values for its parameters."""

    name: str
    program: str
    accesses: tuple[Access, ...]
    level: str | None = None
    execution_paths: tuple[tuple[Access, ...], ...] = ()  # execution paths, as in its program

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(map(str, self.accesses)) or '(no access)'}"


@dataclass(frozen=True)
class Program:
    """A transaction as the application writes it."""

    name: str
    params: tuple[str, ...]
    accesses: tuple[Access, ...]
    level: str | None = None
    share: float | None = None
    notes: tuple[str, ...] = ()  # over-approximations, for reports
    # The accesses of each execution path. If empty, each conditional access happens or not.
    execution_paths: tuple[tuple[Access, ...], ...] = ()

    def __post_init__(self) -> None:
        if EVERY in self.params:
            raise InputError(f"program {self.name}: {EVERY} stands for every row and is no parameter")
        known = {*self.params, EVERY}
        for access in self.accesses:
            for part in access.key:
                if part not in known and part.isidentifier():
                    raise InputError(
                        f"program {self.name}: {access} uses the parameter {part!r}, which is not declared",
                        hint="list it in params",
                    )

    def __call__(self, *values: object, name: str | None = None) -> Instance:
        """Return an instance with these values."""
        if len(values) != len(self.params):
            raise InputError(f"program {self.name} takes {len(self.params)} values, not {len(values)}")
        bound = dict(zip(self.params, map(str, values), strict=True))
        shown = name or f"{self.name}({', '.join(bound.values())})"
        execution_paths = tuple(_bound(way, bound) for way in self.execution_paths)
        return Instance(shown, self.name, _bound(self.accesses, bound), self.level, execution_paths)


def _bound(accesses: Iterable[Access], values: dict[str, str]) -> tuple[Access, ...]:
    return tuple(replace(a, key=tuple(values.get(part, part) for part in a.key)) for a in accesses)


@dataclass
class Workload:
    """Instances with their sessions. Their order within a session is the order of execution."""

    instances: list[Instance]
    session: list[int] = field(default_factory=list)  # of each instance; by default all are different
    programs: list[Program] = field(default_factory=list)
    source: str = "workload"
    followers: frozenset[str] | None = None  # programs that may follow another in a session; None: all

    def __post_init__(self) -> None:
        self.session = self.session or list(range(len(self.instances)))
        if len(self.session) != len(self.instances):
            raise InputError("a workload needs one session for each instance")

    @classmethod
    def of_sessions(cls, sessions: Iterable[Sequence[Instance]]) -> "Workload":
        """Return a workload from one sequence of instances per session."""
        rows = [(instance, s) for s, session in enumerate(sessions) for instance in session]
        return cls([instance for instance, _ in rows], [s for _, s in rows])

    @property
    def levels(self) -> list[str | None]:
        """The level that each instance declares."""
        return [instance.level for instance in self.instances]

    def sessions(self) -> list[list[int]]:
        """Return the instances of each session, in order."""
        rows: dict[int, list[int]] = {}
        for i, s in enumerate(self.session):
            rows.setdefault(s, []).append(i)
        return list(rows.values())

    def restricted(self, chosen: Sequence[int]) -> "Workload":
        """Return a workload of these instances only, in the same sessions."""
        return Workload([self.instances[i] for i in chosen], [self.session[i] for i in chosen], source=self.source)


def require_names(exclude: Sequence[str], known: Sequence[str]) -> None:
    """Raise an error if --exclude names an unknown program, or leaves none."""
    for name in exclude:
        if name not in known:
            raise IsocheckError(one_line(f"--exclude: there is no program {name}; {nearest(name, known)}"))
    if exclude and {*known} <= {*exclude}:
        raise IsocheckError("--exclude leaves out every program; keep one")
