"""Proofs without bounds: what a transaction does to the invariant, whoever runs beside it."""
