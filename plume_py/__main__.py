"""``python -m plume_py`` is ``isocheck``."""

from plume_py.cli.main import run

if __name__ == "__main__":
    run()
