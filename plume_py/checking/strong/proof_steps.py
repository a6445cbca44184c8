"""Turn the edges of a proof into steps with sentences, for ``strong.counterexample``."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from plume_py.base.text import display, key_text, txn_text
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import Step
from plume_py.checking.steps import StepWriter
from plume_py.checking.strong.minimal.facts import Facts
from plume_py.checking.strong.minimal.forbidden_cycles import CAUSAL, Proof, ProofEdge
from plume_py.history.model import INITIAL, INITIAL_ID
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS


class ProofWriter(StepWriter):
    """Builds the steps of a proof. With ``mixed`` levels, each step says which transaction's level requires it."""

    def __init__(self, analysis: Analysis, facts: Facts, mixed: bool) -> None:
        super().__init__(analysis)
        self.facts = facts
        self.mixed = mixed

    def steps(self, proof: Proof) -> tuple[Step, ...]:
        """Return the steps of the cycle."""
        links = proof.cycle
        before, after = (links[-1], *links[:-1]), (*links[1:], links[0])
        steps = [self._step(link, earlier) for earlier, link in zip(before, links, strict=True)]
        clauses = map(self._by_level_prefix, before, links, after)
        return tuple(replace(step, because=step.because + why) for step, why in zip(steps, clauses, strict=True))

    def _step(self, link: ProofEdge, earlier: ProofEdge | None) -> Step:
        a, b = self.facts.number[link.source], self.facts.number[link.target]
        if link.relation == "SO":
            return self.session_step(a, b)
        if link.relation == "RT":
            return self.time_step(a, b)
        if link.relation == "WR":
            return self.read_step(self._read(b, self.facts.key_number[link.key], a))
        if link.relation == "RW":
            return self._missed(link, earlier)
        return self._ordered(link)

    def _read(self, t: int, x: int, source: int) -> int:
        """Return the first read of x by which t read from ``source``."""
        for r in range(int(self.reads.read_start[t]), int(self.reads.read_start[t + 1])):
            if self.reads.read_source[r] == source and self.history.op_key[self.reads.read_op[r]] == x:
                return r
        raise AssertionError("a read that is not there")

    def _missed(self, link: ProofEdge, earlier: ProofEdge | None) -> Step:
        """Return the RW step: the source read a version that the target overwrote."""
        number = self.facts.number
        t, b = number[link.source], number[link.target]
        source = INITIAL if link.via == INITIAL else number[link.via]
        read = self.read_step(self._read(t, self.facts.key_number[link.key], source))
        newer = None if link.newer is None else self._ordered(link.newer)
        reader, key, writer = txn_text(self.name(t)), key_text(read.key), txn_text(self.name(b))
        if read.source == INITIAL_ID:
            because = f"{reader} read the initial value of {key}, which {writer} overwrote"
        else:
            because = (
                f"{reader} read {key} = {display(read.value)} from {txn_text(read.source)}, which {writer} overwrote"
            )
        because += self._by_level_missed(link, earlier)
        return Step(
            self.name(t),
            self.name(b),
            "RW",
            read.key,
            because,
            value=read.value,
            evidence=(read,) if newer is None else (read, newer),
            source_op=read.target_op,
            target_op=self.last_write(b, self.facts.key_number[link.key]),
            needs_proof=newer is not None and (newer.needs_proof or newer.reader is not None),
        )

    def _ordered(self, link: ProofEdge) -> Step:
        """Return the WW step (the source's version is older) or CM step (the source commits first)."""
        a, b = (self.name(self.facts.number[t]) for t in (link.source, link.target))
        key = self.key(self.facts.key_number[link.key]) if link.relation == "WW" else None
        what = f"{txn_text(a)}'s write of {key_text(key)} comes before {txn_text(b)}'s"
        back = f"{txn_text(b)}'s came first"
        if link.relation == "CM":
            what, back = (
                f"{txn_text(a)} commits before {txn_text(b)}",
                f"{txn_text(b)} committed first",
            )
        seen = self._by_level_written(link)
        first, second = self._written(link)
        if link.reason is None:
            because = f"suppose that {what}{seen}"
            return Step(a, b, link.relation, key, because, assumed=True, source_op=first, target_op=second)
        if isinstance(link.reason, int):
            step = self.version_step(self.facts.number[link.source], self.facts.number[link.target], link.reason)
            return replace(step, because=step.because + seen)
        inner = self.steps(link.reason)
        others = [step for step in inner if not step.assumed]
        by_causality = all(step.relation in CAUSAL for step in others)
        if by_causality:
            because = f"{what}, as {' and '.join(step.because for step in others)}{seen}"
        else:
            because = f"{what}: if {back}, there would be a cycle, {chain(_from_assumed(inner))}{seen}"
        proof = _from_assumed(inner)
        return Step(
            a,
            b,
            link.relation,
            key,
            because,
            evidence=proof,
            source_op=first,
            target_op=second,
            needs_proof=not by_causality,
        )

    def _written(self, link: ProofEdge) -> tuple[int | None, int | None]:
        """Return the writes of a WW step; a CM step is about whole transactions."""
        if link.relation == "CM":
            return None, None
        x, number = self.facts.key_number[link.key], self.facts.number
        return self.last_write(number[link.source], x), self.last_write(number[link.target], x)

    # Clauses for declared levels

    def _by_level_missed(self, link: ProofEdge, earlier: ProofEdge | None) -> str:
        if not self.mixed:
            return ""
        level = self.facts.level[link.source]
        t, b = (txn_text(self.name(self.facts.number[n])) for n in (link.source, link.target))
        if self.facts.sees[link.source] & EVERYTHING:
            return f"; {t} runs at {level}, so it comes before {b}"
        if self.facts.sees[link.source] & PREFIX and earlier is not None:
            s = txn_text(self.name(self.facts.number[earlier.source]))
            if earlier.source == link.target:
                return f"; {t} runs at {level} and saw {b}, so it should have read {b}'s write"
            return f"; {t} runs at {level} and saw {s}, so {s} comes before {b}"
        return f"; {t} runs at {level}, so it must not have seen {b}"

    def _by_level_prefix(self, earlier: ProofEdge, link: ProofEdge, later: ProofEdge) -> str:
        """Return the clause that the target sees a prefix, and so all transactions before the one it sees."""
        level = self.facts.level[link.target]
        seen_on = later.relation in CAUSAL and earlier.relation not in CAUSAL
        prefix = self.facts.sees[link.target] & PREFIX
        if not self.mixed or link.relation not in CAUSAL or not prefix or not seen_on:
            return ""
        a, b = (txn_text(self.name(self.facts.number[n])) for n in (link.source, link.target))
        return f"; {b} runs at {level}, so it saw all that comes before {a}"

    def _by_level_written(self, link: ProofEdge) -> str:
        level = self.facts.level[link.target]
        writers = self.facts.sees[link.target] & (WRITERS | EVERYTHING) == WRITERS
        if not self.mixed or not writers or link.relation != "WW":
            return ""
        a, b = (txn_text(self.name(self.facts.number[n])) for n in (link.source, link.target))
        return f"; {b} runs at {level}, so it saw {a}, which wrote {key_text(self._key(link))} before it"

    def _key(self, link: ProofEdge) -> object:
        return self.key(self.facts.key_number[link.key])


def _from_assumed(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the cycle beginning with the supposed step."""
    at = next((i for i, step in enumerate(steps) if step.assumed), 0)
    return (*steps[at:], *steps[:at])


def chain(steps: Sequence[Step]) -> str:
    """Return a text like ``T1 -WW-> T2 -RW-> T1``."""
    if not steps:
        return ""
    assert all(a.target == b.source for a, b in pairwise(steps))
    return txn_text(steps[0].source) + "".join(f" -{step.relation}-> {txn_text(step.target)}" for step in steps)
