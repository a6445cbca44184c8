"""Small histories as lists and bit sets: the second engine, and the proofs behind counterexamples."""
