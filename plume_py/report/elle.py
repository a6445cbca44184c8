"""Render results as EDN in the form of Elle's answers, for scripts and checkers written for Elle.

``{:valid? false, :anomaly-types (…), :anomalies {…}, :not #{…}, :also-not #{…}}``. Several histories are a vector of
such maps, each with its ``:history``. An empty history is ``:unknown``, as in Elle, because nothing was tested.

Models have the names of elle.consistency-model (0.2). Elle differs from isocheck in two ways. Its plain models
ignore sessions and real time: a violation that needs session order rules out only a ``strong-session-`` model, and its
anomaly ends in ``-process``. One that needs real time rules out a ``strong-`` model, and ends in ``-realtime``. Elle's
read committed is Adya's PL-2, weaker than RC here: it allows TAP-h and TAP-i, which only RC's rule about several reads
forbids. Elle forbids them from monotonic atomic view on.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from plume_py.base.text import encodable, escape_ci_commands_json
from plume_py.checking.result import Ends, Result, ShownTransaction, Step, Violation
from plume_py.history.formats.edn_atoms import string_of
from plume_py.history.model import INITIAL_ID
from plume_py.history.value_codes import Atom
from plume_py.levels import LEVELS, visibility_bits
from plume_py.levels.orders import NONE, PER_KEY, REALTIME
from plume_py.levels.patterns import TORN, Kind
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS
from plume_py.report.wording import aliases

_TYPES = {"committed": ":ok", "aborted": ":fail", "unknown": ":info"}
_RELATIONS = {"WR": ":wr", "WW": ":ww", "RW": ":rw", "SO": ":process", "RT": ":realtime", "CM": ":ww"}

# Keywords, numbers and vectors that every EDN reader accepts.
_KEYWORD = r":[A-Za-z0-9*!_?<>=+.-][\w*!?<>=+.-]*"
_PLAIN = rf'{_KEYWORD}|-?(?:0|[1-9][0-9]{{0,17}})|-?[0-9]{{1,15}}\.[0-9]{{1,15}}|true|false|nil|"[^"\\]*"'
_SAFE = re.compile(
    rf"{_KEYWORD}|-?[0-9]{{1,15}}\.[0-9]{{1,15}}|true|false|\[(?:(?:{_PLAIN})(?: (?:{_PLAIN}))*)?\]", re.ASCII
)

# Kinds of patterns without a cycle, and Elle's names for cycles where they differ from ours.
_KINDS_WITHOUT_CYCLE = frozenset((Kind.READ, Kind.REREAD, Kind.LIST))
_ELLE_NAMES = {"G-single": "G-single-item", "G-nonadjacent": "G-nonadjacent-item"}

_LOST_UPDATE = "lost-update"

# Per anomaly, the weakest of Elle's models that it rules out. For cycles, the violated level decides as well.
_MODELS_OF_TYPE: dict[str, tuple[str, ...]] = {
    "G0": ("read-uncommitted",),
    "duplicate-elements": ("read-uncommitted",),
    "garbage-read": ("read-committed",),
    "G1a": ("read-committed",),
    "G1b": ("read-committed",),
    "G1c": ("read-committed",),
    "incompatible-order": ("read-committed",),
    "future-read": ("read-committed", "read-atomic"),
    "internal": ("read-atomic",),
    "lost-update": ("cursor-stability", "update-atomic"),
    "G-single-item": ("consistent-view", "repeatable-read"),
    "G-nonadjacent-item": ("snapshot-isolation", "repeatable-read"),
    "G2-item": ("repeatable-read",),
    "G0-process": ("strong-session-read-uncommitted",),
    "G1c-process": ("strong-session-read-committed",),
    "G-single-item-process": ("strong-session-snapshot-isolation",),
    "G-nonadjacent-item-process": ("strong-session-snapshot-isolation",),
    "G2-item-process": ("strong-session-serializable",),
    "G0-realtime": ("strong-read-uncommitted",),
    "G1c-realtime": ("strong-read-committed",),
    "G-single-item-realtime": ("strong-snapshot-isolation",),
    "G-nonadjacent-item-realtime": ("strong-snapshot-isolation",),
    "G2-item-realtime": ("strong-serializable",),
}

# Cycles without RW steps: RC forbids them, and so does Elle's weaker read committed or a weaker model.
_BELOW_ALL = ("g", "version-order-cycle")

# Directly stronger models: a history that violates the key violates all the others.
_STRONGER: dict[str, tuple[str, ...]] = {
    "read-uncommitted": ("read-committed", "strong-session-read-uncommitted"),
    "read-committed": (
        "cursor-stability",
        "monotonic-atomic-view",
        "monotonic-snapshot-read",
        "monotonic-view",
        "strong-session-read-committed",
    ),
    "monotonic-atomic-view": ("read-atomic", "repeatable-read", "snapshot-isolation"),
    "monotonic-snapshot-read": ("snapshot-isolation",),
    "monotonic-view": ("consistent-view",),
    "cursor-stability": ("consistent-view", "repeatable-read"),
    "consistent-view": ("forward-consistent-view",),
    "forward-consistent-view": ("snapshot-isolation", "update-serializable"),
    "read-atomic": ("causal-cerone", "update-atomic"),
    "causal-cerone": ("parallel-snapshot-isolation", "prefix"),
    "update-atomic": ("parallel-snapshot-isolation",),
    "prefix": ("snapshot-isolation",),
    "parallel-snapshot-isolation": ("snapshot-isolation",),
    "repeatable-read": ("serializable",),
    "update-serializable": ("serializable",),
    "snapshot-isolation": ("serializable", "strong-session-snapshot-isolation"),
    "serializable": ("strong-session-serializable",),
    "strong-session-read-uncommitted": ("strong-read-uncommitted", "strong-session-read-committed"),
    "strong-session-read-committed": ("strong-read-committed", "strong-session-snapshot-isolation"),
    "strong-session-snapshot-isolation": ("strong-session-serializable", "strong-snapshot-isolation"),
    "strong-session-serializable": ("strong-serializable",),
    "strong-read-uncommitted": ("strong-read-committed",),
    "strong-read-committed": ("strong-snapshot-isolation",),
    "strong-snapshot-isolation": ("strong-serializable",),
    "strong-serializable": (),
}


def document(results: Sequence[Result]) -> str:
    """Return one map, or a vector of maps for several histories."""
    if len(results) == 1:
        return _result_map(results[0])
    answers = [_result_map(result, {":history": _string(result.history)}) for result in results]
    return "[" + "\n ".join(answers) + "]"


def _result_map(result: Result, first: dict[str, str] | None = None) -> str:
    answer = dict(first or {})
    anomalies = _anomalies(result)
    answer[":valid?"] = _valid(result)
    if result.error is not None:
        answer[":error"] = _string(result.error)
    elif anomalies or result.ok is False:
        weakest, others = ruled_out(result.violations)
        answer[":anomaly-types"] = f"({' '.join(f':{name}' for name in sorted(anomalies))})"
        answer[":anomalies"] = _map({f":{name}": _vector(anomalies[name]) for name in sorted(anomalies)})
        answer[":not"] = _keyword_set(weakest)
        answer[":also-not"] = _keyword_set(others)
    return _map(answer)


def _valid(result: Result) -> str:
    if result.error is not None or result.ok is None or not result.operations:
        return ":unknown"
    return "true" if result.ok else "false"


def _anomalies(result: Result) -> dict[str, list[str]]:
    """Return the cases of each anomaly, by Elle's name. An undecided level counts as an anomaly, as in Elle."""
    found: dict[str, list[str]] = {}
    for violation in result.violations:
        for name in elle_types(violation):
            found.setdefault(name, []).append(_case(violation, name))
    undecided = {level: verdict.reason for level, verdict in result.levels.items() if verdict.ok is None}
    if undecided:
        reasons = {_string(level): _string(reason or "undecided") for level, reason in undecided.items()}
        found["cycle-search-timeout"] = [_map({":undecided": _map(reasons)})]
    if not result.operations and result.error is None and not undecided:
        found["empty-transaction-graph"] = ["true"]
    return found


