"""Levels of one's own: what a user writes is made a definition, and what goes wrong in it is told with its line."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, cast, overload
from typing import Literal as OneOf

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.logic import Literal
from plume_py.base.text import display
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.reasoning.synth.definition import Body, Definition, Form, Premise, Witness, Written, axiom, seen_by
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.registry import definition, is_taken
from plume_py.reasoning.synth.structures import KINDS, Structure

# "axiom" is of the form co: a function of the history alone that returns the premise of an axiom.
OwnForm = OneOf["co", "vis", "history", "axiom"]
_FORMS = ("co", "vis", "history", "axiom")


@overload
def level(body: Callable[..., Any]) -> Definition: ...
@overload
def level(
    *, form: OwnForm = "co", name: str | None = None, witness: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Definition]: ...


def level(
    body: Callable[..., Any] | None = None,
    *,
    form: OwnForm = "co",
    name: str | None = None,
    witness: Mapping[str, str] | None = None,
) -> Definition | Callable[[Callable[..., Any]], Definition]:
    """Make a level of a function of a history ``h`` and a witness ``w``; its name is the function's, unless given.

    ``witness`` declares what the witness consists of, instead of one of the forms: by name an order, versions or a
    relation, as in ``{"v": "versions"}`` for ``w.v``.
    """
    if form not in _FORMS:
        raise ValueError(f"form={form!r} is not a form of levels; use co, vis, history or axiom")
    structure = _structure(witness, form) if witness is not None else ()

    def define(body: Callable[..., Any]) -> Definition:
        text = " ".join((body.__doc__ or "").split())
        code = body.__code__
        called, written = name or body.__name__, Written(code.co_filename, code.co_firstlineno)
        if form == "axiom":
            premise = _guarded_premise(body)

            def obeyed(h: View, w: Witness) -> Literal:
                return axiom(h, w.co, premise(h))

            return Definition(called, "co", obeyed, text, premise, ordered=True, written=written)
        kind: Form = "own" if structure else form
        return Definition(called, kind, _guarded(body), text, ordered=True, structure=structure, written=written)

    return define if body is None else define(body)


def _structure(witness: Mapping[str, str], form: str) -> Structure:
    """What is declared, if it can be."""
    if form != "co":
        raise ValueError(f"form={form!r} has a witness of its own: declare none")
    taken = (*Witness.__dataclass_fields__, "co", "ar", "vis")
    for name, kind in witness.items():
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a kind of witness; use {', '.join(KINDS)}")
        if not str(name).isidentifier() or str(name).startswith("_") or name in taken:
            raise ValueError(f"{name!r} is no name for a part of a witness; use another")
    if not witness:
        raise ValueError('a witness of nothing: use form="history"')
    return tuple(witness.items())


def shows(h: View, w: Witness, level: str | Definition) -> Literal:
    """Does the same witness show that level, too? One by its name, or one's own.

    Where that level speaks of session order, the order of ``h`` is meant, unless its name says another.
    """
    other = level if isinstance(level, Definition) else definition(level)
    if other.form == "own" and any(w.declared.get(name, (None,))[0] != kind for name, kind in other.structure):
        raise TypeError(f"{other.name} declares a witness of its own: declare the same")
    if other.form == "vis" and w.visibility is None:
        raise TypeError(f'{other.name} is about visibility: use it in @level(form="vis")')
    view = h if other.order == DEFAULT_ORDER else h.in_order(other.order)
    return other.shown(view, w)


class _Careful:
    """A view for definitions that come from outside: Python's own "and", "or", "not" are no use on literals."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def all(self, literals: Iterable[Literal]) -> Literal:
        """As of the view."""
        h = self._view
        return h.formula.all_of(_literal(literal, h) for literal in h.noted(literals))

    def any(self, literals: Iterable[Literal]) -> Literal:
        """As of the view."""
        return self._view.any(_literal(literal, self._view) for literal in literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        """As of the view."""
        return self._view.implies(_literal(a, self._view), _literal(b, self._view))


def _literal(value: Literal, h: View) -> Literal:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < abs(value) <= h.formula.variables:
        raise TypeError(f"{value!r:.40} is no formula: use h.all, h.any, h.implies and -a for and, or, if and not")
    return value


def _careful(h: View) -> View:
    return h if isinstance(h, _Careful) else cast(View, _Careful(h))


def _guarded(body: Body) -> Body:
    """What goes wrong in a user's definition is told in one line, with its name and where it stands."""

    def guarded(h: View, w: Witness) -> Literal:
        try:
            return _literal(body(_careful(h), w), h)
        except IsocheckError:
            raise
        except (Exception, SystemExit) as error:  # a level that exits would pass for an answer
            raise _told(error, body) from error

    return guarded


def _guarded_premise(body: Callable[[View], Premise]) -> Callable[[View], Premise]:
    """The same of a level that is the premise of an axiom."""

    def guarded(h: View) -> Premise:
        try:
            premise = body(_careful(h))
            if not callable(premise):
                raise TypeError(f"{premise!r:.40} is no premise: return one, as seen_by(h.so)")
        except IsocheckError:
            raise
        except (Exception, SystemExit) as error:
            raise _told(error, body) from error
        if isinstance(premise, seen_by):
            return premise

        def guarded_premise(t1: int, t2: int, t3: int, x: int) -> Literal:
            try:
                return _literal(premise(t1, t2, t3, x), h)
            except (Exception, SystemExit) as error:
                raise _told(error, body) from error

        return guarded_premise

    return guarded


def _told(error: BaseException, body: Callable[..., Any]) -> IsocheckError:
    code = body.__code__
    line = line_of(error.__traceback__, code.co_filename) or code.co_firstlineno
    return IsocheckError(f"{Written(code.co_filename, line)}: level {body.__name__}: {describe_error(error)}")


def line_of(trace: TracebackType | None, file: str) -> int | None:
    """The innermost line of this file that was being run when the error was raised."""
    line = None
    while trace is not None:
        code: CodeType = trace.tb_frame.f_code
        if code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def describe_error(error: BaseException) -> str:
    """Kind and message of what code of a user's raised; even its message may fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


# -- files -------------------------------------------------------------------------------------------------------


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
        line = line_of(error.__traceback__, path) or getattr(error, "lineno", None)
        where = f"line {line}" if line else ""
        raise InputError(describe_error(error), where=where, hint="correct the file").in_source(path) from None
    found: dict[str, Definition] = {}
    for value in names.values():
        if isinstance(value, Definition) and not (value.written is None and is_taken(str(value.level))):  # that is ours
            _reject(value, found.setdefault(value.name, value), path)
    if not found:
        hint = "write: from plume_py.reasoning.synth import level, then @level before a function of h and w"
        raise InputError("defines no level", hint=hint).in_source(path)
    return found


def _reject(level: Definition, first: Definition, path: str) -> None:
    """A name must be one, be free, and stand for one level."""
    name, line = level.name, level.written.line if level.written else 0

    def wrong(problem: str, hint: str) -> InputError:
        return InputError(problem, where=f"line {line}", hint=hint).in_source(path)

    if first is not level:
        raise wrong(f"'{display(str(name))}' is defined twice", "give one of them another name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise wrong(f"'{display(str(name))}' is no name for a level", "use letters and digits")
    if is_taken(name):
        raise wrong(f"'{display(name)}' is the name of a level already", "choose another")
