"""Reads large, regular files in bulk: the usual text of a format as an automaton whose tables one kernel runs."""
