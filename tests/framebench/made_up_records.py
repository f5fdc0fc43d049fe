"""A made-up set of valid records, the same numbers every time.
It has three frameworks, every status, one and two devices, both modes, and two bad files: one
truncated, one foreign."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EVIL = "<script>document.title = 'owned'</script> & \"quotes\""
COMPILERS = {"pytorch": "inductor", "tensorflow": "xla", "jax": "jit", "mxnet": "hybridize"}
#: Case of a record, with its mode.
CASE: dict[str, Any] = {
    "framework": "pytorch", "model": "resnet50_v1.5", "mode": "train", "nodes": 1,
    "devices_per_node": 1, "batch_per_device": 4, "precision": "fp32", "compiler": "none",
    "sequence_length": None,
}  # fmt: skip
SPEED = {"pytorch": 1.0, "tensorflow": 0.83, "jax": 1.12, "mxnet": 0.7}
VERSIONS = {"pytorch": "2.9.1", "tensorflow": "2.20.0", "jax": "0.8.1", "mxnet": "1.9.1"}
#: All-reduce at 1.6 GB/s, with 50 microseconds of latency.
PREFLIGHT = [
    {"bytes": size, "seconds": [5e-5 + size / 1.6e9] * 3 + [0.2]} for size in (2**12, 2**24)
]


def steps_of(rng: random.Random, mean: float, timed: int) -> list[float]:
    return [mean * rng.gauss(1, 0.01) * (2.4 if rng.random() < 0.02 else 1.0) for _ in range(timed)]


def record_of(
    rng: random.Random, case: dict[str, Any], repeat: int, **other: Any
) -> dict[str, Any]:
    """Return a record as the harness writes it.
    ``case``: with its mode; ``other``: replaced fields (status, reason, ..)."""
    devices = case["nodes"] * case["devices_per_node"]
    resnet = case["model"].startswith("resnet")
    mean = case["batch_per_device"] / (24.0 if resnet else 31.0) / SPEED[case["framework"]]
    mean *= 0.35 if case["mode"] == "inference" else 1.0
    mean *= 1.0 if case["precision"] == "fp32" else 0.7
    mean *= (0.8 if case["compiler"] != "none" else 1.0) * (1.08 if devices > 1 else 1.0)
    warmup, timed = 20, 100
    ok = other.get("status", "ok") == "ok"
    ranks = []
    for rank in range(devices):
        steps = steps_of(rng, mean, timed)
        ranks.append(
            {
                "rank": rank,
                "host": "node-1",
                "status": other.get("status", "ok"),
                "reason": other.get("reason", ""),
                **({} if ok else {"traceback": f"Traceback\n  step()\nError: {EVIL}"}),
                "settings": {"threads": 1, "memory_layout": "channels_last"},
                "trainable_parameters": 25_557_032 if resnet else 110_106_428,
                **({"preflight": PREFLIGHT} if devices > 1 else {}),
                "warmup_step_seconds": [mean * 30, *steps_of(rng, mean * 1.1, warmup - 1)],
                "step_seconds": steps if ok else [],
                **({"window_seconds": sum(steps)} if ok else {}),
            }
        )
    window = max((rank["window_seconds"] for rank in ranks), default=None) if ok else None
    samples = case["batch_per_device"] * devices * timed if ok else None
    return {
        "format": "framebench-record-2",
        "source": "framebench",
        "kind": case["mode"],
        "case": {key: value for key, value in case.items() if key != "mode"},
        "parameters": {},
        "repeat": repeat,
        "status": "ok",
        "reason": "",
        "metrics": {
            "throughput": {
                "value": samples / window if samples and window else None,
                "unit": "images/s" if resnet else "sequences/s",
                "better": "higher",
            }
        },
        "framework_version": VERSIONS[case["framework"]],
        "settings": {
            "accelerator": "cpu",
            "cores_per_device": 1,
            "warmup_steps": warmup,
            "timed_steps": timed,
            "time_limit": 600,
            "seed": 1,
        },
        "samples": samples,
        "window_seconds": window,
        "wall_seconds": 40.0,
        "started": "2030-01-01T00:00:00.000Z",
        "command": ["python", "-m", "harness", "--framework", case["framework"]],
        "ranks": ranks,
        "environment": {
            "install_method": "venv",
            "python": "3.11.7",
            "prefix": "/venvs/" + case["framework"],
            "packages": {"numpy": "2.3.4", case["framework"]: "1"},
            "hardware": {"cpu": "Example CPU", "cores": 2, "memory_bytes": 2**34, "gpus": []},
            "system": {"os": "Debian GNU/Linux 12", "kernel": "6.1.0"},
            "variables": {"OMP_NUM_THREADS": "1"},
            "code": {"version": "0.1.0", "dirty": False},
        },
        **other,
    }


def cases_of(frameworks: tuple[str, ...], batches: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for framework in frameworks:
        for model in ("resnet50_v1.5", "bert_base"):
            for mode, devices in (("train", 1), ("train", 2), ("inference", 1)):
                for precision in ("fp32", "amp"):
                    for compiler in ("none", COMPILERS[framework]):
                        for batch in batches:
                            yield {
                                **CASE,
                                "framework": framework,
                                "model": model,
                                "mode": mode,
                                "devices_per_node": devices,
                                "batch_per_device": batch,
                                "precision": precision,
                                "compiler": compiler,
                                "sequence_length": 128 if model == "bert_base" else None,
                            }


def fate_of(case: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Return the failures of the set: every status, a failed baseline and a single repeat."""
    framework, precision, compiler = case["framework"], case["precision"], case["compiler"]
    if framework == "jax" and precision == "amp":
        return {"status": "unsupported", "reason": "jax has no automatic mixed precision"}
    if [*case.values()] == ["tensorflow", "bert_base", "train", 1, 1, 4, "fp32", "none", 128]:
        return {"status": "oom", "reason": "the kernel killed rank 0 at 14.8 GiB"}
    if framework == "pytorch" and compiler == "inductor" and case["devices_per_node"] == 2:
        if repeat == 3:
            return {"status": "failed", "reason": EVIL}
        if precision == "amp" and case["model"] == "bert_base":
            return {"status": "timeout", "reason": "over 600 s: ended after 14 of 100 steps"}
    return {}


def write_records(
    folder: Path,
    repeats: int = 7,
    frameworks: tuple[str, ...] = ("pytorch", "tensorflow", "jax"),
    batches: tuple[int, ...] = (4,),
) -> Path:
    """Write a folder of records, with a truncated and a foreign file among them."""
    rng = random.Random(7)
    for number, case in enumerate(cases_of(frameworks, batches)):
        home = folder / case["framework"] / f"case {number:04d} #1"
        home.mkdir(parents=True)
        for repeat in range(1, repeats + 1):
            record = record_of(rng, case, repeat, **fate_of(case, repeat))
            (home / f"r{repeat}.json").write_text(json.dumps(record))
    (folder / "truncated.json").write_text('{"format": "framebench-rec')
    (folder / "foreign.json").write_text(json.dumps({"hello": EVIL}))
    return folder
