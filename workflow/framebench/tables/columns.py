"""The columns of all tables, each declared once: what it holds, in which unit, and what that is.

Frames get their types from here, and docs/columns.md is made of it. The columns of what others
have published, and of findings in it, hold the text that is printed there, whatever their name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

#: Types, by the names of pandas. A COUNT may be missing, a NUMBER too; a WHOLE is always there.
TEXT, WHOLE, COUNT, NUMBER, YES_NO, YES_NO_OR_NEITHER = (
    "str", "int64", "Int64", "float64", "bool", "boolean"
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """``unit`` is "" for what has none."""

    name: str
    type: str
    explanation: str
    unit: str = ""


def frame(columns: Sequence[str | Column], rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """A frame whose columns have the types declared here, or with the column itself, whether it has
    rows or not. Raises KeyError for a name that is not declared."""
    declared = [COLUMNS[column] if isinstance(column, str) else column for column in columns]
    table = pd.DataFrame(list(rows), columns=[one.name for one in declared], dtype=object)
    return table.astype({one.name: one.type for one in declared})


def markdown_text() -> str:
    """The page docs/columns.md."""
    lines = [
        "# Columns of the tables",
        "",
        "What stands in `results/tables/*.csv`. A missing number is an empty cell, and `reason` or",
        "`note` says why. `published.csv` and `lint.csv` hold case and conditions as they are",
        "printed. This page is made: `python workflow/framebench columns > docs/columns.md`.",
        "",
        "| column | type | unit | meaning |",
        "|---|---|---|---|",
        *(
            f"| {one.name} | {_WORDS[one.type]} | {one.unit} | {one.explanation} |"
            for one in COLUMNS.values()
        ),
    ]
    return "\n".join(lines) + "\n"


_WORDS = {
    TEXT: "text",
    WHOLE: "whole number",
    COUNT: "whole number",
    NUMBER: "number",
    YES_NO: "yes or no",
    YES_NO_OR_NEITHER: "yes or no",
}


def _interval(name: str, of: str, unit: str = "") -> list[Column]:
    """Both ends of a 95 % interval."""
    return [
        Column(f"{name}_ci_low", NUMBER, f"lower end of the 95 % interval of {of}", unit),
        Column(f"{name}_ci_high", NUMBER, f"upper end of the 95 % interval of {of}", unit),
    ]


def _latency(name: str, what: str) -> Column:
    return Column(name, NUMBER, f"{what}, as the median over repeats", "ms")


_PARTS = {
    "forward": "forward pass",
    "backward": "backward pass",
    "all_reduce": "all-reduce of the gradients",
    "optimizer": "step of the optimizer",
}
_RATE = "samples/s"  # `unit` says which samples

_DECLARED = [
    # The case.
    Column("framework", TEXT, "the framework"),
    Column("framework_version", TEXT, "its version, as it tells it itself"),
    Column("source", TEXT, "who measured: `framebench`, or the name of an imported set"),
    Column("model", TEXT, "the model"),
    Column("mode", TEXT, "`train` or `inference`"),
    Column("precision", TEXT, "`fp32`, `amp` or as printed by others"),
    Column("compiler", TEXT, "the framework's graph compiler, or `none`"),
    Column("nodes", WHOLE, "number of nodes"),
    Column("devices_per_node", WHOLE, "devices on each of them"),
    Column("batch_per_device", WHOLE, "batch of each device", "samples"),
    # The conditions.
    Column("accelerator", TEXT, "`cpu` or `cuda`"),
    Column("cores_per_device", COUNT, "physical cores that make a device, of a CPU"),
    Column("side_by_side", YES_NO, "whether other runs had the rest of the machine meanwhile"),
    Column("sequence_length", COUNT, "of models with sequences", "tokens"),
    Column("warmup_steps", COUNT, "steps before the timed window"),
    Column("warmup_limit", COUNT, "of a warm-up that goes on until the step time has settled"),
    Column("timed_steps", COUNT, "steps of the timed window"),
    Column("arm", TEXT, "variant of the suite, in an A/B test"),
    Column("input", TEXT, "the pipeline that the samples come through"),
    Column("source_variant", TEXT, "what an imported set says besides, in its own words"),
    Column("machine", TEXT, "label of the machine, where a set has several for one case"),
    Column("environment", TEXT, "label of the packages, where a set has several for one case"),
    # What became of it.
    Column("status", TEXT, "`ok`, `oom`, `unsupported`, `timeout` or `failed`"),
    Column("reason", TEXT, "why the status is another than `ok`, or why a figure is missing"),
    Column("note", TEXT, "why a figure is missing, or why it differs"),
    Column("remarks", TEXT, "what is odd about the repeats, in words"),
    Column("marks", TEXT, "quality flags of the figure, between blanks"),
    Column("repeats", WHOLE, "repeats behind the figure; without one, those that were tried"),
    Column("repeats_needed", COUNT, "repeats that an interval 1 % wide would take"),
    # Throughput.
    Column("unit", TEXT, "of the throughput, or of the metric"),
    Column("throughput_median", NUMBER, "median over repeats, of all devices together", _RATE),
    Column("throughput_min", NUMBER, "slowest repeat", _RATE),
    Column("throughput_max", NUMBER, "fastest repeat", _RATE),
    *_interval("throughput", "the median", _RATE),
    Column("throughput_spread", NUMBER, "(maximum - minimum) / median"),
    Column("throughput_fp32", NUMBER, "median of the same case in fp32", _RATE),
    Column("throughput_amp", NUMBER, "median in mixed precision", _RATE),
    Column("throughput_none", NUMBER, "median of the same case without a compiler", _RATE),
    Column("throughput_compiled", NUMBER, "median with the compiler", _RATE),
    # Metrics of any kind of measurement.
    Column("metric", TEXT, "what is measured"),
    Column("median", NUMBER, "median over repeats, in `unit`"),
    Column("minimum", NUMBER, "least of a repeat"),
    Column("maximum", NUMBER, "most of a repeat"),
    *_interval("median", "the median"),
    Column("spread", NUMBER, "(maximum - minimum) / median"),
    Column("better", TEXT, "`higher` or `lower`"),
    # Ratios.
    Column("devices", WHOLE, "nodes x devices per node"),
    Column("total_batch", WHOLE, "batch of all devices together", "samples"),
    Column("speedup", NUMBER, "median over the median of the baseline"),
    *_interval("speedup", "the speed-up"),
    Column("efficiency", NUMBER, "speed-up over the number of devices"),
    *_interval("efficiency", "the efficiency"),
    Column("communication_estimate", NUMBER, "part of a step that all gradients would take alone"),
    Column("all_reduce_gbytes_per_second", NUMBER, "bytes of the larger array over time", "GB/s"),
    # Latency.
    Column("samples", WHOLE, "timed steps of all repeats"),
    _latency("mean_ms", "mean time of a step"),
    _latency("p50_ms", "median time of a step"),
    _latency("p90_ms", "90th percentile of the steps"),
    _latency("p95_ms", "95th percentile of the steps"),
    _latency("p99_ms", "99th percentile of the steps"),
    # Parts of a step.
    Column("step_ms", NUMBER, "median step of the timed window", "ms"),
    Column("data", TEXT, "what of the input is part of the step"),
    *(Column(f"{name}_ms", NUMBER, f"time of the {what}", "ms") for name, what in _PARTS.items()),
    *(
        Column(f"{name}_share", NUMBER, f"the {what} over the sum of all parts")
        for name, what in _PARTS.items()
    ),
    Column("sum_over_step", NUMBER, "sum of all parts over the median step"),
    Column("split_steps", WHOLE, "steps whose parts were timed"),
    Column("how", TEXT, "how each part was timed"),
    # Efficiency of the device.
    Column("tflops_per_device", NUMBER, "operations of the model on each device", "TFLOP/s"),
    Column("peak_tflops", NUMBER, "fastest products that any framework reached", "TFLOP/s"),
    Column("peak_by", TEXT, "framework, version, dtype and size of these products"),
    Column("datasheet_tflops", NUMBER, "what the vendor states", "TFLOP/s"),
    Column("mfu", NUMBER, "model FLOPs utilization: operations over the peak"),
    Column("energy_joules_per_sample", NUMBER, "energy of all devices over all samples", "J"),
    Column("peak_device_memory_bytes", COUNT, "most that any rank held on its device", "bytes"),
    Column("peak_host_memory_bytes", COUNT, "most that any rank held on the host", "bytes"),
    # Comparisons.
    Column("base_median", NUMBER, "median throughput of the base", _RATE),
    Column("candidate_median", NUMBER, "median throughput of the candidate", _RATE),
    Column("ratio", NUMBER, "candidate over base"),
    *_interval("ratio", "the ratio"),
    Column("p_adjusted", NUMBER, "p-value, adjusted for the number of cases"),
    Column("verdict", TEXT, "`faster`, `slower`, `no difference shown` or `cannot tell`"),
    Column("base_repeats", WHOLE, "ok repeats of the base"),
    Column("candidate_repeats", WHOLE, "ok repeats of the candidate"),
    Column("pairs", WHOLE, "pairs that were compared; 0 where each side was a set"),
    Column("order", TEXT, "in which both sides were measured"),
    Column("differences", TEXT, "what besides is not the same on both sides"),
    # Certificates.
    Column("quantity", TEXT, "what is compared, or what a printed figure is"),
    Column("error", NUMBER, "relative error against the reference"),
    Column("bound", NUMBER, "largest error that counts as the same"),
    Column("passed", YES_NO_OR_NEITHER, "whether the error is within it"),
    Column("where", TEXT, "the parameter or layer of the largest error"),
    Column("variables", TEXT, "environment variables that change the arithmetic"),
    # Searches for the largest batch.
    Column("largest_batch", COUNT, "largest batch per device that fits", "samples"),
    Column("attempts", WHOLE, "batches that were tried"),
    Column("attempt", WHOLE, "number of the try"),
    Column("device_memory_gib", NUMBER, "held by the fullest device", "GiB"),
    Column("host_memory_gib", NUMBER, "held by all processes on the host together", "GiB"),
    Column("memory_limit_gib", NUMBER, "what they may hold", "GiB"),
    Column("multiple_of", WHOLE, "step of the search", "samples"),
    Column("at_most", WHOLE, "bound of the search", "samples"),
    Column("seconds", NUMBER, "wall time of the try", "s"),
    # Published figures, and findings.
    Column("table", TEXT, "the table that a figure is printed in"),
    Column("place", TEXT, "its row there"),
    Column("column", TEXT, "its column there"),
    Column("input_pipeline", TEXT, "`input` as it is printed"),
    Column("variant", TEXT, "`source_variant` as it is printed"),
    Column("printed", TEXT, "the figure as it is printed"),
    Column("recomputed", NUMBER, "what the runs, or the other figures, give"),
    Column("half_unit", NUMBER, "half a unit of the last printed digit"),
    Column("agrees", YES_NO_OR_NEITHER, "whether the two differ by no more than that"),
    Column("row", TEXT, "where a finding is"),
    Column("check", TEXT, "what was checked"),
]
COLUMNS = {column.name: column for column in _DECLARED}
