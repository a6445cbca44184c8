"""What the Plume paper measured, in numbers: the files that its artifact publishes with the figures (folder Data).

Seconds on an Intel Xeon E5-2620 v3 with 64 GB; 600 is its limit. Keys are (axis, value) as in our rows.
"""

# Figure 8: Plume, dbcop, TCC-Mono, PolySI, Viper. CausalC+ ended in two of these settings alone.
SECONDS: dict[tuple[str, str], tuple[float, float, float, float, float]] = {
    ("sessions", "2"): (0.353, 0.337, 1.893, 3.777, 1.593),
    ("sessions", "5"): (0.477, 4.453, 3.743, 6.117, 3.697),
    ("sessions", "10"): (0.64, 34.953, 10.793, 13.36, 22.737),
    ("sessions", "25"): (1.12, 551.117, 79.47, 139.81, 600),
    ("sessions", "40"): (1.79, 600, 181.887, 600, 600),
    ("sessions", "50"): (2.03, 600, 186.39, 600, 600),
    ("transactions", "100"): (0.733, 62.677, 15.303, 26.993, 39.987),
    ("transactions", "300"): (1.753, 600, 218.387, 473.41, 600),
    ("transactions", "500"): (2.22, 600, 437.497, 600, 600),
    ("distribution", "uniform"): (1.077, 577.51, 71.74, 109.24, 600),
    ("distribution", "zipfian"): (1.543, 600, 109.353, 485.597, 600),
    ("distribution", "hotspot"): (1.277, 600, 123.593, 585.06, 600),
}
WHO = ("Plume", "dbcop", "TCC-Mono", "PolySI", "Viper")

# Figure 9, Plume's memory in megabytes.
MEGABYTES: dict[tuple[str, str], float] = {
    ("sessions", "2"): 78.4,
    ("sessions", "5"): 93.8,
    ("sessions", "10"): 144.3,
    ("sessions", "25"): 196.7,
    ("sessions", "40"): 310.9,
    ("sessions", "50"): 364.5,
    ("transactions", "100"): 158.4,
    ("transactions", "300"): 333.8,
    ("transactions", "500"): 394.7,
    ("operations", "10"): 165.5,
    ("operations", "30"): 247.6,
    ("operations", "50"): 405.1,
}

# Figure 10: seconds of Plume and of Elle at TCC, by sessions; 50 operations per transaction, lists.
LISTS: dict[int, tuple[float, float]] = {
    2: (0.547, 6.287),
    5: (0.767, 4.767),
    10: (1.063, 5.6),
    15: (1.283, 6.313),
    20: (1.673, 6.997),
}

# Figure 12 (a): seconds with tree clocks, with vectors alone, with neither.
ABLATION: dict[str, tuple[float, float, float]] = {
    "GeneralWH": (3.123, 6.17, 600),
    "GeneralRW": (3.057, 5.643, 600),
    "GeneralRH": (2.097, 2.433, 600),
    "C-RUBiS": (1.01, 1.07, 190.71),
    "C-Twitter": (0.87, 1.04, 272.73),
}

# Figure 13: seconds at RC, RA and TCC for a million transactions, by reads and by operations per transaction.
LARGE: dict[tuple[str, float], tuple[float, float, float]] = {
    ("read-share", 0.2): (92.44, 98.25, 99.65),
    ("read-share", 0.5): (101.43, 105.55, 103.97),
    ("read-share", 0.8): (98.82, 101.76, 101.73),
    ("operations", 100): (100.88, 104.02, 105.13),
    ("operations", 200): (133.46, 134.64, 139.14),
    ("operations", 400): (244.66, 251.42, 248.7),
}

# Table 5: the patterns that a checker misses, in the paper's test.
MISSES = {
    "PolySI (SI)": "none",
    "Viper (SI)": "a b f",
    "Cobra (SER)": "d e f j",
    "dbcop (TCC)": "c",
    "Elle (TCC)": "g h k m",
    "Plume (TCC)": "none",
}
