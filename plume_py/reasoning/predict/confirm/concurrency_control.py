"""How a database runs statements side by side, as far as the order of commits and of statements decides what is seen.

Taken from the table of databases (``levels/databases.py``), whose models speak of statements in general. Here each
statement reads or writes one row, found by its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plume_py.levels.databases import Database, Model


@dataclass(frozen=True)
class Discipline:
    """Writes are locked to the end of their transaction. What else?"""

    title: str
    snapshot: bool = False  # reads see the state at one moment: that of the first statement,
    late_snapshot: bool = False  # or of the first read
    first_committer_wins: bool = False  # who writes what was committed after its snapshot is refused,
    one_writer: bool = False  # whatever it writes
    read_locks: bool = False  # what was read is locked, too

    def weaker(self) -> "list[Discipline]":
        """From it down to the weakest: orders to try where this one has none, to see what the database does then."""
        plain = replace(self, first_committer_wins=False, one_writer=False, read_locks=False)
        return list(dict.fromkeys((self, plain, replace(plain, snapshot=False, late_snapshot=False))))


CURRENT = Discipline("each statement sees what is committed")

# How databases make transactions serial; of PostgreSQL only the part that an order of statements can keep to.
_SERIAL = {
    "postgresql": Discipline("snapshots, and more", snapshot=True, first_committer_wins=True),
    "mysql": Discipline("reads are locked", read_locks=True),
    "sqlite": Discipline("snapshots, one writer", snapshot=True, first_committer_wins=True, one_writer=True),
}


def discipline(database: Database | None, isolation: str, settings: Mapping[str, str] | None = None) -> Discipline:
    """That of a setting; ``settings`` of the server may change it. Of what is not known, the weakest."""
    if database is None:
        return CURRENT
    if database.name == "sqlite":
        return _SERIAL["sqlite"]
    setting = database.setting_named(isolation)
    if setting is None or setting.model is None:
        return CURRENT
    model = setting.model
    if model.is_serial:
        return _SERIAL.get(database.name, CURRENT)
    found = of_model(model)
    strict = str((settings or {}).get("innodb_snapshot_isolation", "")).upper() in ("ON", "1")
    return replace(found, first_committer_wins=True) if strict and found.snapshot else found


def of_model(model: Model) -> Discipline:
    """How a model of the table runs statements that are about one row each."""
    return Discipline(
        model.title,
        snapshot=model.select == "snapshot",
        late_snapshot=model.late_snapshot,
        first_committer_wins=model.first_committer_wins,
        read_locks=model.locks_reads,
    )
