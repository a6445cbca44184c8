"""Histories that some levels allow and others forbid, found within a scope or shown not to exist there."""

from plume_py.history.model import INITIAL
from plume_py.synth.definition import Definition, Witness, axiom, seen_by
from plume_py.synth.judge import Judgement, judge
from plume_py.synth.own import level, load_definitions, shows
from plume_py.synth.registry import definition
from plume_py.synth.scope import Program, Scope
from plume_py.synth.synthesis import SeparatingHistory, SynthesisResult, synthesize
from plume_py.synth.view import View

__all__ = [
    "INITIAL",
    "Definition",
    "Judgement",
    "Program",
    "Scope",
    "SeparatingHistory",
    "SynthesisResult",
    "View",
    "Witness",
    "axiom",
    "definition",
    "judge",
    "level",
    "load_definitions",
    "seen_by",
    "shows",
    "synthesize",
]
