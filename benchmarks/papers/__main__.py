"""``python -m benchmarks.papers NAME [--quick] [--only SECTION,…] [--page]``: what a paper measured, and its page."""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.papers.page import Paper

NAMES = ("plume", "isolde", "isopredict", "mixiso", "alone-together")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("name", choices=[name for name in NAMES if _module(name).exists()])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work at all?")
    parser.add_argument("--only", type=lambda text: text.split(","), default=(), help="some sections")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured before")
    args = parser.parse_args()
    paper: Paper = import_module(f"benchmarks.papers.{args.name.replace('-', '_')}").PAPER
    unknown = set(args.only) - {section.name for section in paper.sections}
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(s.name for s in paper.sections)}")
    if not args.page:
        paper.measure(args.only, args.quick)
    print(paper.write(args.quick))


def _module(name: str) -> Path:
    return Path(__file__).parent / f"{name.replace('-', '_')}.py"


if __name__ == "__main__":
    main()
