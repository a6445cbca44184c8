"""What a connection raises; the adapter of a user takes these from ``plume_py.collect.adapter``."""


class AbortedError(Exception):
    """The database rejected the transaction, and undoes what it did: a conflict, a deadlock, a limit of time."""


class LostError(Exception):
    """No answer, or one that leaves the outcome open."""


class AnswerError(Exception):
    """An answer that no working database gives; the run ends."""
