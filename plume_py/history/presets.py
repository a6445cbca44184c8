"""Sizes of histories that papers measured, by name, for ``generate`` and ``bench``."""

from typing import Any

# Plume's: what it varies one parameter of, its three general datasets of 16,000 transactions, and the million that it
# ends with, on a hundredth of its 10^9 keys (a store of them all takes 12 GB; most are touched once in either case).
_GENERAL: dict[str, Any] = {"sessions": 40, "transactions": 400, "operations": 20, "keys": 10_000}
PRESETS: dict[str, dict[str, Any]] = {
    "Plume": {"sessions": 25, "transactions": 200, "operations": 20, "read_share": 0.5, "keys": 10_000},
    "GeneralRH": {**_GENERAL, "read_share": 0.95},
    "GeneralRW": {**_GENERAL, "read_share": 0.5},
    "GeneralWH": {**_GENERAL, "read_share": 0.3},
    "Million": {"sessions": 100, "transactions": 10_000, "operations": 20, "read_share": 0.5, "keys": 10_000_000},
}
