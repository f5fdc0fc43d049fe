"""Content of the report's first screen as data: an answer for each setting, and remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .columns import Row

#: Settings that fit on the first screen; pages fold others.
MOST_SETTINGS = 4
EACH_FASTEST = "each in its fastest precision"


@dataclass(frozen=True)
class Entrant:
    """A figure at a setting.

    ``label``: title of the framework, and its compiler; of a variant, its name. ``precision``: in
    words. ``value``: median, in the setting's unit, or ratio of a variant to the first one.
    ``percent``: of the best figure. ``interval``: 95 % interval of ``value``; None with too few
    repeats. ``notes``: whatever distinguishes the figure, such as its compiler. ``axes``: its
    framework, compiler and precision, as in records."""

    framework: str
    label: str
    precision: str
    figure: str
    unit: str
    value: float
    percent: int
    interval: tuple[float, float] | None
    notes: Sequence[str]
    axes: Mapping[str, str]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer at one setting.

    ``title``: model and benchmark; ``details``: precision, devices, batch. ``verdict``: who leads
    by how much; ``between``: interval of the lead and what it depends on. ``state``: SURE,
    ORDER_SURE, OPEN, or "" if there is nothing to compare. ``leader``: title of the fastest, ""
    without one; ``lead``: ratio to the runner-up. ``aside``: who has no figure here, and why, one
    line each. ``row``: the row of the table FASTEST or VARIANTS."""

    title: str
    details: str
    unit: str
    better: str
    verdict: str
    between: str
    state: str
    leader: str
    lead: float | None
    entrants: Sequence[Entrant]
    aside: Sequence[str]
    row: Row
    is_each_fastest: bool = False
    is_variants: bool = False

    @property
    def name(self) -> str:
        return f"{self.title}, {self.details}" if self.details else self.title


@dataclass(frozen=True)
class NextStep:
    """Open question that the next call settles. ``seconds``: its expected time, None if unknown."""

    text: str
    seconds: float | None
    command: str


@dataclass(frozen=True)
class FirstScreen:
    """Content of the first screen.

    ``what``: suite, machine, day and number of runs. ``sentence``: the answer. ``cannot``: who
    cannot take part; ``why_not``: the reason of each. ``excluded``: figures that take part in no
    comparison. ``careful``: what speaks against trusting the figures. ``slow_libraries``:
    frameworks with a slow matmul library on this device. ``own_model``: sentences on a
    user's own model. ``page``: path of the report, "" if there is none."""

    what: Sequence[str]
    sentence: str
    settings: Sequence[SettingAnswer]
    cannot: Sequence[str]
    why_not: Sequence[tuple[str, str]]
    excluded: Sequence[str]
    careful: Sequence[str]
    slow_libraries: Sequence[str]
    own_model: Sequence[str]
    next: NextStep | None
    page: str
