"""Levels by the names that people give them."""

from collections.abc import Iterable, Mapping

from plume_py.base.errors import IsocheckError
from plume_py.base.text import display, shorten, similar
from plume_py.levels import GROUPS, NAMES, RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, ORDERS, REALTIME, level_request, strong_name, unknown_level
from plume_py.levels.table import normalized
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.formulas import DEFINITIONS

_SPELLED = {name.upper(): name for name in DEFINITIONS}
_OTHERS = {"UPDATE-ATOMIC": "UA"}  # the other names that definitions have
_COMMON = f"Common levels: {', '.join(NAMES)}, SSER. `isocheck levels` lists all of them."
_ORDERS = f"An order may follow a name: {', '.join(f'@{order}' for order in ORDERS)}."
_FORMS = {"CO": "", "B": "", "VIS": "@vis", "AR": "@vis", "TAP": "@tap"}


def definition(name: str, defined: Mapping[str, Definition] | None = None) -> Definition:
    """The level of that name: ``SI``, ``SI@co``, ``SI@vis``, ``RA@tap``, an alias of it, or one of ``defined``.

    Some names say an order between transactions (``SSER``, ``StrongSI@vis``); to any other it can be added
    (``UA@realtime``, ``SI@vis@none``).
    """
    named, order = _and_order(name.strip())
    if defined and named in defined:
        return defined[named] if order is None else in_order(defined[named], order)
    stem, _, form = named.partition("@")
    meant = level_request(stem)
    level = _OTHERS.get(normalized(stem), stem) if meant is None else meant.level
    suffix = _FORMS.get(form.upper(), "@" + form) if form else ""
    spelled = _SPELLED.get(f"{level}{suffix}".upper())
    if spelled is None:
        message = unknown_level(name, (*(defined or ()), *NAMES, "SSER", *GROUPS))
        if "Use one of" not in message:
            raise IsocheckError(message)
        near = similar(name, (*DEFINITIONS, *(defined or ())))
        hint = f"Did you mean {near}?" if near else f"{_COMMON} {_ORDERS}"
        raise IsocheckError(f"unknown level {shorten(name, 40)!r}. {hint}")
    found = DEFINITIONS[spelled]
    if meant is not None and meant.name != meant.level:  # the name says the order
        if order is not None:
            raise IsocheckError(f"'{display(name)}' says its order twice; write {meant.name} or {level}@{order}")
        return found.in_order(meant.order, meant.name + suffix)
    return found if order is None else in_order(found, order)


def in_order(level: Definition, order: str) -> Definition:
    """The level with this order, under a name that says both."""
    if order == DEFAULT_ORDER:
        return level
    stem, at, form = level.name.partition("@")
    if order == REALTIME and stem in RUNNABLE:
        return level.in_order(order, strong_name(stem, order) + at + form)
    return level.in_order(order, f"{level.name}@{order}")


def _and_order(name: str) -> tuple[str, str | None]:
    """``SI@vis@none``: the name, and the order that is added to it."""
    stem, _, order = name.rpartition("@")
    return (stem, order.lower()) if stem and order.lower() in ORDERS else (name, None)


def checker_level(definition: Definition) -> str | None:
    """The level that ``isocheck check`` decides for the same histories, if there is one."""
    stem = definition.level.partition("@")[0]
    return stem if stem in NAMES or stem == "declared" else None


def is_taken(name: str) -> bool:
    """Is there a level of that name already?"""
    return name.upper() in _SPELLED or level_request(name) is not None


def definitions(
    names: Iterable["str | Definition"], defined: Mapping[str, Definition] | None = None
) -> list[Definition]:
    """The levels of these names; what is a definition already stays as it is."""
    return [name if isinstance(name, Definition) else definition(name, defined) for name in names]
