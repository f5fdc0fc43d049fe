"""SuperBench's names for our micro-benchmarks.

Source: docs/user-tutorial/benchmarks/micro-benchmarks.md of SuperBench v0.12.0; for the jobs of
disk-benchmark its disk_performance.py. docs/micro-benchmarks.md lists the differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...tables.results import CaseResult

#: Our names of element types -> SuperBench's.
_DTYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_OPERATIONS = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
    "broadcast": "broadcast", "reduce": "reduce", "all_to_all": "alltoall",
}  # fmt: skip
_COLLECTIVE = {"time": "time", "algorithm_bandwidth": "algbw", "bus_bandwidth": "busbw"}
_COLLECTIVES = {"inner": "allreduce", "columns": "allgather"}
_PEAKS = {"fp64": "fp64", "fp32": "fp32", "tf32": "tf32_tc", "fp16": "fp16_tc", "bf16": "bf16_tc"}
#: Default m, k, n of SuperBench's matmul and sharding-matmul.
_WHOLE = (16000, 12288, 12288)
#: Defaults of its computation-communication-overlap; its metric names contain the kernel only.
_OVERLAP = {"shape": "640x1024x1880", "matmuls": 30, "message_bytes": 28000000}
_KERNELS = {"matmul": "matmul", "multiply": "mul"}
#: mem-bw is based on CUDA's bandwidth test, which counts bytes read and written for copies on a
#: device.
_COPIES = {
    "host_to_device": ("h2d", 1),
    "device_to_host": ("d2h", 1),
    "device_to_device": ("d2d", 2),
}
_JOBS = {
    "sequential_read": "seq_read_read", "sequential_write": "seq_write_write",
    "sequential_mixed_read": "seq_readwrite_read", "sequential_mixed_write": "seq_readwrite_write",
    "random_read": "rand_read_read", "random_write": "rand_write_write",
    "random_mixed_read": "rand_read_write_read", "random_mixed_write": "rand_read_write_write",
}  # fmt: skip
#: Written in place of a block device's name, because a file is measured.
_DISK = "file"
_PERCENTILES = {"95": "95.0", "99": "99.0", "99.9": "99.9"}


class Name(NamedTuple):
    """SuperBench's name of a figure and its conversion.

    ``factor``: SuperBench's figure per ours; ``is_inverse``: SuperBench's figure is the factor
    divided by ours."""

    benchmark: str
    metric: str
    factor: float = 1
    is_inverse: bool = False


def names_of(case: CaseResult) -> list[Name]:
    """Return SuperBench's names of a micro-benchmark's figure; [] if it has none."""
    naming = _NAMINGS.get(case.case.mode)
    if naming is None:
        return []
    parameters = {**dict(case.case.parameters), **dict(case.key.point)}
    name = naming(case, case.key.metric, parameters)
    named = [name] if name else []
    return [*named, *_whole_product(case, parameters)]


def _launch(_: CaseResult, metric: str, __: Mapping[str, Any]) -> Name | None:
    return Name("kernel-launch", "wall_time", 1e-3) if metric == "time" else None


def _matmul(case: CaseResult, metric: str, parameters: Mapping[str, Any]) -> Name | None:
    dtype = _dtype(case)
    if metric in ("highest_rate", "peak"):
        return Name("gemm-flops", f"{_PEAKS[dtype]}_flops", 1000) if dtype in _PEAKS else None
    if metric != "rate" or not dtype or not all(parameters.get(name) for name in "mkn"):
        return None
    batch = parameters.get("batch", 1)
    # SuperBench writes batch 0 for a single matmul.
    size = f"{0 if batch == 1 else batch}_{parameters['m']}_{parameters['n']}_{parameters['k']}"
    return Name("cublaslt-gemm", f"{dtype}_{size}_flops")


def _whole_product(case: CaseResult, parameters: Mapping[str, Any]) -> list[Name]:
    """Return the name of SuperBench's default matmul, timed in ms; [] for other shapes."""
    if case.case.mode != "matmul" or case.key.metric != "rate" or parameters.get("batch", 1) != 1:
        return []
    if tuple(parameters.get(name) for name in "mkn") != _WHOLE:
        return []
    teraflops = 2e-12 * _WHOLE[0] * _WHOLE[1] * _WHOLE[2]
    return [Name(f"{case.case.framework}-matmul", "nosharding_time", 1e3 * teraflops, True)]


def _sharded(case: CaseResult, metric: str, parameters: Mapping[str, Any]) -> Name | None:
    collective = _COLLECTIVES.get(str(parameters.get("sharded")))
    is_default = tuple(parameters.get(name) for name in "mkn") == _WHOLE
    if metric != "both_time" or collective is None or not is_default:
        return None
    return Name(f"{case.case.framework}-sharding-matmul", f"{collective}_time")


def _overlap(case: CaseResult, metric: str, parameters: Mapping[str, Any]) -> Name | None:
    """Return the name of an overlap benchmark's time per step.

    SuperBench's step has 100 all-reduces, each with its computations."""
    kernel = _KERNELS.get(str(parameters.get("operation")))
    is_default = all(parameters.get(name) == value for name, value in _OVERLAP.items())
    if metric != "both_time" or kernel is None or not is_default:
        return None
    return Name(f"{case.case.framework}-computation-communication-overlap", f"{kernel}_time", 100)


def _collective(case: CaseResult, metric: str, parameters: Mapping[str, Any]) -> Name | None:
    operation = _OPERATIONS.get(str(parameters.get("operation")))
    if operation is None or metric not in _COLLECTIVE or "bytes" not in parameters:
        return None
    library = "rccl-bw" if case.conditions.accelerator.startswith("AMD") else "nccl-bw"
    return Name(library, f"{operation}_{parameters['bytes']}_{_COLLECTIVE[metric]}")


def _transfer(_: CaseResult, metric: str, __: Mapping[str, Any]) -> Name | None:
    if metric not in _COPIES:
        return None
    name, factor = _COPIES[metric]
    return Name("mem-bw", f"{name}_bw", factor)


def _storage(__: CaseResult, metric: str, ___: Mapping[str, Any]) -> Name | None:
    job, _, percentile = metric.partition("_latency_p")
    if percentile in _PERCENTILES and job in _JOBS:
        lat = f"{_DISK}_{_JOBS[job]}_lat_ns_{_PERCENTILES[percentile]}"
        return Name("disk-benchmark", lat, 1000)
    job = metric.removesuffix("_iops")
    if metric.endswith("_iops") and job in _JOBS:
        return Name("disk-benchmark", f"{_DISK}_{_JOBS[job]}_iops")
    return None


_NAMINGS: dict[str, Callable[[CaseResult, str, Mapping[str, Any]], Name | None]] = {
    "launch": _launch,
    "matmul": _matmul,
    "peak_flops": _matmul,
    "sharded_matmul": _sharded,
    "overlap": _overlap,
    "collective": _collective,
    "memory": lambda _, metric, __: Name("cpu-stream", f"{metric}_throughput", 1000),
    "transfer": _transfer,
    "storage": _storage,
}


def _dtype(case: CaseResult) -> str:
    """Return the element type of the matmuls; "" if unknown or not unique."""
    precision = case.case.precision
    if precision and not precision.startswith("amp"):
        return precision
    observed = {dtype for run in case.ok for dtype in run.matmul_dtypes[:1]}
    return _DTYPES.get(observed.pop(), "") if len(observed) == 1 else ""
