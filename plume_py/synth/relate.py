"""How two levels relate: which histories one allows and the other forbids."""

from dataclasses import dataclass

from plume_py.base.limits import Limits
from plume_py.synth.definition import Definition
from plume_py.synth.scope import Scope
from plume_py.synth.synthesis import SynthesisResult, synthesize

WORDS = {
    (True, True): "equivalent",
    (True, False): "stronger",
    (False, True): "weaker",
    (False, False): "incomparable",
}


@dataclass(frozen=True)
class Relationship:
    """Of levels a and b: what a allows and b forbids, and the other way round."""

    a: str
    b: str
    only_a: SynthesisResult
    only_b: SynthesisResult

    @property
    def word(self) -> str:
        """a is equivalent to, stronger or weaker than b, or incomparable with it; within the scope."""
        return WORDS[not self.only_a.found, not self.only_b.found]

    @property
    def sentence(self) -> str:
        """The same in words."""
        link = {"equivalent": "equivalent to", "incomparable": "incomparable with"}.get(self.word, f"{self.word} than")
        return f"{self.a} is {link} {self.b}, for all histories of up to {self.only_a.scope}"


def relate(a: str | Definition, b: str | Definition, scope: Scope, limits: Limits | None = None) -> Relationship:
    """Compare two levels on all histories within the scope; smallest histories tell them apart."""
    only_a = synthesize([a], [b], scope, minimal=True, limits=limits)
    only_b = synthesize([b], [a], scope, minimal=True, limits=limits)
    return Relationship(only_a.allow[0], only_b.allow[0], only_a, only_b)
