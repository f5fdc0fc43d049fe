"""SuperBench's metrics: their units and directions, and those that our micro-benchmarks measure.

Source: docs/user-tutorial/benchmarks of SuperBench v0.4.0 to v0.12.0; for the jobs of
disk-benchmark its disk_performance.py. Where versions disagree (cpu-memory-bw-latency) the newest
counts, because it corrects the others. Megatron-GPT's memory is in GiB, which its documentation
calls GB: DeepSpeed divides by 2**30. Values keep SuperBench's units, because its rules and
baselines use them. docs/micro-benchmarks.md lists how our micro-benchmarks differ."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded

from ...tables.results import CaseResult

_TABLE = Path(__file__).with_suffix(".csv")
#: Parts of metrics that the table names in angle brackets.
_PARTS = {
    "PRECISION": r"(?P<precision>(?:float|bfloat|fp|bf|tf|int)\d+(?:_hybrid|_e\dm\d)?)",
    "STAT": r"(min|max|avg|avg\(worst\)|99%|99\.9%)",
    "TAIL": r"(_(50|90|95|99|99\.9))?",
}

#: Exit code of every benchmark; 0 is success.
RETURN_CODE = "return_code"
#: Our names of element types -> SuperBench's.
_DTYPES = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8",
}  # fmt: skip
_OPERATIONS = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
    "broadcast": "broadcast", "reduce": "reduce", "all_to_all": "alltoall",
}  # fmt: skip
_COLLECTIVE = {"time": "time", "algorithm_bandwidth": "algbw", "bus_bandwidth": "busbw"}
_COLLECTIVES = {"inner": "allreduce", "columns": "allgather"}
_PEAKS = {
    "fp64": "fp64_flops", "fp32": "fp32_flops", "tf32": "tf32_tc_flops", "fp16": "fp16_tc_flops",
    "bf16": "bf16_tc_flops", "int8": "int8_tc_iops",
}  # fmt: skip
#: Default m, k, n of SuperBench's matmul and sharding-matmul.
_WHOLE = (16000, 12288, 12288)
#: Defaults of SuperBench's computation-communication-overlap, whose metrics name only the kernel.
_OVERLAP = {"shape": "640x1024x1880", "matmuls": 30, "message_bytes": 28000000}
_KERNELS = {"matmul": "matmul", "multiply": "mul"}
#: mem-bw is based on CUDA's bandwidth test, which counts bytes read and written for copies on a
#: device.
_COPIES = {
    "host_to_device": ("h2d", 1),
    "device_to_host": ("d2h", 1),
    "device_to_device": ("d2d", 2),
}
_LAUNCHES = {"time": "wall_time", "event_time": "event_time"}
_JOBS = {
    "sequential_read": "seq_read_read", "sequential_write": "seq_write_write",
    "sequential_mixed_read": "seq_readwrite_read", "sequential_mixed_write": "seq_readwrite_write",
    "random_read": "rand_read_read", "random_write": "rand_write_write",
    "random_mixed_read": "rand_read_write_read", "random_mixed_write": "rand_read_write_write",
}  # fmt: skip
#: Written in place of a block device's name, because a file is measured.
_DISK = "file"
_PERCENTILES = {"95": "95.0", "99": "99.0", "99.9": "99.9"}


class Meaning(NamedTuple):
    """Unit of a metric and its better direction, "" if it is a setting among the results.

    ``precision``, ``mode``, ``what``: parts of the metric's name for model benchmarks, else ""."""

    unit: str
    better: str
    precision: str = ""
    mode: str = ""
    what: str = ""


@cache
def _table() -> list[tuple[re.Pattern[str], re.Pattern[str], str, str]]:
    """Return all metrics: expressions for benchmark (without annotation) and metric (without rank),
    unit and direction. Both expressions must match in full; the first match counts."""
    _, *rows = csv.reader(bounded.read_text(_TABLE).splitlines())
    table = []
    for text, metric, unit, better in rows:
        pattern = re.sub("<([A-Z]+)>", lambda name: _PARTS[name[1]], metric)
        table.append((re.compile(text), re.compile(pattern), unit, better))
    return table


def meaning_of(benchmark: str, metric: str) -> Meaning | None:
    """Return unit and direction of a metric; None if it is not documented.

    ``benchmark`` has no annotation, ``metric`` no rank."""
    for benchmarks, metrics, unit, better in _table():
        match = metrics.fullmatch(metric) if benchmarks.fullmatch(benchmark) else None
        if match:
            return Meaning(unit, better, **match.groupdict())
    return None


