"""The byte loop of Elle JSON: where its operations stand."""

# mypy: allow-untyped-defs


def object_lines(buf, lines):
    """The line on which each object of a JSON array begins; ``buf`` is known to be valid JSON. Returns how many."""
    count, depth, line, at = 0, 0, 1, 0
    while at < len(buf):
        byte = buf[at]
        if byte == 10:
            line += 1
        elif byte == 34:
            at += 1
            while at < len(buf) and buf[at] != 34:
                at += 2 if buf[at] == 92 else 1
        elif byte == 91 or byte == 123:
            if depth == 1:
                lines[count] = line
                count += 1
            depth += 1
        elif byte == 93 or byte == 125:
            depth -= 1
        at += 1
    return count
