"""Levels of one's own, for ``isocheck synth``, ``relate`` and ``hierarchy`` with ``--define docs/my_levels.py``."""

from plume_py.reasoning.synth import axiom, level, seen_by, shows


@level(form="axiom")
def ReadYourWrites(h):  # noqa: N802 - the name of the level
    """Whoever comes earlier in the session is seen; nothing else has to be."""
    return seen_by(h.so)


@level
def WritersSer(h, w):  # noqa: N802
    """Whoever writes sees all that comes before it, and who only reads sees its session."""
    return axiom(h, w.co, lambda t1, t2, t3, x: h.any((h.so[t2, t3], h.all((h.updates(t3), w.co[t2, t3])))))


@level(form="vis")
def MonotonicReads(h, w):  # noqa: N802
    """Read atomic, and what a transaction saw is seen by the later ones of its session."""
    return w.vis.then(h.so).inside(w.vis)


@level(form="vis")
def CausalNLU(h, w):  # noqa: N802
    """No lost update, and causal: one witness shows both."""
    return h.all((shows(h, w, "NLU"), shows(h, w, "TCC@vis")))


@level
def SerByGraph(h, w):  # noqa: N802
    """Serializability as a graph: no cycle of SO, WR, WW and RW, for some order of the writers of each key."""
    ww = w.co & h.conflict
    return (h.base | ww | h.overwrites(w.co)).closure().irreflexive()


@level(form="history")
def FewReaders(h, w):  # noqa: N802
    """Nobody is read by two others; no commit order is needed to see that."""
    return h.all(
        -h.all((h.wr[a, b], h.wr[a, c]))  # -a means: not a
        for a in h.txns
        for b in h.txns
        for c in h.txns
        if b < c
    )
