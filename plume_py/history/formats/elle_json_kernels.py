"""Kernel that finds the line numbers of the operations in Elle JSON."""

# mypy: allow-untyped-defs


def object_lines(buf, lines):
    """Set ``lines`` to the line on which each item of a JSON array begins; return the number of items.

    ``buf`` must be valid JSON.
    """
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
