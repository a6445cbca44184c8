"""The weak levels CI, RC, RA and TCC: axioms decide them, and 14 anomalous patterns (TAPs) explain violations."""
