"""What a pass is worth: would the run have shown an error, had there been one?"""

from plume_py.checking.evidence.evidence import SAMPLES, evidence_of

__all__ = ["SAMPLES", "evidence_of"]
