"""What database engines offer per transaction, and which mixes of it can be relied on.

A catalogue lists levels from the cheapest on, with the engine's own names. ``mixiso`` is the theory: any mix of levels.
The engines differ from it in what their strongest level promises when others run below it; the notes say how.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plume_py.allocate.space import Space
from plume_py.base.errors import IsocheckError

DEFAULT_COSTS = {"RC": 0.5, "RA": 1.0, "TCC": 2.0, "PC": 3.0, "PSI": 4.0, "SI": 5.0, "SER": 6.0}


@dataclass(frozen=True)
class Catalogue:
    """The levels of one engine."""

    name: str
    levels: Mapping[str, str]  # our name -> the engine's
    note: str
    adjust: "Callable[[Space, list[str]], list[str]] | None" = None

    def offered(self, costs: Mapping[str, float]) -> list[str]:
        """From the cheapest on."""
        return sorted(self.levels, key=lambda level: costs.get(level, DEFAULT_COSTS[level]))

    def spelled(self, level: str) -> str:
        """As one sets it in the engine."""
        return self.levels.get(level, f"{level} (not offered)")


def _ssi_sees_only_its_own(space: Space, levels: list[str]) -> list[str]:
    """PostgreSQL aborts one of three SERIALIZABLE transactions that form a pair of RW edges; it does not track others.

    So whoever can be a partner of a pivot has to be SERIALIZABLE as well.
    """
    pivots = [g for g, level in enumerate(levels) if level == "SER"]
    partners = space.partners(pivots, levels)
    return ["SER" if g in partners else level for g, level in enumerate(levels)]


def _snapshot_for_readers_only(space: Space, levels: list[str]) -> list[str]:
    """InnoDB's REPEATABLE READ updates the latest version, not the snapshot that its SELECTs see, and its locking reads
    see that, too: no level of ours if the transaction does either."""
    writers = {
        case.group[p]
        for case in space.cases
        for p in case.judged
        if any(access.writes or access.locks for access in case.workload.instances[p].accesses)
    }
    return ["SER" if level == "PC" and g in writers else level for g, level in enumerate(levels)]


CATALOGUES = {
    catalogue.name: catalogue
    for catalogue in (
        Catalogue(
            "mixiso",
            {level: level for level in ("RA", "PC", "PSI", "SI", "SER")},
            "any mix of levels, each kept by the transaction that asks for it",
        ),
        Catalogue(
            "postgresql",
            {"RC": "READ COMMITTED", "SI": "REPEATABLE READ", "SER": "SERIALIZABLE"},
            "SERIALIZABLE only tracks SERIALIZABLE transactions, so the partners of a pivot are raised, too",
            _ssi_sees_only_its_own,
        ),
        Catalogue(
            "mysql",
            {"RC": "READ COMMITTED", "PC": "REPEATABLE READ", "SER": "SERIALIZABLE"},
            "InnoDB: SERIALIZABLE locks what it reads, against everybody; REPEATABLE READ is used for readers only",
            _snapshot_for_readers_only,
        ),
        Catalogue(
            "sqlserver",
            {"RC": "READ COMMITTED", "SI": "SNAPSHOT", "SER": "SERIALIZABLE"},
            "SERIALIZABLE locks what it reads, against everybody",
        ),
        Catalogue(
            "oracle",
            {"RC": "READ COMMITTED", "SI": "SERIALIZABLE"},
            "Oracle's SERIALIZABLE is snapshot isolation; what needs more has to lock (SELECT … FOR UPDATE)",
        ),
    )
}


def allocate(
    space: Space,
    catalogue: Catalogue,
    pins: Mapping[int, str] | None = None,
    costs: Mapping[str, float] | None = None,
) -> list[str]:
    """The cheapest level at which each group is no pivot; where the catalogue has none, SER all the same."""
    pins, costs = pins or {}, costs or {}
    offered = catalogue.offered(costs)
    table = space.safe(offered)
    levels = [offered[int(row.argmax())] if row.any() else "SER" for row in table]
    levels = [pins.get(g, level) for g, level in enumerate(levels)]
    levels = _raise_unguarded(space, levels)
    if catalogue.adjust is not None:
        levels = catalogue.adjust(space, levels)
    return [pins.get(g, level) for g, level in enumerate(levels)]


def _raise_unguarded(space: Space, levels: list[str]) -> list[str]:
    """SI counts on partners that look out for common writes; without such partners it has to be SER."""
    if all(level in ("PSI", "SI", "SER") for level in levels):
        return levels
    return ["SER" if level == "SI" and space.pivot(g, level, levels) else level for g, level in enumerate(levels)]


def find_pins(
    space: Space, programs: Sequence[str], wanted: Mapping[str, str], option: str = "--pin"
) -> dict[int, str]:
    """Levels by group from levels by the name of a group or of its program."""
    pins: dict[int, str] = {}
    for name, level in wanted.items():
        chosen = [g for g, group in enumerate(space.groups) if name in (group, programs[g])]
        if not chosen:
            raise IsocheckError(f"{option}: {name}: no program or instance has this name")
        pins.update(dict.fromkeys(chosen, level))
    return pins