def _case(violation: Violation, name: str) -> str:
    """Return one counterexample: its cycle as Elle shows it, or else the operations that take part."""
    operations = {transaction.id: transaction for transaction in violation.transactions}
    steps = elle_cycle(violation)
    case = {":type": f":{name}"}
    if steps and all(step.source in operations for step in steps):
        case[":cycle"] = _vector(_operation(operations[step.source]) for step in (*steps, steps[0]))
        case[":steps"] = _vector(map(_step, steps))
    else:
        case[":ops"] = _vector(map(_operation, violation.transactions))
    case[":pattern"] = _string(violation.name)
    case[":level"] = _string(violation.level)
    case[":explanation"] = _string(violation.explanation)
    return _map(case)


def _operation(transaction: ShownTransaction) -> str:
    operation = {} if transaction.index is None else {":index": str(transaction.index)}
    operation |= {
        ":type": _TYPES[transaction.status],
        ":process": _atom(transaction.session),
        ":f": ":txn",
        ":value": _vector(map(_micro_op, transaction.ops)),
        ":id": _string(str(transaction.id)),
    }
    if transaction.hidden_ops:
        operation[":hidden-ops"] = str(transaction.hidden_ops)
    return _map(operation)


def _micro_op(op: tuple[object, ...]) -> str:
    kind, key, value = op
    spelled = _vector(map(_atom, value)) if isinstance(value, tuple) else _atom(value)
    return f"[:{kind} {_atom(key)} {spelled}]"


