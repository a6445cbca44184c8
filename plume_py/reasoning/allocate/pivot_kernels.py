"""Can an instance be the pivot of a critical cycle  P1 -> P2 -RW-> P3 ->* P1  when it runs at a level?

If some run is not serializable, a shortest cycle of its dependencies and session order is simple, and the member P3
that commits first is entered by an RW edge from a P2 that did not see P3. What the level of P2 makes visible rules out
most of such edges; an instance for which none is left is safe at that level, whatever the others run at. The way back
from P3 to P1 avoids P2, so P1 and P3 are the same or lie in one block (see block_kernels) with P2.

Levels come as what P2 ``sees``, bits of levels.table:

- EVERYTHING that committed before it: it is never a pivot.
- WRITERS: whoever surely wrote a common cell and committed before it, so such a P3 is none.
- PREFIX: P3 commits before P1, so a P1 that P2 sees (WR, SO; with WRITERS also WW) brings in P3.
- AT_COMMIT: P1 = P3 is not seen in part, so P1 = P3 enters by RW or WW only; with WRITERS, by RW only.
- Not even AT_COMMIT, as engines keep it: each statement sees all that is committed, so also P3 when P1 is of P2's
  session. An update statement holds its row from reading to commit, so it is no RW edge out of P2, and one into P2 only
  if P2 sees it. A statement that only locks its row holds it, too, but whoever writes it later need not see that.
- P1 -WR(x)-> P2 -RW(x)-> P3 would put P1's write before P3's, though P3 commits first; only without AT_COMMIT can
  P2 have read x twice. Where x stands for many rows, P1 and P3 may have written two of them; without AT_COMMIT a
  statement that only reads sees them all at one moment.
- AT_COMMIT: a P1 that P2 sees (WR, SO; with WRITERS also WW) and that surely writes what P2 overlooked of P3 has
  overwritten it, since P3 commits first; so P2 has not overlooked it.
- PREFIX and WRITERS: a P1 that does nothing but read one version of one row comes after the one that wrote it. If P2
  overwrites that row, it sees that writer, and P3 with it: no way in.
- PREFIX and WRITERS: where P1 surely shares a written cell with P2, and its level looks out for WRITERS, too, one sees
  the other, so P1 -RW-> P2 is no way in.
"""
# mypy: allow-untyped-defs

from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, WRITERS

# How an instance guards what it writes: not at all, in update statements, or by its level.
UNGUARDED = 0
BY_STATEMENT = 1
BY_LEVEL = 2

# Candidates for P1 that are ruled out one by one, before the next one is taken for one that is not.
LOOKS = 64

RW = 1
WW = 2
WR = 3
SO = 4


def safe(g, first, choices, guarded, mark, cycle, table):
    """For each instance from ``first`` on, a row of the table each, and each of ``choices``: is it no pivot there?"""
    for i in range(len(table)):
        for c in range(len(choices)):
            table[i, c] = not pivot(g, first + i, choices[c], guarded, mark, cycle)


def pivot(g, p, sees, guarded, mark, cycle):
    """Is there a critical cycle through p? ``cycle`` then says: P1, relation, its cell, P3, its cell."""
    if sees & EVERYTHING:
        return False
    for i in range(g.u_start[p], g.u_start[p + 1]):
        mark[g.u_cell[i]] = p
    for i in range(g.r_start[p], g.r_start[p + 1]):
        if not sees & AT_COMMIT and (g.how[i] == 0 or g.how[i] == 3):
            continue
        y = g.r_cell[i]
        if sees & WRITERS and g.certain[y] and mark[y] == p:  # every P3 surely writes it, and so does p
            continue
        block = g.cell_block[y]
        if block < 0:
            block = g.read_block[i]
        tried = 0
        for j in range(g.kw_start[y], g.kw_start[y + 1]):
            p3 = g.kw[j]
            if p3 == p or g.session[p3] == g.session[p]:
                continue
            if sees & WRITERS and conflict(g, p3, p, mark):
                continue
            if way_in(g, p, p3, y, block, sees, guarded, mark, cycle):
                cycle[3] = p3
                cycle[4] = y
                return True
            tried += 1
            if tried == 2:  # a third differs from the first two in nothing that matters
                break
    return False


def conflict(g, q, p, mark):
    """Do q and the marked p surely write a common cell?"""
    for i in range(g.u_start[q], g.u_start[q + 1]):
        if mark[g.u_cell[i]] == p:
            return True
    return False


def writes(g, q, y):
    """Does q surely write y?"""
    for i in range(g.u_start[q], g.u_start[q + 1]):
        if g.u_cell[i] == y:
            return True
    return False


def same(g, q, p):
    """Are these one instance, or two ways that it may go?"""
    return q == p or (g.session[q] == g.session[p] and g.place[q] == g.place[p])


