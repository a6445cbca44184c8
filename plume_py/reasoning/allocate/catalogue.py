"""What engines offer per transaction, and which mixes of it can be relied on: rows of levels.databases and stores.

A catalogue lists levels from the cheapest on, with the engine's own names. ``mixiso`` is the theory: any mix of levels.
The engines differ from it in what a setting promises when others run below it, or to those who write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from plume_py.base.errors import IsocheckError
from plume_py.levels import STRONGEST, STRONGEST_FIRST, levels_that_see, visibility_bits
from plume_py.levels.databases import DATABASES, Database
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.reasoning.allocate.search_space import Space

# Each level costs more than those before it; the weakest one is not for nothing.
DEFAULT_COSTS = {level: max(0.5, float(place)) for place, level in enumerate(reversed(STRONGEST_FIRST))}

# Levels as an engine is asked to keep them -> as it has to be asked.
Adjustment = Callable[[Space, list[str]], list[str]]


@dataclass(frozen=True)
class Catalogue:
    """The levels of one engine."""

    name: str
    spellings: Mapping[str, str]  # of all levels that it keeps: our name -> the engine's
    note: str
    adjustments: tuple[Adjustment, ...] = ()

    @cached_property
    def levels(self) -> Mapping[str, str]:
        """Those that may be worth their price: no rule asks for what is seen through others (TRANSITIVE) alone."""
        weakest: dict[int, str] = {}
        for level in self.spellings:
            weakest.setdefault(visibility_bits(level) & ~TRANSITIVE, level)
        return {level: self.spellings[level] for level in weakest.values()}

    def levels_by_cost(self, costs: Mapping[str, float]) -> list[str]:
        """From the cheapest on."""
        return sorted(self.levels, key=lambda level: costs.get(level, DEFAULT_COSTS[level]))

    def adjust(self, space: Space, levels: list[str]) -> list[str]:
        """Raised where the engine promises less than our levels do."""
        for adjustment in self.adjustments:
            levels = adjustment(space, levels)
        return levels

    def spelled(self, level: str) -> str:
        """As one sets it in the engine."""
        return self.levels.get(level, f"{level} (not offered)")


def _sees_only_its_own(level: str, space: Space, levels: list[str]) -> list[str]:
    """PostgreSQL aborts one of three SERIALIZABLE transactions that form a pair of RW edges; it does not track others.

    So whoever can be a partner of a pivot has to be SERIALIZABLE as well.
    """
    pivots = [g for g, own in enumerate(levels) if own == level]
    partners = space.partners(pivots, levels)
    return [level if g in partners else own for g, own in enumerate(levels)]


def _for_readers_only(level: str, space: Space, levels: list[str]) -> list[str]:
    """InnoDB's REPEATABLE READ updates the latest version, not the snapshot that its SELECTs see, and its locking reads
    see that, too: no level of ours if the transaction does either."""
    writers = {
        case.group[p]
        for case in space.cases
        for p in case.judged
        if any(access.writes or access.locks for access in case.workload.instances[p].accesses)
    }
    return [STRONGEST if own == level and g in writers else own for g, own in enumerate(levels)]


def _catalogue(database: Database) -> Catalogue:
    """What may be counted on, and what has to be added to that."""
    safe = {setting.safe_as: setting for setting in database.settings if setting.safe_as is not None}
    return Catalogue(
        database.name,
        {level: setting.name for level, setting in safe.items()},
        database.note,
        (
            *(partial(_sees_only_its_own, level) for level, setting in safe.items() if setting.beside_weaker),
            *(partial(_for_readers_only, level) for level, setting in safe.items() if setting.readers_only),
        ),
    )


CATALOGUES = {database.name: _catalogue(database) for database in DATABASES.values() if database.note}


def allocate(
    space: Space,
    catalogue: Catalogue,
    pins: Mapping[int, str] | None = None,
    costs: Mapping[str, float] | None = None,
) -> list[str]:
    """The cheapest level at which each group is no pivot; where the catalogue has none, the strongest all the same."""
    pins, costs = pins or {}, costs or {}
    levels_by_cost = catalogue.levels_by_cost(costs)
    table = space.safe(levels_by_cost)
    levels = [levels_by_cost[int(row.argmax())] if row.any() else STRONGEST for row in table]
    levels = [pins.get(g, level) for g, level in enumerate(levels)]
    levels = _raise_unguarded(space, levels)
    levels = catalogue.adjust(space, levels)
    return [pins.get(g, level) for g, level in enumerate(levels)]


def _raise_unguarded(space: Space, levels: list[str]) -> list[str]:
    """SI counts on partners that look out for common writes; without such partners it has to be SER."""
    if all(visibility_bits(level) & WRITERS for level in levels):
        return levels
    counting = levels_that_see(PREFIX | WRITERS, without=EVERYTHING)
    return [
        STRONGEST if level in counting and space.pivot(g, level, levels) else level for g, level in enumerate(levels)
    ]


def find_pins(
    space: Space, programs: Sequence[str], by_name: Mapping[str, str], option: str = "--pin"
) -> dict[int, str]:
    """Levels by group from levels by the name of a group or of its program."""
    pins: dict[int, str] = {}
    for name, level in by_name.items():
        chosen = [g for g, group in enumerate(space.groups) if name in (group, programs[g])]
        if not chosen:
            raise IsocheckError(f"{option}: {name}: no program or instance has this name")
        pins.update(dict.fromkeys(chosen, level))
    return pins
