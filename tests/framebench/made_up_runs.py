"""Runs without records, with defaults for everything that a test does not state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from core import axes
from core.case import Case
from framebench.cases.conditions import CASE, CONDITIONS, THROUGHPUT, Conditions, input_axis
from framebench.files.whole_files import write_together
from framebench.records.run import MetricValue, Run
from framebench.tables import frames
from framebench.tables import measured as measured_tables
from framebench.tables.columns import Row
from framebench.tables.results import group
from framebench.tables.table import Inputs, frame_rows

_CASE = Case(
    framework="pytorch",
    framework_version="2.8.0",
    source="framebench",
    model="resnet50_v1.5",
    mode="train",
    precision="fp32",
    compiler="none",
    nodes=1,
    devices_per_node=1,
    batch_per_device=32,
)
_CONDITIONS = Conditions(accelerator="cpu", warmup_steps=1, timed_steps=2)


#: Throughputs of seven repeats.
SEVEN = (99.0, 99.5, 99.8, 100.0, 100.2, 100.6, 101.0)


def run(throughput: float | None = 100.0, **changes: Any) -> Run:
    """Return a run, failed if it has no throughput.
    ``changes``: fields of its case, its conditions, or the run."""
    one = Run(
        case=_CASE,
        conditions=_CONDITIONS,
        repeat=1,
        attempt=0,
        status="failed" if throughput is None else "ok",
        reason="broke" if throughput is None else "",
        metrics=(MetricValue(THROUGHPUT, throughput, "images/s"),),
        step_seconds=(),
        wall_seconds=None,
        origin="",
        hardware="",
        environment="",
        record=None,
    )
    return changed(one, **changes)


def changed(one: Run, **changes: Any) -> Run:
    case = {name: changes.pop(name) for name in CASE if name in changes}
    # A run's environment is a digest, from which its label is made.
    labels = {*CONDITIONS} - {"machine", "environment"}
    in_case = axes.IN_CASE.items()
    case |= {field: changes.pop(name) for name, field in in_case if name in changes}
    conditions = {name: changes.pop(name) for name in labels if name in changes}
    if "input" in conditions:
        case["input"] = input_axis(case.get("mode", one.case.mode), conditions["input"])
    figure = {"value": "throughput", "unit": "unit"}
    metric = {name: changes.pop(key) for name, key in figure.items() if key in changes}
    if "machine_label" in changes:
        conditions["machine"] = changes.pop("machine_label")
    return replace(
        one,
        case=one.case._replace(**case),
        conditions=replace(one.conditions, **conditions),
        metrics=(one.metrics[0]._replace(**metric),),
        **changes,
    )


def measured(kind: str, metrics: Iterable[MetricValue], **parameters: Any) -> Run:
    """Return a run of a micro-benchmark without a framework."""
    case = _CASE._replace(
        framework="", framework_version="", model="", mode=kind, precision="", compiler="",
        batch_per_device=0, parameters=tuple(sorted(parameters.items())),
    )  # fmt: skip
    return replace(run(), case=case, conditions=Conditions("cpu"), metrics=tuple(metrics))


def repeats(*throughputs: float | None, **changes: Any) -> list[Run]:
    return [run(value, repeat=n, **changes) for n, value in enumerate(throughputs, 1)]


def inputs_of(runs: Iterable[Run], **more: Any) -> Inputs:
    """Return the inputs of tables, without flags for missing verifications."""
    cases = group(list(runs), None)
    steps = {key: result for key, result in cases.items() if key.case.is_step}
    others = {key: result for key, result in cases.items() if key not in steps}
    return Inputs(steps, others=others, **more)


def build(runs: Iterable[Run], **more: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of runs that are always present or have rows."""
    built = frames.build(inputs_of(runs, **more))
    return {table.name: rows for table, rows in built.items()}


def table_of(name: str, runs: Iterable[Run], **more: Any) -> pd.DataFrame:
    return inputs_of(runs, **more).frame_of(frames.known_tables()[name])


def rows_of(name: str, runs: Iterable[Run], **more: Any) -> list[Row]:
    """Return the rows of a table of runs; None where a value is missing."""
    return frame_rows(table_of(name, runs, **more))


def in_markdown(name: str, rows: pd.DataFrame) -> str:
    return frames.markdown(frames.known_tables()[name], rows)


def write(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    made = {frames.known_tables()[name]: rows for name, rows in tables.items()}
    write_together(frames.files(made, folder))


def measured_rows(*runs: Run) -> pd.DataFrame:
    (table,) = measured_tables.tables(group(list(runs), None))
    return Inputs({}).frame_of(table)
