"""The weak levels CI, RC, RA and TCC: their axioms decide, the 14 anomalous patterns (TAPs) explain."""
