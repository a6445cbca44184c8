"""The bounded search: a few transactions with symbolic values, in front of a solver."""
