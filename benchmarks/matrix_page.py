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
- Firebird, SNAPSHOT TABLE STABILITY: a table is locked when a transaction first uses it, but reads show the snapshot
  from its beginning, so two transactions can each overwrite what the other one has read.
- Redis, WATCH: the replica is behind. MULTI: nothing is watched, so a client that looks at a list to which it has just
  appended shows its element where it need not end up.
"""


def main() -> None:
    """Copy and write."""
    folder, command = Path(sys.argv[1]), " ".join(sys.argv[2:])
    table = (folder / "matrix.md").read_text()
    files = {match[0]: match[1] for match in re.finditer(r"(\w+):///\S+", table)}
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)

    def copied(link: re.Match[str]) -> str:
        source = folder / link[1]
        name = f"{source.parent.name}{source.name[source.name.index('.jsonl-') + 15 :]}"
        # A picture says which file it is of; the folder is of no use to others.
        drawn = source.read_text().replace(f"{folder}/".replace("-", "&#45;"), "")
        for address, scheme in files.items():
            slug = re.sub(r"\W", "-", address)
            name, drawn = name.replace(slug, scheme), drawn.replace(slug.replace("-", "&#45;"), scheme)
        (PICTURES / name).write_text(drawn)
        return f"](pictures/matrix/{name})"

    linked = re.sub(r"\]\(<([^>]*)>\)", copied, table)
    for address, scheme in files.items():  # where a file was is of no use to others
        linked = linked.replace(address, f"{scheme}:///file")
    (HERE / "docs" / "matrix.md").write_text(PAGE.format(command=command, table=linked))


if __name__ == "__main__":
    main()
