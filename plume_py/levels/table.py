"""The isolation levels: a row each. Whoever wants to know something about a level asks here.

A transaction sees its session's past and whom it read from; of what it sees, it must read the newest version. A level
says what else is seen, in five bits, and the rest follows from these: which level implies which, whether a commit order
has to be searched for, and what the kernels ask of a transaction. A transaction that reads a version before t2's has
missed t2; the definitions speak of a read of x by t3 from t1, and of another writer t2 of x.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What a transaction sees besides. Bits, so that a kernel can ask a whole column; a stronger level has more of them.
AT_COMMIT = 1  # the same for all its reads; without it, a read sees only whom the transaction has read from so far
TRANSITIVE = 2  # whom those that it sees, see
PREFIX = 4  # all that commits before someone it sees (brings TRANSITIVE)
WRITERS = 8  # every earlier writer of a key that it writes: of two concurrent ones only one commits
EVERYTHING = 16  # all that commits before it (brings PREFIX and WRITERS)


@dataclass(frozen=True)
class Level:
    """One isolation level."""

    name: str
    title: str
    sees: int | None  # None: it is not about commit orders
    definition: str
    rule: str  # how a proof ends
    aliases: tuple[str, ...]
    jepsen: str  # the weakest of Elle's models that is broken where this one is, sessions aside
    adya: str = ""  # where one fits

    @property
    def needs_search(self) -> bool:
        """Does what is seen depend on the commit order? Else the edges that it forces decide."""
        return bool((self.sees or 0) & (PREFIX | WRITERS | EVERYTHING))

    def implies(self, other: "Level") -> bool:
        """Does every history that keeps this level keep the other?"""
        if self is other:
            return True
        if other.sees is None:  # who sees the same all the time reads a key from one transaction
            return bool((self.sees or 0) & AT_COMMIT)
        return self.sees is not None and not other.sees & ~self.sees

    @cached_property
    def weaker(self) -> tuple[str, ...]:
        """The levels directly below it in the lattice, those about commit orders first."""
        below = [LEVELS[name] for name in weaker_levels(self.name)]
        direct = [level for level in below if not any(level is not b and b.implies(level) for b in below)]
        return tuple(level.name for level in sorted(direct, key=lambda level: (level.sees is None, level.sees)))


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

# The levels that a transaction can run at, since they say something about commit orders; the same, strongest first (a
# level's bits are a larger number than those of all that it implies); and of these the ones that need a search.
RUNNABLE: tuple[str, ...] = tuple(name for name, level in LEVELS.items() if level.sees is not None)
STRONGEST_FIRST: tuple[str, ...] = tuple(sorted(RUNNABLE, key=lambda name: LEVELS[name].sees or 0, reverse=True))
STRONG: tuple[str, ...] = tuple(name for name in STRONGEST_FIRST if LEVELS[name].needs_search)
STRONGEST, WEAKEST = STRONGEST_FIRST[0], STRONGEST_FIRST[-1]

# Several levels by one word.
GROUPS: dict[str, tuple[str, ...]] = {"all": NAMES, "weak": WEAK}

# What a single level is where nothing is said: the strongest that stays available when the network does not.
DEFAULT = "TCC"

# How a history notes the level of a transaction; 0 where it has none.
CODES: dict[str, int] = {name: 1 + i for i, name in enumerate(NAMES)}


def folded(spelling: str) -> str:
    """Return a spelling in capitals, with '-' for spaces and '_', and with the American z."""
    return re.sub(r"[\s_-]+", "-", spelling[:100].strip()).upper().replace("ISAB", "IZAB")


_BY_SPELLING = {folded(spelling): level.name for level in LEVELS.values() for spelling in (level.name, *level.aliases)}


def parse_level(spelling: str) -> str | None:
    """Return the canonical name of a level, or None; case, '_', ' ' and '-' make no difference."""
    return _BY_SPELLING.get(folded(spelling))


def weaker_levels(name: str) -> set[str]:
    """Every level strictly below ``name`` in the lattice."""
    return {other.name for other in LEVELS.values() if other.name != name and LEVELS[name].implies(other)}


def sees(name: str) -> int:
    """What a transaction at this level sees, as bits."""
    return LEVELS[name].sees or 0


def levels_that_see(bits: int, without: int = 0) -> tuple[str, ...]:
    """The levels at which a transaction sees all of ``bits``, and nothing of ``without``."""
    return tuple(name for name in RUNNABLE if sees(name) & (bits | without) == bits)


def strongest_weak_level_below(names: Iterable[str]) -> str:
    """The strongest level below all of these that needs no search."""
    common = AT_COMMIT | TRANSITIVE
    for name in names:
        common &= sees(name)
    return next(name for name in STRONGEST_FIRST if name in WEAK and not sees(name) & ~common)


def sees_of(codes: "NDArray[np.uint8]") -> "NDArray[np.uint8]":
    """A column of codes as a column of bits."""
    import numpy as np

    bits: NDArray[np.uint8] = np.array([0, *map(sees, NAMES)], np.uint8)[codes]
    return bits
