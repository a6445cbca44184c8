"""Example applications, which ``isocheck infer NAME`` knows by name."""
