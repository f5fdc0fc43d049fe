"""Lines that a terminal shows."""

from __future__ import annotations


def visible_lines(written: str) -> list[str]:
    """Return the lines that a terminal shows, which must not wrap."""
    lines, column = [""], 0
    for part in written.replace("\r\n", "\n").replace("\033[K", "\0"):
        if part == "\n":
            lines.append("")
            column = 0
        elif part == "\r":
            column = 0
        elif part == "\0":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column] + part + lines[-1][column + 1 :]
            column += 1
    return lines
