"""Choose isolation levels of a database by the names that a user gives: the database's own, or levels of isocheck."""

from collections.abc import Mapping

from plume_py.base.errors import IsocheckError
from plume_py.base.text import similar
from plume_py.collect.adapter import Adapter, normalize_isolation
from plume_py.collect.client import Isolation
from plume_py.levels import parse_level


def chosen_isolations(adapter: Adapter, isolation: str | None, mix: Mapping[str, float]) -> list[Isolation]:
    """Return the isolation levels of ``mix`` with their weights, or the single one, or the default of the database."""
    if not adapter.isolations:
        raise IsocheckError(f"the adapter {type(adapter).__name__} names no isolation levels")
    weights: dict[str, float] = {}
    for text, weight in (mix or {isolation or next(iter(adapter.isolations)): 1.0}).items():
        name = _name(adapter, text)
        weights[name] = weights.get(name, 0) + weight
    return [isolation_named(adapter, name, weight) for name, weight in weights.items()]


def isolation_named(adapter: Adapter, text: str, weight: float = 1.0) -> Isolation:
    """Return the isolation level with this name, and the level that the database promises for it."""
    name = _name(adapter, text)
    promise = adapter.isolations[name]
    return Isolation(name, promise.level, weight, promise.remark)


def with_variants(adapter: Adapter, isolations: list[Isolation]) -> list[Isolation]:
    """Return the isolation levels, and the levels that replicas provide instead of them."""
    if not adapter.nodes():
        return isolations
    variants = dict.fromkeys(name for isolation in isolations for name in adapter.variants(isolation.name))
    present = {isolation.name for isolation in isolations}
    return [*isolations, *(isolation_named(adapter, name) for name in variants if name not in present)]


def _name(adapter: Adapter, text: str) -> str:
    """Return the database's name for an isolation level. Raise IsocheckError with a suggestion if there is none."""
    if normalize_isolation(text) in adapter.isolations:
        return normalize_isolation(text)
    level = parse_level(text)
    for name, promise in adapter.isolations.items():
        if level is not None and promise.level == level:
            return name
    near = similar(text, adapter.isolations)
    if near is not None and level is None:
        raise IsocheckError(f"{adapter.name} has no isolation level {text!r:.40}. Did you mean {near!r}?")
    known = ", ".join(f"{name} ({promise.level or 'no level'})" for name, promise in adapter.isolations.items())
    raise IsocheckError(f"{adapter.name} has no isolation level {text!r:.40}; it has {known}")
