"""Last lines of a call: the answer, which is the content of the report's first screen, and what
failed or is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..config.statuses import FAILURES, OK
from ..plan.job import count_of

if TYPE_CHECKING:  # plans need no tables
    from ..tables.setting_answers import Entrant, FirstScreen, SettingAnswer

#: File in the results with the answer at all settings.
ANSWER = "answer.txt"
#: Most settings on the terminal.
MOST_SETTINGS = 8


def answer_lines(screen: FirstScreen, most: int | None = MOST_SETTINGS) -> list[str]:
    """Return the answer, a line per setting. ``most``: settings, None for all."""
    shown = screen.settings[:most]
    more = len(screen.settings) - len(shown)
    step = screen.next
    return [
        " \N{MIDDLE DOT} ".join(screen.what),
        *filter(None, [screen.sentence]),
        *screen.findings,
        *map(_setting, shown),
        *[f".. and {more} more settings in {ANSWER}"] * bool(more),
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


def _is_failure(status: str) -> bool:
    """Return whether a run with this status makes the call end with 1. A missing feature of a
    framework is a result."""
    return status not in ("", OK, "unsupported")


def failed(statuses: Sequence[str]) -> list[str]:
    """Return the statuses of runs that make the call end with 1: failures, or all if all runs
    are unsupported, for example because no framework can use the driver."""
    is_futile = {*statuses} == {"unsupported"}
    return [status for status in statuses if is_futile or _is_failure(status)]


def failures(failed: Sequence[str], runs: int) -> list[str]:
    """Return lines on the statuses of failed runs, of all ``runs`` of the suite."""
    return [
        f"Not measured: {len(failed)} of {count_of(runs, 'run')} ({_counted(failed)}), "
        "see the report",
        "These runs count as done. To repeat them, add --config retry="
        + ",".join(dict.fromkeys(failed)),
    ]


def unfinished(statuses: Sequence[str], searches: int, command: str, report: str) -> list[str]:
    """Return three lines: what was measured, what is missing, and the command that continues.

    ``statuses``: statuses of every run of the suite, "" for runs without a record; ``searches``:
    number of unfinished searches for the largest batch; ``command``: this call, quoted for a shell;
    ``report``: its path, "" without one.
    """
    done = [status for status in statuses if status]
    failed = _counted(status for status in done if _is_failure(status))
    where = f"; tables and report hold them: {report}" if report and done else ""
    missing = {"run": len(statuses) - len(done), "search": searches}
    counts = [count_of(number, kind) for kind, number in missing.items() if number]
    return [
        f"Measured: {len(done)} of {count_of(len(statuses), 'run')}"
        + (f" ({failed})" if failed else "")
        + where,
        f"Missing: {', '.join(counts) or 'no run, but checks or tables'}",
        f"To go on: {command}",
    ]


def _counted(statuses: Iterable[str]) -> str:
    """Return counts as text: ``2 failed, 1 timed out``."""
    counts = Counter(statuses)
    return ", ".join(
        f"{counts[name]} {failure.words}" for name, failure in FAILURES.items() if counts[name]
    )
