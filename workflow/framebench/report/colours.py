"""Colours of frameworks, the same in every report.

People who see no red, no green or no blue tell them apart, on a light and a dark page: any two
differ by 20 at least (CIE76) as they see them (Machado, Oliveira & Fernandes, IEEE TVCG 15, 2009).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

LIGHT = ("#3c3bb3", "#303c07", "#9ab88e", "#57c6fd", "#bc406c", "#b9b808", "#3c8102", "#681744",
         "#c683ac")  # fmt: skip
DARK = ("#875cd8", "#667d26", "#4a95a1", "#11f3e0", "#d22c78", "#f4e1a5", "#aaba13", "#ada6fc",
        "#dc8883")  # fmt: skip
#: Built-in frameworks, in the order of their colours.
_OWN = ("jax", "mxnet", "oneflow", "paddle", "pytorch", "tensorflow", "tensorflow1", "megengine",
        "mindspore")  # fmt: skip


def number(framework: str) -> int:
    """Return the index of a framework's colour in LIGHT and DARK.

    Other frameworks get a colour by a checksum of the name, so that two may share one."""
    if framework in _OWN:
        return _OWN.index(framework)
    return zlib.crc32(framework.encode()) % len(LIGHT)


def variable(framework: str) -> str:
    """Return the colour of a framework as a CSS variable."""
    return f"var(--series-{number(framework) + 1})"


def declarations(colours: Sequence[str]) -> str:
    """Return the declarations of the CSS variables of all colours."""
    return " ".join(f"--series-{at}: {colour};" for at, colour in enumerate(colours, 1))
