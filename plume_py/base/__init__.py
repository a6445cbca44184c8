"""Shared base without knowledge of histories: errors, text, files, limits, processes, kernels, formulas, SQL."""
