"""Compile plain functions over arrays ("kernels") for large inputs. Other packages import ``dispatch`` only."""
