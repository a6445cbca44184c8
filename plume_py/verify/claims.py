"""The input of ``verify``: a witness or a report in JSON. Fields that prove nothing are ignored."""

from typing import Literal

import msgspec

from plume_py.base.json_names import reject_same_names
from plume_py.history.value_codes import Atom

Id = str | int
Level = Literal["RC", "RA", "TCC", "PC", "PSI", "SI", "SER"]


class WitnessClaim(msgspec.Struct, kw_only=True):
    """A commit order, as ``--witness`` writes it.

    ``levels``: for declared levels, the level of each transaction in the order. ``sees``: for each transaction in the
    order, the positions of the transactions that are visible to it.
    """

    level: Literal["RC", "RA", "TCC", "PC", "PSI", "SI", "SER", "declared"]
    order: list[Id]
    between: str = "session"  # the order between transactions
    levels: list[Level] = []
    sees: list[list[int]] | None = None


class StepClaim(msgspec.Struct, kw_only=True):
    """One step (edge) of an argument; ``evidence`` are the steps that force it."""

    source: Id = msgspec.field(name="from")
    target: Id = msgspec.field(name="to")
    relation: str
    key: Atom = None
    value: Atom | msgspec.UnsetType = msgspec.UNSET
    reader: Id | None = None
    evidence: list["StepClaim"] = []


class TransactionClaim(msgspec.Struct, kw_only=True):
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
    transactions: list[TransactionClaim]
    steps: list[StepClaim]


class LevelClaim(msgspec.Struct):
    """The verdict on one level."""

    ok: bool | None
    order: str = "session"


class HistoryClaim(msgspec.Struct, kw_only=True):
    """The part of a report on one history."""

    history: str
    levels: dict[str, LevelClaim]
    violations: list[ViolationClaim]
    error: str | None = None


def read_claim(data: bytes) -> WitnessClaim | list[HistoryClaim]:
    """Return a witness, or the entries of a report in JSON or JSON Lines. Raise ValueError for anything else."""
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
