"""Histories that some levels allow and others forbid, found within a scope or shown not to exist there."""

from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.definition import Definition, Witness, axiom, seen_by
from plume_py.reasoning.synth.formulas import definition
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.judge import Judgement, judge
from plume_py.reasoning.synth.scope import Program, Scope
from plume_py.reasoning.synth.synthesis import SeparatingHistory, SynthesisResult, synthesize
from plume_py.reasoning.synth.user_levels import level, load_definitions, shows

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
