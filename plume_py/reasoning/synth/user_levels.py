"""User-defined levels: the decorator ``level``, files of definitions, and the checks on what users write.

Errors in a user's code are reported with the line of the definition. The search relies on keys and transactions being
interchangeable: it numbers keys in one way only, and uses the numbering of transactions as a commit order. A definition
that depends on numbers would lose histories, and different levels would appear to be equivalent. So
``require_equal_treatment`` evaluates each user-defined level on random tiny histories and witnesses, before and after
renaming, and rejects the level if the results differ.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, cast, overload
from typing import Literal as OneOf

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.base.text import display
from plume_py.history.model import INITIAL
from plume_py.levels import RUNNABLE
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn, ConcreteView
from plume_py.reasoning.synth.definition import (
    KINDS,
    Body,
    ConcreteWitness,
    Definition,
    Form,
    PartValue,
    Premise,
    SourceLine,
    Structure,
    Witness,
    axiom,
    seen_by,
    sequences,
)
from plume_py.reasoning.synth.formulas import definition, is_taken
from plume_py.reasoning.synth.history_terms import View

# "axiom" is a special case of "co": a function of the history alone that returns the premise of an axiom.
UserForm = OneOf["co", "vis", "history", "axiom"]
_FORMS = ("co", "vis", "history", "axiom")

# Random histories on which a definition is tried, and their largest size.
TRIALS, TRIAL_TXNS, TRIAL_KEYS = 150, 5, 4


@overload
def level(body: Callable[..., Any]) -> Definition: ...
@overload
def level(
    *, form: UserForm = "co", name: str | None = None, witness: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Definition]: ...


def level(
    body: Callable[..., Any] | None = None,
    *,
    form: UserForm = "co",
    name: str | None = None,
    witness: Mapping[str, str] | None = None,
) -> Definition | Callable[[Callable[..., Any]], Definition]:
    """Make a level from a function of a history ``h`` and a witness ``w``. Its default name is the function's.

    ``witness`` declares the parts of the witness by name and kind (order, versions, relation), instead of a ``form``:
    ``{"v": "versions"}`` declares ``w.v``.
    """
    if form not in _FORMS:
        raise ValueError(f"form={form!r} is not a form of levels; use co, vis, history or axiom")
    structure = _structure(witness, form) if witness is not None else ()

    kind: Form = "own" if structure else "co" if form == "axiom" else form

    def define(body: Callable[..., Any]) -> Definition:
        premise = _checked_premise(body) if form == "axiom" else None

        def obeyed(h: View, w: Witness) -> Literal:
            assert premise is not None
            return axiom(h, w.co, premise(h))

        return Definition(
            name or body.__name__,
            kind,
            _checked_body(body) if premise is None else obeyed,
            " ".join((body.__doc__ or "").split()),
            premise,
            uses_read_order=True,
            structure=structure,
            defined_at=SourceLine(body.__code__.co_filename, body.__code__.co_firstlineno),
        )

    return define if body is None else define(body)


def _structure(witness: Mapping[str, str], form: str) -> Structure:
    """Return the declared parts, or raise ValueError if they cannot be declared."""
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
    """Return a literal: the same witness satisfies another level, given by name or as a definition.

    The other level uses the session order of ``h``, unless its name includes an order.
    """
    other = level if isinstance(level, Definition) else definition(level)
    if other.form == "own" and any(w.declared.get(name, (None,))[0] != kind for name, kind in other.structure):
        raise TypeError(f"{other.name} declares a witness of its own: declare the same")
    if other.form == "vis" and w.visibility is None:
        raise TypeError(f'{other.name} is about visibility: use it in @level(form="vis")')
    return other.holds_in_view(h if other.order == DEFAULT_ORDER else h.in_order(other.order), w)


# -- checks while a definition is evaluated ----------------------------------------------------------------------


class _CheckedView:
    """A view that rejects values that are not literals, such as results of Python's "and", "or" and "not"."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def all(self, literals: Iterable[Literal]) -> Literal:
        h = self._view
        return h.formula.all_of(_literal(literal, h) for literal in h.noted(literals))

    def any(self, literals: Iterable[Literal]) -> Literal:
        return self._view.any(_literal(literal, self._view) for literal in literals)

    def implies(self, a: Literal, b: Literal) -> Literal:
        return self._view.implies(_literal(a, self._view), _literal(b, self._view))


def _literal(value: Literal, h: View) -> Literal:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < abs(value) <= h.formula.variables:
        raise TypeError(f"{value!r:.40} is no formula: use h.all, h.any, h.implies and -a for and, or, if and not")
    return value


def _checked_view(h: View) -> View:
    return h if isinstance(h, _CheckedView) else cast(View, _CheckedView(h))


def _checked_body(body: Body) -> Body:
    """Return the function of a level with its errors located and its result checked."""

    def checked(h: View, w: Witness) -> Literal:
        with _located_errors(body):
            return _literal(body(_checked_view(h), w), h)

    return checked


