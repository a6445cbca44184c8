"""Where things are, for tests in any folder."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HISTORIES = ROOT / "histories"
EXAMPLES = ROOT / "docs" / "examples"
SHARED = ROOT.parent / "shared"  # a corpus beside the project; tests that use it are skipped where it is missing
