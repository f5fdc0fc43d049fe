"""Bars of the first screen, as fractions of their track's width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..tables.results import fraction_of_best
from ..tables.setting_answers import MOST_SETTINGS, Entrant, FirstScreen, SettingAnswer
from . import colours
from .selection import axes_of

#: Dots of each state.
DOTS = {"sure": "●●●", "order sure": "●●○", "open": "●○○", "": ""}


@dataclass(frozen=True)
class Bar:
    """A bar. ``width``: in percent of the track; ``whisker``: left and width of the 95 % interval,
    None with too few repeats. ``axes``: values for the page's filter."""

    entrant: Entrant
    colour: str
    width: float
    whisker: tuple[float, float] | None
    axes: Mapping[str, str]


@dataclass(frozen=True)
class SettingBars:
    """A setting of the first screen with its bars. ``axes``: values for the page's filter."""

    setting: SettingAnswer
    bars: Sequence[Bar]
    axes: Mapping[str, str]
    dots: str


@dataclass(frozen=True)
class FoldedSettings:
    """Settings of one model that do not fit on the first screen."""

    heading: str
    settings: Sequence[SettingBars]


def settings_with_bars(screen: FirstScreen) -> tuple[list[SettingBars], list[FoldedSettings]]:
    """Return the settings of the first screen, and the others by model."""
    made = [_with_bars(setting) for setting in screen.settings]
    rest = sorted(made[MOST_SETTINGS:], key=lambda one: one.setting.title)
    folded = [
        FoldedSettings(f"{title}: {len(some)} more setting{'s' * (len(some) > 1)}", some)
        for title, group in groupby(rest, key=lambda one: one.setting.title)
        if (some := [*group])
    ]
    return made[:MOST_SETTINGS], folded


def _with_bars(setting: SettingAnswer) -> SettingBars:
    best = setting.entrants[0].value if setting.entrants else 1.0

    def share(value: float) -> float:
        return fraction_of_best(value, best or 1.0, setting.better)

    ends = [sorted(map(share, entrant.interval or ())) for entrant in setting.entrants]
    widest = max([1.0, *(high for _, high in filter(None, ends))])

    def percent(part: float) -> float:
        return round(100 * part / widest, 1)

    bars = [
        Bar(
            entrant,
            colours.variable(entrant.axes["framework"]),
            percent(share(entrant.value)),
            (percent(some[0]), percent(some[1] - some[0])) if some else None,
            entrant.axes,
        )
        for entrant, some in zip(setting.entrants, ends, strict=True)
    ]
    own = tuple(setting.entrants[0].axes) if setting.entrants else ()
    return SettingBars(setting, bars, axes_of(setting.row, own), DOTS[setting.state])
