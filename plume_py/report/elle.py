"""EDN as Elle answers it: ``{:valid? false, :anomaly-types (…), :anomalies {…}, :not #{…}, :also-not #{…}}``.

For scripts and checkers that were written for Elle. Of several histories it is a vector of such maps, each with its
``:history``. An empty history is ``:unknown``, as it is there: nothing was tested.
"""

import re
from collections.abc import Iterable, Sequence

from plume_py.base.text import encodable, escape_ci_commands_json
from plume_py.checking.result import Result, ShownTransaction, Step, Violation
from plume_py.history.formats.edn_atoms import string_of
from plume_py.history.model import INITIAL_ID
from plume_py.history.value_codes import Atom
from plume_py.report.elle_models import elle_cycle, elle_types, ruled_out

_TYPES = {"committed": ":ok", "aborted": ":fail", "unknown": ":info"}
_RELATIONS = {"WR": ":wr", "WW": ":ww", "RW": ":rw", "SO": ":process", "RT": ":realtime", "CM": ":ww"}

# Keywords and vectors that every reader of EDN takes, whatever a history calls its keys.
_KEYWORD = r":[A-Za-z0-9*!_?<>=+.-][\w*!?<>=+.-]*"
_PLAIN = rf'{_KEYWORD}|-?(?:0|[1-9][0-9]{{0,17}})|-?[0-9]{{1,15}}\.[0-9]{{1,15}}|true|false|nil|"[^"\\]*"'
_SAFE = re.compile(
    rf"{_KEYWORD}|-?[0-9]{{1,15}}\.[0-9]{{1,15}}|true|false|\[(?:(?:{_PLAIN})(?: (?:{_PLAIN}))*)?\]", re.ASCII
)


def document(results: Sequence[Result]) -> str:
    """One map, or a vector of maps if there are several histories."""
    if len(results) == 1:
        return _answer(results[0])
    answers = [_answer(result, {":history": _string(result.history)}) for result in results]
    return "[" + "\n ".join(answers) + "]"


def _answer(result: Result, first: dict[str, str] | None = None) -> str:
    answer = dict(first or {})
    anomalies = _anomalies(result)
    answer[":valid?"] = _valid(result)
    if result.error is not None:
        answer[":error"] = _string(result.error)
    elif anomalies or result.ok is False:
        weakest, others = ruled_out(result.violations)
        answer[":anomaly-types"] = f"({' '.join(f':{name}' for name in sorted(anomalies))})"
        answer[":anomalies"] = _map({f":{name}": _vector(anomalies[name]) for name in sorted(anomalies)})
        answer[":not"] = _models(weakest)
        answer[":also-not"] = _models(others)
    return _map(answer)


def _valid(result: Result) -> str:
    if result.error is not None or result.ok is None or not result.operations:
        return ":unknown"
    return "true" if result.ok else "false"


def _anomalies(result: Result) -> dict[str, list[str]]:
    """The cases of each anomaly, by Elle's name; what is undecided counts as one, as it does there."""
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
    """One counterexample: its cycle as Elle shows it, or else the operations that take part."""
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


# --- EDN


def _map(pairs: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key} {value}" for key, value in pairs.items()) + "}"


def _vector(forms: Iterable[str]) -> str:
    return f"[{' '.join(forms)}]"


def _models(names: Iterable[str]) -> str:
    return "#{" + " ".join(f":{name}" for name in sorted(names)) + "}"


def _atom(atom: object) -> str:
    """A key or value as the history had it, as far as every reader of EDN can take that; else a string."""
    if atom is None:
        return "nil"
    if isinstance(atom, int):
        return str(atom) if -(2**63) <= atom < 2**63 else f"{atom}N"
    text = str(atom)
    return text if _SAFE.fullmatch(text) and text.isprintable() else _string(string_of(text))


def _string(text: Atom) -> str:
    """A string with everything that does not print as an escape: it may well go to a terminal."""
    return escape_ci_commands_json(f'"{"".join(map(_character, encodable(str(text))))}"')


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
