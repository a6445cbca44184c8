"""Damaged input for every reader and every command: a little of it in ``make test``, a lot in ``make fuzz``."""
