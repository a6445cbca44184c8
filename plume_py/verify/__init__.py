"""Re-checks what a check said, a commit order or counterexamples, by the definitions alone.

Nothing is shared with the engine: the history is taken as people write it, everything is a plain dict or set, and each
rule stands here as the levels define it.
"""

from plume_py.verify.claims import HistoryClaim, WitnessClaim, read_claim
from plume_py.verify.violations import judge_entry, verify_entry
from plume_py.verify.witness import verify_witness

__all__ = ["HistoryClaim", "WitnessClaim", "judge_entry", "read_claim", "verify_entry", "verify_witness"]
