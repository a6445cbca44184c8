"""The dependency graph of a history: who read from whom, session order, topological order, clocks."""
