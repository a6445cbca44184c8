"""Which isocheck this is."""

__version__ = "0.1.0"

# How documents say who has written them.
TOOL = {"name": "isocheck", "version": __version__}
