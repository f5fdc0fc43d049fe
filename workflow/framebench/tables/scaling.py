"""Weak and strong scaling: what more devices are good for, with the same batch on each of them, and
with the same batch for all of them together. The two are never mixed in a table or a plot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..statistics import descriptive
from .cases import KEYS, Case, Place, marks_of
from .ratios import ratio

COMMUNICATION = ("communication_estimate", "all_reduce_gbytes_per_second")
_FIGURES = (
    "throughput_median",
    "unit",
    "speedup",
    "speedup_ci_low",
    "speedup_ci_high",
    "efficiency",
    "efficiency_ci_low",
    "efficiency_ci_high",
    *COMMUNICATION,
    "reason",
    "marks",
)
# A row for every case of the summary.
WEAK_COLUMNS = (*KEYS, "devices", *_FIGURES)
# A row for every case that shares its total batch with other numbers of devices.
STRONG_COLUMNS = (*KEYS, "devices", "total_batch", *_FIGURES)


@dataclass(frozen=True)
class Kind:
    """``same``: what stays the same when devices are added, and ``batch``, the column it is in."""

    name: str
    same: str
    batch: str
    explanation: str

    @property
    def title(self) -> str:
        return f"{self.name}: {self.same}"


COMMUNICATION_EXPLANATION = (
    "Communication is an estimate of the part of a step that exchanging the gradients would take "
    "with nothing beside it: one all-reduce of all gradients, extrapolated from the latency and "
    "bandwidth of two all-reduces timed before the run, 4 bytes for each parameter, over the "
    "median step of the slowest rank. It is neither an upper nor a lower bound: in a step the "
    "exchange overlaps with the backward pass, shares cores and memory with it, and may be many "
    "messages. One device, and inference, have none. All-reduce GB/s are the bytes of the larger "
    "array over its seconds (algorithm bandwidth, not bus bandwidth)."
)
_EFFICIENCY = (
    "Efficiency is that ratio over the number of devices. Ratios come from unrounded medians."
)
#: By the name of the table.
KINDS = {
    "weak_scaling": Kind(
        "Weak scaling",
        "the same batch per device",
        "batch_per_device",
        "Throughput, and its ratio to one device (1n1g) at the same batch per device: the total "
        f"batch grows with the devices. {_EFFICIENCY}",
    ),
    "strong_scaling": Kind(
        "Strong scaling",
        "the same total batch",
        "total_batch",
        "Throughput, and its ratio to one device (1n1g) at the same total batch, of which each "
        f"device has the less the more there are. {_EFFICIENCY} Listed are cases whose total "
        "batch was run on several numbers of devices: with 1n1g among them or, to say that it is "
        "missing, where one of them has no 1n1g at its batch per device either (total batches that "
        "a weak series repeats are chance).",
    ),
}


def weak(cases: Mapping[Place, Case]) -> Iterator[list[Any]]:
    """WEAK_COLUMNS of every case: relative to 1n1g with the same batch per device."""
    for case in cases.values():
        base = cases.get(case.at(nodes=1, devices_per_node=1))
        yield _row(case, base, [_devices(case)], "")


def strong(cases: Mapping[Place, Case]) -> Iterator[list[Any]]:
    """STRONG_COLUMNS: relative to 1n1g with the same total batch.

    1. Cases that 1n1g with their total batch would be the baseline of are a group.
    2. A group is a series if its cases have different numbers of devices.
    3. Without that 1n1g, it is one only if a case of it has no baseline of weak scaling either:
       in a grid of batches and devices total batches are equal by chance. Its rows say what is
       missing.
    """
    groups: dict[Place, list[Case]] = defaultdict(list)
    for case in cases.values():
        place = case.at(nodes=1, devices_per_node=1, batch_per_device=_total(case))
        groups[place].append(case)
    for place, group in sorted(groups.items()):
        if _is_series(place, group, cases):
            for case in sorted(group, key=lambda one: (_devices(one), one.get("nodes"))):
                total = _total(case)
                yield _row(
                    case,
                    cases.get(place),
                    [_devices(case), total],
                    f" with total batch {total}",
                )


def _is_series(place: Place, group: Sequence[Case], cases: Mapping[Place, Case]) -> bool:
    """``place``: of the baseline."""
    if len({_devices(case) for case in group}) == 1:
        return False
    return place in cases or any(
        case.at(nodes=1, devices_per_node=1) not in cases for case in group
    )


def _row(case: Case, base: Case | None, sizes: Sequence[int], at: str) -> list[Any]:
    """``sizes``: what stands behind the keys, the number of devices first."""
    *ratios, reason = ratio(case, base, "1n1g", at)
    efficiencies = [None if value is None else value / sizes[0] for value in ratios]
    return [
        *case.key,
        *sizes,
        case.throughput,
        case.unit,
        *ratios,
        *efficiencies,
        *_communication(case),
        reason,
        marks_of(case, base),
    ]


def _devices(case: Case) -> int:
    return int(case.get("nodes") * case.get("devices_per_node"))


def _total(case: Case) -> int:
    return int(case.get("batch_per_device") * _devices(case))


def _communication(case: Case) -> list[float | None]:
    """COMMUNICATION: medians over the ok repeats of a training case; None where not known."""
    told = [(run, run.all_reduce) for run in case.ok if run.all_reduce and run.mode == "train"]
    shares = [
        found.gradient_seconds / step
        for run, found in told
        if found.gradient_seconds is not None
        and run.step_seconds
        and (step := descriptive.median(run.step_seconds))
    ]
    rates = [found.gbytes_per_second for _, found in told]
    return [descriptive.median(values) if values else None for values in (shares, rates)]


def why_none(row: Mapping[str, Any]) -> str:
    """Why a row of these tables has no figure of COMMUNICATION."""
    if row["devices"] == 1:
        return "one device"
    return "not timed" if row["mode"] == "train" else "inference"
