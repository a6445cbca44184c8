"""Applications for the store, modelled on well-known benchmarks."""
