"""Read and write workload files: MixIso's JSON, with templates or with instances.

The format has four optional additions. An operation may have ``"conditional": true`` and ``"locks": true``; an instance
``"session": name``; a parameter may be ``"*"`` for every row of a table; next to the templates, ``"sessions"`` lists
sequences of programs that sessions run.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import InputError
from plume_py.base.json_names import reject_same_names
from plume_py.base.text import nearest, shorten
from plume_py.levels import RUNNABLE, parse_level
from plume_py.levels.orders import unknown_level
from plume_py.reasoning.allocate.workload import KINDS, Access, Instance, Program, Workload

_OF_OPERATIONS = ("id", "type", "key", "params", "conditional", "locks")
_PLAIN = {"id", "type", "key"}

# MixIso's names of levels, all of which `parse_level` accepts.
LONG_NAMES = {
    parse_level(name): name
    for name in (
        "READ_COMMITTED",
        "READ_ATOMIC",
        "CAUSAL_CONSISTENCY",
        "PREFIX_CONSISTENCY",
        "PARALLEL_SNAPSHOT_ISOLATION",
        "SNAPSHOT_ISOLATION",
        "SERIALIZABLE",
    )
}


def load_workload(path: str | Path) -> Workload:
    """Read a JSON file of either kind. Templates are returned as programs without instances."""
    try:
        content = Path(path).read_bytes()
        data = json.loads(content)
        reject_same_names(content)
        return parse_workload(data, str(path))
    except InputError as error:
        raise error.in_source(str(path)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(_reason(error), hint="a workload is a JSON object with a list `templates`").in_source(
            str(path)
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not JSON: nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"


def _only(entry: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    """Raise an error for an unknown field, because its meaning would be lost."""
    for name in entry:
        if name not in known:
            raise InputError(f"unknown field {shorten(name)!r}", where=where, hint=nearest(name, known))


def parse_workload(data: Any, source: str = "workload") -> Workload:
    """Return the workload from parsed JSON."""
    entries = data.get("templates") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise InputError("no list `templates`", hint="a workload is a JSON object with a list `templates`")
    _only(data, ("templates", "sessions"), "")
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("operations"), list):
            raise InputError("neither a template nor an instance: no list `operations`", where=f"templates[{i}]")
    if any("params" in entry or "percentage" in entry for entry in entries):
        programs = [_program(entry, f"templates[{i}]") for i, entry in enumerate(entries)]
        _no_name_twice([program.name for program in programs])
        followers = _followers(data.get("sessions"), {program.name for program in programs})
        return Workload([], [], programs, source, followers)
    if data.get("sessions") is not None:
        hint = 'give each instance its session: "session": "name"'
        raise InputError("`sessions` is for templates, but these are instances", hint=hint)
    return _instances(entries, source)


def _followers(sessions: Any, names: set[str]) -> frozenset[str] | None:
    """Return the programs with a predecessor in one of the sessions' sequences; None if none are given."""
    if sessions is None:
        return None
    if not isinstance(sessions, list) or not all(isinstance(session, list) for session in sessions):
        raise InputError("`sessions` is not a list of lists of program names")
    for i, session in enumerate(sessions):
        for name in session:
            if not isinstance(name, str) or name not in names:
                raise InputError(f"no program is called {shorten(str(name))!r}", where=f"sessions[{i}]")
    return frozenset(name for session in sessions for name in session[1:])


def _instances(entries: list[dict[str, Any]], source: str) -> Workload:
    instances: list[Instance] = []
    known: dict[tuple[str, str], Access] = {}
    sessions: dict[str, int] = {}
    for i, entry in enumerate(entries):
        where = f"templates[{i}]"
        _only(entry, ("name", "isolationLevel", "session", "operations"), where)
        name = _name(entry, where)
        program = name.rsplit("_", 1)[0] if name.rsplit("_", 1)[-1].isdigit() else name
        accesses = _accesses(entry["operations"], where, known)
        instances.append(Instance(name, program, accesses, _level(entry, where)))
        sessions.setdefault(_session(entry, i), len(sessions))
    _no_name_twice([instance.name for instance in instances])
    return Workload(instances, [sessions[_session(entry, i)] for i, entry in enumerate(entries)], [], source)


def _session(entry: dict[str, Any], place: int) -> str:
    return f"={entry['session']}" if "session" in entry else f"#{place}"


