"""Losses of several devices against as many single devices, split by cause.

Three cases with equal batch per device are needed: one device (throughput X1), N devices that train
together (XN), and the control (C): N devices that train at the same time without communication. The
ideal is N X1.

1. Shared hardware takes 1 - C / (N X1).
2. The all-reduce takes C / (N X1) (1 - XN / C), which leaves the efficiency XN / (N X1).
3. Communication is a part of 2: the control's efficiency times the fraction of a step that is
   all-reduce beyond its overlap. The rest of 2 is waiting for other devices and side effects.

Losses 1 and 2 add up to 1 - efficiency."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..config.kinds import INDEPENDENT
from ..records.run import Run
from ..statistics import descriptive
from .columns import (
    NUMBER,
    PERCENT,
    TEXT,
    Column,
    Row,
    interval,
    interval_cells,
    why_no_interval,
    why_no_ratio_interval,
)
from .results import CaseResult, CaseResults, flags_of

if TYPE_CHECKING:  # slow to import, and plans need only names
    from ..statistics.intervals import Interval

#: Confidence of each of two intervals that jointly hold with 95 % (Bonferroni).
BOTH = 0.975

ABOUT = (
    "What devices lose against as many single ones (1 - efficiency) is split by a control: as many "
    "independent processes that train at the same time without communication (kind `independent`). "
    "What these lose is lost to shared hardware: memory bandwidth, caches, clocks. Communication "
    "takes the rest of the loss. Of that, communication is the all-reduce of the step breakdown, "
    "of the gradients as the framework sends them and beyond what it overlaps with, as a part of a "
    "step; what remains is waiting for the slowest device in each step, and all else that "
    "communication brings. Negative: less than what can be told. The interval of shared hardware "
    "is that of a ratio; that of communication is made of two ratios, that of all-reduce of one "
    "and of the median part of a step over the repeats: both hold at least as often as they say. "
    "Without a control, or a baseline, nothing is split."
)


def control_of(result: CaseResult, others: CaseResults) -> CaseResult | None:
    """Return the control of a training case among ``others``; None without one.

    The control is independent processes on the same devices with equal batch. ``others``: cases of
    other benchmarks than steps."""
    if result.case.devices == 1 or result.case.mode != "train":
        return None
    return others.get(result.key.at(mode=INDEPENDENT))


def cells(
    result: CaseResult, base: CaseResult | None, control: CaseResult | None
) -> dict[str, float | str | None]:
    """Return the values of COLUMNS. ``base``: one device with equal batch per device."""
    if not (result.throughput and base and base.throughput and control and control.throughput):
        return {column.name: "" if column.type == TEXT else None for column in COLUMNS}
    from ..statistics import intervals  # slow to import, and plans make no rows

    devices = result.case.devices
    waiting = [part for run in result.ok if (part := _exposed(run)) is not None]
    singles = [devices * value for value in base.values]
    apart = control.throughput / (devices * base.throughput)
    together = apart - result.throughput / (devices * base.throughput)
    communication = apart * descriptive.median(waiting) if waiting else None
    ideal = intervals.ratio_interval(singles, control.values)
    of_ideal = intervals.ratio_interval(singles, control.values, BOTH)
    of_control = intervals.ratio_interval(control.values, result.values, BOTH)
    of_step = intervals.median_interval(waiting, BOTH)
    return {
        "shared_hardware_loss": 1 - apart,
        **interval_cells("shared_hardware_loss", ideal and (1 - ideal[1], 1 - ideal[0])),
        "communication_loss": together,
        # C / (N X1) (1 - XN / C)
        **interval_cells(
            "communication_loss", _extremes(lambda a, b: a * (1 - b), of_ideal, of_control)
        ),
        "all_reduce_loss": communication,
        **interval_cells("all_reduce_loss", _extremes(operator.mul, of_ideal, of_step)),
        "rest_loss": None if communication is None else together - communication,
        "control_flags": flags_of(control),
    }


def _extremes(
    figure: Callable[[float, float], float], first: Interval | None, second: Interval | None
) -> Interval | None:
    """Return the extremes of a figure over two intervals, which jointly hold at least as often as
    BOTH ensures; None without one of them."""
    if not (first and second):
        return None
    corners = [figure(a, b) for a in first for b in second]
    return min(corners), max(corners)


def _exposed(run: Run) -> float | None:
    """Return the fraction of a step that is all-reduce only; None without a step breakdown."""
    seconds = dict(run.step_breakdown.seconds).get("all_reduce") if run.step_breakdown else None
    if seconds is None or not run.throughput:
        return None
    return seconds * run.throughput / run.case.samples_per_step


def _why(row: Row) -> str:
    if row["speedup"] is None:
        return ""
    if row["devices"] == 1:
        return "one device"
    return "not measured" if row["mode"] == "train" else "inference"


def _why_not_apart(row: Row) -> str:
    return _why(row) if row["communication_loss"] is None else "not timed apart"


COLUMNS = (
    Column(
        "shared_hardware_loss", NUMBER,
        "part of the ideal that devices lose without exchanging anything",
        title="lost to shared hardware %", form=PERCENT, optional=True, why=_why, about=ABOUT,
    ),
    *interval(
        "shared_hardware_loss", "that", title="interval %", form=PERCENT, optional=True,
        why=why_no_ratio_interval("shared_hardware_loss"),
    ),
    Column(
        "communication_loss", NUMBER,
        "part of the ideal that devices lose beyond that when they train together",
        title="lost to communication and rest %", form=PERCENT, optional=True, why=_why,
        about=ABOUT,
    ),
    *interval(
        "communication_loss", "that", title="interval %", form=PERCENT, optional=True,
        why=why_no_ratio_interval("communication_loss", confidence=BOTH),
    ),
    Column(
        "all_reduce_loss", NUMBER, "of that, the all-reduce beyond what it overlaps with",
        title="of that communication %", form=PERCENT, optional=True, why=_why_not_apart,
        about=ABOUT,
    ),
    *interval(
        "all_reduce_loss", "that", title="interval %", form=PERCENT, optional=True,
        why=why_no_interval(
            "all_reduce_loss", confidence=BOTH, lacking=_why_not_apart,
            more=" with a step breakdown",
        ),
    ),
    Column(
        "rest_loss", NUMBER, "of that, all else: waiting for each other, ..",
        title="of that rest %", form=PERCENT, optional=True, why=_why_not_apart, about=ABOUT,
    ),
    Column(
        "control_flags", TEXT, "quality flags of the control", title="flags of the control",
        optional=True,
    ),
)  # fmt: skip
