"""Assert isolation levels in test suites: a failure has the counterexample and its proof as its message.

With pytest, put ``pytest_plugins = ["plume_py.testing"]`` into the top ``conftest.py``, or use ``-p plume_py.testing``.
This adds the fixture ``isolation``: the same function, which names histories after the test. The module works without
pytest.

>>> from plume_py.testing import assert_isolation
>>> assert_isolation([[[("w", "x", 1)]], [[("r", "x", 1)]]], "TCC").ok
True
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plume_py.history.init_txn import InitTxn
from plume_py.levels import DEFAULT
from plume_py.levels.orders import DEFAULT_ORDER

if TYPE_CHECKING:
    from plume_py.checking.result import Result
    from plume_py.history.builder import HistoryBuilder
    from plume_py.history.model import History

# A transaction: its operations, or an object of the native format, {"ops": …, "status": …, "level": …, "id": …}.
Transaction = Sequence[Sequence[Any]] | Mapping[str, Any]
Sessions = Sequence[Sequence[Transaction]]

__all__ = ["IsolationError", "assert_isolation"]


class IsolationError(AssertionError):
    """A level is violated or undecided; ``result`` has the details as data."""

    def __init__(self, message: str, result: "Result") -> None:
        super().__init__(message)
        self.result = result


def assert_isolation(
    history: "History | str | os.PathLike[str] | Mapping[str, Any] | Sessions",
    level: str | Sequence[str] = DEFAULT,
    *,
    initial: Any = ...,
    format: str | None = None,
    init_txn: InitTxn = "auto",
    order: str = DEFAULT_ORDER,
    taps: Iterable[str] = (),
    max_examples: int = 1,
    name: str = "",
) -> "Result":
    """Return the result if ``history`` satisfies each level; else raise ``IsolationError``, an AssertionError.

    ``history`` is a ``History``, a path, a native document ``{"initial": 0, "sessions": […]}``, or only its sessions.
    Sessions are lists of transactions, and a transaction is a list of operations or a dictionary. ``initial`` is the
    initial value of every key for sessions. ``format`` and ``init_txn`` are arguments of ``load``, all others of
    ``check``. An undecided level raises ``IsolationError`` as well, an unreadable history raises ``InputError``.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    from plume_py.checking.check import check

    loaded = _loaded(history, initial, format, init_txn)
    shown_as = name or (os.fsdecode(history) if isinstance(history, str | os.PathLike) else "history")
    result = check(loaded, level, order=order, taps=taps, max_examples=max_examples, name=shown_as)
    if result.ok is not True:
        raise IsolationError(_message(result), result)
    return result


def _loaded(history: Any, initial: Any, format: str | None, init_txn: InitTxn) -> "History":
    from plume_py.history.load import load
    from plume_py.history.model import History

    if isinstance(history, History):
        return history
    if isinstance(history, str | os.PathLike):
        return load(history, format=format, init_txn=init_txn)
    if isinstance(history, Mapping):
        return _built(history["sessions"], history.get("initial", initial), init_txn)
    return _built(history, initial, init_txn)


def _built(sessions: Sessions, initial: Any, init_txn: InitTxn) -> "History":
    from plume_py.history.builder import HistoryBuilder

    # As in a native file: without an initial value it is null, and the first transaction may set up the state instead.
    builder = HistoryBuilder(None, declared=False) if initial is ... else HistoryBuilder(initial)
    for number, session in enumerate(sessions):
        builder.session(number)
        for transaction in session:
            _add(builder, number, transaction)
    return builder.build(init_txn=init_txn)


def _add(builder: "HistoryBuilder", session: int, transaction: Transaction) -> None:
    if isinstance(transaction, Mapping):
        fields = {field: transaction[field] for field in ("status", "level", "id") if field in transaction}
        builder.add(session, transaction["ops"], **fields)
    else:
        builder.add(session, transaction)


def _message(result: "Result") -> str:
    from plume_py.base.terminal import plain
    from plume_py.report.text import render

    violated = [name for name, verdict in result.levels.items() if verdict.ok is False]
    undecided = [name for name, verdict in result.levels.items() if verdict.ok is None]
    problems = [f"the history does not keep {', '.join(violated)}"] if violated else []
    problems += [f"could not decide {', '.join(undecided)}"] if undecided else []
    return f"{'; '.join(problems)}\n{render(result, style=plain)}"


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def isolation(request: pytest.FixtureRequest) -> Callable[..., "Result"]:
        """Return ``assert_isolation``, which names a history without a path after the test."""

        def assert_in_test(history: Any, *args: Any, **options: Any) -> "Result":
            __tracebackhide__ = True
            if not isinstance(history, str | os.PathLike):
                options.setdefault("name", request.node.name)
            return assert_isolation(history, *args, **options)

        return assert_in_test
