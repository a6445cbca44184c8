"""Concurrency control of databases: how orders of commits and statements determine the versions that reads return.

It is derived from the table of databases (levels/databases.py), whose models describe statements in general. Here each
statement reads or writes one row, found by its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plume_py.levels.databases import Database, Model


@dataclass(frozen=True)
class ConcurrencyControl:
    """A concurrency control: writes are locked until the end of their transaction, and further rules apply."""

    title: str
    snapshot: bool = False  # all reads see the state at the first statement
    late_snapshot: bool = False  # the snapshot is taken at the first read instead
    first_committer_wins: bool = False  # a write of a key that was committed after the snapshot fails
    one_writer: bool = False  # first_committer_wins applies to any two writers, whatever their keys
    read_locks: bool = False  # reads are locked until the end of the transaction, too

    def weaker(self) -> "list[ConcurrencyControl]":
        """Return it and weaker ones. Their orders are tried if it has none, to see what the database does then."""
        plain = replace(self, first_committer_wins=False, one_writer=False, read_locks=False)
        return list(dict.fromkeys((self, plain, replace(plain, snapshot=False, late_snapshot=False))))


CURRENT = ConcurrencyControl("each statement sees what is committed")

# Concurrency control at SERIALIZABLE; for PostgreSQL only the part that an order of statements can obey.
_SERIAL = {
    "postgresql": ConcurrencyControl("snapshots, and more", snapshot=True, first_committer_wins=True),
    "mysql": ConcurrencyControl("reads are locked", read_locks=True),
    "sqlite": ConcurrencyControl("snapshots, one writer", snapshot=True, first_committer_wins=True, one_writer=True),
}


def concurrency_control(
    database: Database | None, isolation: str, settings: Mapping[str, str] | None = None
) -> ConcurrencyControl:
    """Return the concurrency control of an isolation level; of an unknown one, the weakest.

    Server ``settings`` may change it.
    """
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


def of_model(model: Model) -> ConcurrencyControl:
    """Return the concurrency control of a model in the table, for statements about one row."""
    return ConcurrencyControl(
        model.title,
        snapshot=model.select == "snapshot",
        late_snapshot=model.late_snapshot,
        first_committer_wins=model.first_committer_wins,
        read_locks=model.locks_reads,
    )
