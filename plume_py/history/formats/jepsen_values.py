"""The value of a Jepsen operation, as operations of a transaction.

Mostly it is a list of micro-operations, and one decoder with the right types does it all. What it does not take is
looked at piece by piece here: keys and values of other types, reads that name no value, and operations that are no
transactions, but read, write or compare-and-set one register.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from plume_py.base.errors import InputError
from plume_py.base.text import display
from plume_py.history.formats.edn_atoms import EXACT, MARK, SET, text_of

Key = int | str
Value = int | str | None | list[int | str]
Ops = list[tuple[Any, Key, Value]]

ABSENT = msgspec.Raw(b"null")

# The key of a register whose operations name none.
REGISTER = "register"
_REGISTER_OPS = ("read", "write", "cas")
_KINDS = ("r", "w", "append")

_WORKLOADS = "isocheck reads list-append and rw-register histories, and registers with :read, :write and :cas"


class JepsenOperation(Protocol):
    """One line of a history; a client's process is an integer."""

    type: str
    process: Any
    f: Any
    value: msgspec.Raw
    index: Any
    time: Any


class Dialect(NamedTuple):
    """How a format spells operations: ``mark`` stands before what are keywords in EDN.

    ``suspect``: may there be strings among these bytes that look like something else (see ``edn_atoms``)?
    """

    operation: "msgspec.json.Decoder[Any]"
    ops: "msgspec.json.Decoder[Any]"
    mark: str
    example: str
    suspect: Callable[[bytes], object]


