"""The table of levels as definitions, and their lookup by name.

Most levels exist in several forms, which tests and ``relate`` compare with each other:

``SI``       the commit-order form: the axioms of Biswas and Enea, over a commit order;
``SI@vis``   the visibility form: the axioms of Cerone, Bernardi and Gotsman, over arbitration and visibility;
``RA@tap``   the level as a list of forbidden patterns (TAPs), with our wording of the patterns;
``TapRA``    the same with Plume's wording (Plume, section 3.2), in which some patterns require two keys.

The formulas restate the levels independently of the checker. The ``text`` of a level appears in explanations, and so do
the names of variables in generator expressions (see ``TracedView``).
"""

from collections.abc import Callable, Iterable, Mapping

from plume_py.base.errors import IsocheckError
from plume_py.base.logic import FALSE, TRUE, Literal
from plume_py.base.text import display, shorten, similar
from plume_py.history.model import INITIAL
from plume_py.levels import GROUPS, NAMES, RUNNABLE, levels_that_see, visibility_bits
from plume_py.levels.orders import DEFAULT_ORDER, ORDERS, REALTIME, level_request, strong_name, unknown_level
from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, TRANSITIVE, WRITERS, normalized
from plume_py.reasoning.synth.definition import Body, Definition, Form, Premise, Witness, axiom, forced, seen_by
from plume_py.reasoning.synth.history_terms import View
from plume_py.reasoning.synth.relation import Relation
from plume_py.reasoning.synth.visibility import Sees, Visibility

# -- commit order ------------------------------------------------------------------------------------------------


def cut_isolation(h: View) -> Literal:
    """Return a literal: no transaction reads a key from two others."""
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
    """Return the function from a commit order to the least visibility relation of a level with these bits."""
    level = Sees.of(bits)

    def visible(h: View, co: Relation) -> Relation:
        if level.closed == TRUE and level.writers == FALSE:
            return h.causal
        visibility = _least_visibility(h, [level] * len(h.txns), co)
        if level.closed == TRUE:
            visible_pairs = h.relation(
                {(a, b): near for b in h.txns for a, near in visibility.near(b).items()}
            ).closure()
        else:
            visible_pairs = Relation.where(h.formula, len(h.txns), visibility.sees)
        visible_pairs.name = "VIS"
        return visible_pairs

    return visible


def _least_visibility(h: View, levels: list[Sees], co: Relation) -> Visibility:
    return Visibility(
        h.formula, levels, lambda a, b: co[a, b], lambda a, b: h.base[a, b], lambda a, b: h.conflict[a, b]
    )


# The levels that differ only in their visibility. The checker does not have update atomic (UA).
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
    """Return a literal: earlier transactions that write are visible to each transaction that writes."""
    return h.all(
        h.implies(h.all((h.updates(a), h.updates(b), w.ar[a, b])), w.vis[a, b])
        for a in h.txns
        for b in h.txns
        if a != b
    )


def _no_lost_update(h: View, w: Witness) -> Literal:
    """Return a literal: the last earlier writer of x is visible to each writer of x."""
    writers = {x: [t for t in h.txns if h.writes(t, x) != FALSE] for x in h.keys}

    def seen_if_last(x: int, a: int, b: int) -> Literal:
        between = [h.all((h.writes(c, x), w.ar[a, c], w.ar[c, b])) for c in writers[x] if c not in (a, b)]
        return h.any((-h.all((h.writes(a, x), h.writes(b, x), w.ar[a, b])), *between, w.vis[a, b]))

    return h.all(seen_if_last(x, a, b) for x in h.keys for a in writers[x] for b in writers[x] if a != b)


# -- a level per transaction -------------------------------------------------------------------------------------

# Levels at which a read is checked against the earlier reads of its transaction, instead of a visibility at commit.
_BY_EARLIER_READS = levels_that_see(0, without=AT_COMMIT)


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
    """Return a literal: every transaction satisfies the axioms of the level that it declares."""
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
        """Relate t2 to t3 by earlier reads at levels without AT_COMMIT (RC), and by visibility at all others."""
        by_reads = _one_of(h, t3, _BY_EARLIER_READS)
        if by_reads == FALSE:
            return vis[t2, t3]
        return h.any((h.all((-by_reads, vis[t2, t3])), h.all((by_reads, h.read_before(t3, t2, x, t1)))))

    return premise


