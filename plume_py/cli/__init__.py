"""The command line: one small file per command, arguments in and rendering out, no logic."""
