"""What a pass is worth, for the commands that say so."""

from dataclasses import replace
from typing import TYPE_CHECKING

from plume_py.base.errors import LimitError

if TYPE_CHECKING:
    from plume_py.base.limits import Limits
    from plume_py.checking.result import Result
    from plume_py.history.model import History


def with_evidence(result: "Result", history: "History", order: str, limits: "Limits") -> "Result":
    """The result with what it is worth; the verdicts stand if that takes too long."""
    from plume_py.checking.evidence import evidence_of

    try:
        return replace(result, evidence=evidence_of(history, result.levels, order=order, limits=limits))
    except LimitError as error:
        return replace(result, notes=(*result.notes, f"no evidence: {error}"))
