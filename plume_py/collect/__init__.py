"""Histories from real databases: run a workload, record what its clients saw."""
