"""A child of ``make paper-plume``: small histories, each with one pattern, and what isocheck says of them.

    python -m benchmarks.papers.plume_taps FOLDER SEEDS

Writes m-0.txt, m-0.bincode and the like, and prints as JSON the patterns that were found in each.
"""

import json
import sys
from pathlib import Path

from plume_py import check
from plume_py.history.formats.registry import FORMATS
from plume_py.history.generate import generate
from plume_py.history.inject import inject

LETTERS = "abcdefghijklmn"
FORMS = {"txt": "plume", "bincode": "dbcop"}


def main() -> None:
    """The command line."""
    folder, seeds = Path(sys.argv[1]), int(sys.argv[2])
    print(json.dumps({f"{tap}-{seed}": _made(folder, tap, seed) for tap in LETTERS for seed in range(seeds)}))


def _made(folder: Path, tap: str, seed: int) -> list[str]:
    # A few transactions around it: formats that take the first for the initial state then take one that is healthy.
    healthy = generate("SER", sessions=2, transactions=2, operations=2, keys=4, seed=seed)
    history, _ = inject(healthy, {tap: 1}, seed)
    for extension, name in FORMS.items():
        chunks = FORMATS[name].load_writer()(history).chunks
        (folder / f"{tap}-{seed}.{extension}").write_bytes(b"".join(chunks))
    return list(check(history, "TCC").levels["TCC"].taps)


if __name__ == "__main__":
    main()
