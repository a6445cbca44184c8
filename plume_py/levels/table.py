"""The table of isolation levels, the single source of their properties.

At every level, the earlier transactions of its session and the transactions that it read from are visible to a
transaction. It must read the newest visible version of a key. Five bits say which further transactions are visible.
They determine which level implies which, whether a commit order must be searched for, and what the kernels check.

The definitions use t3 for a reader of key x, t1 for the writer that it read from, and t2 for another writer of x. If t3
reads a version older than t2's, it "misses" t2.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Transactions that are also visible. Bits, so that a kernel can test a whole column; a stronger level has more bits.
AT_COMMIT = 1  # the same for all reads; without it, a read sees only the transactions that were read from before it
TRANSITIVE = 2  # all that is visible to a visible transaction
PREFIX = 4  # all that commit before a visible transaction (implies TRANSITIVE)
WRITERS = 8  # all earlier writers of a key that it writes: of two concurrent writers only one commits
EVERYTHING = 16  # all that commit before it (implies PREFIX and WRITERS)


@dataclass(frozen=True)
class Level:
    """One isolation level."""

    name: str
    title: str
    visibility: int | None  # the bits above; None if the level does not constrain commit orders
    definition: str
    rule: str  # the last sentence of a proof
    aliases: tuple[str, ...]
    jepsen: str  # the weakest of Elle's models that is violated whenever this level is, without sessions
    adya: str = ""  # Adya's name, if there is one

    @property
    def needs_search(self) -> bool:
        """Whether visibility depends on the commit order; if not, the forced edges decide the level."""
        return bool((self.visibility or 0) & (PREFIX | WRITERS | EVERYTHING))

    def implies(self, other: "Level") -> bool:
        """Return whether every history that satisfies this level satisfies the other."""
        if self is other:
            return True
        if other.visibility is None:  # with the same visible set at all reads, a key is read from one transaction
            return bool((self.visibility or 0) & AT_COMMIT)
        return self.visibility is not None and not other.visibility & ~self.visibility

    @cached_property
    def weaker(self) -> tuple[str, ...]:
        """The levels directly below it in the lattice, levels that constrain commit orders first."""
        below = [LEVELS[name] for name in weaker_levels(self.name)]
        direct = [level for level in below if not any(level is not b and b.implies(level) for b in below)]
        return tuple(
            level.name for level in sorted(direct, key=lambda level: (level.visibility is None, level.visibility))
        )


LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        Level(
            "CI",
            "cut isolation",
            None,
            "a transaction reads a key from at most one other transaction",
            "at CI a transaction reads a key from one other transaction only",
            ("cut", "cut-isolation"),
            "read-atomic",
        ),
        Level(
            "RC",
            "read committed",
            0,
            "t2 commits before t1 when t3 read from t2 before it read x from t1",
            "at RC a transaction that has read from another one sees all of it from then on",
            ("read-committed", "monotonic-atomic-view"),
            "monotonic-atomic-view",
        ),
        Level(
            "RA",
            "read atomic",
            AT_COMMIT,
            "t2 commits before t1 when t2 precedes t3 in its session or t3 read from t2",
            "at RA a transaction sees all of whom it read from, and of its session's past",
            ("read-atomic", "read-atomicity"),
            "read-atomic",
        ),
        Level(
            "TCC",
            "transactional causal consistency",
            AT_COMMIT | TRANSITIVE,
            "t2 commits before t1 when t2 is causally before t3",
            "at TCC a transaction sees all that those saw whom it sees",
            ("CC", "causal", "causal-consistency", "transactional-causal-consistency", "causal-cerone"),
            "causal-cerone",
        ),
        Level(
            "PC",
            "prefix consistency",
            AT_COMMIT | TRANSITIVE | PREFIX,
            "every transaction reads from a prefix of the commit order",
            "at PC a transaction sees a prefix of the commit order, so all that it saw comes before all that it missed",
            ("prefix", "prefix-consistency"),
            "prefix",
        ),
        Level(
            "PSI",
            "parallel snapshot isolation",
            AT_COMMIT | TRANSITIVE | WRITERS,
            "causal snapshots, and of two concurrent writers of one key only one commits",
            "at PSI a transaction sees every earlier writer of what it writes, and all that those saw",
            ("parallel-snapshot", "parallel-snapshot-isolation", "consistent-view"),
            "parallel-snapshot-isolation",
            "PL-2+",
        ),
        Level(
            "SI",
            "snapshot isolation",
            AT_COMMIT | TRANSITIVE | PREFIX | WRITERS,
            "prefix snapshots, and of two concurrent writers of one key only one commits",
            "at SI a transaction sees a prefix of the commit order that holds every earlier writer of what it writes",
            ("snapshot", "snapshot-isolation", "repeatable-read"),
            "snapshot-isolation",
            "PL-SI",
        ),
        Level(
            "SER",
            "serializability",
            AT_COMMIT | TRANSITIVE | PREFIX | WRITERS | EVERYTHING,
            "t2 commits before t1 when t2 commits before t3",
            "at SER a transaction sees all that comes before it, so it comes before whatever it missed",
            ("serializable", "serializability"),
            "serializable",
            "PL-3",
        ),
    )
}

NAMES: tuple[str, ...] = tuple(LEVELS)
WEAK: tuple[str, ...] = tuple(name for name, level in LEVELS.items() if not level.needs_search)

# RUNNABLE: the levels that a transaction can run at, because they constrain commit orders. STRONGEST_FIRST: the same,
# sorted by their bits, since the bits of a level are a larger number than the bits of all levels that it implies.
# STRONG: the levels among them that need a search.
RUNNABLE: tuple[str, ...] = tuple(name for name, level in LEVELS.items() if level.visibility is not None)
STRONGEST_FIRST: tuple[str, ...] = tuple(sorted(RUNNABLE, key=lambda name: LEVELS[name].visibility or 0, reverse=True))
STRONG: tuple[str, ...] = tuple(name for name in STRONGEST_FIRST if LEVELS[name].needs_search)
STRONGEST, WEAKEST = STRONGEST_FIRST[0], STRONGEST_FIRST[-1]

# Names for several levels.
GROUPS: dict[str, tuple[str, ...]] = {"all": NAMES, "weak": WEAK}

# The default level: the strongest that remains available during a network partition.
DEFAULT = "TCC"

# Codes of levels in a history's column of levels; 0 for a transaction without a level.
CODES: dict[str, int] = {name: 1 + i for i, name in enumerate(NAMES)}


def normalized(spelling: str) -> str:
    """Return a spelling in capitals, with '-' for spaces and '_', and with the American z."""
    return re.sub(r"[\s_-]+", "-", spelling[:100].strip()).upper().replace("ISAB", "IZAB")


_BY_SPELLING = {
    normalized(spelling): level.name for level in LEVELS.values() for spelling in (level.name, *level.aliases)
}


def parse_level(spelling: str) -> str | None:
    """Return the canonical name of a level, or None; case, '_', ' ' and '-' make no difference."""
    return _BY_SPELLING.get(normalized(spelling))


def weaker_levels(name: str) -> set[str]:
    """Return all levels strictly below ``name`` in the lattice."""
    return {other.name for other in LEVELS.values() if other.name != name and LEVELS[name].implies(other)}


def visibility_bits(name: str) -> int:
    """Return the visibility bits of a level; 0 if it does not constrain commit orders."""
    return LEVELS[name].visibility or 0


def levels_that_see(bits: int, without: int = 0) -> tuple[str, ...]:
    """Return the levels that have all of ``bits``, and none of ``without``."""
    return tuple(name for name in RUNNABLE if visibility_bits(name) & (bits | without) == bits)


def strongest_weak_level_below(names: Iterable[str]) -> str:
    """Return the strongest level below all of these that needs no search."""
    common = AT_COMMIT | TRANSITIVE
    for name in names:
        common &= visibility_bits(name)
    return next(name for name in STRONGEST_FIRST if name in WEAK and not visibility_bits(name) & ~common)


def visibility_column(codes: "NDArray[np.uint8]") -> "NDArray[np.uint8]":
    """Return the visibility bits for each of an array of level codes."""
    import numpy as np

    bits: NDArray[np.uint8] = np.array([0, *map(visibility_bits, NAMES)], np.uint8)[codes]
    return bits
