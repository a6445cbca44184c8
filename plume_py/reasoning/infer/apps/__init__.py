"""Example applications. ``isocheck infer NAME`` finds them by name."""
