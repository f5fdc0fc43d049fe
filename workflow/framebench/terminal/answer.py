"""The answer as text, for the last lines of a call: the content of the report's first screen."""

from __future__ import annotations

from ..tables.setting_answers import Entrant, FirstScreen, SettingAnswer

#: File in the results with the answer at all settings.
FILE = "answer.txt"
#: Most settings on the terminal.
MOST_SETTINGS = 8


def lines(screen: FirstScreen, most: int | None = MOST_SETTINGS) -> list[str]:
    """Return the answer, a line per setting. ``most``: settings, None for all."""
    shown = screen.settings[:most]
    more = len(screen.settings) - len(shown)
    step = screen.next
    return [
        " \N{MIDDLE DOT} ".join(screen.what),
        *filter(None, [screen.sentence]),
        *screen.findings,
        *map(_setting, shown),
        *[f".. and {more} more settings in {FILE}"] * bool(more),
        *screen.cannot,
        *screen.excluded,
        *(f"Careful: {line}" for line in screen.careful),
        *([f"Next call: {step.text}:", f"  {step.command}"] if step else []),
        f"report: {screen.page}",
    ]


def _setting(setting: SettingAnswer) -> str:
    """Return name, verdict, figures of all entrants, and entrants without a figure."""
    between = setting.between if setting.between not in setting.aside else ""
    state = setting.state if setting.state != setting.verdict.lower() else ""
    how = "; ".join(filter(None, [between, state]))
    verdict = f"{setting.verdict} ({how})" if how else setting.verdict
    units = [f" {setting.unit}", *[""] * len(setting.entrants)]
    figures = [*map(_figure, setting.entrants, units)]
    parts = [verdict, "; ".join([*figures, *setting.aside])]
    return f"{setting.name}: {'. '.join(filter(None, parts))}"


def _figure(entrant: Entrant, unit: str) -> str:
    """Return a figure. ``unit``: unit of the first one, whose percent of the best is not named."""
    notes = [*([] if unit else [f"{entrant.percent} %"]), *entrant.notes]
    further = f" ({', '.join(notes)})" if notes else ""
    return f"{entrant.label} {entrant.figure}{unit}{further}"
