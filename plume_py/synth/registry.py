"""Levels by the names that people give them, and those that a file defines."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.text import display
from plume_py.levels import NAMES, RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER, ORDERS, REALTIME, asked, strong_name
from plume_py.synth.definition import Definition, describe_error
from plume_py.synth.formulas import DEFINITIONS

_SPELLED = {name.upper(): name for name in DEFINITIONS}
_ORDERS = f"an order may follow: {', '.join(f'@{order}' for order in ORDERS)}"
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
    meant = asked(stem)
    level = stem if meant is None else meant.level
    suffix = _FORMS.get(form.upper(), "@" + form) if form else ""
    spelled = _SPELLED.get(f"{level}{suffix}".upper())
    if spelled is None:
        known = [*DEFINITIONS, *(defined or ())]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}, or --define FILE; {_ORDERS}"
        raise IsocheckError(f"'{display(name)}' is not a level; {hint}")
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


def load_definitions(path: str) -> dict[str, Definition]:
    """The levels that a Python file defines. The file is run, with all that it may do."""
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(path) from None
    names: dict[str, object] = {"__name__": "levels", "__file__": path}
    try:
        exec(compile(source, path, "exec"), names)  # noqa: S102 - what --define is for, and says
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the file does is the user's to mend
        line = getattr(error, "lineno", None)
        where = f"line {line}" if line else ""
        raise InputError(describe_error(error), where=where, hint="correct the file").in_source(path) from None
    found: dict[str, Definition] = {}
    for value in names.values():
        if isinstance(value, Definition) and found.setdefault(value.name, value) is not value:
            problem = f"'{display(str(value.name))}' is defined twice"
            raise InputError(problem, hint="give one of them another name").in_source(path)
    _reject(found, path)
    return found


def _reject(definitions: Mapping[str, Definition], path: str) -> None:
    if not definitions:
        hint = "write: from plume_py.synth import level, then @level before a function of h and w"
        raise InputError("defines no level", hint=hint).in_source(path)
    for name in definitions:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
            problem = f"'{display(str(name))}' is no name for a level"
            raise InputError(problem, hint="use letters and digits").in_source(path)
        if name.upper() in _SPELLED or asked(name) is not None:
            raise InputError(f"'{display(name)}' is the name of a level already", hint="choose another").in_source(path)


def definitions(
    names: Iterable["str | Definition"], defined: Mapping[str, Definition] | None = None
) -> list[Definition]:
    """The levels of these names; what is a definition already stays as it is."""
    return [name if isinstance(name, Definition) else definition(name, defined) for name in names]
