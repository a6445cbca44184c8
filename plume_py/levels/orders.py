"""The order between transactions that a level respects: none, session order, or session order and real time.

The order takes the position of session order in all axioms. In real time, t1 comes before t2 if t1 is known to have
ended before t2 began; per key, they must also access a common key. A user requests a level with an order. Some of these
pairs have a name, such as SSER, and Jepsen's names contain the order.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from plume_py.base.text import shorten, similar
from plume_py.levels.table import LEVELS, NAMES, RUNNABLE, STRONGEST, normalized, parse_level

NONE, SESSION, REALTIME, PER_KEY = ORDERS = ("none", "session", "realtime", "realtime-per-key")
DEFAULT_ORDER = SESSION
TIMED = frozenset({REALTIME, PER_KEY})  # orders that need times of transactions

# MEANING: the meaning of an order in words. IF: what is allowed if a level holds only with this order.
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

# Names of levels with their order: a prefix, or a name like SSER.
NAMED = {SESSION: "StrongSession", REALTIME: "Strong"}
_OWN_NAMES = {(STRONGEST, REALTIME): "SSER"}
_OWN_SPELLINGS = {"STRICT-1SR": "SSER"}
_PREFIXES = (("STRONG-SESSION-", SESSION), ("STRONG-", REALTIME), ("STRICT-", REALTIME))

# Names of levels that isocheck does not decide, and the reason.
_NO_LEVELS = {
    "READ-UNCOMMITTED": "isocheck decides no level that weak.",
    "CURSOR-STABILITY": "isocheck cannot decide it, because histories do not record cursors.",
}


@dataclass(frozen=True)
class LevelRequest:
    """A level that a user requests: the name to show, the level, and the order."""

    name: str
    level: str
    order: str


def level_request(spelling: str, order: str = DEFAULT_ORDER) -> LevelRequest | None:
    """Return the level that ``spelling`` requests, with ``order`` unless the name contains one; None if unknown."""
    plain = normalized(spelling)
    level = parse_level(plain)
    if level is not None:
        return LevelRequest(level, level, order)
    return _BY_SPELLING.get(_OWN_SPELLINGS.get(plain, plain).upper()) or _with_prefix(plain)


def unknown_level(spelling: str, usable: Iterable[str] = NAMES) -> str:
    """Return the message for a name that is not in ``usable``; it suggests the most similar name."""
    names = list(usable)
    spellings = {alias: name for name in names if name in LEVELS for alias in LEVELS[name].aliases}
    near = similar(normalized(spelling), names) or similar(normalized(spelling), spellings)
    if normalized(spelling) in _NO_LEVELS:
        advice = _NO_LEVELS[normalized(spelling)]
    elif near is not None and level_request(spelling) is None:
        advice = f"Did you mean {near}?"
    else:
        advice = f"Use one of {', '.join(names)}."
    return f"unknown level {shorten(spelling, 40)!r}. {advice}"


def level_of(name: str) -> str:
    """Return the name without its order: the level. A name without an order is returned unchanged."""
    found = _BY_SPELLING.get(name.upper())
    return found.level if found is not None else name


def order_in(name: str) -> str | None:
    """Return the order that a name contains, or None."""
    found = _BY_SPELLING.get(name.upper())
    return found.order if found is not None else None


def in_lattice_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of output: levels from weak to strong, then names with an order, then others."""
    positions = {name: at for at, name in enumerate(NAMES)}

    def sort_key(name: str) -> tuple[bool, bool, int, str]:
        level = level_of(name)
        return level not in positions, name not in positions, positions.get(level, 0), name

    return sorted(names, key=sort_key)


def strong_name(level: str, order: str) -> str:
    """Return the name of a level with this order."""
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
