"""``isocheck infer``: infer the weakest isolation level per transaction that keeps an application's invariant."""