def declared_visibility(h: View, co: Relation) -> Relation:
    """Return the least visibility at the declared levels; the commit order ``co`` must be the numbering."""
    visibility = _least_visibility(h, [_declared_level(h, t) for t in h.txns], co)
    return h.relation({(a, b): visibility.sees(a, b) for b in h.txns for a in range(b)})


# -- patterns ----------------------------------------------------------------------------------------------------


def _other_key(h: View, t: int, source: int, x: int) -> Literal:
    return h.any(h.reads(t, y, source) for y in h.keys if y != x)


def _plume_rc(h: View) -> Premise:
    """Return the premise of TAP-h and TAP-i in Plume's wording: the earlier read is of another key."""

    def premise(t1: int, t2: int, t3: int, x: int) -> Literal:
        return h.any(h.read_earlier(t3, y, t2, x, t1) for y in h.keys if y != x)

    return premise


def _plume_ra(h: View) -> Premise:
    """Return the premise of TAP-k and TAP-l in Plume's wording: t3 reads another key from t2."""
    return lambda t1, t2, t3, x: _other_key(h, t3, t2, x)


def _plume_tcc(h: View) -> Premise:
    return lambda t1, t2, t3, x: h.any((_other_key(h, t3, t2, x), h.causal[t2, t3]))


def patterns_absent(h: View, premise: Callable[[View], Premise]) -> Literal:
    """Return a literal: neither pattern of an axiom occurs.

    In both patterns, t3 reads x from t1, t2 also writes x, and the premise holds. In addition, t1 precedes t2 in CO, or
    in the closure of CO and the edges that the axiom forces.
    """
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
    """Return a level that is an axiom with this premise; with ``cut``, it also requires cut isolation."""
    side = cut_isolation if cut else None

    def body(h: View, w: Witness) -> Literal:
        obeyed = axiom(h, w.co, premise(h))
        return obeyed if side is None else h.all((side(h), obeyed))

    return Definition(name, "co", body, text, premise, side, uses_read_order=ordered, atomic=name in VISIBILITY)


def _level(name: str, form: Form, body: Body, text: str, ordered: bool = False) -> Definition:
    return Definition(name, form, body, text, uses_read_order=ordered, atomic=name in VISIBILITY)


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
        _level("CI", "history", lambda h, w: cut_isolation(h), "no transaction reads a key from two others", True),
        _weak("RC", _read_committed, "t3 read from t2 before it read x from t1", ordered=True),
        _weak("RA", _read_atomic, "t2 SO t3 or t2 WR t3"),
        _weak("TCC", _causal, "t2 CO t3"),
        _level("PC", "co", _by_visibility("PC"), "t2 CM* t4, and t4 SO t3 or t4 WR t3"),
        _level("PSI", "co", _by_visibility("PSI"), "t2 (SO, WR, WW)+ t3, WW being CM between writers of a key"),
        _level("SI", "co", _by_visibility("SI"), "as PC, t4 being also any earlier writer of a key that t3 writes"),
        _level("SER", "co", _by_visibility("SER"), "t2 CM t3"),
        _level("UpdateSer", "co", _update_ser, "t2 CM t3, if t3 writes something"),
        _level("RA@vis", "vis", lambda h, w: TRUE, "reads return the last visible write, sessions are visible"),
        _level("TCC@vis", "vis", _transitive, "RA, and visibility is transitive"),
        _level("PC@vis", "vis", _prefix, "RA, and what precedes something visible is visible"),
        _level("UA", "vis", _no_conflict, "update atomic: RA, and of two writers of a key one sees the other"),
        _level("NLU", "vis", _no_lost_update, "RA, and a writer of x sees the last earlier writer of x"),
        _level(
            "PSI@vis", "vis", _both(_transitive, _no_conflict), "TCC, and of two writers of a key one sees the other"
        ),
        _level("SI@vis", "vis", _both(_prefix, _no_conflict), "PC, and of two writers of a key one sees the other"),
        _level("SER@vis", "vis", _total, "RA, and what precedes is visible"),
        _level("UpdateSer@vis", "vis", _update_total, "RA, and what precedes is visible among those that write"),
        _weak("TapRC", _plume_rc, "Plume's TAP a to i: h and i ask for two keys", ordered=True),
        _weak("TapRA", _plume_ra, "Plume's TAP a to l: k and l ask for two keys", cut=True, ordered=True),
        _weak("TapTCC", _plume_tcc, "Plume's TAP a to n", cut=True, ordered=True),
        _level("CI@tap", "history", lambda h, w: cut_isolation(h), "isocheck's TAP j", True),
        _level("RC@tap", "history", _taps_of("RC"), "isocheck's TAP a to i", True),
        _level("RA@tap", "history", _taps_of("RA"), "isocheck's TAP a to l", True),
        _level("TCC@tap", "history", _taps_of("TCC"), "isocheck's TAP a to n", True),
        Definition(
            "declared", "vis", _declared, "every transaction keeps the level it runs at", reads_last_visible=False
        ),
    )
}

