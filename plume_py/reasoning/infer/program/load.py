"""Programs by name, from Python files and from SQL files."""

import runpy
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from plume_py.base.errors import InputError, IsocheckError, LimitError
from plume_py.reasoning.infer.embed import App
from plume_py.reasoning.infer.program.ir import Application
from plume_py.reasoning.infer.program.wellformed import validate

if TYPE_CHECKING:
    from plume_py.base.sql.log_programs import LogFile

BUILT_IN = (
    "courseware",
    "tpcc",
    "tpcc_lite",
    "bank",
    "withdrawal",
    "savings",
    "add_interest",
    "doctors",
    "unique_ids",
    "counters",
)


_NOT_MYSQL = {
    "ON CONFLICT": ("is not in MySQL", "write INSERT … ON DUPLICATE KEY UPDATE"),
    "UPDATE … FROM": ("is not in MySQL, whose UPDATE … JOIN is not supported", "read the value first"),
    "INSERT … SELECT": (
        "is not supported for MySQL, which reads the newest rows there and locks them",
        "use FOR row IN SELECT … FOR UPDATE LOOP INSERT … END LOOP",
    ),
    "FOR SHARE": ("is not supported for MySQL, which reads the newest row there", "use FOR UPDATE"),
}


def load_with_log(name: str, log: str) -> "tuple[Application, LogFile]":
    """The tables and the invariant of a SQL file, with the transactions of a log; and the log as it was understood."""
    from plume_py.base.sql.log_programs import load_log
    from plume_py.reasoning.infer.program.from_sql import translate

    if name in BUILT_IN or name.endswith(".py"):
        raise IsocheckError("--from-log adds transactions to the tables and the invariant of a SQL file")
    found = load_log(log, name)
    with found.located_errors():
        return validate(translate(found.file)), found


def load(name: str) -> Application:
    """A built-in application, or a file. A Python file is executed."""
    if name in BUILT_IN:
        from importlib import import_module

        app: App = import_module(f"plume_py.reasoning.infer.apps.{name}").app
        return validate(app.program())
    if not Path(name).exists():
        hint = f"give a file, or an example: {', '.join(BUILT_IN)}"
        raise InputError("no such file, and no example of this name", hint=hint).in_source(name)
    try:
        return validate(_python(name) if name.endswith(".py") else _sql(name))
    except InputError as error:
        raise error.in_source(name) from None
    except RecursionError:
        raise InputError("an expression is nested too deeply", hint="split it").in_source(name) from None


def require_dialect(program: Application, store: str) -> None:
    """An error for statements that the store does not have: it would run something else."""
    for spelled, line in program.dialects:
        if spelled in _NOT_MYSQL and store == "mysql":
            said, hint = _NOT_MYSQL[spelled]
            raise InputError(f"{spelled} {said}", where=f"line {line}", hint=hint).in_source(program.name)


def _sql(path: str) -> Application:
    from plume_py.base.sql.files import load as load_sql
    from plume_py.reasoning.infer.program.from_sql import translate

    return translate(load_sql(path))


def _python(path: str) -> Application:
    try:
        found = runpy.run_path(path, run_name="isocheck_app")
    except (InputError, LimitError):
        raise
    except SyntaxError as error:
        raise InputError(f"not Python: {error.msg}", where=f"line {error.lineno}") from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f"line {lines[-1]}" if lines else ""
        raise InputError(f"{type(error).__name__}: {error}", where=where) from None
    apps = [value for value in found.values() if isinstance(value, App)]
    if len(apps) != 1:
        raise InputError(f"{len(apps)} applications", hint="the file should make one App, as in app = App('name')")
    return apps[0].program()
