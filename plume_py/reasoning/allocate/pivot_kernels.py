"""Decide whether an instance can be the pivot P2 of a critical cycle P1 -> P2 -RW-> P3 ->* P1 at a level.

If some run is not serializable, take a shortest cycle of dependencies and session order. It is simple. Its member that
commits first is P3; an RW edge enters it from P2, which did not see P3. The level of P2 rules out most such edges. An
instance without any is safe at that level, at whatever levels the other instances run. The path back from P3 to P1
avoids P2, so either P1 = P3, or P1 and P3 lie in one block (see block_kernels) with P2.

A level is passed as ``sees``, bits of levels.table. They rule out edges as follows:

- EVERYTHING: P2 sees every transaction that committed before it, so it is never a pivot.
- WRITERS: P2 sees every earlier committed transaction that surely wrote a common cell. Such a transaction cannot be P3.
- PREFIX: P3 commits before P1. If P2 sees P1 (by WR or SO; with WRITERS also by WW), it sees P3, too.
- AT_COMMIT: a transaction is seen whole. So P1 = P3 enters P2 by RW or WW only; with WRITERS, by RW only.
- Without AT_COMMIT, as engines implement it, each statement sees all that is committed. So an earlier P1 of P2's
  session brings in P3. An update statement holds its row from read to commit: it causes no RW edge out of P2, and an RW
  edge into P2 only if P2 sees it. A statement that only locks its row holds it, too, but a later writer need not see
  that.
- P1 -WR(x)-> P2 -RW(x)-> P3 puts P1's write before P3's, although P3 commits first. That requires two reads of x by P2,
  which exist only without AT_COMMIT. If x covers many rows, P1 and P3 may have written different ones; without
  AT_COMMIT, a statement that only reads sees all rows at one point in time.
- AT_COMMIT: suppose P2 sees P1 (by WR or SO; with WRITERS also by WW). If P1 surely writes the cell of P3 that P2 did
  not see, it has overwritten it, because P3 commits first. So P2 has seen it.
- PREFIX and WRITERS: a P1 that only reads one version of one row comes after the writer of that version. If P2
  overwrites that row, it sees this writer, and P3 with it.
- PREFIX and WRITERS: if P1 surely shares a written cell with P2 and its level has WRITERS, too, one of them sees the
  other. So P1 -RW-> P2 is impossible.

Every function takes the ConflictGraph ``g`` of module rules. ``guarded`` holds one code per instance; ``mark[x] == p``
if p surely writes cell x; ``cycle`` (5 integers) receives P1, relation, its cell, P3, its cell.
"""
# mypy: allow-untyped-defs

from plume_py.levels.table import AT_COMMIT, EVERYTHING, PREFIX, WRITERS

# How an instance detects concurrent writes of its cells: not at all, in update statements, or by its level.
UNGUARDED = 0
BY_STATEMENT = 1
BY_LEVEL = 2

# Candidates for P1 that are examined one by one; a further candidate counts as not ruled out.
MAX_CANDIDATES = 64

RW = 1
WW = 2
WR = 3
SO = 4


def safe(g, first, choices, guarded, mark, cycle, table):
    """Set table[i, c] to whether instance ``first + i`` is not a pivot at the level choices[c]."""
    for i in range(len(table)):
        for c in range(len(choices)):
            table[i, c] = not pivot(g, first + i, choices[c], guarded, mark, cycle)


def pivot(g, p, sees, guarded, mark, cycle):
    """Return whether there is a critical cycle through p, and describe it in ``cycle``."""
    if sees & EVERYTHING:
        return False
    for i in range(g.u_start[p], g.u_start[p + 1]):
        mark[g.u_cell[i]] = p
    for i in range(g.r_start[p], g.r_start[p + 1]):
        if not sees & AT_COMMIT and (g.how[i] == 0 or g.how[i] == 3):
            continue
        y = g.r_cell[i]
        if sees & WRITERS and g.certain[y] and mark[y] == p:  # every P3 surely writes y, and so does p
            continue
        block = g.cell_block[y]
        if block < 0:
            block = g.read_block[i]
        tried = 0
        for j in range(g.kw_start[y], g.kw_start[y + 1]):
            p3 = g.kw[j]
            if p3 == p or g.session[p3] == g.session[p]:
                continue
            if sees & WRITERS and share_write(g, p3, p, mark):
                continue
            if enters(g, p, p3, y, block, sees, guarded, mark, cycle):
                cycle[3] = p3
                cycle[4] = y
                return True
            tried += 1
            if tried == 2:  # P1 differs from at least one of two candidates; a third adds nothing
                break
    return False


def share_write(g, q, p, mark):
    """Return whether q and the marked instance p surely write a common cell."""
    for i in range(g.u_start[q], g.u_start[q + 1]):
        if mark[g.u_cell[i]] == p:
            return True
    return False


def surely_writes(g, q, y):
    """Return whether q surely writes cell y."""
    for i in range(g.u_start[q], g.u_start[q + 1]):
        if g.u_cell[i] == y:
            return True
    return False


def same_instance(g, q, p):
    """Return whether q and p are one instance, or two execution paths of one."""
    return q == p or (g.session[q] == g.session[p] and g.place[q] == g.place[p])


