"""What an isolation level is (``table``), and what breaks it (``patterns``)."""

from plume_py.levels.table import (
    CODES,
    DEFAULT,
    LEVELS,
    NAMES,
    STRONG,
    STRONGEST_FIRST,
    WEAK,
    Level,
    parse_level,
    sees,
    sees_of,
    weaker_levels,
)

__all__ = [
    "CODES",
    "DEFAULT",
    "LEVELS",
    "NAMES",
    "STRONG",
    "STRONGEST_FIRST",
    "WEAK",
    "Level",
    "parse_level",
    "sees",
    "sees_of",
    "weaker_levels",
]
