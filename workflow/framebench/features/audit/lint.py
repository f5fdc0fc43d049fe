"""Consistency checks of published tables: figures that do not follow from the table's others.

Every check takes the figures of one source and yields findings. A figure is wrong only if the
interval that it stands for and the interval implied by the others do not overlap (see `figures`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...records import record_sets
from ...statistics.intervals import Interval
from ...tables.grouping import group
from ...tables.results import CaseResults
from ...tables.table import Printed
from . import figures
from .findings import Finding, Linted
from .printed import (
    Key,
    PrintedFigure,
    Ratio,
    by_case,
    by_row,
    figures_of,
    implied_baselines,
    key_of,
    ratios_of,
)
from .published import CELL, RISING, SCORES, compare_published, read_causes, read_cells

PUBLISHED_NAME = "published.csv"
#: Largest relative difference of throughput and mean latency beyond rounding. Both are measured:
#: time between batches counts only in the throughput.
MEASURED_APART = 0.01
COUNTS = ("batch_per_device", "nodes", "devices_per_node")
SECONDS = {"s": 1.0, "ms": 0.001}


def folders(path: Path) -> list[Path]:
    """Return the folders of published tables at ``path``: itself, or those in it; [] if none.
    For a file, its folder counts."""
    home = path if path.is_dir() else path.parent
    if (home / PUBLISHED_NAME).is_file():
        return [home]
    return sorted(one.parent for one in path.glob(f"*/{PUBLISHED_NAME}"))


def check_folder(folder: Path) -> Linted:
    """Run all checks on a folder of published data. Raises RecordsError if it is none."""
    cells = read_cells(folder / PUBLISHED_NAME)
    record_set = record_sets.load(folder)
    cases = group(record_set.runs, None)
    causes = read_causes(folder)
    printed = figures_of(cells)
    checked = [
        *check_figures(printed),
        *repeats_found(printed, cases),
        *follow_from_runs(cases, folder / PUBLISHED_NAME),
    ]
    named = [_finding(folder.name, *item, causes=causes) for item in checked]
    named += [
        Finding(
            folder.name, record_sets.CSV_NAME, problem.origin, "record", "", "", problem.message
        )
        for problem in record_set.problems
    ]
    return Linted(folder.name, False, len(cells), "printed cells", tuple(named))


def marked(folder: Path) -> list[Printed]:
    """Return the printed cells of a published folder, in order, each with the findings against it.
    Raises RecordsError if the folder has no published data."""
    cells = read_cells(folder / PUBLISHED_NAME)
    against: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for figure, check, recomputed, note in check_figures(figures_of(cells)):
        text = f"{recomputed} ({note})" if recomputed else note
        against[_place(figure.cell)].append(f"{check}: {text}")
    return [Printed(cell, tuple(against[_place(cell)])) for cell in cells]


def _place(cell: Mapping[str, str]) -> tuple[str, ...]:
    """Return the place of a cell, without the quantity: findings on implied figures go to the
    speed-up."""
    return cell["table"], cell["place"], cell["column"]


# Result of a check: the figure, the name of the check, the recomputed value, and the reason.
Found = tuple[PrintedFigure, str, str, str]


def check_figures(printed: Sequence[PrintedFigure]) -> list[Found]:
    """Run every check that needs only the printed figures."""
    ratios = ratios_of(printed)
    cases = [*by_case(printed).values(), *by_case(implied_baselines(ratios)).values()]
    return [
        *(finding for ratio in ratios for finding in ratio_recomputes(ratio)),
        *baselines_present(ratios),
        *baselines_alike(ratios),
        *(finding for case in cases for finding in percentiles_rise(case)),
        *(finding for case in cases for finding in mean_below_maximum(case)),
        *(finding for case in cases for finding in throughput_agrees_with_latency(case)),
        *(finding for row in by_row(printed).values() for finding in statistics_agree(row)),
    ]


# ---- Checks -----------------------------------------------------------------------------------


def ratio_recomputes(ratio: Ratio) -> Iterator[Found]:
    """Check that a speed-up is the quotient of the two figures that it is made of."""
    if ratio.figure is None or ratio.base is None:
        return
    above, under = (ratio.base, ratio.figure) if ratio.is_time else (ratio.figure, ratio.base)
    # A figure over itself is 1, whatever its rounding.
    found = (1.0, 1.0) if above is under else figures.quotient(above.interval, under.interval)
    printed, note = ratio.printed, f"{above.said} / {under.said}"
    if not figures.apart(printed.interval, found):
        return
    if not under.value:
        yield printed, "ratio", "", f"{note}: nothing can be divided by 0"
        return
    value = above.value / under.value
    if figures.is_cut(printed.said, value):
        note += ": digits were cut off, not rounded"
    yield printed, "ratio", _number(value, printed), note


def baselines_present(ratios: Sequence[Ratio]) -> Iterator[Found]:
    """Check that the baseline of every speed-up is printed; one finding per table and kind."""
    missing: dict[tuple[str, str], list[Ratio]] = defaultdict(list)
    for ratio in ratios:
        if ratio.base is None:
            missing[ratio.printed.cell["table"], ratio.kind].append(ratio)
    for (_, kind), some in missing.items():
        note = f"the {some[0].quantity} of {kind} that it is relative to is printed nowhere"
        yield some[0].printed, "baseline", "", note + _more(some)


def baselines_alike(ratios: Sequence[Ratio]) -> Iterator[Found]:
    """Check that a speed-up and its baseline have the same compiler; one finding for every table.
    A speed-up of mixed precision or of devices must not include one of a compiler."""
    unlike: dict[tuple[str, str, str], list[Ratio]] = defaultdict(list)
    for ratio in ratios:
        if ratio.figure and ratio.base:
            compilers = ratio.figure.cell["compiler"], ratio.base.cell["compiler"]
            if len(set(compilers)) > 1:
                unlike[ratio.printed.cell["table"], *compilers].append(ratio)
    for (_, compiler, other), some in unlike.items():
        note = f"compiler {compiler}, but its baseline is of compiler {other}{_more(some)}"
        yield some[0].printed, "unlike baseline", "", note


def percentiles_rise(case: Mapping[str, PrintedFigure]) -> Iterator[Found]:
    """Check that a higher percentile is not smaller."""
    ordered = [case[name] for name in RISING if name in case]
    for position in figures.falling([figure.interval for figure in ordered]):
        one, before = ordered[position], ordered[position - 1]
        note = f"below the {_spoken(before)}{_whose(one)}: {before.said}"
        yield one, "percentiles", f"at least {_value(before)}", note


def mean_below_maximum(case: Mapping[str, PrintedFigure]) -> Iterator[Found]:
    """Check that the mean latency is not above the maximum, or else the highest printed percentile.
    Only a few extremely long steps would bring the mean above that percentile."""
    highest = next((case[name] for name in reversed(RISING) if name in case), None)
    mean = case.get("latency_mean")
    if mean and highest and figures.below(highest.interval, mean.interval):
        note = f"the mean lies above the {_spoken(highest)}{_whose(mean)}: {highest.said}"
        yield mean, "mean", f"at most {_value(highest)}", note


def throughput_agrees_with_latency(case: Mapping[str, PrintedFigure]) -> Iterator[Found]:
    """Check that samples/s are batch x devices / mean latency, for batches without gaps."""
    throughput, latency = case.get("throughput"), case.get("latency_mean")
    if throughput is None or latency is None or latency.cell["unit"] not in SECONDS:
        return
    counts = [throughput.cell[name] for name in COUNTS]
    # A batch may also be printed in words, or be implausibly large.
    if not all(count.isdecimal() and len(count) < 10 for count in counts):
        return
    samples = math.prod(map(int, counts))
    seconds = SECONDS[latency.cell["unit"]]
    once = (samples / seconds, samples / seconds)
    found = figures.quotient(once, latency.interval)
    if figures.apart(throughput.interval, found, MEASURED_APART):
        if not latency.value:
            note = f"the mean latency is {latency.said}: nothing can be divided by 0"
            yield throughput, "batch / latency", "", note
            return
        expected = samples / seconds / latency.value
        part = throughput.value / expected - 1
        note = (
            f"{abs(part):.1%} {'above' if part > 0 else 'below'} batch / mean latency"
            f"{_whose(throughput)}: {samples} / ({latency.said} {latency.cell['unit']})"
        )
        yield throughput, "batch / latency", _number(expected, throughput), note


def statistics_agree(row: Sequence[PrintedFigure]) -> Iterator[Found]:
    """Check that mean, deviation and extremes of repeats fit each other and the repeats."""
    for score in SCORES:
        known = {
            printed_figure.quantity.removeprefix(f"{score}_"): printed_figure
            for printed_figure in row
        }
        values = [
            printed_figure.interval for printed_figure in row if printed_figure.quantity == score
        ]
        extremes = [known[name].interval for name in ("min", "max") if name in known]
        yield from _mean_agrees(known.get("mean"), values, extremes)
        yield from _deviation_agrees(known.get("std"), values, extremes)


def _mean_agrees(
    mean: PrintedFigure | None, values: Sequence[Interval], extremes: Sequence[Interval]
) -> Iterator[Found]:
    if mean is None:
        return
    if values and figures.apart(mean.interval, found := figures.mean(values)):
        note = f"the mean of the {len(values)} values printed beside it"
        yield mean, "mean", _number(figures.middle(found), mean), note
    if len(extremes) == 2:
        low, high = extremes
        if figures.below(mean.interval, low) or figures.below(high, mean.interval):
            limits = f"{figures.middle(low):g} to {figures.middle(high):g}"
            yield mean, "mean", limits, "the mean lies outside minimum and maximum"


def _deviation_agrees(
    deviation: PrintedFigure | None, values: Sequence[Interval], extremes: Sequence[Interval]
) -> Iterator[Found]:
    if deviation is None:
        return
    repeats = int(deviation.cell["repeats"] or 0)
    if len(values) > 1:
        found = figures.deviation(values)
        why = f"the standard deviation of the {len(values)} values printed beside it"
    elif len(extremes) == 2 and repeats > 1:
        found = figures.deviation_within(extremes[0], extremes[1], repeats)
        why = f"{repeats} values with this minimum and maximum cannot have it"
    else:
        return
    if figures.apart(deviation.interval, found):
        hundred = (100 * deviation.interval[0], 100 * deviation.interval[1])
        if not figures.apart(hundred, found):
            why += "; a hundred times as much would fit: the values are in percent, this is not"
        yield deviation, "deviation", f"{found[0]:.3g} to {found[1]:.3g}", why


def repeats_found(printed: Sequence[PrintedFigure], cases: CaseResults) -> Iterator[Found]:
    """Check that each case with published runs has as many runs as repeats are stated."""
    counted: dict[Key, int] = defaultdict(int)
    for key, case in cases.items():
        counted[key_of(key.row)] += len(case.runs)
    reported = set()
    for printed_figure in printed:
        stated, count = printed_figure.cell["repeats"], counted.get(printed_figure.key)
        if stated and count is not None and (printed_figure.key, stated) not in reported:
            reported.add((printed_figure.key, stated))
            if int(stated) != count:
                note = f"{stated} repeats are stated, {count} runs of this case are published"
                yield replace(printed_figure, said=stated), "repeats", str(count), note


def follow_from_runs(cases: CaseResults, published_csv: Path) -> Iterator[Found]:
    """Check that each figure with published runs is their median, or the ratio of two medians."""
    if not cases:
        return
    compared = compare_published(cases, published_csv)
    differing = compared[compared["agrees"].eq(False).fillna(False)]
    for row in differing.to_dict("records"):
        cell = {str(name): str(value) for name, value in row.items()}
        (one,) = figures_of([cell])
        yield one, "runs", _number(row["recomputed"], one), "its runs give another"


# ---- Texts ------------------------------------------------------------------------------------


def _finding(
    source: str,
    figure: PrintedFigure,
    check: str,
    recomputed: str,
    note: str,
    causes: Mapping[tuple[str, ...], str],
) -> Finding:
    cell = figure.cell
    cause = causes.get(tuple(cell[name] for name in CELL))
    row = f"{cell['place']}: {cell['column']}"
    note = f"{note}; {cause}" if cause else note
    return Finding(source, cell["table"], row, check, figure.said, recomputed, note)


def _number(value: float, figure: PrintedFigure) -> str:
    """Format a value with one digit more than the figure, so that rounding shows."""
    return f"{value:.{len(figure.cell['printed'].partition('.')[2]) + 1}f}"


def _more(same: Sequence[Ratio]) -> str:
    return f"; {len(same) - 1} more of this table alike" if same[1:] else ""


def _value(figure: PrintedFigure) -> str:
    return f"{figure.value:g}"


def _spoken(figure: PrintedFigure) -> str:
    name = figure.quantity.removeprefix("latency_")
    return "maximum" if name == "max" else f"{name.removeprefix('p')} % latency"


def _whose(figure: PrintedFigure) -> str:
    return " of the baseline, as the speed-ups imply it" if figure.implied else ""
