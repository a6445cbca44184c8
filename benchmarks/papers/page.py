"""A page of docs/papers: each table or figure of the paper beside ours, from rows that were kept as CSV."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.performance import machine, plain
from benchmarks.tables import Row, read, save
from benchmarks.workloads import WORK
from plume_py.report.plot import Axis, Points, line_plot

HERE = Path(__file__).parents[2]
RESULTS = HERE / "benchmarks" / "results" / "papers"
DOCS = HERE / "docs" / "papers"

PAGE = """# {title}

{intro}

Written by `make paper-{name}` from what it measured (CSV files in `benchmarks/results/papers/{name}`); `make
paper-{name}-quick` takes minutes and writes into `benchmarks/work` instead. Machine: {machine}.

{sections}
## Left out

{left_out}
"""
SECTION = """## {title}

{paper}

{found}

{differs}

"""


@dataclass(frozen=True)
class Plot:
    """Lines drawn from the rows of a section: one for each value of ``series``."""

    title: str
    across: Axis
    up: Axis
    lines: Callable[[Sequence[dict[str, str]]], dict[str, Points]]
    name: str = ""  # of the file, where a section has several plots


@dataclass(frozen=True)
class Section:
    """One table or figure: what the paper says of it, how it is measured here, and what differs and why.

    ``measure`` gives the rows, quick or whole; they are kept as NAME.csv, and the page is written from that file, so
    that it can be written again without measuring.
    """

    name: str
    title: str
    paper: str
    measure: Callable[[bool], Sequence[Row]]
    differs: str
    plots: Sequence[Plot] = field(default_factory=tuple)
    shown: Sequence[str] = ()  # the columns of the table; all if none is named
    table: Callable[[Sequence[dict[str, str]]], Sequence[dict[str, str]]] = field(
        default=lambda rows: rows
    )  # what is shown of the rows, where they are too many


@dataclass(frozen=True)
class Paper:
    """A paper's page: ``name`` as in ``make paper-NAME``."""

    name: str
    title: str
    intro: str
    sections: Sequence[Section]
    left_out: str

    def measure(self, only: Sequence[str], quick: bool) -> None:
        """Each section that was asked for, kept as soon as it is measured."""
        for section in self.sections:
            rows = section.measure(quick) if not only or section.name in only else ()
            if rows:  # none where something that is not given would be measured
                save(self._results(quick) / f"{section.name}.csv", rows)

    def write(self, quick: bool) -> Path:
        """The page, from what was kept."""
        docs = WORK / "papers" if quick else DOCS
        path = docs / f"{self.name}.md"
        docs.mkdir(parents=True, exist_ok=True)
        text = "".join(self._section(section, docs, quick) for section in self.sections)
        path.write_text(
            PAGE.format(
                title=self.title,
                intro=self.intro,
                name=self.name,
                machine=machine(),
                sections=text.rstrip() + "\n",
                left_out=self.left_out,
            )
        )
        return path

    def _results(self, quick: bool) -> Path:
        return (WORK / "quick-results" / "papers" if quick else RESULTS) / self.name

    def _section(self, section: Section, docs: Path, quick: bool) -> str:
        rows = read(self._results(quick) / f"{section.name}.csv")
        shown = [{name: row[name] for name in section.shown or row} for row in section.table(rows)]
        found = [plain(shown) if shown else "Not measured yet."]
        found += [self._plot(section, plot, rows, docs) for plot in section.plots if rows]
        return SECTION.format(
            title=section.title, paper=section.paper, found="\n\n".join(found), differs=section.differs
        )

    def _plot(self, section: Section, plot: Plot, rows: Sequence[dict[str, str]], docs: Path) -> str:
        path = docs / "pictures" / f"{self.name}-{section.name}{'-' if plot.name else ''}{plot.name}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text(line_plot(plot.title, plot.lines(rows), plot.across, plot.up))
        return f"![{plot.title}](pictures/{path.name})"
