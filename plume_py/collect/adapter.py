"""What the collector needs of a database: an ``Adapter``, which makes ``Connection``s. A new database is one file.

The adapter keeps one table, keys with a value each. In a register run a value is an integer and begins as 0; in a list
run it is a list of integers and begins empty. ``create`` fills in every key, so no key is ever missing.

A method of a connection ends in one of three ways. It returns: the database did it. It raises ``AbortedError``: the
database says that the transaction is, or by ``rollback`` will be, undone. It raises anything else: nobody knows, and
the connection is not used again. What that means for the transaction is decided in ``client``, not here.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from plume_py.base.passwords import redacted
from plume_py.collect.deadline import Guard
from plume_py.collect.errors import AbortedError as AbortedError
from plume_py.collect.errors import AnswerError as AnswerError
from plume_py.collect.errors import LostError as LostError
from plume_py.levels.databases import Database

# An integer, or text and None where a database answers with something else.
Element = int | str | None
Value = Element | list[Element]

# Seconds that a client waits longer than a statement may take, so that the answer of the server is known.
GRACE = 1.0
# The initial state of every key, as it stands in the header of the history.
INITIAL_REGISTER = 0


@dataclass(frozen=True)
class Promise:
    """What the database says about one of its isolation levels: our ``level``, None if nothing, and a remark."""

    level: str | None
    remark: str = ""


@dataclass(frozen=True)
class Setup:
    """What an adapter is made with: the address, and what holds for all its connections."""

    url: str
    table: str = "isocheck_kv"
    lists: bool = False
    timeout: float = 10.0  # seconds that one statement may take
    session_settings: Mapping[str, str] = field(default_factory=dict)  # set on every connection
    guard: Guard = field(default_factory=Guard, compare=False)  # bounds every wait, of all nodes

    @property
    def patience(self) -> float:
        """Seconds after which a connection is cut: the server, which has ``timeout``, gives up first."""
        return self.timeout + GRACE


class Connection(ABC):
    """One client's connection, used by one thread. Between ``begin`` and ``commit`` lies one transaction."""

    # Where the transaction runs that was begun last, and at which isolation if not as asked; for the history. A
    # connection to one server has nothing to say here.
    node = ""
    isolation = ""

    @abstractmethod
    def begin(self, isolation: str) -> None:
        """Begin a transaction at one of the adapter's ``isolations``."""

    def begin_reading(self, isolation: str) -> None:
        """Begin a transaction that will only read, where that makes a difference."""
        self.begin(isolation)

    @abstractmethod
    def read(self, key: str) -> Value:
        """The value of ``key``."""

    @abstractmethod
    def write(self, key: str, value: int) -> None:
        """Set ``key`` (register runs)."""

    @abstractmethod
    def append(self, key: str, value: int) -> None:
        """Add ``value`` at the end of ``key``'s list (list runs)."""

    @abstractmethod
    def commit(self) -> None:
        """Commit; an ``AbortedError`` from here must be certain."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo what the transaction did."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, whatever state it is in."""

    def abandon(self) -> None:
        """Called by another thread when an answer is overdue: make the waiting call fail, if that can be done."""
        return

    def fileno(self) -> int:
        """Return the file descriptor of the connection, -1 if there is none."""
        return -1


