"""Many histories: find them, check them in worker processes or on a cluster, keep the results, sum them up."""
