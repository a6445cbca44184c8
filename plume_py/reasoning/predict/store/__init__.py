"""An in-process store that controls what each read returns, and applications that run on it."""

from plume_py.reasoning.predict.store.application import PlannedTransaction
from plume_py.reasoning.predict.store.store import (
    Conflict,
    Latest,
    RandomLegal,
    ReadRequest,
    Rollback,
    Store,
    Transaction,
)

__all__ = [
    "Conflict",
    "Latest",
    "PlannedTransaction",
    "RandomLegal",
    "ReadRequest",
    "Rollback",
    "Store",
    "Transaction",
]
