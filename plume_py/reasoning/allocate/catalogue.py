"""Describe the isolation levels that each engine offers per transaction, and allocate them.

A catalogue maps our levels to the engine's names. It is derived from a row of levels.databases. ``mixiso`` is the
catalogue of the theory, where any mix of levels is allowed. Engines differ from the theory in two ways, which
``Adjustment`` functions repair by raising levels: a guarantee may depend on the levels of the other transactions, or
hold for read-only transactions only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from plume_py.base.errors import IsocheckError
from plume_py.levels import STRONGEST, STRONGEST_FIRST, levels_that_see, visibility_bits
from plume_py.levels.databases import DATABASES, Database
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.reasoning.allocate.search_space import Space

# Default weights: the position from the weakest level. The weakest level costs 0.5, so that its use is not free.
DEFAULT_COSTS = {level: max(0.5, float(place)) for place, level in enumerate(reversed(STRONGEST_FIRST))}

# Takes the levels that the rules ask for and returns those to set in the engine.
Adjustment = Callable[[Space, list[str]], list[str]]


@dataclass(frozen=True)
class Catalogue:
    """The levels of one engine."""

    name: str
    engine_names: Mapping[str, str]  # our name of each level it provides -> the engine's name
    note: str
    adjustments: tuple[Adjustment, ...] = ()

    @cached_property
    def levels(self) -> Mapping[str, str]:
        """Our levels worth choosing -> the engine's name. Of levels that differ only in TRANSITIVE, the weakest.

        No rule depends on TRANSITIVE alone (what a transaction sees through others).
        """
        weakest: dict[int, str] = {}
        for level in self.engine_names:
            weakest.setdefault(visibility_bits(level) & ~TRANSITIVE, level)
        return {level: self.engine_names[level] for level in weakest.values()}

    def levels_by_cost(self, costs: Mapping[str, float]) -> list[str]:
        return sorted(self.levels, key=lambda level: costs.get(level, DEFAULT_COSTS[level]))

    def adjust(self, space: Space, levels: list[str]) -> list[str]:
        """Return the levels, raised where the engine guarantees less than our definitions."""
        for adjustment in self.adjustments:
            levels = adjustment(space, levels)
        return levels

    def engine_name(self, level: str) -> str:
        return self.levels.get(level, f"{level} (not offered)")


def _raise_partners(level: str, space: Space, levels: list[str]) -> list[str]:
    """Raise the partners of pivots at ``level`` to this level.

    PostgreSQL aborts one of three SERIALIZABLE transactions that form a pair of consecutive RW edges. It does not track
    the edges of other transactions, so every possible partner of a pivot has to be SERIALIZABLE as well.
    """
    pivots = [g for g, own in enumerate(levels) if own == level]
    partners = space.partners(pivots, levels)
    return [level if g in partners else own for g, own in enumerate(levels)]


def _raise_writers(level: str, space: Space, levels: list[str]) -> list[str]:
    """Raise transactions at ``level`` that write or lock to the strongest level.

    InnoDB's REPEATABLE READ updates the latest version instead of the snapshot that its SELECTs see. Its locking reads
    see the latest version, too. No level of ours describes a transaction that does either.
    """
    writers = {
        case.group[p]
        for case in space.cases
        for p in case.judged
        if any(access.writes or access.locks for access in case.workload.instances[p].accesses)
    }
    return [STRONGEST if own == level and g in writers else own for g, own in enumerate(levels)]


def _catalogue(database: Database) -> Catalogue:
    """Return the catalogue of a database: the level that each setting safely provides, and the adjustments it needs."""
    safe = {setting.safe_as: setting for setting in database.settings if setting.safe_as is not None}
    return Catalogue(
        database.name,
        {level: setting.name for level, setting in safe.items()},
        database.note,
        (
            *(partial(_raise_partners, level) for level, setting in safe.items() if setting.beside_weaker),
            *(partial(_raise_writers, level) for level, setting in safe.items() if setting.readers_only),
        ),
    )


CATALOGUES = {database.name: _catalogue(database) for database in DATABASES.values() if database.note}


def allocate(
    space: Space,
    catalogue: Catalogue,
    pins: Mapping[int, str] | None = None,
    costs: Mapping[str, float] | None = None,
) -> list[str]:
    """Return the level of each group: the cheapest one at which it is not a pivot.

    A group for which the catalogue has no such level gets the strongest level, even if the catalogue does not offer it.
    ``pins`` fixes the level of some groups; ``costs`` orders the levels.
    """
    pins, costs = pins or {}, costs or {}
    offered = catalogue.levels_by_cost(costs)
    table = space.safe(offered)
    levels = [offered[int(row.argmax())] if row.any() else STRONGEST for row in table]
    levels = [pins.get(g, level) for g, level in enumerate(levels)]
    levels = _raise_where_partners_ignore_writes(space, levels)
    levels = catalogue.adjust(space, levels)
    return [pins.get(g, level) for g, level in enumerate(levels)]


def _raise_where_partners_ignore_writes(space: Space, levels: list[str]) -> list[str]:
    """Raise groups from SI to SER where a partner's level ignores common writes.

    The rules for SI assume that the partners of a pivot detect common writes (WRITERS).
    """
    if all(visibility_bits(level) & WRITERS for level in levels):
        return levels
    snapshot_levels = levels_that_see(PREFIX | WRITERS, without=EVERYTHING)
    return [
        STRONGEST if level in snapshot_levels and space.pivot(g, level, levels) else level
        for g, level in enumerate(levels)
    ]


def find_pins(
    space: Space, programs: Sequence[str], by_name: Mapping[str, str], option: str = "--pin"
) -> dict[int, str]:
    """Return levels by group number, from levels by the name of a group or of its program."""
    pins: dict[int, str] = {}
    for name, level in by_name.items():
        chosen = [g for g, group in enumerate(space.groups) if name in (group, programs[g])]
        if not chosen:
            raise IsocheckError(f"{option}: {name}: no program or instance has this name")
        pins.update(dict.fromkeys(chosen, level))
    return pins
