"""Applications to run on the store, in the manner of well-known benchmarks."""
