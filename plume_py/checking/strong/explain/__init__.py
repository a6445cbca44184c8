"""A contradiction as a named, complete violation, in steps with reasons."""
