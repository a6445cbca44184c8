"""The isolation levels: names, aliases, lattice, and the pattern letters that belong to each.

This is the one place to touch when a level is added; the command line, the reports and the readers ask here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """One isolation level: ``weaker`` names the levels directly below it in the lattice."""

    name: str
    title: str
    weaker: tuple[str, ...]
    aliases: tuple[str, ...]
    definition: str


LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        Level(
            "CI",
            "cut isolation",
            (),
            ("cut", "cut-isolation"),
            "a transaction reads a key from at most one other transaction",
        ),
        Level(
            "RC",
            "read committed",
            (),
            ("read-committed",),
            "t2 commits before t1 when t3 read from t2 before it read x from t1",
        ),
        Level(
            "RA",
            "read atomic",
            ("RC", "CI"),
            ("read-atomic", "read-atomicity"),
            "t2 commits before t1 when t2 precedes t3 in its session or t3 read from t2",
        ),
        Level(
            "TCC",
            "transactional causal consistency",
            ("RA",),
            ("CC", "causal", "causal-consistency"),
            "t2 commits before t1 when t2 is causally before t3",
        ),
        Level(
            "PC",
            "prefix consistency",
            ("TCC",),
            ("prefix", "prefix-consistency"),
            "every transaction reads from a prefix of the commit order",
        ),
        Level(
            "PSI",
            "parallel snapshot isolation",
            ("TCC",),
            ("parallel-snapshot", "parallel-snapshot-isolation"),
            "causal snapshots, and of two concurrent writers of one key only one commits",
        ),
        Level(
            "SI",
            "snapshot isolation",
            ("PC", "PSI"),
            ("snapshot", "snapshot-isolation"),
            "prefix snapshots, and of two concurrent writers of one key only one commits",
        ),
        Level(
            "SER",
            "serializability",
            ("SI",),
            ("serializable", "serializability"),
            "t2 commits before t1 when t2 commits before t3",
        ),
    )
}

NAMES: tuple[str, ...] = tuple(LEVELS)
WEAK: tuple[str, ...] = ("CI", "RC", "RA", "TCC")

_BY_SPELLING = {
    spelling.upper().replace("_", "-"): level.name
    for level in LEVELS.values()
    for spelling in (level.name, *level.aliases)
}


def parse_level(spelling: str) -> str | None:
    """The canonical name of a level, or None: any case, '_' and ' ' as good as '-'."""
    return _BY_SPELLING.get(spelling.strip().upper().replace("_", "-").replace(" ", "-"))


def weaker_levels(name: str) -> set[str]:
    """Every level strictly below ``name`` in the lattice."""
    below: set[str] = set()
    for direct in LEVELS[name].weaker:
        below |= {direct} | weaker_levels(direct)
    return below
