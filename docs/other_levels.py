"""Adya's levels by version orders, and Crooks' by states: levels that declare what their witness consists of.

None of them looks at sessions. There are no predicates and no aborted transactions here, so Adya's G1a, G1b and what
tells PL-2.99 from PL-3 do not occur.
"""

from plume_py.reasoning.synth import axiom, level, seen_by

# -- Adya: an order of the versions of each key -------------------------------------------------------------------


@level(name="PL-1", witness={"v": "versions"})
def pl1(h, w):
    """No cycle of write dependencies (G0)."""
    return h.versions(w.v).acyclic()


@level(name="PL-2", witness={"v": "versions"})
def pl2(h, w):
    """No cycle of write and read dependencies (G1c)."""
    return (h.wr | h.versions(w.v)).acyclic()


@level(name="PL-2.99", witness={"v": "versions"})
def pl299(h, w):
    """No cycle with anti-dependencies on single keys, either (G2-item)."""
    return (h.wr | h.versions(w.v) | h.overwrites(w.v)).acyclic()


@level(name="PL-3", witness={"v": "versions"})
def pl3(h, w):
    """No cycle at all (G2): without predicates, the same graph."""
    return (h.wr | h.versions(w.v) | h.overwrites(w.v)).acyclic()


@level(name="PL-SI", witness={"v": "versions", "s": "relation"})
def pl_si(h, w):
    """Who depends on another began after its commit (w.s); whom it missed had not committed before it began."""
    commits_before = h.all(  # some times of begin and commit are such that w.s is "had committed before it began"
        h.implies(h.all((w.s[a, b], w.s[c, d])), h.any((w.s[a, d], w.s[c, b])))
        for a in h.txns
        for b in h.txns
        for c in h.txns
        for d in h.txns
    )
    interference = (h.wr | h.versions(w.v)).inside(w.s)  # G-SIa
    missed_effects = h.overwrites(w.v).then(w.s).irreflexive()  # G-SIb
    return h.all((w.s.irreflexive(), commits_before, interference, missed_effects))


# -- Crooks: an execution, a state after each transaction ----------------------------------------------------------


@level(witness={"e": "order"})
def CrooksRC(h, w):  # noqa: N802 - the name of the level
    """Whatever is read is in some earlier state."""
    return h.wr.inside(w.e)


@level(witness={"e": "order"})
def CrooksRA(h, w):  # noqa: N802
    """And who reads from another reads nothing older than that one's state of what it wrote."""
    return h.all((h.wr.inside(w.e), axiom(h, w.e, seen_by(h.wr))))


@level(witness={"e": "order", "s": "relation"})
def CrooksSI(h, w):  # noqa: N802
    """All is read from one earlier state, and nobody writes what one writes oneself between that state and oneself.

    w.s[a, t]: a is in the state that t reads.
    """
    a_state = h.all((w.s.inside(w.e), w.e.then(w.s).inside(w.s)))
    complete = h.all((h.wr.inside(w.s), axiom(h, w.e, seen_by(w.s))))
    no_conflict = (w.e & h.conflict).inside(w.s)
    return h.all((a_state, complete, no_conflict))


@level(witness={"e": "order"})
def CrooksSER(h, w):  # noqa: N802
    """All is read from the state just before."""
    return h.all((h.wr.inside(w.e), axiom(h, w.e, seen_by(w.e))))
