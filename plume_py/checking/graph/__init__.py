"""The dependency graph of a history: resolved reads, session order, real time, causal order and its clocks."""