class NotTransactionalError(Exception):
    """An operation that is neither a transaction nor one of a register."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


class _BadMicroOpError(Exception):
    """A micro-operation that means nothing; its argument says why."""


class JepsenValues:
    """Turns the values of one history's operations into operations of transactions."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._nil = "nil" if dialect.mark else "null"
        self._names_keys: bool | None = None  # do operations on registers say on which?

    def ops(self, line: int, operation: JepsenOperation) -> Ops | None:
        """What an operation does, as far as its value says so; None if that is nil."""
        value = bytes(operation.value)
        try:
            ops: Ops | None = self._dialect.ops.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self._look_closer(line, operation)
        if ops and (_writes_lists(ops, value) or self._dialect.suspect(value)):
            return self._look_closer(line, operation)
        return ops

    def is_register(self, operation: JepsenOperation) -> bool:
        """Does it read, write or compare-and-set a single register?"""
        return self._register_op(operation) is not None

    def of_nil(self, operation: JepsenOperation) -> Ops | None:
        """What an operation without a value does: only a register's read can do without."""
        return [("r", REGISTER, None)] if self._register_op(operation) == "read" else None

    def known(self, operation: JepsenOperation, ops: Ops) -> Ops:
        """Without the reads of nil: what has not completed well does not say what it read, nor whether it compared."""
        compared = self._register_op(operation) == "cas"
        return [op for op in ops if op[0] != "r" or (op[2] is not None and not compared)]

    def _register_op(self, operation: JepsenOperation) -> str | None:
        name = operation.f
        if not isinstance(name, str) or not name.startswith(self._dialect.mark):
            return None
        name = name[len(self._dialect.mark) :]
        return name if name in _REGISTER_OPS else None

    def _look_closer(self, line: int, operation: JepsenOperation) -> Ops:
        try:
            value = msgspec.json.decode(operation.value)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise InputError("a value that is not valid text, or a number out of range", where=f"line {line}") from None
        if _is_list_of_micro_ops(value):
            return [self._micro_op(line, op) for op in value]
        if isinstance(value, list) and len(value) == 2 and value[1] and _is_list_of_micro_ops(value[1]):
            return [self._micro_op(line, [op[0], [value[0], op[1]], *op[2:]]) for op in value[1]]
        ops = self._on_register(line, operation, value)
        if ops is None:
            raise NotTransactionalError(line)
        return ops

    # --- transactions

    def _micro_op(self, line: int, op: list[Any]) -> tuple[str, Key, Value]:
        try:
            return self._read_micro_op(op)
        except _BadMicroOpError as error:
            mark = self._dialect.mark
            raise InputError(
                f"{error}: {display(spell(op, mark), 80)}",
                where=f"line {line}",
                hint=f"isocheck knows [{mark}r k v], [{mark}w k v] and [{mark}append k v], and reads of lists, "
                f"[{mark}r k [v v]]",
            ) from None

    def _read_micro_op(self, op: list[Any]) -> tuple[str, Key, Value]:
        kind = str(op[0])[len(self._dialect.mark) :]
        if kind not in _KINDS or not str(op[0]).startswith(self._dialect.mark):
            raise _BadMicroOpError("not a read, write or append")
        if len(op) == 2:
            if kind != "r":
                raise _BadMicroOpError("nothing to write" if kind == "w" else "nothing to append")
            op = [*op, None]  # as destructuring in Clojure has it: what is not there is nil
        return kind, self._key(op[1]), self._value(kind, op[2])

    def _key(self, key: object) -> Key:
        try:
            atom = text_of(key, marked=bool(self._dialect.mark))
        except TypeError:
            raise _BadMicroOpError("a map or a set as a key") from None
        if atom is None:
            raise _BadMicroOpError(f"{self._nil} as a key")
        return atom

    def _value(self, kind: str, value: object) -> Value:
        if not isinstance(value, list):
            return self._scalar(value)
        if kind != "r":
            raise _BadMicroOpError("a list can only be read" if kind == "w" else "a list appended at once")
        return [self._element(element) for element in value]

    def _element(self, element: object) -> int | str:
        if isinstance(element, list):
            raise _BadMicroOpError("a list inside a list")
        atom = self._scalar(element)
        if atom is None:
            raise _BadMicroOpError(f"{self._nil} inside a list")
        return atom

    def _scalar(self, value: object) -> int | str | None:
        if isinstance(value, dict):
            raise _BadMicroOpError("a set is no list: it has no order" if SET in value else "a map as a value")
        return text_of(value, marked=bool(self._dialect.mark))

    # --- registers

    def _on_register(self, line: int, operation: JepsenOperation, value: object) -> Ops | None:
        """``:read v``, ``:write v`` and ``:cas [v v']`` of one register, or of register k as ``[k …]``."""
        name = self._register_op(operation)
        if name is None:
            return None
        names_key = isinstance(value, list) and len(value) == 2 and (name != "cas" or isinstance(value[1], list))
        self._require_same_shape(line, names_key)
        key, inner = value if isinstance(value, list) and names_key else (None, value)
        try:
            register = self._key(key) if names_key else REGISTER
            if name != "cas":
                return None if isinstance(inner, list) else [(name[0], register, self._scalar(inner))]
            if not isinstance(inner, list) or len(inner) != 2 or any(isinstance(v, list) for v in inner):
                return None
            return [("r", register, self._scalar(inner[0])), ("w", register, self._scalar(inner[1]))]
        except _BadMicroOpError:
            return None

    def _require_same_shape(self, line: int, names_key: bool) -> None:
        if self._names_keys is None:
            self._names_keys = names_key
        if self._names_keys != names_key:
            raise InputError(
                "some operations on registers name a key, as [k v], and some do not",
                where=f"line {line}",
                hint="is [k v] the content of a register? isocheck takes k for a key (jepsen.independent)",
            )

    def not_transactional(self, names: list[str], line: int) -> InputError:
        """What to say of a history that holds something else; ``names`` are what its operations are called."""
        about = f" (its operations are {', '.join(names[:5])}{', ...' if len(names) > 5 else ''})" if names else ""
        return InputError(f"not a transactional read/write history{about}", where=f"line {line}", hint=_WORKLOADS)


def _writes_lists(ops: Ops, value: bytes) -> bool:
    if value.count(b"[") == len(ops) + 1:  # then there are no lists among the values
        return False
    return any(type(op[2]) is list and op[0] != "r" for op in ops)


def _is_list_of_micro_ops(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(op, list) and len(op) in (2, 3) and isinstance(op[0], str) for op in value
    )


def spell(value: object, mark: str) -> str:
    """A decoded value in the spelling of its format."""
    if not mark:
        return msgspec.json.encode(value).decode()
    if isinstance(value, list):
        return f"[{' '.join(spell(item, mark) for item in value)}]"
    if isinstance(value, dict):
        if SET in value:
            return f"#{{{' '.join(spell(item, mark) for item in value[SET])}}}"
        return f"{{{', '.join(f'{spell(k, mark)} {spell(v, mark)}' for k, v in value.items())}}}"
    if isinstance(value, bool) or value is None:
        return {None: "nil", True: "true", False: "false"}[value]
    return str(value).removeprefix(MARK).removeprefix(EXACT)
