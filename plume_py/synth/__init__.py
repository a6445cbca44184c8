"""Histories that some levels allow and others forbid, found within a scope or shown not to exist there."""

from plume_py.history.model import INITIAL
from plume_py.synth.definition import Definition, Witness, axiom, level, seen_by
from plume_py.synth.registry import definition, load_definitions
from plume_py.synth.scope import Program, Scope
from plume_py.synth.synthesis import SeparatingHistory, SynthesisResult, synthesize
from plume_py.synth.view import View

__all__ = [
    "INITIAL",
    "Definition",
    "Program",
    "Scope",
    "SeparatingHistory",
    "SynthesisResult",
    "View",
    "Witness",
    "axiom",
    "definition",
    "level",
    "load_definitions",
    "seen_by",
    "synthesize",
]
