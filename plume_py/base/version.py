"""Version of isocheck."""

__version__ = "0.1.0"

# Name and version as JSON documents give their producer.
TOOL = {"name": "isocheck", "version": __version__}
