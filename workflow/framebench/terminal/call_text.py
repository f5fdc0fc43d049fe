"""Text of a call on the terminal: results and logs of its jobs, what was verified, the answer (the
content of the report's first screen), and what failed or is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from core import bounded
from core.text import clock, printable

from ..cases import names
from ..cases.conditions import THROUGHPUT
from ..config.statuses import FAILURES, OK
from ..files import json_files
from ..files.json_files import repeat_and_attempt
from ..plan.job import count_of
from ..records import verifications
from ..statistics.descriptive import median
from ..tables.formatting import rounded

if TYPE_CHECKING:  # plans need no tables
    from ..tables.setting_answers import Entrant, FirstScreen, SettingAnswer

#: Number of log lines of a failed run to show.
_LINES = 20
#: Number of bytes at the end of a log that are searched for these lines.
_BYTES = 2**18
#: Outcomes of verifications in words.
_OUTCOMES = {
    verifications.PASSED: "passed",
    verifications.DIFFERS: "failed",
    verifications.PARTLY: "partly in another precision",
    verifications.NOT_MADE: "could not be made",
    verifications.UNSUPPORTED: "not supported",
}
#: File in the results with the answer at all settings.
ANSWER = "answer.txt"
#: Most settings on the terminal.
MOST_SETTINGS = 8


class RunOutcome(NamedTuple):
    """Outcome of a run.
    ``status``, ``reason``: from the record; ``figure``, ``unit``: figure and unit of the first
    ``metric``, None without one; ``wall_seconds``: wall time of the process, None if unknown."""

    status: str
    reason: str = ""
    figure: float | None = None
    unit: str = ""
    metric: str = ""
    wall_seconds: float | None = None


def outcome_of(path: Path) -> RunOutcome:
    """Return the outcome in a job's new record.
    The record is not validated here: the tables do so when no benchmark runs."""
    try:
        record = json_files.read(path)
        metrics: dict[str, dict[str, Any]] = record["metrics"]
        name = next(iter(metrics), "")
        first = metrics.get(name, {})
        figure, seconds = first.get("value"), record["wall_seconds"]
        unit = first.get("unit", "")
        return RunOutcome(record["status"], record["reason"], figure, unit, name, seconds)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return RunOutcome("failed", f"{path} cannot be read: {error}")


def figures_in(folder: Path) -> list[float]:
    """Return the figure of each repeat of a case, from its latest attempt with a figure."""
    found: dict[int, float] = {}
    paths = {
        named: path for path in folder.glob("*.json") if (named := repeat_and_attempt(path.stem))
    }
    for (repeat, _), path in sorted(paths.items()):
        figure = outcome_of(path).figure
        if figure is not None:
            found[repeat] = figure
    return [*found.values()]


def end_of_log(path: Path) -> list[str]:
    """Return the last lines of a job's log and its path."""
    try:
        lines = bounded.read_end(path, _BYTES).split("\n")
    except OSError:
        return []
    said = [line.rstrip() for line in lines if line.strip()]
    return [*(f"    {printable(line)}" for line in said[-_LINES:]), f"    log: {path}"]


def result(seconds: float, label: str, outcome: RunOutcome, repeats: Sequence[float] = ()) -> str:
    """Return a result line: ``4:31  pytorch  ResNet-50 training  fp32  6.82 images/s``.
    Status and reason replace a missing figure. ``repeats``: figures of all repeats so far."""
    if outcome.figure is None:
        status = "cannot" if outcome.status == "unsupported" else outcome.status
        what = ": ".join(filter(None, [status, " ".join(outcome.reason.split())]))
    else:
        name = "" if outcome.metric == THROUGHPUT else f"{outcome.metric} "
        what = f"{name}{rounded(outcome.figure, '.3g')} {outcome.unit}"
        if len(repeats) > 1:
            what += f"  ({_ordinal(len(repeats))}; median {rounded(median(repeats), '.3g')})"
    return "  ".join([clock(seconds), label, what])


def verified(paths: Iterable[Path]) -> str:
    """Return how many verifications passed, and which failed, by their new records; "" for none."""
    found = []
    for path in paths:
        try:
            found.append(verifications.read_result(path))
        except (OSError, ValueError):
            continue  # not printed: the report names the file
    counts = Counter(result.outcome for result in found)
    parts = [
        f"{counts[outcome]} {words}" for outcome, words in _OUTCOMES.items() if counts[outcome]
    ]
    failed = [
        f"{names.frameworks([result.case])[0]}, {names.workload(result.case)}, "
        f"{names.in_words(result.case.precision)}: {result.difference}"
        for result in found
        if result.outcome == verifications.DIFFERS
    ]
    text = f"Verified against the float64 reference: {', '.join(parts)}"
    return "; ".join([text, *failed]) if found else ""


def _ordinal(number: int) -> str:
    """Return a number like ``2nd``."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


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
    """Return a figure as text. ``unit``: for the first one; others, with "", show a percent."""
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
    """Return lines on the statuses of failed runs. ``runs``: number of runs of the suite."""
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
