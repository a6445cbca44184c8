"""Check a history while it is being written, one transaction at a time."""
