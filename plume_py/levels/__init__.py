"""What an isolation level is (``table``), whom it lets one see (``visibility``), what breaks it (``patterns``), and
what databases make of it (``databases``)."""

from plume_py.levels.table import (
    CODES,
    DEFAULT,
    GROUPS,
    LEVELS,
    NAMES,
    RUNNABLE,
    STRONG,
    STRONGEST,
    STRONGEST_FIRST,
    WEAK,
    WEAKEST,
    Level,
    levels_that_see,
    parse_level,
    sees,
    sees_of,
    strongest_weak_level_below,
    weaker_levels,
)

__all__ = [
    "CODES",
    "DEFAULT",
    "GROUPS",
    "LEVELS",
    "NAMES",
    "RUNNABLE",
    "STRONG",
    "STRONGEST",
    "STRONGEST_FIRST",
    "WEAK",
    "WEAKEST",
    "Level",
    "levels_that_see",
    "parse_level",
    "sees",
    "sees_of",
    "strongest_weak_level_below",
    "weaker_levels",
]