class Name(NamedTuple):
    """SuperBench's name of a figure and its conversion.

    ``factor``: SuperBench's figure per ours; ``is_inverse``: SuperBench's figure is the factor
    divided by ours."""

    benchmark: str
    metric: str
    factor: float = 1
    is_inverse: bool = False


def names_of(result: CaseResult) -> Iterator[Name]:
    """Yield SuperBench's names of a micro-benchmark's figure."""
    case, metric = result.case, result.key.metric
    given = {**dict(case.parameters), **dict(result.key.point)}
    operation, is_whole = str(given.get("operation")), _sizes(given) == _WHOLE
    match case.mode:
        case "launch" if metric in _LAUNCHES:
            yield Name("kernel-launch", _LAUNCHES[metric], 1e-3)
        case "matmul" | "peak_flops":
            yield from _matmul(result, given)
        case "sharded_matmul" if metric == "both_time" and is_whole:
            if collective := _COLLECTIVES.get(str(given.get("sharded"))):
                yield Name(f"{case.framework}-sharding-matmul", f"{collective}_time")
        case "overlap" if metric == "both_time" and operation in _KERNELS:
            if all(given.get(name) == value for name, value in _OVERLAP.items()):
                # SuperBench's step has 100 all-reduces, each with its computations.
                benchmark = f"{case.framework}-computation-communication-overlap"
                yield Name(benchmark, f"{_KERNELS[operation]}_time", 100)
        case "collective" if metric in _COLLECTIVE and operation in _OPERATIONS:
            if "bytes" in given:
                is_amd = result.conditions.accelerator.startswith("AMD")
                name = f"{_OPERATIONS[operation]}_{given['bytes']}_{_COLLECTIVE[metric]}"
                yield Name("rccl-bw" if is_amd else "nccl-bw", name)
        case "memory":
            yield Name("cpu-stream", f"{metric}_throughput", 1000)
        case "transfer" if metric in _COPIES:
            name, factor = _COPIES[metric]
            rank = str(given.get("device", "")).replace("gpu-", ":")
            yield Name("mem-bw", f"{name}_bw{rank}", factor)
        case "storage":
            job, _, percentile = metric.partition("_latency_p")
            if percentile in _PERCENTILES and job in _JOBS:
                name = f"{_DISK}_{_JOBS[job]}_lat_ns_{_PERCENTILES[percentile]}"
                yield Name("disk-benchmark", name, 1000)
            elif metric.endswith("_iops") and metric.removesuffix("_iops") in _JOBS:
                yield Name("disk-benchmark", f"{_DISK}_{_JOBS[metric.removesuffix('_iops')]}_iops")


def _matmul(result: CaseResult, given: Mapping[str, Any]) -> Iterator[Name]:
    dtype, metric, batch = _dtype(result), result.key.metric, given.get("batch", 1)
    if metric in ("highest_rate", "peak") and dtype in _PEAKS:
        yield Name("gemm-flops", _PEAKS[dtype], 1000)
    if metric == "rate" and dtype and all(given.get(name) for name in "mkn"):
        # SuperBench writes batch 0 for a single matmul.
        size = f"{0 if batch == 1 else batch}_{given['m']}_{given['n']}_{given['k']}"
        yield Name("cublaslt-gemm", f"{dtype}_{size}_flops")
    if result.case.mode == "matmul" and metric == "rate" and batch == 1 and _sizes(given) == _WHOLE:
        # SuperBench's default matmul, which it times in ms
        teraflops = 2e-12 * _WHOLE[0] * _WHOLE[1] * _WHOLE[2]
        benchmark = f"{result.case.framework}-matmul"
        yield Name(benchmark, "nosharding_time", 1e3 * teraflops, True)


def _sizes(given: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(given.get(name) for name in "mkn")


def _dtype(result: CaseResult) -> str:
    """Return the element type of the matmuls; "" if unknown or not unique."""
    asked = str(dict(result.case.parameters).get("dtype", "precision"))
    if asked != "precision":
        return _DTYPES[asked]
    precision = result.case.precision
    if precision and not precision.startswith("amp"):
        return precision
    observed = {dtype for run in result.ok for dtype in run.matmul_dtypes[:1]}
    return _DTYPES.get(observed.pop(), "") if len(observed) == 1 else ""
