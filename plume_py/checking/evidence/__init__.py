"""Evidence behind a passing check: whether the run could have shown a violation."""

from plume_py.checking.evidence.evidence import SAMPLES, evidence_of

__all__ = ["SAMPLES", "evidence_of"]
