"""The levels by name: in commit-order form, in visibility form, and as tables of patterns."""

from collections.abc import Callable

from plume_py.base.logic import FALSE, TRUE, Literal
from plume_py.history.model import INITIAL
from plume_py.levels import levels_that_see, visibility_bits
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS
from plume_py.reasoning.synth.definition import Body, Definition, Form, Premise, Witness, axiom, forced, seen_by
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.visibility import Sees, Visibility

# -- commit order ------------------------------------------------------------------------------------------------


def cut_isolation(h: View) -> Literal:
    """No transaction reads a key from two others."""
    return h.all(
        -h.all((h.reads(t, x, a), h.reads(t, x, b)))
        for t in h.txns
        for x in h.keys
        for a in h.sources(t)
        for b in h.sources(t)
        if a < b and FALSE not in (h.reads(t, x, a), h.reads(t, x, b))
    )


def _read_committed(h: View) -> Premise:
    return lambda t1, t2, t3, x: h.read_before(t3, t2, x, t1)


def _read_atomic(h: View) -> Premise:
    return seen_by(h.base)


def _causal(h: View) -> Premise:
    return seen_by(h.causal)


def _visibility(bits: int) -> Callable[[View, Relation], Relation]:
    """What a transaction sees if it sees no more than these bits ask for, given the commit order."""
    level = Sees.of(bits)

    def visible(h: View, co: Relation) -> Relation:
        if level.closed == TRUE and level.writers == FALSE:
            return h.causal
        visibility = _over(h, [level] * len(h.txns), co)
        if level.closed == TRUE:
            seen = h.relation({(a, b): near for b in h.txns for a, near in visibility.near(b).items()}).closure()
        else:
            seen = Relation.where(h.formula, len(h.txns), visibility.sees)
        seen.name = "VIS"
        return seen

    return visible


def _over(h: View, levels: list[Sees], co: Relation) -> Visibility:
    return Visibility(
        h.formula, levels, lambda a, b: co[a, b], lambda a, b: h.base[a, b], lambda a, b: h.conflict[a, b]
    )


# The levels that are told apart by what is seen; update atomic is one that the checker does not have.
_BITS = {name: visibility_bits(name) for name in levels_that_see(AT_COMMIT)} | {"UA": AT_COMMIT | WRITERS}
VISIBILITY: dict[str, Callable[[View, Relation], Relation]] = {
    name: _visibility(bits) for name, bits in sorted(_BITS.items(), key=lambda level: level[1])
}


def _by_visibility(name: str) -> Body:
    return lambda h, w: axiom(h, w.co, seen_by(VISIBILITY[name](h, w.co)))


def _update_ser(h: View, w: Witness) -> Literal:
    return axiom(h, w.co, lambda t1, t2, t3, x: h.all((h.updates(t3), w.co[t2, t3])))


# -- visibility --------------------------------------------------------------------------------------------------


def _transitive(h: View, w: Witness) -> Literal:
    return w.vis.then(w.vis).inside(w.vis)


def _prefix(h: View, w: Witness) -> Literal:
    return w.ar.then(w.vis).inside(w.vis)


def _no_conflict(h: View, w: Witness) -> Literal:
    return (w.ar & h.conflict).inside(w.vis)


def _total(h: View, w: Witness) -> Literal:
    return w.ar.inside(w.vis)


def _both(*parts: Body) -> Body:
    return lambda h, w: h.all(part(h, w) for part in parts)


def _update_total(h: View, w: Witness) -> Literal:
    """Those that write see all earlier ones that write."""
    return h.all(
        h.implies(h.all((h.updates(a), h.updates(b), w.ar[a, b])), w.vis[a, b])
        for a in h.txns
        for b in h.txns
        if a != b
    )


def _no_lost_update(h: View, w: Witness) -> Literal:
    """Whoever writes x sees the last earlier writer of x."""
    writers = {x: [t for t in h.txns if h.writes(t, x) != FALSE] for x in h.keys}

    def seen_if_last(x: int, a: int, b: int) -> Literal:
        between = [h.all((h.writes(c, x), w.ar[a, c], w.ar[c, b])) for c in writers[x] if c not in (a, b)]
        return h.any((-h.all((h.writes(a, x), h.writes(b, x), w.ar[a, b])), *between, w.vis[a, b]))

    return h.all(seen_if_last(x, a, b) for x in h.keys for a in writers[x] for b in writers[x] if a != b)


