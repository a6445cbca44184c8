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

Written from

```
{command}
```

What databases promise, and where that is written, is in [databases.md](databases.md); what the names of levels mean, in
[levels.md](levels.md); [gallery.md](gallery.md) shows what was found, one by one.

{table}
PMP and G2, phantoms, take predicates, which histories of keys and values do not have. OTV is what read committed rules
out beyond single reads (TAP h and i); P2 is a key read twice in a transaction with two answers; stale is a read of what
had been overwritten by somebody who had ended before the reader began.

Where a promise is broken:

- MariaDB and Galera, REPEATABLE READ: reads see a snapshot, writes and what is read after them the newest version. That
  is documented, but is not what the standard calls so.
- Galera, SERIALIZABLE: locks are taken on one node; between nodes only what was written is compared.
- PostgreSQL with standbys: commits do not wait for standbys here, so a session that moves from one to the other misses
  its own past; and a standby has no SERIALIZABLE.
- Redis, WATCH: the replica is behind. MULTI: nothing is watched, so a client that looks at a list to which it has just
  appended shows its element where it need not end up.
"""


def main() -> None:
    """Copy and write."""
    folder, command = Path(sys.argv[1]), " ".join(sys.argv[2:])
    table = (folder / "matrix.md").read_text()
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)

    def copied(link: re.Match[str]) -> str:
        source = folder / link[1]
        target = PICTURES / f"{source.parent.name}{source.name[source.name.index('.jsonl-') + 15 :]}"
        # A picture says which file it is of; the folder is of no use to others.
        drawn = source.read_text().replace(f"{folder}/".replace("-", "&#45;"), "")
        target.write_text(drawn)
        return f"](pictures/matrix/{target.name})"

    linked = re.sub(r"\]\(<([^>]*)>\)", copied, table)
    (HERE / "docs" / "matrix.md").write_text(PAGE.format(command=command, table=linked))


if __name__ == "__main__":
    main()
