"""The interface between the collector and a database: an ``Adapter`` makes ``Connection``s.

To support a new database, write one file with these two classes.

The adapter keeps one table of keys, each with a value. In a register run a value is an integer, initially 0. In a list
run it is a list of integers, initially empty. ``create`` inserts every key, so no key is ever missing.

A method of a connection ends in one of three ways:

- It returns: the database executed the operation.
- It raises ``AbortedError``: the database has undone the transaction, or ``rollback`` will undo it.
- It raises anything else: the outcome is open, and the connection is not used again.

``client`` derives the outcome of the transaction from this; adapters do not.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import SplitResult, urlsplit

from plume_py.base.errors import IsocheckError
from plume_py.base.passwords import redacted, without_password
from plume_py.collect.deadline import AbortedError as AbortedError
from plume_py.collect.deadline import AnswerError as AnswerError
from plume_py.collect.deadline import Guard
from plume_py.collect.deadline import LostError as LostError
from plume_py.levels.databases import Database

# An integer. Text or None, if the database answers with anything else.
Element = int | str | None
Value = Element | list[Element]

# Seconds that a client waits beyond the statement timeout, so that it receives the server's answer.
GRACE = 1.0
# The initial value of every key in a register run; the header of the history contains it.
INITIAL_REGISTER = 0


@dataclass(frozen=True)
class Promise:
    """What the vendor documents about an isolation level: our ``level``, None if there is none, and a remark."""

    level: str | None
    remark: str = ""


@dataclass(frozen=True)
class Setup:
    """Parameters of an adapter: the address, and the options of all its connections."""

    url: str
    table: str = "isocheck_kv"
    lists: bool = False
    timeout: float = 10.0  # seconds per statement
    session_settings: Mapping[str, str] = field(default_factory=dict)  # of every connection
    guard: Guard = field(default_factory=Guard, compare=False)  # bounds all waits

    @property
    def patience(self) -> float:
        """Seconds after which the guard cuts a connection.

        They exceed ``timeout``, so that the server gives up first.
        """
        return self.timeout + GRACE


class Connection(ABC):
    """A client's connection, used by one thread. It runs one transaction at a time, up to commit or rollback."""

    # Node of the current transaction, and its isolation level if it is not the requested one; for the history. Both
    # remain empty on a connection to a single server.
    node = ""
    isolation = ""

    @abstractmethod
    def begin(self, isolation: str) -> None:
        """Begin a transaction at ``isolation``, a key of the adapter's ``isolations``."""

    def begin_reading(self, isolation: str) -> None:
        """Begin a read-only transaction. Override this if the database begins such transactions differently."""
        self.begin(isolation)

    @abstractmethod
    def read(self, key: str) -> Value:
        """Return the value of ``key``."""

    @abstractmethod
    def write(self, key: str, value: int) -> None:
        """Set ``key`` (register runs)."""

    @abstractmethod
    def append(self, key: str, value: int) -> None:
        """Append ``value`` to the list of ``key`` (list runs)."""

    @abstractmethod
    def commit(self) -> None:
        """Commit. Raise ``AbortedError`` only if it is certain that nothing was committed."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, whatever its state."""

    def abandon(self) -> None:
        """Make the waiting call fail, if possible. Another thread calls this when an answer is overdue."""
        return

    def fileno(self) -> int:
        """Return the file descriptor of the connection, or -1 if there is none."""
        return -1


class NotSearchedError(Exception):
    """The database is too large to search it for tables; the message says how large."""


