"""Rules by which arrays are initialized, from the fan-in and fan-out of their layer."""

from __future__ import annotations

from typing import Callable, NamedTuple, Tuple

#: Distribution of initial values: ``("normal", standard deviation)`` around zero,
#: ``("uniform", bound)`` between -bound and bound, or ``("constant", value)``.
Initial = Tuple[str, float]
#: Function of fan-in and fan-out: the number of products in each output, and that each input
#: enters.
Rule = Callable[[int, int], Initial]


def normal(deviation: float) -> Rule:
    return lambda fan_in, fan_out: ("normal", deviation)


def constant(value: float) -> Rule:
    return lambda fan_in, fan_out: ("constant", value)


def by_fan_in(fan_in: int, fan_out: int) -> Initial:
    """Return PyTorch's own initial values of weights and biases."""
    return "uniform", fan_in**-0.5


def he_normal_in(fan_in: int, fan_out: int) -> Initial:
    """Return normal initial values by the inputs (He et al. 2015, arXiv:1502.01852)."""
    return "normal", (2 / fan_in) ** 0.5


def he_normal_out(fan_in: int, fan_out: int) -> Initial:
    return "normal", (2 / fan_out) ** 0.5


def he_uniform_in(fan_in: int, fan_out: int) -> Initial:
    return "uniform", (6 / fan_in) ** 0.5


def lecun_uniform_out(fan_in: int, fan_out: int) -> Initial:
    return "uniform", (3 / fan_out) ** 0.5


class Initials(NamedTuple):
    """Initial distributions of a network family's convolutions and linear layers, for layers
    without their own."""

    convolution: Rule = by_fan_in
    convolution_bias: Rule = by_fan_in
    linear: Rule = by_fan_in
    linear_bias: Rule = by_fan_in
