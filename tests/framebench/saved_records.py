"""Records as files, and what is read from them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from framebench.records.record_sets import RecordSet

Record = dict[str, Any]
ROW = {
    "framework": "mxnet",
    "framework_version": "1.6.0",
    "source": "somewhere",
    "model": "resnet50_v1.5",
    "mode": "train",
    "precision": "fp32",
    "compiler": "none",
    "input_pipeline": "native",
    "variant": "",
    "batch_per_device": "128",
    "nodes": "1",
    "devices_per_node": "8",
    "repeat": "1",
    "throughput": "3008.52",
    "unit": "images/s",
}


def metrics(throughput: float | None, unit: str = "sentences/s") -> Record:
    return {"throughput": {"value": throughput, "unit": unit, "better": "higher"}}


def record(repeat: int = 1, seconds: tuple[float, ...] = (0.5, 0.5), **changes: Any) -> Record:
    """Return a valid record of a run on two ranks.
    ``changes`` replace entries; "case" and "settings" are merged."""
    case: Record = {
        "framework": "pytorch",
        "model": "bert_base",
        "nodes": 1,
        "devices_per_node": 2,
        "batch_per_device": 4,
        "precision": "fp32",
        "compiler": "none",
        "sequence_length": 128,
    }
    settings: Record = {
        "accelerator": "cpu",
        "cores_per_device": 1,
        "warmup_steps": 1,
        "timed_steps": len(seconds),
        "time_limit": 60,
        "seed": 0,
    }
    window = sum(seconds)
    rank = {"host": "a", "status": "ok", "reason": ""}
    made: Record = {
        "format": "framebench-record-2",
        "source": "framebench",
        "kind": "train",
        "parameters": {},
        "repeat": repeat,
        "status": "ok",
        "reason": "",
        "framework_version": "2.8.0",
        "metrics": metrics(8 * len(seconds) / window),
        "samples": 8 * len(seconds),
        "window_seconds": window,
        "wall_seconds": 9.5,
        "started": "2025-01-01T00:00:00Z",
        "command": ["python"],
        "ranks": [
            {**rank, "rank": 0, "step_seconds": [0.1, 0.1], "window_seconds": 0.2},
            {**rank, "rank": 1, "step_seconds": list(seconds), "window_seconds": window},
        ],
        "environment": {
            "way": "venv",
            "python": "3.11.7",
            "prefix": "env",
            "packages": {"torch": "2.8.0"},
            "hardware": {"cpu": "Xeon", "cores": 2, "memory_bytes": 1, "gpus": []},
            "system": {},
            "variables": {},
            "code": {},
        },
    }
    made.update(changes)
    made["case"] = {**case, **changes.get("case", {})}
    made["settings"] = {**settings, **changes.get("settings", {})}
    return made


def failed(status: str = "failed", reason: str = "broke", **changes: Any) -> Record:
    nothing = {"metrics": metrics(None), "samples": None, "window_seconds": None, "ranks": []}
    return record(status=status, reason=reason, **{**nothing, **changes})


def save(root: Path, name: str, content: Record | str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def save_csv(path: Path, rows: list[dict[str, str]], columns: list[str] | None = None) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def messages(found: RecordSet) -> str:
    return "\n".join(f"{problem.origin}: {problem.message}" for problem in found.problems)
