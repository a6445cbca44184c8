"""Collect histories from real databases: run a workload, and record what its clients read and write."""