def excludes_rw(g, p1, entry, p, guarded, mark):
    """Return whether the edge p1 -RW-> p is impossible for a p with PREFIX and WRITERS.

    That is so if p sees p1, sees the writer that p1 read from, or is seen by p1. ``entry`` is the index of p1's read.
    """
    if g.single_read[p1] and (guarded[p1] != BY_STATEMENT or g.how[entry] != 2):
        return True
    if guarded[p1] == BY_STATEMENT:
        return g.how[entry] == 0
    return guarded[p1] == BY_LEVEL and share_write(g, p1, p, mark)


def before(g, q, p):
    """Return whether q precedes p in a session."""
    return g.session[q] == g.session[p] and g.place[q] < g.place[p]


def enters(g, p, p3, y, block, sees, guarded, mark, cycle):
    """Return whether some P1 in this block enters p and is not ruled out by the level; describe it in ``cycle``."""
    if enters_by_write(g, p, p3, y, block, sees, guarded, mark, cycle):
        return True
    if sees & PREFIX:
        return False
    for i in range(g.r_start[p], g.r_start[p + 1]):
        x = g.r_cell[i]
        if x == y and not (g.many[x] if sees & AT_COMMIT else g.how[i] == 2):
            continue
        if g.cell_block[x] != block and (g.cell_block[x] >= 0 or g.read_block[i] != block):
            continue
        left = MAX_CANDIDATES
        for j in range(g.kw_start[x], g.kw_start[x + 1]):
            p1 = g.kw[j]
            if same_instance(g, p1, p) or (p1 == p3 and sees & AT_COMMIT):
                continue
            if left > 0 and sees & AT_COMMIT and surely_writes(g, p1, y):
                left -= 1
                continue
            return note_cycle(cycle, p1, WR, x)
    if sees & AT_COMMIT and g.place[p] > 0 and g.session_block[g.session[p]] == block:
        return enters_by_session(g, p, y, cycle)
    return False


def enters_by_session(g, p, y, cycle):
    """Return whether some P1 precedes p in its session and is not ruled out. Members are ordered by position."""
    s = g.session[p]
    left = MAX_CANDIDATES
    for j in range(g.s_start[s], g.s_start[s + 1]):
        p1 = g.member[j]
        if g.place[p1] >= g.place[p]:
            break
        if left > 0 and surely_writes(g, p1, y):
            left -= 1
            continue
        return note_cycle(cycle, p1, SO, -1)
    return False


def enters_by_write(g, p, p3, y, block, sees, guarded, mark, cycle):
    """Return whether some P1 read or wrote a cell that p overwrites, and is not ruled out."""
    for i in range(g.w_start[p], g.w_start[p + 1]):
        x = g.w_cell[i]
        if g.cell_block[x] >= 0 and g.cell_block[x] != block:
            continue
        for j in range(g.kr_start[x], g.kr_start[x + 1]):
            p1 = g.kr[j]
            if same_instance(g, p1, p) or (g.cell_block[x] < 0 and g.read_block[g.kr_place[j]] != block):
                continue
            if sees & PREFIX and before(g, p1, p):
                continue
            if sees & PREFIX and sees & WRITERS and excludes_rw(g, p1, g.kr_place[j], p, guarded, mark):
                continue
            return note_cycle(cycle, p1, RW, x)
        if (sees & PREFIX and sees & WRITERS) or g.cell_block[x] < 0:
            continue
        left = MAX_CANDIDATES
        for j in range(g.kw_start[x], g.kw_start[x + 1]):
            p1 = g.kw[j]
            if same_instance(g, p1, p) or (sees & WRITERS and p1 == p3) or (sees & PREFIX and before(g, p1, p)):
                continue
            if left > 0 and sees & WRITERS and surely_writes(g, p1, y):
                left -= 1
                continue
            return note_cycle(cycle, p1, WW, x)
    return False


def note_cycle(cycle, p1, relation, cell):
    cycle[0] = p1
    cycle[1] = relation
    cycle[2] = cell
    return True


def mark_partners(g, p, guarded, mark, raised):
    """Set ``raised`` for every P1 and P3 in a pair of RW edges at p under SI.

    An engine that detects only such pairs has to track these instances, too.
    """
    for i in range(g.u_start[p], g.u_start[p + 1]):
        mark[g.u_cell[i]] = p
    for i in range(g.r_start[p], g.r_start[p + 1]):
        y = g.r_cell[i]
        for j in range(g.kw_start[y], g.kw_start[y + 1]):
            p3 = g.kw[j]
            if p3 == p or g.session[p3] == g.session[p] or share_write(g, p3, p, mark):
                continue
            block = g.cell_block[y] if g.cell_block[y] >= 0 else g.read_block[i]
            if mark_readers(g, p, block, guarded, mark, raised):
                raised[p3] = True


def mark_readers(g, p, block, guarded, mark, raised):
    """Set ``raised`` for readers in this block of what p writes, as under SI; return whether there is one."""
    some = False
    for i in range(g.w_start[p], g.w_start[p + 1]):
        x = g.w_cell[i]
        if g.cell_block[x] >= 0 and g.cell_block[x] != block:
            continue
        for j in range(g.kr_start[x], g.kr_start[x + 1]):
            p1 = g.kr[j]
            if (
                same_instance(g, p1, p)
                or before(g, p1, p)
                or (g.cell_block[x] < 0 and g.read_block[g.kr_place[j]] != block)
            ):
                continue
            if not excludes_rw(g, p1, g.kr_place[j], p, guarded, mark):
                raised[p1] = True
                some = True
    return some
