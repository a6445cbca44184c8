"""``check``: levels in, verdicts and counterexamples out."""

import time
from collections.abc import Callable, Iterable, Sequence

from plume_py.graph.causal import ClockKind
from plume_py.history.model import NOBODY, History
from plume_py.levels import NAMES, WEAK, parse_level
from plume_py.report.verdict import LevelVerdict, Result, Violation
from plume_py.weak.engine import WeakEngine
from plume_py.weak.explain import examples
from plume_py.weak.naming import Named, name_patterns
from plume_py.weak.taps import ORDERED, TAPS, forbidden_at

DECLARED = "declared"
NOT_YET = "this level is not decided yet; no weaker level that is decided is broken"
NOT_DECLARED = "declared levels are not decided yet"

# What breaks TCC breaks these, too.
ABOVE_TCC = ("PC", "PSI", "SI", "SER")


def check(
    history: History,
    levels: str | Sequence[str] = "TCC",
    *,
    taps: Iterable[str] = (),
    max_examples: int = 1,
    name: str = "",
    clock: ClockKind = "auto",
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Does ``history`` keep ``levels``? With counterexamples for every pattern that says no.

    ``taps`` asks for single patterns instead of levels: each gets a verdict of its own ("TAP-m"), ok if it is absent.

    >>> from plume_py import HistoryBuilder, check
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("s", [("w", "x", 1)])
    >>> builder.add("s", [("r", "x", 0)])
    >>> check(builder.build(), "RA").levels["RA"].taps
    ('k',)
    """
    start = time.perf_counter()
    engine = WeakEngine(history, clock, progress)
    if taps:
        found, named = _check_patterns(engine, set(taps))
    else:
        found, named = _check_levels(engine, _levels(levels))
    patterns = [letter for letter in TAPS if any(letter in verdict.taps for verdict in found.values())]
    start_examples = time.perf_counter()
    shown: list[Violation] = []
    for pattern in patterns:
        shown += examples(engine, named, pattern, max_examples)
    seconds = {**engine.seconds, "explain": time.perf_counter() - start_examples}
    return Result(
        history=name,
        format=history.format,
        sessions=history.sessions,
        transactions=history.transactions,
        operations=history.operations,
        levels=found,
        violations=tuple(shown),
        counts={pattern: named.counts[pattern] for pattern in patterns},
        counts_exact=named.exact,
        notes=_notes(history),
        seconds={**seconds, "check": time.perf_counter() - start},
    )


def _levels(levels: str | Sequence[str]) -> list[str]:
    """Canonical names, each once, in the order of the lattice."""
    spelled = [levels] if isinstance(levels, str) else list(levels)
    names = {parse_level(level) or level for level in spelled}
    if not names:
        raise ValueError("no level to check")
    unknown = sorted(names - {*NAMES, DECLARED})
    if unknown:
        raise ValueError(f"not an isolation level: {unknown[0]!r}; use one of {' '.join(NAMES)}")
    return [level for level in (*NAMES, DECLARED) if level in names]


def _name(engine: WeakEngine, weak: list[str], broken: list[str]) -> Named:
    """Name what is there, up to the strongest level asked, if anything is."""
    strongest = [level for level in ORDERED if level in weak]
    if not broken:
        return Named({}, {}, True)
    if not strongest or broken == ["CI"] == weak:
        return Named({"j": engine.reads.counts["j"]}, {}, True)
    with engine.timed("name"):
        return name_patterns(engine, strongest[-1])


def _check_levels(engine: WeakEngine, wanted: list[str]) -> tuple[dict[str, LevelVerdict], Named]:
    weak = [level for level in WEAK if level in wanted or (level == "TCC" and set(wanted) & set(ABOVE_TCC))]
    verdicts = {level: engine.holds(level) for level in weak}
    named = _name(engine, weak, [level for level in weak if not verdicts[level]])
    return {level: _verdict(level, verdicts, named) for level in wanted}, named


def _check_patterns(engine: WeakEngine, letters: set[str]) -> tuple[dict[str, LevelVerdict], Named]:
    """Only as much is computed as the strongest level needs to which one of the patterns belongs."""
    strongest = max(ORDERED.index(TAPS[letter].level) if letter != "j" else 0 for letter in letters)
    levels = ["CI", *ORDERED[: strongest + 1]]
    named = _name(engine, levels, [level for level in levels if not engine.holds(level)])
    return {
        f"TAP-{letter}": LevelVerdict(False, (letter,)) if letter in named.counts else LevelVerdict(True)
        for letter in TAPS
        if letter in letters
    }, named


def _verdict(level: str, verdicts: dict[str, bool], named: Named) -> LevelVerdict:
    if level == DECLARED:
        return LevelVerdict(None, reason=NOT_DECLARED)
    decided = "TCC" if level in ABOVE_TCC else level
    if verdicts[decided]:
        return LevelVerdict(None, reason=NOT_YET) if level in ABOVE_TCC else LevelVerdict(True)
    return LevelVerdict(False, tuple(letter for letter in forbidden_at(decided) if letter in named.counts))


def _notes(history: History) -> tuple[str, ...]:
    notes = list(history.warnings)
    if history.init_txn != NOBODY:
        notes.append(f"transaction {history.txn_label[history.init_txn]} is taken as the initial state")
    return tuple(notes)
