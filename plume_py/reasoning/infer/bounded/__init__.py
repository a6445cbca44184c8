"""Bounded search for violations: a few transactions with symbolic values, solved by z3."""
