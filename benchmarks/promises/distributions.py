"""Distributions of repeats: those of the tests, and further ones."""

from __future__ import annotations

import numpy as np

from tests.framebench.statistics import distributions as telling
from tests.framebench.statistics.distributions import Sampler, modes


def exponential(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats that other programs delay by exponential times."""
    return 100.0 / (1.0 + random.exponential(0.02, shape))


def three_modes(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats of three modes of different size, one of them noisy."""
    at = random.choice([100.0, 97.0, 90.0], size=shape, p=[0.45, 0.3, 0.25])
    return at + random.normal(0.0, 1.0, shape) * np.where(at == 97.0, 2.0, 0.2)


def heavy_tailed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats with the noise of Student's distribution, 2 degrees of freedom."""
    return 100.0 * np.exp(0.01 * random.standard_t(2, shape))


SAMPLERS: dict[str, Sampler] = {
    **telling.SAMPLERS,
    "three modes (kept aside)": three_modes,
    "heavy-tailed (kept aside)": heavy_tailed,
}
#: Samplers of two sides that differ in spread or shape.
UNLIKE: dict[str, tuple[Sampler, Sampler]] = {
    **telling.UNLIKE,
    "bimodal, other way round": (modes(0.3), modes(0.7)),
    "three modes, heavy-tailed (kept aside)": (three_modes, heavy_tailed),
}
