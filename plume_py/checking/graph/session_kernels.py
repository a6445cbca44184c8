"""Session order, for kernels. Transactions are numbered session by session, so it is asked of numbers and sessions."""

# mypy: allow-untyped-defs


def precedes(txn_session, a, b):
    """Is a before b in session order?"""
    return a < b and txn_session[a] == txn_session[b]


def previous(txn_session, t):
    """The transaction right before t in session order, or -1."""
    return t - 1 if t > 0 and txn_session[t - 1] == txn_session[t] else -1
