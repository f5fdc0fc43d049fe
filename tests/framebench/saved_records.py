"""Records written to files, and the runs that are read from them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from framebench.records import device_peaks
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
            "install_method": "venv",
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


def messages(record_set: RecordSet) -> str:
    return "\n".join(f"{problem.origin}: {problem.message}" for problem in record_set.problems)


def peak_flops_record(**changes: Any) -> dict[str, Any]:
    """Return a peak-FLOPS record: 100 matmuls with 1000 rows in 4 s are 0.05 TFLOP/s.
    ``changes`` replace entries; mappings are merged."""
    matmuls = [
        {"size": 500, "count": 1, "seconds": [1.0]},
        {"size": 1000, "count": 100, "seconds": [5.0, 4.0, 4.5]},
    ]
    rank = {"rank": 0, "host": "a", "status": "ok", "reason": "", "matmuls": matmuls}
    made = record(
        kind=device_peaks.KIND,
        case={"devices_per_node": 1, "batch_per_device": None, "compiler": None},
        metrics={"peak": {"value": 0.05, "unit": "TFLOP/s", "better": "higher"}},
        samples=None,
        window_seconds=None,
        ranks=[{**rank, "matmul_dtypes": {"float32": 1}}],
    )
    made["settings"] |= {"cores_per_device": 2}
    made["environment"]["hardware"] |= {"cpu": "Example CPU"}
    for key, value in changes.items():
        held = made[key]
        made[key] = {**held, **value} if isinstance(held, dict) else value
    return made


def largest_batch_record(
    case: dict[str, Any], largest: int | None = 24, **other: Any
) -> dict[str, Any]:
    """Return the record of a search for the largest batch of a case.
    ``largest``: its result; ``other``: replaced entries."""
    attempts = [(8, "ok", 1.0), (16, "ok", 2.0), (32, "oom", None)]
    attempts.append((24, other.get("status", "ok"), 3.0))
    made = record(
        kind="largest_batch",
        parameters={"mode": case["mode"], "multiple_of": 8, "at_most": 4096},
        samples=None,
        window_seconds=None,
        ranks=[],
        attempts=[
            {
                "batch_per_device": batch,
                "status": status,
                "reason": "" if status == "ok" else "out of memory: <b>",
                "peak_device_memory_bytes": None,
                "peak_host_memory_bytes": held and int(held * 2**30),
                "memory_limit_bytes": 3 * 2**30,
                "seconds": 10.0,
                "record": f"x/batch_per_device-{batch}.json",
            }
            for batch, status, held in attempts
        ],
        **other,
    )
    made["case"] = {key: case.get(key) for key in made["case"]} | {"batch_per_device": None}
    made["settings"] |= {"cores_per_device": 2, "warmup_steps": 1, "timed_steps": 2}
    made["metrics"] = {
        "largest_batch": {"value": largest, "unit": "samples/device", "better": "higher"}
    }
    return made
