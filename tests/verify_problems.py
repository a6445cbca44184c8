"""The problems that ``verify`` finds in a report of ``check``."""

from plume_py import check
from plume_py.report.json import line
from plume_py.verify import read_claim, verify_entry

ALL = ("CI", "RC", "RA", "TCC", "PC", "PSI", "SI", "SER")


def problems(history, levels):
    """Return the problems of the report on ``history`` at ``levels``."""
    (entry,) = read_claim(line(check(history, levels, max_examples=3, name="h")).encode())
    return verify_entry(history, entry)
