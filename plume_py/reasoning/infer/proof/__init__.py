"""Unbounded proofs that a transaction at a level keeps the invariant, for any number of rows and of other commits."""
