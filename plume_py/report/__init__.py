"""Verdicts and violations as plain data, and their renderers."""
