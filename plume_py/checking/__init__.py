"""Decide isolation levels.

``check`` is the entry; ``graph``, ``weak`` and ``strong`` decide and explain; ``stream`` monitors.
"""
