"""Report of benchmark.py in NVIDIA's MXNet ResNet-50 example.

Figures by number of GPUs and batch per GPU; failed runs are a bare NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ....cases.conditions import THROUGHPUT
from .. import rows
from ..format import Format
from ..source import ImportedFile

#: Key -> mode, metric, unit, direction. Latencies are of the batch of all GPUs.
_KEYS = {
    "train.ips": ("train", THROUGHPUT, "images/s", "higher"),
    "val.ips": ("inference", THROUGHPUT, "images/s", "higher"),
    **{
        f"val.latency_{name}": ("nvidia_inference", f"latency_{name}", "s", "lower")
        for name in ("avg", "50", "90", "95", "99", "100")
    },
}


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    report = source.json(constants=True)
    lists = dict.fromkeys(("ngpus", "bs", "metric_keys"), list)
    source.need(report, {**lists, "metrics": dict})
    for name in ("ngpus", "bs"):
        for index, number in enumerate(report[name]):
            if type(number) is not int or number < 1:
                allowed = "allowed: whole numbers from 1"
                source.refuse(f"{name}: found {number!r}; {allowed}", (name, index))
    for index, key in enumerate(report["metric_keys"]):
        if not isinstance(key, str) or key not in _KEYS:
            allowed = ", ".join(_KEYS)
            keys = ("metric_keys", index)
            source.refuse(f"metric_keys: found {key!r}; allowed: {allowed}", keys)
    for gpus in report["ngpus"]:
        for batch in report["bs"]:
            for key in report["metric_keys"]:
                value = _at(source, report["metrics"], str(gpus), str(batch), key)
                yield _figure(source, report, key, gpus, batch, value)


def _at(source: ImportedFile, metrics: dict[str, Any], gpus: str, batch: str, key: str) -> float:
    where, keys = f"metrics.{gpus}.{batch}.{key}", ("metrics", gpus, batch, key)
    try:
        value = metrics[gpus][batch][key]
    except (KeyError, TypeError):
        source.refuse(f"{where} is missing, though ngpus, bs and metric_keys name it", keys)
    if isinstance(value, float) and math.isnan(value):
        return value
    return source.number(value, where, keys)


def _figure(
    source: ImportedFile, report: dict[str, Any], key: str, gpus: int, batch: int, value: float
) -> rows.ImportedFigure:
    mode, metric, unit, better = _KEYS[key]
    # The program prints 0 if there are more warm-up steps than iterations.
    failed = math.isnan(value) or (metric == THROUGHPUT and value <= 0)
    return rows.figure(
        "NVIDIA/DeepLearningExamples", mode, metric, value, unit, better,
        framework="mxnet", model=str(report.get("model") or ""), batch_per_device=batch,
        parameters={"devices": gpus}, settings=source.its_name, accelerator="cuda",
        status="failed" if failed else "ok",
        reason=f"the report has {value} for it",
    )  # fmt: skip


FORMATS = [
    Format(
        "nvidia-report",
        ".json",
        "report of NVIDIA's MXNet benchmark.py",
        read=read,
        taken="`train.ips` and `val.ips` (harmonic means over epochs), `val.latency_*` in s "
        "(arithmetic means over epochs), for each number of GPUs and batch; with model and nodes, "
        "throughputs count as training and inference like ours, otherwise as a mode of their own; "
        "a bare NaN is `failed`",
        not_taken="nothing; files of a folder differ by name, because they do not state their "
        "precision",
        missing="model, precision, nodes (state them with `--facts`), version",
    )
]