def sees_other(g, p1, entry, p, guarded, mark):
    """p sees a prefix with all WRITERS: does it see p1, p1's source, or p1 see it, if p overwrites what p1 read?"""
    if g.looks[p1] and (guarded[p1] != BY_STATEMENT or g.how[entry] != 2):
        return True
    if guarded[p1] == BY_STATEMENT:
        return g.how[entry] == 0
    return guarded[p1] == BY_LEVEL and conflict(g, p1, p, mark)


def before(g, q, p):
    """Does q precede p in a session?"""
    return g.session[q] == g.session[p] and g.place[q] < g.place[p]


def way_in(g, p, p3, y, block, sees, guarded, mark, cycle):
    """A P1 in this block, other than those that the level rules out."""
    if by_overwriting(g, p, p3, y, block, sees, guarded, mark, cycle):
        return True
    if sees & PREFIX:
        return False
    for i in range(g.r_start[p], g.r_start[p + 1]):
        x = g.r_cell[i]
        if x == y and not (g.many[x] if sees & AT_COMMIT else g.how[i] == 2):
            continue
        if g.cell_block[x] != block and (g.cell_block[x] >= 0 or g.read_block[i] != block):
            continue
        left = LOOKS
        for j in range(g.kw_start[x], g.kw_start[x + 1]):
            p1 = g.kw[j]
            if same(g, p1, p) or (p1 == p3 and sees & AT_COMMIT):
                continue
            if left > 0 and sees & AT_COMMIT and writes(g, p1, y):
                left -= 1
                continue
            return note_cycle(cycle, p1, WR, x)
    if sees & AT_COMMIT and g.place[p] > 0 and g.session_block[g.session[p]] == block:
        return after_another(g, p, y, cycle)
    return False


def after_another(g, p, y, cycle):
    """A P1 that comes before p in its session; they are ordered by their places."""
    s = g.session[p]
    left = LOOKS
    for j in range(g.s_start[s], g.s_start[s + 1]):
        p1 = g.member[j]
        if g.place[p1] >= g.place[p]:
            break
        if left > 0 and writes(g, p1, y):
            left -= 1
            continue
        return note_cycle(cycle, p1, SO, -1)
    return False


def by_overwriting(g, p, p3, y, block, sees, guarded, mark, cycle):
    """A P1 that read or wrote what p overwrites."""
    for i in range(g.w_start[p], g.w_start[p + 1]):
        x = g.w_cell[i]
        if g.cell_block[x] >= 0 and g.cell_block[x] != block:
            continue
        for j in range(g.kr_start[x], g.kr_start[x + 1]):
            p1 = g.kr[j]
            if same(g, p1, p) or (g.cell_block[x] < 0 and g.read_block[g.kr_place[j]] != block):
                continue
            if sees & PREFIX and before(g, p1, p):
                continue
            if sees & PREFIX and sees & WRITERS and sees_other(g, p1, g.kr_place[j], p, guarded, mark):
                continue
            return note_cycle(cycle, p1, RW, x)
        if (sees & PREFIX and sees & WRITERS) or g.cell_block[x] < 0:
            continue
        left = LOOKS
        for j in range(g.kw_start[x], g.kw_start[x + 1]):
            p1 = g.kw[j]
            if same(g, p1, p) or (sees & WRITERS and p1 == p3) or (sees & PREFIX and before(g, p1, p)):
                continue
            if left > 0 and sees & WRITERS and writes(g, p1, y):
                left -= 1
                continue
            return note_cycle(cycle, p1, WW, x)
    return False


def note_cycle(cycle, p1, relation, cell):
    """Note it."""
    cycle[0] = p1
    cycle[1] = relation
    cycle[2] = cell
    return True


def dangerous(g, p, guarded, mark, raised):
    """Every P1 and P3 of p's pairs of RW edges as under SI: what an engine that only sees such pairs must see whole."""
    for i in range(g.u_start[p], g.u_start[p + 1]):
        mark[g.u_cell[i]] = p
    for i in range(g.r_start[p], g.r_start[p + 1]):
        y = g.r_cell[i]
        for j in range(g.kw_start[y], g.kw_start[y + 1]):
            p3 = g.kw[j]
            if p3 == p or g.session[p3] == g.session[p] or conflict(g, p3, p, mark):
                continue
            block = g.cell_block[y] if g.cell_block[y] >= 0 else g.read_block[i]
            if overwritten(g, p, block, guarded, mark, raised):
                raised[p3] = True


def overwritten(g, p, block, guarded, mark, raised):
    """Mark every reader in this block of what p writes, as under SI; is there one?"""
    some = False
    for i in range(g.w_start[p], g.w_start[p + 1]):
        x = g.w_cell[i]
        if g.cell_block[x] >= 0 and g.cell_block[x] != block:
            continue
        for j in range(g.kr_start[x], g.kr_start[x + 1]):
            p1 = g.kr[j]
            if same(g, p1, p) or before(g, p1, p) or (g.cell_block[x] < 0 and g.read_block[g.kr_place[j]] != block):
                continue
            if not sees_other(g, p1, g.kr_place[j], p, guarded, mark):
                raised[p1] = True
                some = True
    return some