def _program(entry: dict[str, Any], where: str) -> Program:
    _only(entry, ("name", "params", "percentage", "isolationLevel", "operations"), where)
    params = entry.get("params", [])
    if not isinstance(params, list) or not all(isinstance(param, str) for param in params):
        raise InputError("`params` is not a list of names", where=where)
    accesses = tuple(_access(op, f"{where}.operations[{j}]") for j, op in enumerate(entry["operations"]))
    share = entry.get("percentage")
    if share is not None and (not isinstance(share, int | float) or not 0 <= share <= 1):
        raise InputError("`percentage` is not a number from 0 to 1", where=where)
    return Program(_name(entry, where), tuple(params), accesses, _level(entry, where), share)


def _accesses(operations: list[Any], where: str, known: dict[tuple[str, str], Access]) -> tuple[Access, ...]:
    """Return the accesses of an instance. Equal ones are shared, because instances have few cells and many accesses."""
    found = []
    for i, op in enumerate(operations):
        key = _simple(op)
        access = known.get(key) if key is not None else None
        if access is None:
            access = _access(op, f"{where}.operations[{i}]")
            if not access.whole_table:  # one spelling per cell
                access = replace(access, table=access.cell, key=())
            if key is not None:
                known[key] = access
        found.append(access)
    return tuple(found)


def _simple(op: Any) -> tuple[str, str] | None:
    """Return type and key of an operation that has no other fields that matter, else None."""
    if type(op) is not dict or not op.keys() <= _PLAIN:
        return None
    kind, cell = op.get("type"), op.get("key")
    return (kind, cell) if type(kind) is str and type(cell) is str else None


def _access(op: Any, where: str) -> Access:
    if not isinstance(op, dict) or not isinstance(op.get("key"), str):
        raise InputError("an operation needs a `type` and a `key`", where=where)
    _only(op, _OF_OPERATIONS, where)
    kind = str(op.get("type")).upper()
    if kind not in KINDS:
        raise InputError(f"type {shorten(str(op.get('type')))!r} is none of {', '.join(KINDS)}", where=where)
    params = op.get("params", [])
    params = [params] if isinstance(params, str) else params
    if not isinstance(params, list) or not all(isinstance(param, str) for param in params):
        raise InputError("`params` is neither a name nor a list of names", where=where)
    conditional, locks = (op.get(name, False) for name in ("conditional", "locks"))
    if not isinstance(conditional, bool) or not isinstance(locks, bool):
        raise InputError("`conditional` and `locks` are true or false", where=where)
    return Access(kind, op["key"], tuple(params), conditional, locks)


def _name(entry: dict[str, Any], where: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise InputError("no `name`", where=where)
    return name


def _level(entry: dict[str, Any], where: str) -> str | None:
    text = entry.get("isolationLevel")
    if text is None:
        return None
    level = parse_level(str(text))
    if level is None:
        raise InputError(unknown_level(str(text), RUNNABLE), where=where)
    return level


def _no_name_twice(names: list[str]) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            raise InputError(f"the name {shorten(name)!r} is used twice", where=f"templates[{i}]")
        seen.add(name)


def encode_workload(workload: Workload, levels: list[str] | None = None) -> dict[str, Any]:
    """Return the workload as MixIso's JSON. ``levels`` replaces the declared levels."""
    shared = len(set(workload.session)) < len(workload.instances)
    entries = []
    for i, instance in enumerate(workload.instances):
        level = levels[i] if levels else instance.level
        entry: dict[str, Any] = {"name": instance.name}
        if level:
            entry["isolationLevel"] = LONG_NAMES[level]
        if shared:
            entry["session"] = str(workload.session[i])
        entries.append(entry | {"operations": _operations(instance.accesses, bound=True)})
    return {"templates": entries}


def encode_programs(programs: list[Program], levels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the templates as MixIso's JSON."""
    entries = []
    for program in programs:
        entry: dict[str, Any] = {"name": program.name}
        level = levels[program.name] if levels else program.level
        if level:
            entry["isolationLevel"] = LONG_NAMES[level]
        if program.share is not None:
            entry["percentage"] = program.share
        entries.append(entry | {"params": list(program.params), "operations": _operations(program.accesses)})
    return {"templates": entries}


def _operations(accesses: tuple[Access, ...], *, bound: bool = False) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i, access in enumerate(accesses, 1):
        plain = bound and not access.whole_table
        row: dict[str, Any] = {"id": i, "type": access.kind, "key": access.cell if plain else access.table}
        if access.key and not plain:
            row["params"] = list(access.key)
        if access.conditional:
            row["conditional"] = True
        if access.locks:
            row["locks"] = True
        rows.append(row)
    return rows


def save(path: str, data: dict[str, Any]) -> None:
    """Write JSON atomically; "-" is standard output."""
    write_atomically(path, [json.dumps(data, indent=1).encode(), b"\n"])