class Adapter(ABC):
    """A database: its table, its isolation levels and its connections."""

    name = ""
    # The database's own names in lower case -> what the vendor documents. The first one is the default.
    isolations: Mapping[str, Promise] = {}
    mixture = ""  # a note about concurrent transactions at different isolation levels
    can_kill = False

    def __init__(self, setup: Setup) -> None:
        """Store ``setup``. Connect later, not here."""
        self.setup = setup

    @abstractmethod
    def version(self) -> str:
        """Return the version that the database reports."""

    @abstractmethod
    def create(self, keys: Sequence[str]) -> None:
        """Create the table with all ``keys`` at their initial value."""

    @abstractmethod
    def connect(self) -> Connection:
        """Return a new connection."""

    def connect_session(self, session: int) -> Connection:
        """Return a new connection for client number ``session``. Override this if the number matters."""
        return self.connect()

    @abstractmethod
    def contents(self) -> dict[str, Value]:
        """Return the current table, read by a connection that takes no part in the run."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the table."""

    def tables(self) -> list[str]:
        """Return the tables of this database that have the columns and the name of a run's table.

        Raise NotSearchedError if that would take too long.
        """
        return []

    def is_alive(self, table: str) -> bool | None:
        """Return whether the run of ``table`` is still connected, or None if the database does not know."""
        return None

    def drop_table(self, table: str) -> None:
        """Remove the table of another run."""
        raise NotImplementedError

    def beat(self) -> None:
        """Show the database that the run is alive. The collector calls this every few seconds."""
        return

    def is_replica(self) -> bool:
        """Return whether the server accepts only reads."""
        return False

    def variants(self, isolation: str) -> tuple[str, ...]:
        """Return the levels that a replica provides instead of ``isolation``; empty if it provides ``isolation``."""
        return ()

    def nodes(self) -> dict[str, str]:
        """Return name -> address of each node if there are several, for the header of the history."""
        return {}

    def disagreements(self) -> list[str]:
        """Return one message per node whose table differed when the tables were last read."""
        return []

    def settings(self) -> dict[str, str]:
        """Return the database settings that affect isolation, for the header of the history."""
        return {}

    def statements(self) -> dict[str, str]:
        """Return the statements that connections send, for reports.

        The keys are "begin" and the kinds of operations. The statements contain the parameters :isolation, :key and
        :value. An isolation level with a special BEGIN statement has the key "begin " followed by its name.
        """
        return {}

    def leave(self) -> None:
        """Close the adapter's connections without dropping the table."""
        return

    def kill(self, connection: Connection) -> None:
        """Make the server terminate ``connection``. The collector calls this only if ``can_kill`` is set."""
        raise NotImplementedError

    def is_waiting(self, connection: Connection) -> bool | None:
        """Return whether the statement of ``connection`` waits for a lock, or None if the database does not know."""
        return None

    def settle(self) -> None:
        """Wait until no statement of the collector is still running in the database."""
        return


def promises(database: Database) -> dict[str, Promise]:
    """Return what the vendor documents about each setting of ``database``, its default first."""
    settings = sorted(database.settings, key=lambda setting: setting.name != database.default)
    return {s.name.lower(): Promise(s.promises, s.why if s.surprising else "") for s in settings}


def split_address(url: str, what: str, form: str) -> tuple[SplitResult, int | None]:
    """Return the parts of an address and its port. If it is invalid, raise an IsocheckError that shows ``form``."""
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise IsocheckError(f"not {what}: {without_password(url)!r:.80}; {form}") from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error message without passwords, or the error's class if the message is empty.

    Servers add details on further lines.
    """
    return (redacted(str(error)).splitlines() or [type(error).__name__])[0]


# Integers as databases print them. Python's int() would also accept 1_0, +1, blanks and digits of other scripts.
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}", re.ASCII)
# Characters of an unexpected answer that the history keeps.
KEPT_CHARACTERS = 1000


def to_value(answer: object, lists: bool) -> Value:
    """Return the value of a key from the database's answer: a list in a list run, otherwise an element."""
    return to_list(answer) if lists else to_element(answer)


def to_element(answer: object) -> Element:
    """Return the answer as a 64-bit integer if it is one, None for NULL, and anything else as text.

    The checker treats text as a value that no transaction wrote.
    """
    if answer is None:
        return None
    if isinstance(answer, bytes | bytearray):
        answer = bytes(answer[: KEPT_CHARACTERS + 1]).decode("utf-8", "backslashreplace")
    if type(answer) is int and -(2**63) <= answer < 2**63:
        return answer
    if isinstance(answer, Decimal):
        answer = str(answer)
    text = answer if isinstance(answer, str) else hex(answer) if type(answer) is int else repr(answer)
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= KEPT_CHARACTERS else f"{text[:KEPT_CHARACTERS]}…"


def to_list(answer: object) -> list[Element]:
    """Return the list that ``answer`` encodes. A comma precedes each element, so that appending is concatenation."""
    if isinstance(answer, bytes | bytearray):
        answer = bytes(answer).decode("utf-8", "backslashreplace")
    if not isinstance(answer, str):  # lists in a history contain no null
        return ["NULL" if answer is None else to_element(answer)]
    first, *elements = answer.split(",")
    return [to_element(element) for element in ([first, *elements] if first else elements)]


def normalize_isolation(isolation: str) -> str:
    """Return an isolation level in the form of ``Adapter.isolations``: lower case, words separated by blanks."""
    return " ".join(isolation.lower().replace("-", " ").replace("_", " ").split())
