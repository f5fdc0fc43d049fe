"""Tables of weak scaling (equal batch per device) and strong scaling (equal total batch).

The two are never mixed in a table or a plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from ...cases.conditions import Key
from ...records.run import Run
from ...statistics import descriptive
from ..columns import (
    COUNT,
    NUMBER,
    PERCENT,
    RESULT_COLUMNS,
    WHOLE,
    Column,
    Row,
    interval,
    shared,
    why_no_interval,
    why_no_ratio_interval,
)
from ..ratios import VERDICT, ratio_table
from ..results import median_interval, over_runs
from ..table import Drawing, Inputs, Pivot, Table

if TYPE_CHECKING:
    import pandas as pd


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

ALONE = (
    "Communication alone is what exchanging the gradients takes with nothing beside it, over the "
    "step: all-reduces of the sizes in which the gradients of that run "
    "went (its buckets, its arrays), timed behind its window in several rounds. Of a repeat it is "
    "the median round; its interval is that of the median over repeats, because rounds of one run "
    "resemble each other. It is no part of the loss: in a step communication overlaps with the "
    "backward pass, and competes with it. A framework that does not tell the sizes has none."
)
BANDWIDTH = (
    "All-reduce GB/s are the bytes of the "
    "larger array over its seconds (algorithm bandwidth). Bus GB/s are that times 2 (n - 1) / n of"
    " n devices, as nccl-tests counts: each device sends and receives at least so many bytes for "
    "each of the array, so that alone compares with what a link can do, and between numbers of "
    "devices."
)


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
    replicas = inputs.frame["key"].map(attrgetter("case.replicas"))
    cases = inputs.frame[replicas == inputs.frame["devices"]]
    return _efficiencies(cases, inputs, attrgetter("on_one"))


def strong(inputs: Inputs) -> pd.DataFrame:
    """Return the cases of strong-scaling series, relative to one device.

    1. Cases that would have the same one-device baseline, with their total batch in as many
       micro-steps, form a group.
    2. A group is a series if its cases have different numbers of devices.
    3. Without a measured baseline, it is a series only if one of its cases lacks a weak-scaling
       baseline too: in a grid of batches and devices, equal total batches occur by chance. The rows
       then say what is missing."""
    import pandas as pd  # slow to import, and plans make no rows

    cases, keys = inputs.frame, inputs.frame["key"]
    bases = keys.map(_base_of_total)
    lacks_weak = keys.map(lambda key: key.on_one not in inputs.cases)
    groups, _ = pd.factorize(bases.to_numpy())
    is_series = cases["devices"].groupby(groups).transform("nunique") > 1
    is_measured = bases.map(lambda base: base in inputs.cases)
    is_series &= is_measured | lacks_weak.groupby(groups).transform("any")

    def place(row: Any) -> tuple[Any, ...]:
        return bases[row].order, keys[row].case.devices, keys[row].case.nodes

    series = cases.loc[sorted(cases.index[is_series], key=place)]
    totals = [bases[row].case.samples_per_step for row in series.index]
    at = [f" with total batch {total}" for total in totals]
    return _efficiencies(series.assign(total_batch=totals), inputs, _base_of_total, at)


def _base_of_total(key: Key) -> Key:
    """Return the key of one device with the same total batch."""
    return key.on_one.at(batch_per_device=key.case.batch_per_device * key.case.replicas)


def _efficiencies(
    cases: pd.DataFrame, inputs: Inputs, base: Callable[[Key], Key], at: str | Sequence[str] = ""
) -> pd.DataFrame:
    """Return speed-ups and efficiencies.

    ``at``: settings at which the baselines were expected."""
    table = ratio_table(cases, inputs.frame, base, "1n1g", at, [*cases["devices"]])
    for name in ("speedup", "speedup_ci_low", "speedup_ci_high"):
        efficiency = table[name].astype("float64") / table["devices"]
        table[name.replace("speedup", "efficiency")] = efficiency
    return table


def _alone(run: Run) -> float | None:
    """Return the fraction of a training step that the all-reduce takes alone."""
    if not (run.gradient_all_reduce and (step := _step(run))):
        return None
    return descriptive.median(run.gradient_all_reduce.seconds) / step


def _messages(run: Run) -> int | None:
    return run.gradient_all_reduce.messages if run.gradient_all_reduce and _step(run) else None


def _rate(run: Run) -> float | None:
    """Return the GB/s of the all-reduces of a training; None if they were not timed."""
    return run.all_reduce.gbytes_per_second if run.all_reduce and _is_training(run) else None


def _bus_rate(run: Run) -> float | None:
    rate = _rate(run)
    return None if rate is None else rate * bus_factor(run.case.devices)


def _is_training(run: Run) -> bool:
    return run.case.mode == "train"


def _step(run: Run) -> float | None:
    """Return seconds per step of a training over the whole timed region; None for inference.

    Individual step times are unknown to the host if steps overlap."""
    if not (run.throughput and _is_training(run)):
        return None
    return run.case.samples_per_step / run.throughput


def bus_factor(ranks: int) -> float:
    """Return bytes sent, and received, by each of ``ranks`` per byte of an all-reduce.

    Each rank sums a part, and all parts must reach all ranks: 2 (n - 1) / n (nccl-tests,
    doc/PERFORMANCE.md)."""
    return 2 * (ranks - 1) / ranks


def _why_no_communication(row: Row) -> str:
    if row["throughput_median"] is None:
        return ""
    if row["devices"] == 1:
        return "one device"
    return "not timed" if row["mode"] == "train" else "inference"


_RATIOS = (
    *shared("throughput_median", "unit", "speedup", "speedup_ci_low", "speedup_ci_high"),
    Column(
        "efficiency",
        NUMBER,
        "speed-up over the number of devices",
        title="efficiency %",
        form=PERCENT,
    ),
    *interval(
        "efficiency",
        "the efficiency",
        title="interval %",
        form=PERCENT,
        why=why_no_ratio_interval("efficiency"),
    ),
)


#: Columns of communication are left out where no case has any.
_SHOWN: Any = {"optional": True, "why": _why_no_communication}
_COMMUNICATION = (
    Column(
        "communication_alone",
        NUMBER,
        "all-reduce of the gradients alone, in messages of their sizes, over a step",
        value=over_runs(_alone),
        title="communication alone %",
        form=PERCENT,
        about=ALONE,
        **_SHOWN,
    ),
    *interval(
        "communication_alone",
        "that",
        value=over_runs(_alone, median_interval),
        title="interval %",
        form=PERCENT,
        optional=True,
        why=why_no_interval("communication_alone", lacking=_why_no_communication),
    ),
    Column(
        "gradient_messages",
        COUNT,
        "arrays in which the gradients of a step go",
        value=over_runs(_messages, itemgetter(0)),
        title="messages",
        **_SHOWN,
    ),
    Column(
        "all_reduce_gbytes_per_second",
        NUMBER,
        "bytes of the larger array over time",
        "GB/s",
        over_runs(_rate),
        title="all-reduce GB/s",
        about=BANDWIDTH,
        **_SHOWN,
    ),
    Column(
        "all_reduce_bus_gbytes_per_second",
        NUMBER,
        "bytes that each device has to send and to receive, over time",
        "GB/s",
        over_runs(_bus_rate),
        title="all-reduce bus GB/s",
        about=BANDWIDTH,
        **_SHOWN,
    ),
    *shared("reason", "flags"),
    VERDICT,
)
_EFFICIENCY = (
    "Efficiency is that ratio over the number of devices. Ratios come from unrounded medians."
)


def _table(
    name: str,
    explanation: str,
    columns: Sequence[Column],
    heading: str,
    rows: Callable[[Inputs], pd.DataFrame],
) -> Table:
    kind = KINDS[name]
    return Table(
        name=name,
        title=kind.title,
        explanation=explanation,
        columns=tuple(columns),
        rows=rows,
        group="Scaling",
        heading=kind.name,
        always=True,
        sectioned=True,
        pivot=Pivot(kind.batch, heading),
        drawings=(Drawing("scaling"),),
        answers=("verdict", "speedup", "throughput_median"),
        order="speedup",
        lead=shared_hardware,
    )


_TOTAL_BATCH = Column(
    "total_batch", WHOLE, "samples of a step on all devices together", "samples", hoisted=True
)
WEAK = _table(
    "weak_scaling",
    "Throughput, and its ratio to one device (1n1g) at the same batch per device: the total batch "
    "grows with the devices. Devices that compute the same samples together (`tensor`, `pipeline`) "
    f"are in the table of strong scaling. {_EFFICIENCY}",
    (*RESULT_COLUMNS, *shared("devices"), *_RATIOS, *_COMMUNICATION),
    "bsz",
    weak,
)
STRONG = _table(
    "strong_scaling",
    "Throughput, and its ratio to one device (1n1g) at the same total batch: the batch of a device "
    f"shrinks as devices are added. {_EFFICIENCY} A case is listed where its total batch was run "
    "on several numbers of devices, one device (1n1g) among them. Where 1n1g is missing, it is "
    "listed only if weak scaling lacks its 1n1g too: a weak series repeats some total batches by "
    "chance.",
    (*RESULT_COLUMNS, *shared("devices"), _TOTAL_BATCH, *_RATIOS, *_COMMUNICATION),
    "total bsz",
    strong,
)
TABLES = (WEAK, STRONG)
