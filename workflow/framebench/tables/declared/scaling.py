"""Tables of weak scaling (equal batch per device) and strong scaling (equal total batch).

The two are never mixed in a table or a plot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pandas as pd
from core.parallelism import DATA

from ...cases.conditions import Key
from ...statistics import descriptive
from ...statistics.intervals import median_interval
from ..columns import Row, interval_cells
from ..ratios import ratio_table
from ..results import CaseResult, flags_of, with_cells
from ..roofs import expected_all_reduces
from ..table import Inputs, declared_table


@dataclass(frozen=True)
class ScalingKind:
    """Weak or strong scaling.

    ``same``: quantity that stays equal when devices are added; ``batch``: its column."""

    name: str
    same: str
    batch: str

    @property
    def title(self) -> str:
        return f"{self.name}: {self.same}"


#: Kind of scaling by name of the table.
KINDS = {
    "weak_scaling": ScalingKind("Weak scaling", "the same batch per device", "batch_per_device"),
    "strong_scaling": ScalingKind("Strong scaling", "the same total batch", "total_batch"),
}

SHARED_HARDWARE = (
    "Devices of a processor share its caches, its memory and its clock: what these cost stands in "
    "the efficiency too, and reads as if it were the framework's communication. The benchmark "
    "`independent`, which trains on as many devices without communication, shows that part."
)


def shared_hardware(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a caveat if several devices are cores of one processor."""
    if any(row["accelerator"] == "cpu" and row["devices_per_node"] > 1 for row in rows):
        yield SHARED_HARDWARE


def weak(inputs: Inputs) -> pd.DataFrame:
    """Return the data-parallel cases, relative to one device with equal batch per device."""
    is_parallel = [result.case.replicas == result.case.devices for result in inputs.results]
    return _efficiencies(inputs.frame.loc[is_parallel], inputs, attrgetter("on_one"))


def strong(inputs: Inputs) -> pd.DataFrame:
    """Return the cases of strong-scaling series, relative to one device.

    1. Cases that would have the same one-device baseline, with their total batch in as many
       micro-steps, form a group.
    2. A group is a series if its cases have different numbers of devices.
    3. Without a measured baseline, it is a series only if one of its cases lacks a weak-scaling
       baseline too: in a grid of batches and devices, equal total batches occur by chance. The rows
       then say what is missing."""
    groups: dict[Key, list[int]] = defaultdict(list)
    for number, result in enumerate(inputs.results):
        groups[_base_of_total(result.key)].append(number)
    series: list[tuple[Any, ...]] = []
    for base, numbers in groups.items():
        keys = [inputs.results[number].key for number in numbers]
        lacks_weak = any(key.on_one not in inputs.cases for key in keys)
        if len({key.case.devices for key in keys}) > 1 and (base in inputs.cases or lacks_weak):
            total = base.case.samples_per_step
            series += [
                (base.order, key.case.devices, key.case.nodes, number, total)
                for number, key in zip(numbers, keys, strict=True)
            ]
    series.sort()
    totals = [total for *_, total in series]
    table = inputs.frame.loc[[number for *_, number, _ in series]].assign(total_batch=totals)
    return _efficiencies(table, inputs, _base_of_total, " with total batch {}")


def _base_of_total(key: Key) -> Key:
    """Return the key of one device with the same total batch."""
    return key.on_one.at(batch_per_device=key.case.batch_per_device * key.case.replicas)


def _efficiencies(
    cases: pd.DataFrame, inputs: Inputs, base: Callable[[Key], Key], at: str = ""
) -> pd.DataFrame:
    """Return speed-ups, efficiencies and times of communication.

    ``at``: setting at which baselines are expected, with a field for the total batch."""

    def named(result: CaseResult) -> tuple[str, str]:
        return "1n1g", at.format(result.case.samples_per_step)

    table = ratio_table(cases, inputs, base, named, is_scaling=True)
    for name in ("speedup", "speedup_ci_low", "speedup_ci_high"):
        table[name.replace("speedup", "efficiency")] = table[name] / table["devices"]
    rows = zip(table.index, table["flags"], strict=True)
    return with_cells(
        table, [_communication(inputs.results[number], flags, inputs) for number, flags in rows]
    )


def _communication(result: CaseResult, flags: str, inputs: Inputs) -> Row:
    """Return what communication takes alone, and what it was expected to, as fractions of a
    training step: medians over repeats.

    Steps are those of the whole timed region: individual step times are unknown to the host if
    steps overlap. ``flags``: of the row, which has also those of the measured collective."""
    timed = [
        (run.gradient_all_reduce, run.case.samples_per_step / run.throughput)
        for run in result.ok
        if run.case.mode == "train" and run.gradient_all_reduce and run.throughput
    ]
    alone = [descriptive.median(gradients.seconds) / step for gradients, step in timed]
    expected, collective = None, None
    is_data_parallel = timed and result.case.parallelism == DATA
    sizes = timed[0][0].sizes if is_data_parallel else ()
    found = expected_all_reduces(inputs, result.ok[0], sizes) if sizes else None
    if found and result.throughput:
        seconds, collective = found
        expected = seconds * result.throughput / result.case.samples_per_step
    return {
        "expected_communication": expected,
        "flags": " ".join(sorted({*flags.split(), *flags_of(collective).split()})),
        "communication_alone": descriptive.median(alone) if alone else None,
        **interval_cells("communication_alone", median_interval(alone) if alone else None),
        "gradient_messages": timed[0][0].messages if timed else None,
    }


WEAK = declared_table("weak_scaling", weak, lead=shared_hardware)
STRONG = declared_table("strong_scaling", strong, lead=shared_hardware)
TABLES = (WEAK, STRONG)
