"""Partners at their own levels, for the bounded search: their statements look at earlier states than their commit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plume_py.reasoning.infer.bounded.symbolic import Base, Execution, Frame, Point, Slot, Snapshot, State, overlay
from plume_py.reasoning.infer.bounded.terms import Term, and_, equal, not_, or_
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.statement_models import LevelModel


@dataclass
class PartnerCommit:
    """The commit of another transaction: which one, with what arguments, and what it wrote."""

    choice: Any
    frames: list[Frame]
    writes: dict[tuple[int, int], Term]
    after: State
    runs: list[Execution]
    locks: dict[tuple[int, int], Term]

    def claims(self, place: tuple[int, int]) -> Term:
        """Did it write or lock this row?"""
        return or_(self.writes.get(place, False), self.locks.get(place, False))


class Partners:
    """The part of the bounded search that is about partners; see ``Bounded`` for the rest."""

    program: ir.Application
    partners: dict[str, LevelModel]
    others_so_far: list[PartnerCommit]
    states: list[State]
    _fresh: Callable[[str, str], Any]
    _add: Callable[[Term], None]
    _at: Callable[[Any, int], State]

    def _moments(self, level: LevelModel, j: int) -> Base:
        """Where the statements of a partner at its own level look: at states up to j, later ones at later ones."""
        first: list[Any] = []
        last: list[Any] = [0]

        snapshot = Snapshot(self._fresh("moment", "int"), self._add)

        def late(guard: Term) -> tuple[State, Any]:
            if snapshot.taken is not True:
                last[0] = self._moment(last[0], j)
            return self._at(snapshot.look(last[0], guard), j), last[0]

        def base(writing: bool, guard: Term, newest: bool) -> tuple[State, Any]:
            if level.late_snapshot and not writing and not newest:
                return late(guard)
            which = "current" if newest else level.write if writing else level.select
            if not first or which == "current" or writing:
                last[0] = self._moment(last[0], j)
                first.append(last[0])
            moment = first[0] if which == "snapshot" else last[0]
            # A look at the snapshot happens now, but sees what was there at first.
            return self._at(moment, j), last[0]

        return base

    def _moment(self, earliest: Any, latest: int) -> Any:
        """A moment, in numbers of commits."""
        moment = self._fresh("moment", "int")
        self._add(and_(moment >= earliest, moment <= latest))
        return moment

    def _isolated(self, run: Execution, level: LevelModel, j: int) -> Term:
        """What the level of a partner demands of the commits since its statements."""
        parts: list[Term] = []
        begin = run.points[0].moment if run.points else j
        for i, step in enumerate(self.others_so_far):
            since = begin <= i
            for point in run.points:
                for (table, number), (happened, after) in point.writes.items():
                    clash = self._clash(run, table, number, after, step)
                    if level.locks_writes:
                        taken = or_(clash, step.locks.get((table, number), False))
                        parts.append(not_(and_(happened, point.moment <= i, taken)))
                    if level.first_committer_wins and (table, number) not in run.inserted:
                        parts.append(not_(and_(happened, since, clash)))
                if level.locks_reads or getattr(point.stmt, "lock", False):
                    for place, seen in point.reads.items():
                        parts.append(not_(and_(point.moment <= i, point.guard, seen, step.claims(place))))
            if level.among_themselves:
                parts.append(not_(and_(since, self._is_watched(step))))
        return and_(*parts, self._keys_are_free(run, self.states[j]))

    def _clash(self, run: Execution, table: int, number: int, row: Slot, step: PartnerCommit) -> Term:
        """Did a step write this row? Rows with equal primary keys are the same row."""
        parts = [step.writes.get((table, number), False)]
        if self.program.tables[table].key:
            for (other, place), wrote in step.writes.items():
                if other == table and place != number:
                    parts.append(and_(wrote, run.key_equal(table, row.columns, step.after[table][place].columns)))
        return or_(*parts)

    def _keys_are_free(self, run: Execution, before: State, point: Point | None = None) -> Term:
        """At commit nobody else has a primary key that was inserted; what it deleted itself is in nobody's way."""
        parts: list[Term] = []
        for (table, number), happened in run.inserted.items():
            if self.program.tables[table].key and (point is None or (table, number) in point.writes):
                row = run.writes[table, number].after.columns
                for place, slot in enumerate(overlay(before, run.before[table, number])[table]):
                    if (table, place) not in run.inserted:
                        parts.append(not_(and_(happened, slot.present, run.key_equal(table, row, slot.columns))))
        return and_(*parts)

    def _is_watched(self, step: PartnerCommit) -> Term:
        numbers = [
            number
            for number, txn in enumerate(self.program.transactions, 1)
            if txn.name in self.partners and self.partners[txn.name].among_themselves
        ]
        return or_(*(equal(step.choice, number) for number in numbers))
