"""Shapes of matmuls as suites write them, separated by blanks.

``1024x512x256`` is (m, k, n) = (1024, 512, 256); ``8x1024x512x256`` is a batch of eight.
"""

from __future__ import annotations

from typing import List

from core.matmuls import MatmulShape


def shape(text: str) -> MatmulShape:
    """Return the shape that ``text`` says. Raises ValueError."""
    try:
        extents = [int(word) for word in text.split("x")]
    except ValueError:
        extents = []
    if len(extents) not in (3, 4) or min(extents) < 1:
        raise ValueError(
            "must be shapes like 1024x512x256 (m, k, n) or 8x1024x512x256 (batch, m, k, n), with "
            "blanks between several"
        )
    return MatmulShape(*extents) if len(extents) == 4 else MatmulShape(1, *extents)


def shapes_of(text: str) -> List[MatmulShape]:
    """Return the distinct shapes in ``text``, in order. Raises ValueError for an invalid one, or
    for none."""
    return [shape(word) for word in dict.fromkeys(text.split())] or [shape("")]


def shapes(text: str) -> str:
    """Return the canonical text of shapes, as the type of a parameter."""
    return " ".join(dict.fromkeys(str(shape) for shape in shapes_of(text)))


def plain_shapes(text: str) -> str:
    """Return the canonical text of shapes without a batch, as the type of a parameter."""
    if any(shape.batch > 1 for shape in shapes_of(text)):
        raise ValueError("must be shapes like 640x1024x1880 (m, k, n), without a batch")
    return shapes(text)
