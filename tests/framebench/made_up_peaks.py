"""Made-up peaks of devices: peak FLOPS, memory bandwidth, and rates of matmuls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from framebench.records.device_peaks import PeakFlops
from framebench.records.run import MetricValue, Run
from harness.operations import MatmulShape

from .made_up_runs import measured

#: Device of the made-up peaks.
CPU: dict[str, Any] = {"hardware": "Example CPU", "cores_per_device": 1}
#: Matmul shapes of a forward pass, with the number of each: BERT of one layer, two heads and three
#: classes, on a sample of two tokens.
FORWARD_MATMULS = {
    MatmulShape(1, 2, 4, 4): 4,
    MatmulShape(2, 2, 2, 2): 2,
    MatmulShape(1, 2, 4, 8): 1,
    MatmulShape(1, 2, 8, 4): 1,
    MatmulShape(1, 1, 4, 4): 1,
    MatmulShape(1, 1, 4, 3): 1,
}
#: A million parameters, and multiply-adds that make training 6 GFLOP per image.
ROOFLINE_MODELS: dict[str, dict[str, Any]] = {
    "resnet50_v1.5": {
        "trainable_parameters": 1_000_000,
        "sequence_lengths": [],
        "forward_multiply_adds": {"per_sample": 1_000_000_000},
        "hyperparameters": {"optimizer": "sgd", "momentum": 0.9},
    },
    "bert_base": {
        "trainable_parameters": 1_000_000,
        "sequence_lengths": [1, 512],
        "forward_multiply_adds": {"per_token": 1_000},
        "hyperparameters": {
            "optimizer": "adamw",
            "vocabulary": 500,
            "positions": 20,
            "hidden": 100,
        },
    },
}


def peak_flops(tflops: float, **changes: Any) -> PeakFlops:
    options: dict[str, Any] = {
        "framework": "jax",
        "hardware": "Example CPU",
        "accelerator": "cpu",
        "cores": 1,
        "precision": "fp32",
        "tflops": tflops,
        "by": "jax 1 float32 1024",
    }
    return PeakFlops(**{**options, **changes})


def matmul_rates(*shapes: MatmulShape, tflops: float = 1e-9, **changes: Any) -> Run:
    """Return a matmul benchmark with each shape at ``tflops``.
    ``changes``: hardware, cores per device, and fields of the case."""
    metrics = [MetricValue("highest_rate", tflops, "TFLOP/s")]
    metrics += [
        MetricValue("rate", tflops, "TFLOP/s", point=tuple(shape._asdict().items()))
        for shape in shapes
    ]
    made = measured("matmul", metrics)
    case = {"framework": "pytorch", "framework_version": "2.8.0", "precision": "fp32"}
    case |= {name: changes.pop(name) for name in [*case, "devices_per_node"] if name in changes}
    where = replace(made.conditions, cores_per_device=changes.pop("cores_per_device", 1))
    return replace(
        made,
        case=made.case._replace(**case),
        conditions=where,
        hardware=changes.pop("hardware", "Example CPU"),
    )


def device_benchmark(kind: str, metric: MetricValue, place: dict[str, Any], **case: Any) -> Run:
    """Return a run of a micro-benchmark on the device ``place``.
    ``case``: fields of the case, parameters, and bytes of the last cache."""
    parameters = case.pop("parameters", {})
    made = measured(kind, [metric], **parameters)
    where = {key: value for key, value in place.items() if key != "hardware"}
    return replace(
        made,
        case=made.case._replace(**case),
        conditions=replace(made.conditions, **where),
        hardware=place["hardware"],
    )


def memory_bandwidth(
    bandwidth: float, devices: int = 1, place: dict[str, Any] = CPU, **other: Any
) -> Run:
    """Return a run of the memory benchmark; ``bandwidth``: GB/s of all devices together."""
    metric = MetricValue("triad", bandwidth, "GB/s")
    return device_benchmark("memory", metric, place, devices_per_node=devices, **other)
