"""From one good run to the runs that could have been: which of them break the target?"""

from plume_py.levels import levels_that_see
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS

# The levels that a predicted run may keep, and those that it may break.
LEVELS = levels_that_see(0, without=EVERYTHING)
TARGETS = tuple(reversed(levels_that_see(PREFIX | WRITERS)))
