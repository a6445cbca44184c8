"""What a pass is worth: would the run have shown an error, had there been one?"""

from plume_py.checking.worth.worth import SAMPLES, worth

__all__ = ["SAMPLES", "worth"]