# -- a level per transaction -------------------------------------------------------------------------------------

_SO_FAR = levels_that_see(0, without=AT_COMMIT)


def _one_of(h: View, t: int, levels: tuple[str, ...]) -> Literal:
    return h.any(h.at(t, name) for name in levels)


def _declared_level(h: View, t: int) -> Sees:
    return Sees(
        writers=_one_of(h, t, levels_that_see(WRITERS, without=EVERYTHING)),
        closed=_one_of(h, t, levels_that_see(TRANSITIVE, without=PREFIX)),
        prefix=_one_of(h, t, levels_that_see(PREFIX, without=EVERYTHING)),
        everything=_one_of(h, t, levels_that_see(EVERYTHING)),
    )


def _declared(h: View, w: Witness) -> Literal:
    """Every transaction keeps the axioms of the level it runs at."""
    parts = [axiom(h, w.ar, _declared_premise(h, w.vis))]
    for t in h.txns:
        level = _declared_level(h, t)
        for a in h.txns:
            if a == t:
                continue
            parts.append(h.any((-level.everything, -w.ar[a, t], w.vis[a, t])))
            parts.append(h.any((-level.writers, -h.conflict[a, t], -w.ar[a, t], w.vis[a, t])))
            for s in h.txns:
                if s not in (a, t):
                    parts.append(h.any((-level.closed, -w.vis[a, s], -w.vis[s, t], w.vis[a, t])))
                    parts.append(h.any((-level.prefix, -w.ar[a, s], -w.vis[s, t], w.vis[a, t])))
    return h.all(parts)


def _declared_premise(h: View, vis: Relation) -> Premise:
    def premise(t1: int, t2: int, t3: int, x: int) -> Literal:
        """Without AT_COMMIT it counts what was read before, else what is visible."""
        committed = _one_of(h, t3, _SO_FAR)
        if committed == FALSE:
            return vis[t2, t3]
        return h.any((h.all((-committed, vis[t2, t3])), h.all((committed, h.read_before(t3, t2, x, t1)))))

    return premise


def declared_visibility(h: View, co: Relation) -> Relation:
    """What everyone sees at least if ``co``, the commit order, is the numbering."""
    visibility = _over(h, [_declared_level(h, t) for t in h.txns], co)
    return h.relation({(a, b): visibility.sees(a, b) for b in h.txns for a in range(b)})


# -- patterns ----------------------------------------------------------------------------------------------------


def _other_key(h: View, t: int, source: int, x: int) -> Literal:
    """Does t read a key other than x from ``source``?"""
    return h.any(h.reads(t, y, source) for y in h.keys if y != x)


def _plume_rc(h: View) -> Premise:
    """TAP-h and TAP-i as Plume words them: what was read before is another key."""

    def premise(t1: int, t2: int, t3: int, x: int) -> Literal:
        return h.any(h.read_earlier(t3, y, t2, x, t1) for y in h.keys if y != x)

    return premise


def _plume_ra(h: View) -> Premise:
    """TAP-k and TAP-l as Plume words them: two keys, read from two transactions."""
    return lambda t1, t2, t3, x: _other_key(h, t3, t2, x)


def _plume_tcc(h: View) -> Premise:
    """TAP-k to TAP-n as Plume words them."""
    return lambda t1, t2, t3, x: h.any((_other_key(h, t3, t2, x), h.causal[t2, t3]))


def patterns_absent(h: View, premise: Callable[[View], Premise]) -> Literal:
    """None of a level's two patterns: t1 CO t2, or t1 before t2 by CO and what the level forces."""
    rule = premise(h)
    edges, _ = forced(h, rule)
    order = (h.causal | edges).closure()
    found = []
    for t1, t2, t3, x, read in h.triples:
        older = TRUE if t1 == INITIAL else h.any((h.causal[t1, t2], order[t1, t2]))
        found.append(h.all((read, rule(t1, t2, t3, x), older)))
    return -h.any(found)