def _step(step: Step) -> str:
    shown = {":type": _RELATIONS[step.relation]}
    if not step.is_given:
        shown[":key"] = _atom(step.key)
    if step.relation == "WR" and step.source != INITIAL_ID:
        shown[":value"] = _atom(step.value)
    shown[":because"] = _string(step.because)
    return _map(shown)


def elle_types(violation: Violation) -> list[str]:
    """Return Elle's names for a violation, the most specific first."""
    if violation.tap == TORN:
        return ["incompatible-order"]  # Elle reports such a list as G-single, G0 or not at all
    names = [name for name in map(_elle_name, aliases(violation)) if name in _MODELS_OF_TYPE]
    if violation.pattern.kind in _KINDS_WITHOUT_CYCLE or any(name != _LOST_UPDATE for name in names):
        return names
    return [*names, _weakest_cycle(violation.level) + _order_suffix(violation)]


def _order_suffix(violation: Violation) -> str:
    """Return "-realtime" or "-process" if the violation depends on real time or session order, else "".

    A violation without steps is assumed to depend on the order of its level.
    """
    relations = {step.relation for step in violation.all_steps()}
    if "RT" in relations or (not relations and violation.order in (REALTIME, PER_KEY)):
        return "-realtime"
    return "-process" if "SO" in relations or (not relations and violation.order != NONE) else ""


def _weakest_cycle(level: str) -> str:
    """Return the weakest cycle that every violation of this level contains, whatever the version order."""
    bits = LEVELS[level].visibility or 0 if level in LEVELS else 0
    if bits & (PREFIX | EVERYTHING) == PREFIX:
        return "G-nonadjacent-item"
    return "G-single-item" if bits & (WRITERS | EVERYTHING) == WRITERS else "G2-item"


def _elle_name(name: str) -> str:
    cycle = name.removesuffix("-process").removesuffix("-realtime")
    return _ELLE_NAMES.get(cycle, cycle) + name[len(cycle) :]


def elle_cycle(violation: Violation) -> tuple[Step, ...]:
    """Return the steps of a violation in Elle's order; empty if they are not a cycle."""
    if violation.ends is Ends.OPEN:
        return ()
    last = violation.steps[-1]
    only_forced = all(step.relation != "CM" for step in violation.steps[:-1])
    if violation.pattern.kind is Kind.TRIPLE and only_forced and last.reader is not None and last.evidence:
        # The reader read from t1 although it saw t2, which overwrote t1. So it is both before and after t2.
        missed = Step(last.reader, last.source, "RW", last.key, last.because)
        return missed, *last.evidence
    return violation.steps


def ruled_out(violations: Iterable[Violation]) -> tuple[set[str], set[str]]:
    """Return Elle's ``:not``, the weakest violated models, and ``:also-not``, all stronger models."""
    broken = {model for violation in violations for model in _weakest_models(violation)}
    above = {model for weaker in broken for model in _stronger_models(weaker)}
    return broken - above, above


def _weakest_models(violation: Violation) -> Iterator[str]:
    """Yield the weakest models that one violation rules out."""
    if violation.level not in LEVELS:  # Elle has no models for mixed levels
        return
    by_order = violation.pattern.kind not in _KINDS_WITHOUT_CYCLE and bool(_order_suffix(violation))
    for name in elle_types(violation):
        # For Elle, a lost update that needs session order is only a cycle.
        if name != _LOST_UPDATE or not (by_order or visibility_bits(violation.level) & EVERYTHING):
            yield from _MODELS_OF_TYPE[name]
    if not by_order and violation.pattern.kind not in _KINDS_WITHOUT_CYCLE and violation.tap not in _BELOW_ALL:
        yield LEVELS[violation.level].jepsen


def _stronger_models(model: str) -> set[str]:
    found: set[str] = set()
    waiting = list(_STRONGER[model])
    while waiting:
        stronger = waiting.pop()
        if stronger not in found:
            found.add(stronger)
            waiting += _STRONGER[stronger]
    return found


# --- EDN


def _map(pairs: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key} {value}" for key, value in pairs.items()) + "}"


def _vector(forms: Iterable[str]) -> str:
    return f"[{' '.join(forms)}]"


def _keyword_set(names: Iterable[str]) -> str:
    return "#{" + " ".join(f":{name}" for name in sorted(names)) + "}"


def _atom(atom: object) -> str:
    """Return a key or value as in the history if every EDN reader accepts it, else a string."""
    if atom is None:
        return "nil"
    if isinstance(atom, int):
        return str(atom) if -(2**63) <= atom < 2**63 else f"{atom}N"
    text = str(atom)
    return text if _SAFE.fullmatch(text) and text.isprintable() else _string(string_of(text))


def _string(text: Atom) -> str:
    """Return an EDN string. Unprintable characters are escaped, because the output may go to a terminal."""
    return escape_ci_commands_json(f'"{"".join(map(_character, encodable(str(text))))}"')


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
