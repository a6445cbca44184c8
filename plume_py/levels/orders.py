"""Which order between transactions a level respects: none, that of each session, or real time.

In every axiom session order is replaced by nothing, by itself, or by itself together with real time: t1 comes before t2
if t1 is known to have ended before t2 began (per key: if they also touch a common key). A level with its order is what
a user asks for; some have names of their own, and Jepsen's names say the order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from plume_py.base.text import shorten, similar
from plume_py.levels.table import LEVELS, NAMES, RUNNABLE, STRONGEST, folded, parse_level

NONE, SESSION, REALTIME, PER_KEY = ORDERS = ("none", "session", "realtime", "realtime-per-key")
DEFAULT_ORDER = SESSION
TIMED = frozenset({REALTIME, PER_KEY})  # for these, times must be known

# What an order asks for, in words; and what a level that holds only then allows.
MEANING = {
    NONE: "what was read from whom is all that counts",
    SESSION: "each session in its order",
    REALTIME: "each session in its order, and who ended comes before who began later",
    PER_KEY: "each session in its order, and who ended comes before who began later and touches a common key",
}
IF = {
    NONE: "sessions may be reordered",
    SESSION: "only the order of each session counts",
    PER_KEY: "real time counts only between transactions with a common key",
}
WEAKER = {NONE: (), SESSION: (NONE,), REALTIME: (PER_KEY, SESSION, NONE), PER_KEY: (SESSION, NONE)}

# Names that say the level and its order: a prefix, or one of their own.
NAMED = {SESSION: "StrongSession", REALTIME: "Strong"}
_OWN_NAMES = {(STRONGEST, REALTIME): "SSER"}
_OWN_SPELLINGS = {"STRICT-1SR": "SSER"}
_PREFIXES = (("STRONG-SESSION-", SESSION), ("STRONG-", REALTIME), ("STRICT-", REALTIME))

# Names of SQL and of cursors that no level here has, and why.
_NO_LEVELS = {
    "READ-UNCOMMITTED": "isocheck decides no level that weak.",
    "CURSOR-STABILITY": "isocheck cannot decide it, because histories do not record cursors.",
}


@dataclass(frozen=True)
class LevelRequest:
    """A level as somebody asks for it: what it is called, and what that means."""

    name: str
    level: str
    order: str


def level_requests(spelling: str, order: str = DEFAULT_ORDER) -> LevelRequest | None:
    """What a spelling means where nothing else is said but ``order``; None: no level is called so."""
    plain = folded(spelling)
    level = parse_level(plain)
    if level is not None:
        return LevelRequest(level, level, order)
    return _BY_SPELLING.get(_OWN_SPELLINGS.get(plain, plain).upper()) or _with_prefix(plain)


def unknown_level(spelling: str, usable: Iterable[str] = NAMES) -> str:
    """Return the message for a name that is none of the levels that are ``usable``: it suggests the nearest one."""
    names = list(usable)
    spellings = {alias: name for name in names if name in LEVELS for alias in LEVELS[name].aliases}
    near = similar(folded(spelling), names) or similar(folded(spelling), spellings)
    if folded(spelling) in _NO_LEVELS:
        advice = _NO_LEVELS[folded(spelling)]
    elif near is not None and level_requests(spelling) is None:
        advice = f"Did you mean {near}?"
    else:
        advice = f"Use one of {', '.join(names)}."
    return f"unknown level {shorten(spelling, 40)!r}. {advice}"


def level_of(name: str) -> str:
    """The level behind a name that says its order as well; any other name stays."""
    found = _BY_SPELLING.get(name.upper())
    return found.level if found is not None else name


def order_in(name: str) -> str | None:
    """The order that a name says, if it says one."""
    found = _BY_SPELLING.get(name.upper())
    return found.order if found is not None else None


def in_lattice_order(names: Iterable[str]) -> list[str]:
    """Names as they are shown: the levels from weak to strong, then those whose names say an order, then the rest."""
    places = {name: at for at, name in enumerate(NAMES)}

    def place(name: str) -> tuple[bool, bool, int, str]:
        level = level_of(name)
        return level not in places, name not in places, places.get(level, 0), name

    return sorted(names, key=place)


def strong_name(level: str, order: str) -> str:
    """What a level with this order is called."""
    return _OWN_NAMES.get((level, order)) or NAMED[order] + level


def _with_prefix(plain: str) -> LevelRequest | None:
    for prefix, order in _PREFIXES:
        level = parse_level(plain.removeprefix(prefix)) if plain.startswith(prefix) else None
        if level in RUNNABLE:
            return LevelRequest(strong_name(level, order), level, order)
    return None


_BY_SPELLING = {
    name.upper(): LevelRequest(name, level, order)
    for level in LEVELS
    for order in (SESSION, REALTIME)
    for name in (strong_name(level, order),)
    if level in RUNNABLE
}
