"""Which levels can be watched, and in which order between transactions."""

from collections.abc import Sequence

from plume_py.levels import GROUPS, WEAK
from plume_py.levels.orders import (
    NONE,
    REALTIME,
    SESSION,
    LevelRequest,
    in_lattice_order,
    level_request,
    unknown_level,
)

WATCHED_ORDERS = (NONE, SESSION, REALTIME)


def watched(levels: str | Sequence[str], order: str) -> list[LevelRequest]:
    """Return what a user asks for, groups such as "weak" included, from weak to strong; all of it in one order."""
    given = [levels] if isinstance(levels, str) else list(levels)
    spelled = [name for spelling in given for name in GROUPS.get(spelling.strip().lower(), (spelling,))]
    meant = {spelling: level_request(spelling, order) for spelling in spelled}
    wrong = sorted(spelling for spelling, found in meant.items() if found is None or found.level not in WEAK)
    if wrong and meant[wrong[0]] is None:
        raise ValueError(unknown_level(wrong[0], WEAK))
    if wrong or not meant:
        raise ValueError(f"cannot watch {' '.join(wrong) or 'no level'}; use some of {' '.join(WEAK)}")
    found = {each.name: each for each in meant.values() if each is not None}
    orders = sorted({each.order for each in found.values()})
    if len(orders) > 1 or orders[0] not in WATCHED_ORDERS:
        raise ValueError(f"cannot watch {' and '.join(orders)} order; use one of {' '.join(WATCHED_ORDERS)}")
    return [found[name] for name in in_lattice_order(found)]
