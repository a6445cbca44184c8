"""How two levels relate: which histories one allows and the other forbids."""

from collections.abc import Callable
from dataclasses import dataclass

from plume_py.base.limits import Limits
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.registry import definitions
from plume_py.reasoning.synth.scope import Scope
from plume_py.reasoning.synth.synthesis import Progress, SynthesisResult, synthesize

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


def relate(
    a: str | Definition,
    b: str | Definition,
    scope: Scope,
    limits: Limits | None = None,
    told: Callable[[str], None] | None = None,
) -> Relationship:
    """Compare two levels on all histories within the scope; smallest histories tell them apart."""
    first, second = definitions([a, b])

    def only(one: Definition, other: Definition, settled: str = "") -> SynthesisResult:
        def tell(progress: Progress) -> None:
            if told is not None:
                told(f"{settled}allowed by {one.name}, forbidden by {other.name}: {progress}")

        return synthesize([one], [other], scope, minimal=True, limits=limits, told=tell if told else None)

    only_a = only(first, second)
    word = f"{'one' if only_a.found else 'none'} allowed by {first.name}, forbidden by {second.name}; "
    return Relationship(first.name, second.name, only_a, only(second, first, word))
