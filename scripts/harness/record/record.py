"""The record of a run: put together, checked against the schema, encoded."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence

from core import RECORD_FORMAT
from core.text import printable, shorten

from harness.kind import SearchKind
from harness.measuring import steps
from harness.messages.report import encodable
from harness.provenance.code import own_commit
from harness.record.schema import errors
from harness.request.declaration import Task
from harness.samples import folder
from harness.variables import recorded

#: Largest record in bytes. The driver reads no larger file.
LARGEST = 100 * 2**20


@dataclass(frozen=True)
class Started:
    """Start of the run: ``utc`` in ISO 8601, ``monotonic`` in seconds."""

    utc: str
    monotonic: float

    @staticmethod
    def at(moment: float) -> Started:
        """Return the time at ``moment``, in monotonic seconds."""
        ago = timedelta(seconds=time.monotonic() - moment)
        utc = (datetime.now(timezone.utc) - ago).isoformat(timespec="milliseconds")
        return Started(utc.replace("+00:00", "Z"), moment)


@dataclass(frozen=True)
class Measured:
    """Result of a run.

    ``ranks``: what each left, empty if none was started. ``metrics``: of a successful run. On one
    node also ``watch``, the watcher's summary (None without a timed region), and ``memory`` held
    and allowed. ``nodes``: entry for each of several nodes, with the same. For a search: its
    ``attempts`` and the imported ``framework_version``."""

    status: str
    reason: str
    ranks: List[Dict[str, Any]]
    watch: Optional[Dict[str, Any]] = None
    memory: Optional[Dict[str, int]] = None
    nodes: Sequence[Dict[str, Any]] = ()
    metrics: Mapping[str, Optional[float]] = field(default_factory=dict)
    attempts: Sequence[Dict[str, Any]] = ()
    framework_version: str = ""


def _settings(task: Task) -> Dict[str, Any]:
    request, model_config = task.request, task.workload.model_config
    # dropout of a model of the user's own is unknown
    known = model_config and "own" not in model_config
    steps = {
        "warmup_steps": request.warmup_steps,
        "warmup_limit": request.warmup_limit,
        "timed_steps": request.timed_steps,
        **({"timed_seconds": request.timed_seconds} if request.timed_seconds else {}),
    }
    return {
        "accelerator": request.accelerator,
        "cores_per_device": request.cores_per_device,
        **(steps if task.kind.counts_steps else {}),
        "time_limit": request.time_limit,
        "seed": request.seed,
        "variant": request.variant,
        **({"node": request.node} if request.node else {}),
        "source": request.source,
        "side_by_side": request.side_by_side,
        "variables": recorded(dict(request.variables)),
        "preload": request.preload,
        "huge_pages": request.huge_pages,
        **_data(task),
        **({"dropout": model_config["hyperparameters"].get("dropout", 0.0)} if known else {}),
    }


def _data(task: Task) -> Dict[str, Any]:
    """Return the data set of a case that reads one. ``identity`` is "" where it is missing."""
    root = task.request.data
    if root is None:
        return {}
    try:
        identity = folder.identity(root)
    except folder.BadData:
        identity = ""
    description = {"folder": root, "identity": identity, "bad_images": task.request.bad_images}
    return {"data": description}


def _window(task: Task, measured: Measured) -> Dict[str, Any]:
    """Return the longest timed region of the ranks in seconds, and the samples of all ranks in it;
    null unless the run is ok and has them."""
    windows = [rank["window_seconds"] for rank in measured.ranks if "window_seconds" in rank]
    if measured.status != "ok" or not windows:
        return {"samples": None, "window_seconds": None}
    samples = None
    if task.kind.counts_steps:
        samples = max(steps.samples(task.workload, rank) for rank in measured.ranks)
    return {"samples": samples, "window_seconds": max(windows)}


def _metrics(task: Task, measured: Measured) -> Dict[str, Dict[str, Any]]:
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
        for name, metric in task.kind.metrics(task.workload).items()
        if measured.status != "ok" or values.get(name) is not None
    }


def assemble(
    task: Task,
    measured: Measured,
    environment: Dict[str, Any],
    command: List[str],
    started: Started,
    installed_version: str,
) -> Dict[str, Any]:
    """Return the record of a run, not yet checked against the schema.

    ``installed_version``: of the framework's distribution, for a run that never imported it; ""
    without a framework."""
    imported = [fields.get("framework_version") for fields in measured.ranks]
    imported.append(measured.framework_version)
    record: Dict[str, Any] = {
        "format": RECORD_FORMAT,
        "source": "framebench",
        "kind": task.kind.name,
        "case": task.case.to_record(task.kind.all_axes),
        "parameters": task.request.parameters,
        "repeat": task.request.repeat,
        "status": measured.status,
        "reason": measured.reason,
        "metrics": _metrics(task, measured),
        **_window(task, measured),
        "framework_version": next((version for version in imported if version), installed_version),
        "settings": _settings(task),
        "wall_seconds": time.monotonic() - started.monotonic,
        "started": started.utc,
        "command": command,
        "ranks": measured.ranks,
        "environment": environment,
    }
    if measured.watch is not None:
        record["watch"] = measured.watch
    if measured.memory is not None:
        record["memory"] = measured.memory
    if measured.nodes:
        record["nodes"] = list(measured.nodes)
    if "own" in task.workload.model_config:
        declaration = task.workload.model_config["own"]
        keys = ("framework", "source", "sha256", "files")
        record["own_model"] = {key: declaration[key] for key in keys if declaration[key] != {}}
        if declaration["text"] is not None:
            paths = [declaration["source"], *declaration["modules"].values()]
            record["own_model"].update(own_commit([os.path.realpath(path) for path in paths]))
    if isinstance(task.kind, SearchKind):
        record["attempts"] = list(measured.attempts)
    return record


def checked(record: Dict[str, Any], schema: Dict[str, Any]) -> Dict[str, Any]:
    """Return the record without NaN and infinity, which JSON lacks; a record that violates the
    schema becomes ``failed``."""
    record = encodable(record)
    wrong = errors(record, schema)
    size = 0 if wrong else len(encode(record))
    if size > LARGEST:
        wrong = [f"it would have {size} bytes; allowed: at most {LARGEST}"]
    if not wrong:
        return record
    reason = shorten("the record would be invalid: " + "; ".join(wrong))
    metrics = {name: dict(metric, value=None) for name, metric in record["metrics"].items()}
    nothing: Dict[str, Any] = {
        "ranks": [],
        "metrics": metrics,
        "samples": None,
        "window_seconds": None,
    }
    return dict(record, status="failed", reason=reason, **nothing)


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
    """Format the metrics of a successful run, without those at single points."""
    named = ((name, metric) for name, metric in record["metrics"].items() if "at" not in metric)
    present = [(name, metric) for name, metric in named if metric["value"] is not None]
    figures = [f"{name} {metric['value']:.4g} {metric['unit']}" for name, metric in present]
    window = record["window_seconds"]
    timed = [f"in {window:.3f} s"] if window is not None else []
    return " ".join([", ".join(figures) or record["kind"], *timed])
