"""Isolation levels (``table``), their orders (``orders``), visible transactions (``visibility``), anomalies
(``patterns``), and the levels of databases (``databases``)."""

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
    strongest_weak_level_below,
    visibility_bits,
    visibility_column,
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
    "strongest_weak_level_below",
    "visibility_bits",
    "visibility_column",
    "weaker_levels",
]