def _checked_premise(body: Callable[[View], Premise]) -> Callable[[View], Premise]:
    """Return the function of a level of form "axiom", and the premise that it returns, with the same checks."""

    def checked(h: View) -> Premise:
        with _located_errors(body):
            premise = body(_checked_view(h))
            if not callable(premise):
                raise TypeError(f"{premise!r:.40} is no premise: return one, as seen_by(h.so)")
        if isinstance(premise, seen_by):
            return premise

        def checked_premise(t1: int, t2: int, t3: int, x: int) -> Literal:
            try:  # called for every triple, where a context manager would cost too much
                return _literal(premise(t1, t2, t3, x), h)
            except (Exception, SystemExit) as error:
                raise _located(error, body) from error

        return checked_premise

    return checked


@contextmanager
def _located_errors(body: Callable[..., Any]) -> Iterator[None]:
    """Convert errors of a user's code to IsocheckError with its line; SystemExit too, so that no exit is a verdict."""
    try:
        yield
    except IsocheckError:
        raise
    except (Exception, SystemExit) as error:
        raise _located(error, body) from error


def _located(error: BaseException, body: Callable[..., Any]) -> IsocheckError:
    code = body.__code__
    line = line_of(error.__traceback__, code.co_filename) or code.co_firstlineno
    return IsocheckError(f"{SourceLine(code.co_filename, line)}: level {body.__name__}: {describe_error(error)}")


