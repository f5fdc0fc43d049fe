"""Colours of frameworks: one each, which people who see no red, green or blue tell apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from framebench.report import colours

from ...conftest import ROOT

#: Linear RGB as seen without one kind of cone: Machado, Oliveira & Fernandes, "A physiologically-
#: based model for simulation of color vision deficiency", IEEE TVCG 15, 2009, severity 1.
SEEN = {
    "all": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
#: Linear RGB to XYZ, and its white (D65).
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, seen: str) -> np.ndarray:
    """Return a colour in CIELAB as people with this kind of sight see it."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    part = XYZ @ np.clip(SEEN[seen] @ linear, 0, 1) / WHITE
    f = np.where(part > 216 / 24389, np.cbrt(part), (24389 / 27 * part + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("theme", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_no_two_colours_look_alike(theme: tuple[str, ...], seen: str) -> None:
    """Fail below a CIE76 difference of 20; 2.3 is just noticeable side by side."""
    known = [lab(colour, seen) for colour in theme]
    assert min(np.linalg.norm(one - other) for one, other in combinations(known, 2)) >= 20


def test_a_framework_has_one_colour_in_every_report() -> None:
    shipped = [path.name for path in (ROOT / "scripts" / "frameworks").iterdir() if path.is_dir()]
    shipped = [name for name in shipped if not name.startswith(("_", "."))]
    numbers = {name: colours.number(name) for name in shipped}
    assert len(set(numbers.values())) == len(shipped), numbers
    assert 0 <= colours.number("caffe") < len(colours.LIGHT) == len(colours.DARK)
