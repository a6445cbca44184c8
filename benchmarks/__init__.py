"""``python -m benchmarks`` (or ``make bench``): how fast isocheck starts, loads and checks, as tables, CSV and SVG."""
