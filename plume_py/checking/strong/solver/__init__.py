"""The main engine: infer forced edges in arrays, then search a commit order with a SAT solver."""
