"""Checking while the history is still being written: one transaction at a time."""
