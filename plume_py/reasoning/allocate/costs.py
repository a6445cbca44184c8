"""What takes how long in a simulated run: a model of nodes and messages, each parameter of which can be set.

Sessions and keys sit at nodes; a message from one node to another and its answer are a round trip. What the protocol
has to ask others for costs round trips, and a level that asks for less costs fewer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.levels import NAMES, visibility_bits
from plume_py.levels.table import EVERYTHING, WRITERS

SERVER, SPREAD, REPLICATED = "server", "spread", "replicated"
PLACES = (SERVER, SPREAD, REPLICATED)
NEVER, TOGETHER, EACH = "never", "together", "each"
VALIDATIONS = (NEVER, TOGETHER, EACH)


@dataclass(frozen=True)
class Costs:
    """The parameters, in simulated seconds where they are times.

    ``data``: on one server away from all sessions (every operation is a round trip), spread over the nodes by key
    (those of other nodes are), or replicated at every node (none is). ``begin``, ``commit``: round trips for a
    snapshot, and for the commit. ``validation``: none of its own, one round trip to all nodes that hold a key to
    validate, or one to each after the other; at SI that is what a transaction writes, at SER also what it reads.
    ``exclusive``: the levels whose validation and commit are one critical section of the whole system. ``waiting``:
    readers of a key wait while a writer of it is about to commit.
    """

    low: float = 0.030  # a round trip takes so long at least
    high: float = 0.050  # and so long at most
    local: float = 0.0  # an operation at the own node
    nodes: int = 1
    data: str = SERVER
    begin: int = 0
    commit: int = 1
    validation: str = NEVER
    exclusive: frozenset[str] = frozenset()
    waiting: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < inf:
            raise IsocheckError(
                f"a round trip takes {self.low:g} to {self.high:g} s: low must not exceed high, nor high all bounds"
            )
        for name, value, allowed in (("data", self.data, PLACES), ("validation", self.validation, VALIDATIONS)):
            if value not in allowed:
                raise IsocheckError(f"{name}={value}: choose {', '.join(allowed)}")
        if self.nodes < 1 or self.begin < 0 or self.commit < 0 or not 0 <= self.local < inf:
            raise IsocheckError("there is one node at least, and no cost is negative")

    def node_of(self, key: str) -> int:
        """Where a key sits; the same in every process."""
        return sum(map(ord, key)) % self.nodes

    def is_remote(self, session: int, key: str) -> bool:
        """Does an operation on the key need a round trip?"""
        if self.data == SPREAD:
            return self.node_of(key) != session % self.nodes
        return self.data == SERVER

    def validation_trips(self, session: int, level: str, read: Iterable[str], written: Iterable[str]) -> int:
        """Round trips of the validation of what was read and written."""
        if self.validation == NEVER:
            return 0
        keys = {
            *(written if visibility_bits(level) & WRITERS else ()),
            *(read if visibility_bits(level) & EVERYTHING else ()),
        }
        if self.data == SERVER:
            asked = {0} if keys else set()
        elif self.data == SPREAD:
            asked = {self.node_of(key) for key in keys} - {session % self.nodes}
        else:
            asked = set(range(self.nodes)) - {session % self.nodes} if keys else set()
        return len(asked) if self.validation == EACH else min(1, len(asked))

    def __str__(self) -> str:
        """As ``parsed`` reads it; what is as usual is left out."""
        told = [f.name for f in fields(self) if getattr(self, f.name) != getattr(USUAL, f.name)]
        return ",".join(f"{name}={_spelled(getattr(self, name))}" for name in told)


# Every operation is a round trip to one server, and so is the commit.
USUAL = Costs()


def _spelled(value: Any) -> str:
    if isinstance(value, frozenset):
        return "+".join(name for name in NAMES if name in value)
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def parsed(text: str) -> Costs:
    """From NAME=VALUE,…, as ``data=spread,nodes=5,exclusive=SI+SER``."""
    given: dict[str, Any] = {}
    for piece in filter(None, text.split(",")):
        name, equals, value = piece.partition("=")
        if not equals or name not in {f.name for f in fields(Costs)}:
            known = ", ".join(f.name for f in fields(Costs))
            raise IsocheckError(f"--costs: {piece!r} is not NAME=VALUE with one of {known}")
        try:
            given[name] = _value(name, value)
        except ValueError:
            raise IsocheckError(f"--costs: {name}={value} is no number") from None
    return replace(USUAL, **given)


def _value(name: str, value: str) -> Any:
    if name == "exclusive":
        unknown = [level for level in value.split("+") if level not in NAMES]
        if unknown:
            raise IsocheckError(f"--costs: exclusive={value}: {unknown[0]} is no level; join levels by +")
        return frozenset(value.split("+"))
    if name == "waiting":
        if value not in ("true", "false"):
            raise IsocheckError(f"--costs: waiting={value}: choose true, false")
        return value == "true"
    if name in ("nodes", "begin", "commit"):
        return int(value)
    return float(value) if name in ("low", "high", "local") else value
