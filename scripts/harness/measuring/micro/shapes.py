"""Shapes of matrix products, as a suite writes them: ``1024x512x256`` is (m, k, n) = (1024, 512,
256), ``8x1024x512x256`` is eight of them in a batch; several stand between blanks."""

from __future__ import annotations

from typing import Dict, List, NamedTuple


class Shape(NamedTuple):
    """(m, k) by (k, n), ``batch`` times."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def at(self) -> Dict[str, int]:
        """The point of a run that it is."""
        return dict(self._asdict())

    @property
    def operations(self) -> int:
        """Floating-point operations: a multiplication and an addition for each term."""
        return 2 * self.batch * self.m * self.k * self.n

    def __str__(self) -> str:
        return "x".join(map(str, self[1:] if self.batch == 1 else self))


def shape(text: str) -> Shape:
    """Raises ValueError."""
    try:
        extents = [int(word) for word in text.split("x")]
    except ValueError:
        extents = []
    if len(extents) not in (3, 4) or min(extents) < 1:
        raise ValueError(
            "must be shapes like 1024x512x256 (m, k, n) or 8x1024x512x256 (batch, m, k, n), with "
            "blanks between several"
        )
    return Shape(*extents) if len(extents) == 4 else Shape(1, *extents)


def shapes_of(text: str) -> List[Shape]:
    """Each once, in their order. Raises ValueError where there is none."""
    return [shape(word) for word in dict.fromkeys(text.split())] or [shape("")]


def shapes(text: str) -> str:
    """The type of a parameter: the same text for the same shapes."""
    return " ".join(dict.fromkeys(str(one) for one in shapes_of(text)))


def plain_shapes(text: str) -> str:
    """The same, of products of two matrices alone."""
    if any(one.batch > 1 for one in shapes_of(text)):
        raise ValueError("must be shapes like 640x1024x1880 (m, k, n), without a batch")
    return shapes(text)
