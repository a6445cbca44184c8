"""What one transaction is to do: a list of (operation, key); "r" reads, "w" writes, or appends in a list run."""

Plan = list[tuple[str, str]]


class NamedPlan(Plan):
    """A transaction of a ready-made mix, and which kind it is."""

    def __init__(self, plan: Plan, kind: str) -> None:
        super().__init__(plan)
        self.kind = kind