# -- lookup by name ----------------------------------------------------------------------------------------------

_CANONICAL = {name.upper(): name for name in DEFINITIONS}
_ALIASES = {"UPDATE-ATOMIC": "UA"}  # of levels that the checker does not have
_COMMON = f"Common levels: {', '.join(NAMES)}, SSER. `isocheck levels` lists all of them."
_ORDERS = f"An order may follow a name: {', '.join(f'@{order}' for order in ORDERS)}."
_FORM_SUFFIXES = {"CO": "", "B": "", "VIS": "@vis", "AR": "@vis", "TAP": "@tap"}


def definition(name: str, defined: Mapping[str, Definition] | None = None) -> Definition:
    """Return the level of this name, or raise IsocheckError.

    A name is one of ``defined`` (user-defined levels), or a level with an optional form: ``SI``, ``SI@co``, ``SI@vis``,
    ``RA@tap``, or an alias. Some names include an order between transactions (``SSER``, ``StrongSI@vis``); all others
    can be followed by one (``UA@realtime``, ``SI@vis@none``).
    """
    named, order = _split_order(name.strip())
    if defined and named in defined:
        return defined[named] if order is None else in_order(defined[named], order)
    stem, _, form = named.partition("@")
    request = level_request(stem)
    level = _ALIASES.get(normalized(stem), stem) if request is None else request.level
    suffix = _FORM_SUFFIXES.get(form.upper(), "@" + form) if form else ""
    canonical = _CANONICAL.get(f"{level}{suffix}".upper())
    if canonical is None:
        message = unknown_level(name, (*(defined or ()), *NAMES, "SSER", *GROUPS))
        if "Use one of" not in message:
            raise IsocheckError(message)
        near = similar(name, (*DEFINITIONS, *(defined or ())))
        hint = f"Did you mean {near}?" if near else f"{_COMMON} {_ORDERS}"
        raise IsocheckError(f"unknown level {shorten(name, 40)!r}. {hint}")
    found = DEFINITIONS[canonical]
    if request is not None and request.name != request.level:  # the name includes an order
        if order is not None:
            raise IsocheckError(f"'{display(name)}' says its order twice; write {request.name} or {level}@{order}")
        return found.in_order(request.order, request.name + suffix)
    return found if order is None else in_order(found, order)


def in_order(level: Definition, order: str) -> Definition:
    """Return the level with this order between transactions, under a name that includes the order."""
    if order == DEFAULT_ORDER:
        return level
    stem, at, form = level.name.partition("@")
    if order == REALTIME and stem in RUNNABLE:
        return level.in_order(order, strong_name(stem, order) + at + form)
    return level.in_order(order, f"{level.name}@{order}")


def _split_order(name: str) -> tuple[str, str | None]:
    """Split ``SI@vis@none`` into the name ``SI@vis`` and the order ``none``."""
    stem, _, order = name.rpartition("@")
    return (stem, order.lower()) if stem and order.lower() in ORDERS else (name, None)


def checker_level(definition: Definition) -> str | None:
    """Return the level of ``isocheck check`` that allows the same histories, or None."""
    stem = definition.level.partition("@")[0]
    return stem if stem in NAMES or stem == "declared" else None


def is_taken(name: str) -> bool:
    return name.upper() in _CANONICAL or level_request(name) is not None


def definitions(
    names: Iterable["str | Definition"], defined: Mapping[str, Definition] | None = None
) -> list[Definition]:
    """Return the levels of these names; definitions are returned unchanged."""
    return [name if isinstance(name, Definition) else definition(name, defined) for name in names]