class Adapter(ABC):
    """One database: its table, its isolation levels, its connections."""

    name = ""
    # Spelled as the database does, in lower case; the first one is used where the user names none.
    isolations: Mapping[str, Promise] = {}
    mixture = ""  # what is to be known about transactions of different isolation levels side by side
    can_kill = False

    def __init__(self, setup: Setup) -> None:
        """Nothing is connected yet."""
        self.setup = setup

    @abstractmethod
    def version(self) -> str:
        """The version of the database, as it tells it."""

    @abstractmethod
    def create(self, keys: Sequence[str]) -> None:
        """Make the table, all ``keys`` at their initial value."""

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection."""

    def connect_session(self, session: int) -> Connection:
        """A new connection for the client with this number, where that makes a difference."""
        return self.connect()

    @abstractmethod
    def contents(self) -> dict[str, Value]:
        """The table as it is now, read by a client that takes no part in the run."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the table."""

    def tables(self) -> list[str]:
        """Return the tables of this database that have the form and the name of a run's table."""
        return []

    def is_alive(self, table: str) -> bool | None:
        """Return whether the run of ``table`` is still connected, None if the database cannot know."""
        return None

    def drop_table(self, table: str) -> None:
        """Remove the table of another run."""
        raise NotImplementedError

    def beat(self) -> None:
        """Show the database that the run is alive; called every few seconds."""
        return

    def is_replica(self) -> bool:
        """Does the server only take reads?"""
        return False

    def variants(self, isolation: str) -> tuple[str, ...]:
        """What a replica has instead of ``isolation``, if it does not have that."""
        return ()

    def nodes(self) -> dict[str, str]:
        """Names and addresses, if there are several nodes; for the header of the history."""
        return {}

    def disagreements(self) -> list[str]:
        """In what nodes differed when the table was read for the last time, one line for each."""
        return []

    def settings(self) -> dict[str, str]:
        """Settings of the database that bear on isolation, for the header of the history."""
        return {}

    def statements(self) -> dict[str, str]:
        """What connections send, for reports: "begin", and by kind of operation, with :isolation, :key and :value.

        An isolation that begins in its own way has "begin " and its name.
        """
        return {}

    def leave(self) -> None:
        """Let go of what is connected, and leave the table to others."""
        return

    def kill(self, connection: Connection) -> None:
        """Have the server end a connection (``can_kill``)."""
        raise NotImplementedError

    def is_waiting(self, connection: Connection) -> bool | None:
        """Does the statement that it has sent wait for a lock? None if the database cannot be asked."""
        return None

    def settle(self) -> None:
        """Wait until nothing that the collector left behind is still at work in the database."""
        return


def promises(database: Database) -> dict[str, Promise]:
    """The settings of a database that we know, its default first."""
    settings = sorted(database.settings, key=lambda setting: setting.spelled != database.default)
    return {s.spelled.lower(): Promise(s.promises, s.why if s.surprising else "") for s in settings}


def first_line(error: BaseException) -> str:
    """What an error says, without passwords and what servers like to add below; its kind if it says nothing."""
    return (redacted(str(error)).splitlines() or [type(error).__name__])[0]


# Integers as databases print them; Python's int() also takes 1_0, +1, blanks and the digits of other scripts.
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}", re.ASCII)
# Characters of a wrong answer that the history keeps.
KEPT = 1000


def to_value(answer: object, lists: bool) -> Value:
    """Return the value of a key that the database answered: a list in a list run, else an integer."""
    return to_list(answer) if lists else to_element(answer)


def to_element(answer: object) -> Element:
    """Return an integer of 64 bits. Any other answer remains text, so that it counts as a value nobody wrote."""
    if answer is None:
        return None
    if isinstance(answer, bytes | bytearray):
        answer = bytes(answer[: KEPT + 1]).decode("utf-8", "backslashreplace")
    if type(answer) is int and -(2**63) <= answer < 2**63:
        return answer
    if isinstance(answer, Decimal):
        answer = str(answer)
    text = answer if isinstance(answer, str) else hex(answer) if type(answer) is int else repr(answer)
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= KEPT else f"{text[:KEPT]}…"


def to_list(answer: object) -> list[Element]:
    """Return a list that is kept as text: every element has a comma before it, so that appending is concatenation."""
    if isinstance(answer, bytes | bytearray):
        answer = bytes(answer).decode("utf-8", "backslashreplace")
    if not isinstance(answer, str):  # a history of lists has no null in a list
        return ["NULL" if answer is None else to_element(answer)]
    first, *elements = answer.split(",")
    return [to_element(element) for element in ([first, *elements] if first else elements)]


def spelled(isolation: str) -> str:
    """An isolation level as databases write it: lower case, blanks."""
    return " ".join(isolation.lower().replace("-", " ").replace("_", " ").split())