# -- the table ---------------------------------------------------------------------------------------------------


def _weak(
    name: str, premise: Callable[[View], Premise], text: str, cut: bool = False, ordered: bool = False
) -> Definition:
    side = cut_isolation if cut else None

    def body(h: View, w: Witness) -> Literal:
        obeyed = axiom(h, w.co, premise(h))
        return obeyed if side is None else h.all((side(h), obeyed))

    return Definition(name, "co", body, text, premise, side, ordered, atomic=name in VISIBILITY)


def _table(name: str, form: Form, body: Body, text: str, ordered: bool = False) -> Definition:
    return Definition(name, form, body, text, ordered=ordered, atomic=name in VISIBILITY)


_TAPS = {
    "RC": (_read_committed,),
    "RA": (_read_committed, _read_atomic),
    "TCC": (_read_committed, _read_atomic, _causal),
}


def _taps_of(name: str) -> Body:
    def body(h: View, w: Witness) -> Literal:
        parts = [h.causal.irreflexive(), *(patterns_absent(h, premise) for premise in _TAPS[name])]
        return h.all(parts if name == "RC" else (cut_isolation(h), *parts))

    return body


DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        _table("CI", "history", lambda h, w: cut_isolation(h), "no transaction reads a key from two others", True),
        _weak("RC", _read_committed, "t3 read from t2 before it read x from t1", ordered=True),
        _weak("RA", _read_atomic, "t2 SO t3 or t2 WR t3"),
        _weak("TCC", _causal, "t2 CO t3"),
        _table("PC", "co", _by_visibility("PC"), "t2 CM* t4, and t4 SO t3 or t4 WR t3"),
        _table("PSI", "co", _by_visibility("PSI"), "t2 (SO, WR, WW)+ t3, WW being CM between writers of a key"),
        _table("SI", "co", _by_visibility("SI"), "as PC, t4 being also any earlier writer of a key that t3 writes"),
        _table("SER", "co", _by_visibility("SER"), "t2 CM t3"),
        _table("UpdateSer", "co", _update_ser, "t2 CM t3, if t3 writes something"),
        _table("RA@vis", "vis", lambda h, w: TRUE, "reads return the last visible write, sessions are visible"),
        _table("TCC@vis", "vis", _transitive, "RA, and visibility is transitive"),
        _table("PC@vis", "vis", _prefix, "RA, and what precedes something visible is visible"),
        _table("UA", "vis", _no_conflict, "update atomic: RA, and of two writers of a key one sees the other"),
        _table("NLU", "vis", _no_lost_update, "RA, and a writer of x sees the last earlier writer of x"),
        _table(
            "PSI@vis", "vis", _both(_transitive, _no_conflict), "TCC, and of two writers of a key one sees the other"
        ),
        _table("SI@vis", "vis", _both(_prefix, _no_conflict), "PC, and of two writers of a key one sees the other"),
        _table("SER@vis", "vis", _total, "RA, and what precedes is visible"),
        _table("UpdateSer@vis", "vis", _update_total, "RA, and what precedes is visible among those that write"),
        _weak("TapRC", _plume_rc, "Plume's TAP a to i: h and i ask for two keys", ordered=True),
        _weak("TapRA", _plume_ra, "Plume's TAP a to l: k and l ask for two keys", cut=True, ordered=True),
        _weak("TapTCC", _plume_tcc, "Plume's TAP a to n", cut=True, ordered=True),
        _table("CI@tap", "history", lambda h, w: cut_isolation(h), "isocheck's TAP j", True),
        _table("RC@tap", "history", _taps_of("RC"), "isocheck's TAP a to i", True),
        _table("RA@tap", "history", _taps_of("RA"), "isocheck's TAP a to l", True),
        _table("TCC@tap", "history", _taps_of("TCC"), "isocheck's TAP a to n", True),
        Definition("declared", "vis", _declared, "every transaction keeps the level it runs at", external=False),
    )
}
