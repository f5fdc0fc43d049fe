"""Learning rates over the steps of a training. Each rises for a share of the steps, to its peak."""

from __future__ import annotations

import math
from typing import Callable, Mapping, Optional, Tuple

#: A part of the peak, from the part of the way that is done: both from 0 to 1.
Part = Callable[[float], float]


def _half_cosine(begin: float, end: float) -> Part:
    return lambda done: end + (begin - end) * (1 + math.cos(math.pi * done)) / 2


#: Where one cycle begins, and where it ends, as parts of its peak: those of PyTorch's OneCycleLR
#: (its momentum stays as it is here).
FIRST, LAST = 1 / 25, 1 / 25 / 1e4
#: How a rate rises and how it falls. "cosine": Loshchilov and Hutter 2016 (arXiv:1608.03983) behind
#: a linear warm-up; "linear": as BERT is fine-tuned (Devlin et al. 2018, arXiv:1810.04805);
#: "one_cycle": Smith and Topin 2017 (arXiv:1708.07120).
RISING: Mapping[str, Part] = {
    "constant": lambda done: done,
    "cosine": lambda done: done,
    "linear": lambda done: done,
    "one_cycle": _half_cosine(FIRST, 1.0),
}
FALLING: Mapping[str, Part] = {
    "constant": lambda done: 1.0,
    "cosine": _half_cosine(1.0, 0.0),
    "linear": lambda done: 1.0 - done,
    "one_cycle": _half_cosine(1.0, LAST),
}
SCHEDULES = tuple(RISING)
#: One with numbers of its own behind colons: the power by which a rate falls, and the part of the
#: peak that it ends at. TensorFlow's PolynomialDecay behind a linear warm-up.
POLYNOMIAL = "polynomial"


def schedule_of(text: str) -> str:
    """The schedule that ``text`` names. Raises ValueError where it names none."""
    polynomial = _power_and_end(text)
    if polynomial:
        return ":".join([POLYNOMIAL, *(format(number, "g") for number in polynomial)])
    if text not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise ValueError(
            f"must be one of: {known}, {POLYNOMIAL}:POWER:END (above 0, and from 0 to 1)"
        )
    return text


def _power_and_end(schedule: str) -> Optional[Tuple[float, float]]:
    """Of a polynomial one; None of any other."""
    name, *numbers = schedule.split(":")
    try:
        power, end = map(float, numbers)
    except ValueError:
        return None
    return (power, end) if name == POLYNOMIAL and 0 < power < math.inf and 0 <= end <= 1 else None


def _falling(schedule: str) -> Part:
    polynomial = _power_and_end(schedule)
    if polynomial is None:
        return FALLING[schedule]
    power, end = polynomial
    return lambda done: end + (1 - end) * (1 - done) ** power


def rate_at(schedule: str, peak: float, warmup: float, step: int, steps: int) -> float:
    """That of ``step``, from 0, of so many ``steps``. ``warmup``: the share of them in which it
    rises, of which the last has the peak; it falls over the others."""
    rising = round(warmup * steps)
    if step < rising:
        rise = RISING.get(schedule, RISING["constant"])
        return peak * rise((step + 1) / rising)
    return peak * _falling(schedule)((step - rising) / (steps - rising))
