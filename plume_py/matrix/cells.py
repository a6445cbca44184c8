"""What is run: a cell for each database, isolation level and workload."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plume_py.base.passwords import without_password
from plume_py.collect.adapter import Promise
from plume_py.collect.registry import adapter_class

# Workloads that together can show what a key-value history can show.
WORKLOADS = ("register", "append", "smallbank", "write-skew")

# The scheme of a managed server's address, where it is not its name up to the first "-".
_SCHEMES = {"galera": "mariadb"}


@dataclass(frozen=True)
class Target:
    """A database: the name of a managed one, or an address."""

    name: str
    is_managed: bool

    @property
    def title(self) -> str:
        """For people to see."""
        return self.name if self.is_managed else " ".join(map(without_password, self.name.split()))

    @property
    def words(self) -> tuple[str, ...]:
        """What says it to ``isocheck test``."""
        return ("--managed", self.name) if self.is_managed else tuple(self.name.split())

    @property
    def isolations(self) -> dict[str, Promise]:
        """Its isolation levels and what each promises, those of the same database under two names once."""
        scheme = _SCHEMES.get(self.name, self.name.partition("-")[0])
        return dict(adapter_class(f"{scheme}://" if self.is_managed else self.words[0]).isolations)


@dataclass(frozen=True)
class Cell:
    """One run."""

    target: Target
    isolation: str
    workload: str
    more: tuple[str, ...]  # options of ``isocheck test``

    @property
    def words(self) -> tuple[str, ...]:
        """What is typed behind ``isocheck``."""
        chosen = ("--isolation", self.isolation, "--workload", self.workload)
        return ("test", *self.target.words, *chosen, *self.more, "--expect", "all", "--expect", "SSER")

    @property
    def shown(self) -> tuple[str, ...]:
        """The same for people to see."""
        return tuple(without_password(word) if "://" in word else word for word in self.words)

    @property
    def slug(self) -> str:
        """Its name as a file: readable, and another one for other words."""
        plain = "".join(c if c.isalnum() else "-" for c in f"{self.target.title} {self.isolation} {self.workload}")
        return f"{plain[:60].lower()}-{hashlib.sha256(repr(self.words).encode()).hexdigest()[:8]}"


def cells(
    targets: Sequence[Target], isolations: Sequence[str], workloads: Sequence[str], more: tuple[str, ...]
) -> Iterator[Cell]:
    """Every combination; ``isolations`` are those asked for, or all that a database has."""
    for target in targets:
        for isolation in isolations or target.isolations:
            for workload in workloads:
                yield Cell(target, isolation, workload, more)
