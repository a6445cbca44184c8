"""Predict runs of an application that violate a level, from one observed run that satisfies it."""

from plume_py.levels import levels_that_see
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

# Levels that a predicted run may satisfy, and levels that it may violate.
LEVELS = levels_that_see(0, without=EVERYTHING)
TARGETS = tuple(reversed(levels_that_see(PREFIX | WRITERS)))
