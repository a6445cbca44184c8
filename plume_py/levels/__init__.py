"""What an isolation level is (``table``), and what breaks it (``patterns``)."""

from plume_py.levels.table import LEVELS, NAMES, WEAK, Level, parse_level, weaker_levels

__all__ = ["LEVELS", "NAMES", "WEAK", "Level", "parse_level", "weaker_levels"]
