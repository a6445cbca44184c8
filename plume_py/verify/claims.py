"""What is to be verified: a witness or a report, as read from a file. Fields that prove nothing are not read."""

from typing import Literal

import msgspec

from plume_py.base.json_names import reject_same_names
from plume_py.history.value_codes import Atom

Id = str | int
Level = Literal["RC", "RA", "TCC", "PC", "PSI", "SI", "SER"]


class WitnessClaim(msgspec.Struct, kw_only=True):
    """A commit order, as ``--witness`` writes it; for declared levels, with the level of each place in it."""

    level: Literal["RC", "RA", "TCC", "PC", "PSI", "SI", "SER", "declared"]
    order: list[Id]
    between: str = "session"  # which order between transactions counts
    levels: list[Level] = []
    sees: list[list[int]] | None = None


class StepClaim(msgspec.Struct, kw_only=True):
    """One step of an argument."""

    source: Id = msgspec.field(name="from")
    target: Id = msgspec.field(name="to")
    relation: str
    key: Atom = None
    value: Atom | msgspec.UnsetType = msgspec.UNSET
    reader: Id | None = None
    evidence: list["StepClaim"] = []


class ShownClaim(msgspec.Struct, kw_only=True):
    """A transaction of a counterexample."""

    id: Id
    session: Id
    place: str
    ops: list[tuple[str, Atom, Atom | list[Atom]]]
    hidden_ops: int = 0
    level: str | None = None


class ViolationClaim(msgspec.Struct, kw_only=True):
    """One counterexample."""

    tap: str
    level: str
    order: str = "session"
    keys: list[Atom]
    transactions: list[ShownClaim]
    steps: list[StepClaim]


class LevelClaim(msgspec.Struct):
    """The verdict on one level."""

    ok: bool | None
    order: str = "session"


class HistoryClaim(msgspec.Struct, kw_only=True):
    """What a report says about one history."""

    history: str
    levels: dict[str, LevelClaim]
    violations: list[ViolationClaim]
    error: str | None = None


def read_claim(data: bytes) -> WitnessClaim | list[HistoryClaim]:
    """A witness, or the entries of a report (JSON or JSON Lines); ValueError says what is wrong."""
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        claims = [msgspec.json.decode(line, type=HistoryClaim) for line in data.split(b"\n") if line.strip()]
        reject_same_names(data, lines=True)
        return claims
    reject_same_names(data)
    if not isinstance(document, dict):
        raise ValueError("a JSON object is expected")
    if "order" in document:
        return msgspec.convert(document, WitnessClaim)
    results = document.get("results", [document])
    return msgspec.convert(results, list[HistoryClaim])
