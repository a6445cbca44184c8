"""Compiles plain functions over arrays ("kernels") for large inputs. Only this package uses the internals of numba."""
