"""Learning-rate schedules. Each rises to its peak for a share of the steps."""

from __future__ import annotations

import math
from typing import Callable, Mapping, Optional, Tuple

#: Function from progress to the rate as part of the peak, both from 0 to 1.
Part = Callable[[float], float]


def _half_cosine(begin: float, end: float) -> Part:
    return lambda done: end + (begin - end) * (1 + math.cos(math.pi * done)) / 2


#: Begin and end of one cycle as parts of its peak, as in PyTorch's OneCycleLR (whose momentum cycle
#: is left out).
FIRST, LAST = 1 / 25, 1 / 25 / 1e4
ONE_CYCLE = "one_cycle"
#: Fall by name, after a linear rise but for one cycle. "cosine": Loshchilov and Hutter 2016
#: (arXiv:1608.03983); "linear": as BERT is fine-tuned (Devlin et al. 2018, arXiv:1810.04805);
#: "one_cycle": Smith and Topin 2017 (arXiv:1708.07120).
FALLING: Mapping[str, Part] = {
    "constant": lambda done: 1.0,
    "cosine": _half_cosine(1.0, 0.0),
    "linear": lambda done: 1.0 - done,
    ONE_CYCLE: _half_cosine(1.0, LAST),
}
SCHEDULES = tuple(FALLING)
#: Schedule with parameters after colons: the power of the fall, and the part of the peak at the
#: end. It is TensorFlow's PolynomialDecay after a linear warm-up.
POLYNOMIAL = "polynomial"


def schedule_of(text: str) -> str:
    """Return the schedule that ``text`` names. Raises ValueError for an unknown one."""
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
    """Return power and final value of a polynomial schedule; None of any other."""
    name, *numbers = schedule.split(":")
    try:
        power, end = map(float, numbers)
    except ValueError:
        return None
    return (power, end) if name == POLYNOMIAL and 0 < power < math.inf and 0 <= end <= 1 else None


def rate_at(schedule: str, peak: float, warmup: float, step: int, steps: int) -> float:
    """Return the learning rate of ``step``, from 0, of ``steps``.

    ``warmup``: share of the steps in which it rises, the last of which has the peak. It falls over
    the others."""
    rising = round(warmup * steps)
    if step < rising:
        done = (step + 1) / rising
        return peak * (_half_cosine(FIRST, 1.0)(done) if schedule == ONE_CYCLE else done)
    done = (step - rising) / (steps - rising)
    polynomial = _power_and_end(schedule)
    if polynomial is None:
        return peak * FALLING[schedule](done)
    power, end = polynomial
    left: float = (1 - done) ** power
    return peak * (end + (1 - end) * left)
