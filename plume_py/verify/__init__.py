"""Re-check the result of a check, a commit order or counterexamples, by the definitions of the levels alone.

The package shares no code with the checker on purpose: an error in the checker must not hide itself. It works on
transactions and operations in plain dicts and sets, and restates the rules of the levels.
"""

from plume_py.verify.claims import HistoryClaim, WitnessClaim, read_claim
from plume_py.verify.violations import judge_entry, verify_entry
from plume_py.verify.witness import verify_witness

__all__ = ["HistoryClaim", "WitnessClaim", "judge_entry", "read_claim", "verify_entry", "verify_witness"]
