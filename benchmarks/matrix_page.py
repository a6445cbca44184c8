"""docs/matrix.md from the folder of a matrix: ``python -m benchmarks.matrix_page FOLDER COMMAND…``.

The pictures that the table links to are copied to ``docs/pictures/matrix``.
"""

import re
import shutil
import sys
from pathlib import Path

from benchmarks.against import HERE

PICTURES = HERE / "docs" / "pictures" / "matrix"
PAGE = """# What each setting keeps

Written from `{command}`. Run it yourself: [command-line.md](command-line.md#matrix). What databases promise, and where
that is written, is in [databases.md](databases.md); what the names of anomalies mean, in [levels.md](levels.md).

{table}
PMP and G2, phantoms, take predicates, which histories of keys and values do not have. OTV is what read committed rules
out beyond single reads (TAP h and i); P2 is a key read twice in a transaction with two answers; stale is what only real
time forbids.
"""


def main() -> None:
    """Copy and write."""
    folder, command = Path(sys.argv[1]), " ".join(sys.argv[2:])
    table = (folder / "matrix.md").read_text()
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)

    def copied(link: re.Match[str]) -> str:
        source = folder / link[1]
        target = PICTURES / f"{source.parent.name}-{source.name}"
        shutil.copyfile(source, target)
        return f"](pictures/matrix/{target.name})"

    linked = re.sub(r"\]\(<([^>]*)>\)", copied, table)
    (HERE / "docs" / "matrix.md").write_text(PAGE.format(command=command, table=linked))


if __name__ == "__main__":
    main()
