"""Histories that some levels allow and others forbid, found within a scope or shown not to exist there."""

from plume_py.synth.definition import Definition, Witness, axiom, level, seen_by
from plume_py.synth.registry import definition, load_definitions
from plume_py.synth.scope import Program, Scope
from plume_py.synth.search import Found, Outcome, synthesize
from plume_py.synth.view import INITIAL, View

__all__ = [
    "INITIAL",
    "Definition",
    "Found",
    "Outcome",
    "Program",
    "Scope",
    "View",
    "Witness",
    "axiom",
    "definition",
    "level",
    "load_definitions",
    "seen_by",
    "synthesize",
]