def line_of(trace: TracebackType | None, file: str) -> int | None:
    """Return the innermost line of this file in a traceback."""
    line = None
    while trace is not None:
        code: CodeType = trace.tb_frame.f_code
        if code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def describe_error(error: BaseException) -> str:
    """Return type and message of an error of a user's code, or only the type if the message itself fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


# -- files -------------------------------------------------------------------------------------------------------


def load_definitions(path: str) -> dict[str, Definition]:
    """Return the levels that a Python file defines, by name. Running the file executes arbitrary code."""
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}").in_source(path) from None
    names: dict[str, object] = {"__name__": "levels", "__file__": path}
    try:
        exec(compile(source, path, "exec"), names)  # noqa: S102 - what --define is for, and says
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # includes SystemExit: any failure is an error in the file
        line = line_of(error.__traceback__, path) or getattr(error, "lineno", None)
        where = f"line {line}" if line else ""
        raise InputError(describe_error(error), where=where, hint="correct the file").in_source(path) from None
    found: dict[str, Definition] = {}
    for value in names.values():
        is_built_in = isinstance(value, Definition) and value.defined_at is None and is_taken(str(value.level))
        if isinstance(value, Definition) and not is_built_in:  # built-in levels can be imported and combined
            _require_valid_name(value, found.setdefault(value.name, value), path)
    if not found:
        hint = "write: from plume_py.reasoning.synth import level, then @level before a function of h and w"
        raise InputError("defines no level", hint=hint).in_source(path)
    return found


def _require_valid_name(level: Definition, first: Definition, path: str) -> None:
    """Raise InputError unless the name is valid, unused, and that of one level only."""
    name, line = level.name, level.defined_at.line if level.defined_at else 0

    def invalid(problem: str, hint: str) -> InputError:
        return InputError(problem, where=f"line {line}", hint=hint).in_source(path)

    if first is not level:
        raise invalid(f"'{display(str(name))}' is defined twice", "give one of them another name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise invalid(f"'{display(str(name))}' is no name for a level", "use letters and digits")
    if is_taken(name):
        raise invalid(f"'{display(name)}' is the name of a level already", "choose another")


# -- keys and transactions must be interchangeable ----------------------------------------------------------------


@cache
def require_equal_treatment(level: Definition) -> None:
    """Raise IsocheckError if renaming keys or transactions changes the value of a user-defined level."""
    if level.defined_at is None:
        return
    rng = random.Random(0)
    with Formula() as formula:
        for _ in range(TRIALS):
            history = _random_history(rng)
            witness = _random_witness(rng, level, history)
            value = _value(level, formula, history, witness)
            keys, order = list(history.keys), list(range(len(history.txns)))
            rng.shuffle(keys)
            rng.shuffle(order)
            number = dict(enumerate(keys))
            if _value(level, formula, history.with_keys(number), _with_keys(witness, number)) != value:
                what = "keys"
            elif _value(level, formula, history.renumbered(order), _renumbered(witness, order)) != value:
                what = "transactions"
            else:
                continue
            name = f"{level.defined_at}: level {level.name}"
            if {_value(level, formula, history, witness) for _ in range(2)} != {value}:
                raise IsocheckError(f"{name} says now this, now that of {history.short()}")
            raise IsocheckError(
                f"{name} treats {what} unequally: of {history.short()} it says something else if its {what} are"
                " renamed; numbers are names, so say the same of all of them"
            )


def _value(level: Definition, formula: Formula, history: ConcreteHistory, witness: ConcreteWitness) -> Literal:
    value = level.holds(ConcreteView(formula, history), witness.witness(formula))
    if value not in (TRUE, FALSE):
        raise IsocheckError(
            f"{level.defined_at}: level {level.name} is neither true nor false of a history and a witness;"
            " use no variables besides them"
        )
    return value


def _random_history(rng: random.Random) -> ConcreteHistory:
    """Return a history whose reads, sessions and times follow the numbering; some are nearly serial."""
    size, keys = rng.randint(2, TRIAL_TXNS), range(rng.randint(1, TRIAL_KEYS))
    share, serial = rng.choice((0.3, 0.5, 0.7)), rng.choice((0.0, 0.5, 0.9))
    txns: list[ConcreteTxn] = []
    begin, ended = 0, dict[int, int]()
    for t in range(size):
        writes = tuple(x for x in keys if rng.random() < share)
        reads = []
        for x in keys:
            sources = [INITIAL, *(u for u in range(t) if x in txns[u].writes)]
            for _ in range(rng.choice((0, 1, 1, 2))):
                reads.append((x, sources[-1] if rng.random() < serial else rng.choice(sources)))
        rng.shuffle(reads)
        session = rng.randrange(size)
        begin = max(begin + rng.randint(0, 1), ended.get(session, -1) + 1)
        ended[session] = begin + rng.randint(0, 3)
        span = begin, ended[session]
        txns.append(ConcreteTxn(session, tuple(dict.fromkeys(reads)), writes, rng.choice(RUNNABLE), t, span))
    return _with_all_keys(ConcreteHistory(tuple(txns)), len(keys))


def _with_all_keys(history: ConcreteHistory, keys: int) -> ConcreteHistory:
    """Add initial reads of unused keys to the first transaction: the number of keys must not change by renaming."""
    unused = tuple((x, INITIAL) for x in range(keys) if x not in history.keys)
    first, *others = history.txns
    return ConcreteHistory((replace(first, reads=first.reads + unused), *others))


def _random_witness(rng: random.Random, level: Definition, history: ConcreteHistory) -> ConcreteWitness:
    """Return a well-formed witness: the numbering as order, and a random visibility relation within it."""
    size = len(history.txns)
    if level.form == "own":
        declared = _random_parts(rng, size, len(history.keys), level.structure)
        return ConcreteWitness(level.name, tuple(range(size)), declared=declared)
    if level.form != "vis":
        return ConcreteWitness(level.name, tuple(range(size)))
    share = rng.choice((0.0, 0.3, 0.7, 1.0))
    visible = set()
    for b in range(size):
        sources = {u for _, u in history.txns[b].reads}
        for a in range(b):
            required = a in sources or history.precedes(a, b) or history.ended_before(a, b)
            if required or rng.random() < share:
                visible.add((a, b))
    return ConcreteWitness(level.name, tuple(range(size)), frozenset(visible))


def _random_parts(
    rng: random.Random, size: int, keys: int, structure: Structure
) -> tuple[tuple[str, str, PartValue], ...]:
    """Return random declared parts. Many follow the numbering, as well-formed witnesses often do."""

    def order() -> tuple[int, ...]:
        found = list(range(size))
        if rng.random() < 0.3:
            rng.shuffle(found)
        return tuple(found)

    def value(kind: str) -> PartValue:
        if kind == "order":
            return order()
        if kind == "versions":
            return tuple(order() for _ in range(keys))
        share, forward = rng.choice((0.0, 0.3, 0.7, 1.0)), rng.random() < 0.7
        pairs = ((a, b) for a in range(size) for b in range(size) if a < b or not forward)
        return frozenset(pair for pair in pairs if rng.random() < share)

    return tuple((name, kind, value(kind)) for name, kind in structure)


def _renumbered(witness: ConcreteWitness, order: Sequence[int]) -> ConcreteWitness:
    """Return the witness for ``history.renumbered(order)``."""
    number = {t: at for at, t in enumerate(order)}

    def pairs_renumbered(pairs: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((number[a], number[b]) for a, b in pairs)

    def value_renumbered(value: PartValue, kind: str) -> PartValue:
        if isinstance(value, frozenset):
            return pairs_renumbered(value)
        found = tuple(tuple(number[t] for t in order) for order in sequences(value, kind))
        return found if kind == "versions" else found[0]

    visible = witness.visible_pairs
    return replace(
        witness,
        order=tuple(number[t] for t in witness.order),
        visible_pairs=None if visible is None else pairs_renumbered(visible),
        declared=tuple((name, kind, value_renumbered(value, kind)) for name, kind, value in witness.declared),
    )


def _with_keys(witness: ConcreteWitness, number: Mapping[int, int]) -> ConcreteWitness:
    """Return the witness for ``history.with_keys(number)``."""
    old_number = {new: old for old, new in number.items()}
    declared = []
    for name, kind, value in witness.declared:
        if kind == "versions":
            orders = sequences(value, kind)
            value = tuple(tuple(orders[old_number[x]]) for x in range(len(orders)))
        declared.append((name, kind, value))
    return replace(witness, declared=tuple(declared))
