"""The record of a run: put together and encoded."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Mapping, Optional, Sequence

from core import RECORD_FORMAT
from core.text import printable

from harness.command_line import repeating
from harness.kind import Kind, Workload
from harness.kinds.largest_batch import LargestBatch
from harness.measuring import steps
from harness.provenance import own_commit
from harness.report import encodable
from harness.samples import folder
from harness.variables import recorded


@dataclass(frozen=True)
class Measured:
    """Result of a run.

    ``ranks``: report of each rank, empty if none was started. ``entries``: further entries of the
    record, on memory and load, for one node or each of several. ``metrics``: metrics of a
    successful run. For a search: its ``attempts`` and the imported ``framework_version``."""

    status: str = ""
    reason: str = ""
    ranks: Sequence[Dict[str, Any]] = ()
    entries: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Optional[float]] = field(default_factory=dict)
    attempts: Sequence[Dict[str, Any]] = ()
    framework_version: str = ""


def assemble(
    workload: Workload,
    kind: Kind,
    measured: Measured,
    environment: Dict[str, Any],
    started: float,
    installed_version: str,
) -> Dict[str, Any]:
    """Return the record of a run, with null for NaN and infinity, which JSON lacks.

    ``started``: in monotonic seconds. ``installed_version``: version of the framework's
    distribution, for a run that never imported it; "" without a framework."""
    seconds = time.monotonic() - started
    begin = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    imported = [fields.get("framework_version") for fields in measured.ranks]
    imported.append(measured.framework_version)
    record: Dict[str, Any] = {
        "format": RECORD_FORMAT,
        "source": "framebench",
        "kind": kind.name,
        "case": workload.case.to_record(kind.axes),
        "parameters": workload.parameters,
        "repeat": workload.options.repeat,
        "status": measured.status,
        "reason": measured.reason,
        "metrics": _metrics(workload, kind, measured),
        **_window(workload, kind, measured),
        "framework_version": next((version for version in imported if version), installed_version),
        "settings": _settings(workload, kind),
        "wall_seconds": seconds,
        "started": begin.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "command": repeating(workload),
        "ranks": measured.ranks,
        "environment": environment,
        **measured.entries,
    }
    if "own" in workload.model_config:
        record["own_model"] = _own_model(workload.model_config["own"])
    if isinstance(kind, LargestBatch):
        record["attempts"] = measured.attempts
    encoded: Dict[str, Any] = encodable(record)
    return encoded


def _settings(workload: Workload, kind: Kind) -> Dict[str, Any]:
    options, model_config = workload.options, workload.model_config
    settings: Dict[str, Any] = {
        "accelerator": options.accelerator,
        "cores_per_device": options.cores_per_device,
        "time_limit": options.time_limit,
        "seed": options.seed,
        "variant": options.variant,
        "side_by_side": options.side_by_side,
        "variables": recorded(options.variables),
    }
    if kind.counts_steps:
        names = ("warmup_steps", "warmup_limit", "timed_steps")
        settings.update((name, getattr(workload, name)) for name in names)
        settings.update({"timed_seconds": workload.timed_seconds} if workload.timed_seconds else {})
    if options.node:
        settings["node"] = options.node
    if workload.data is not None:
        settings["data"] = _data(workload.data)
    if model_config and "own" not in model_config:  # dropout of a user's own model is unknown
        settings["dropout"] = model_config["hyperparameters"].get("dropout", 0.0)
    return settings


def _data(root: str) -> Dict[str, str]:
    """Return the data set of a case that reads one. ``identity`` is "" where it is missing."""
    try:
        identity = folder.identity(root)
    except folder.BadData:
        identity = ""
    return {"folder": root, "identity": identity}


def _own_model(declaration: Mapping[str, Any]) -> Dict[str, Any]:
    keys = ("framework", "source", "sha256", "files")
    own = {key: declaration[key] for key in keys if declaration[key] != {}}
    if declaration["text"] is not None:
        paths = [declaration["source"], *declaration["modules"].values()]
        own.update(own_commit([os.path.realpath(path) for path in paths]))
    return own


def _window(workload: Workload, kind: Kind, measured: Measured) -> Dict[str, Any]:
    """Return the longest timed region of the ranks in seconds, and the samples of all ranks in it;
    null unless the run is ok and has them."""
    windows = [rank["window_seconds"] for rank in measured.ranks if "window_seconds" in rank]
    if measured.status != "ok" or not windows:
        return {"samples": None, "window_seconds": None}
    samples = None
    if kind.counts_steps:
        samples = max(steps.samples(workload, rank) for rank in measured.ranks)
    return {"samples": samples, "window_seconds": max(windows)}


def _metrics(workload: Workload, kind: Kind, measured: Measured) -> Dict[str, Dict[str, Any]]:
    """Return each metric of the kind, with a null value unless the run is ok; unknown metrics of an
    ok run are left out."""
    values = measured.metrics if measured.status == "ok" else {}
    return {
        name: {
            "value": values.get(name),
            "unit": metric.unit,
            "better": metric.better,
            **({"quantity": metric.quantity, "at": dict(metric.at)} if metric.at else {}),
        }
        for name, metric in kind.metrics(workload).items()
        if measured.status != "ok" or values.get(name) is not None
    }


def encode(record: Dict[str, Any]) -> bytes:
    """Return the record as JSON text. Raises ValueError for NaN or infinity."""
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode("utf-8")


def summary(record: Dict[str, Any], output: str) -> str:
    """Return one line for the user."""
    text = f"{record['status']}: {record['reason']}"
    if record["status"] == "ok":
        text = f"ok: {_shown(record)}"
    text += f"; {record['wall_seconds']:.1f} s in all; "
    # A reason may contain output of another program, with control characters.
    return printable(text).replace("\n", "\\n") + output


def _shown(record: Dict[str, Any]) -> str:
    """Format the metrics of a successful run, except metrics of single points."""
    named = ((name, metric) for name, metric in record["metrics"].items() if "at" not in metric)
    present = [(name, metric) for name, metric in named if metric["value"] is not None]
    figures = [f"{name} {metric['value']:.4g} {metric['unit']}" for name, metric in present]
    window = record["window_seconds"]
    timed = [f"in {window:.3f} s"] if window is not None else []
    return " ".join([", ".join(figures) or record["kind"], *timed])
