"""Units and directions of SuperBench's metrics, from its documentation.

Source: docs/user-tutorial/benchmarks of SuperBench v0.4.0 to v0.12.0; for names before v0.3 its
tests/analyzer. Where versions disagree (cpu-memory-bw-latency) the newest counts, because it
corrects the others. Values keep SuperBench's units, in which its rules and baselines are."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_PRECISION = r"(?P<precision>(?:float|bfloat|fp|bf|tf|int)\d+(?:_hybrid|_e\dm\d)?)"
_STAT = r"(min|max|avg|avg\(worst\)|99%|99\.9%)"
_TAIL = r"(_(50|90|95|99|99\.9))?"

#: Exit code of every benchmark; 0 is success.
RETURN_CODE = "return_code"
#: Directions. SETTING: a parameter that is repeated among the results.
HIGHER, LOWER, SETTING = "higher", "lower", ""


class Meaning(NamedTuple):
    """Unit and direction of a metric.

    ``precision``, ``mode``, ``what``: parts of the metric's name for model benchmarks, else ""."""

    unit: str
    better: str
    precision: str = ""
    mode: str = ""
    what: str = ""


#: Benchmark (regular expression, without annotation), metric (regular expression, without rank),
#: unit, direction. Both expressions match in full.
TABLE: tuple[tuple[str, str, str, str], ...] = (
    # Every benchmark
    (r".*", RETURN_CODE, "", LOWER),
    # Models
    (r".*", rf"{_PRECISION}_(?P<mode>train|inference)_(?P<what>step_time{_TAIL})", "ms", LOWER),
    (r".*", rf"{_PRECISION}_(?P<mode>train|inference)_(?P<what>throughput{_TAIL})", "samples/s",
     HIGHER),
    (r".*", rf"(?P<what>steptime)_(?P<mode>train|inference)_{_PRECISION}", "ms", LOWER),
    (r".*", rf"(?P<what>throughput)_(?P<mode>train|inference)_{_PRECISION}", "samples/s", HIGHER),
    (r"megatron-gpt.*", rf"{_PRECISION}_(?P<mode>train)_(?P<what>tflops)", "TFLOP/s", HIGHER),
    (r"megatron-gpt.*", rf"{_PRECISION}_(?P<mode>train)_(?P<what>(max_)?mem_allocated)", "GB",
     LOWER),
    (r".*", r"deterministic_config_.+|deterministic_step.*|deterministic_check_count.*", "",
     SETTING),
    (r"onnxruntime-ort-models", r".+_ngpu_\d+(_train_throughput)?", "samples/s", HIGHER),
    # Computation
    (r"kernel-launch", r"(event|wall)_(time|overhead)", "ms", LOWER),
    (r"gemm-flops", r"\w+_flops|(FP|TF|BF)\d+(_TC|_xDLOPS)?", "GFLOP/s", HIGHER),
    (r"gemm-flops", r"\w+_iops|INT\d+(_TC|_xDLOPS)?", "GIOP/s", HIGHER),
    (r"([a-z0-9]+-)?matmul", r"nosharding(_time)?", "ms", LOWER),
    (r"(cublaslt|hipblaslt)-gemm", r".+_flops", "TFLOP/s", HIGHER),
    (r"(cublas|cudnn)-function", r".+_time", "us", LOWER),
    (r"cublas-function", r".+_correctness", "", HIGHER),
    (r"cublas-function", r".+_error(_rate)?", "", LOWER),
    (r"tensorrt-inference", r"(.+_)?(gpu|host|end_to_end)_time_(mean|99)", "ms", LOWER),
    (r"ort-inference", r".+_time(_[0-9.]+)?", "ms", LOWER),
    (r"gpu-burn", r"time", "s", SETTING),
    (r"gpu-burn", r"gpu_\d+_pass", "", HIGHER),
    (r"gpu-burn|nvbandwidth", r"abort", "", LOWER),
    (r"cpu-hpl", r"tests_pass", "", HIGHER),
    (r"cpu-hpl", r"throughput", "GFLOP/s", HIGHER),
    (r"cpu-hpl", r"time", "s", LOWER),
    # Memory
    (r"cpu-stream", r"threads", "", SETTING),
    (r"cpu-stream", r"\w+_throughput", "MB/s", HIGHER),
    (r"cpu-stream", r"\w+_time_(avg|min|max)", "s", LOWER),
    (r"cpu-memory-bw-latency", r"mem_.+_bw", "MB/s", HIGHER),
    (r"cpu-memory-bw-latency", r"mem_.+_lat", "ns", LOWER),
    (r"mem-bw", r"(h2d|d2h|d2d)_bw|(H2D|D2H|D2D)_Mem_BW", "GB/s", HIGHER),
    (r"gpu-copy-bw", r"(cpu|gpu).+", "GB/s", HIGHER),
    (r"gpu-sm-copy-bw", r"dtoh|htod", "GB/s", HIGHER),
    (r"gpu-stream", r"STREAM_.+_bw", "GB/s", HIGHER),
    (r"gpu-stream", r"STREAM_.+_ratio", "%", HIGHER),
    (r"nvbandwidth", r".+_bw", "GB/s", HIGHER),
    (r"nvbandwidth", r".+_lat", "us", LOWER),
    # Communication
    (r"ib-loopback", r"ib_(write|read|send)_(bw_\d+|\d+_ib\d+_bw)(:\d+)?", "GB/s", HIGHER),
    (r"ib-loopback", r"IB_(write|read|send)_\d+_Avg_\d+(:\d+)?", "MB/s", HIGHER),
    (r"(nccl|rccl)-bw", r"[a-z]+_(\d+_\d+:)?\d+_time", "us", LOWER),
    (r"(nccl|rccl)-bw", r"[a-z]+_(\d+_\d+:)?\d+_(algbw|busbw)", "GB/s", HIGHER),
    (r"tcp-connectivity", r".+_successed_count", "", HIGHER),
    (r"tcp-connectivity", r".+_failed_count", "", LOWER),
    (r"tcp-connectivity", r".+_success_rate", "", HIGHER),
    (r"tcp-connectivity", r".+_time_(min|max|avg)", "ms", LOWER),
    (r"gpcnet-network-test", rf"(rr|nat)_two-sided(\+sync)?_lat_{_STAT}", "us", LOWER),
    (r"gpcnet-network-test", rf"(rr|nat)_two-sided(\+sync)?_bw_{_STAT}", "MiB/s/rank", HIGHER),
    (r"gpcnet-network-test", rf"multiple_allreduce_time_{_STAT}", "us", LOWER),
    (r"gpcnet-network-test", rf"multiple_alltoall_bw_{_STAT}", "MiB/s/rank", HIGHER),
    (r"gpcnet-network-load-test", rf".+_x_{_STAT}", "", LOWER),
    (r"ib-traffic", r"ib_(write|read|send)_bw_.+", "GB/s", HIGHER),
    (r"ib-traffic", r"ib_(write|read|send)_lat_.+", "us", LOWER),
    (r"([a-z0-9]+-)?computation-communication-overlap", r"(mul|matmul)_(time|cost)", "ms", LOWER),
    (r"([a-z0-9]+-)?sharding-matmul", r"(allreduce|allgather)(_time)?", "ms", LOWER),
    (r"(pytorch-)?dist-inference", rf"step_times{_TAIL}", "ms", LOWER),
    # Storage
    (r"disk-benchmark", r".+_bs", "bytes", SETTING),
    (r"disk-benchmark", r".+_iops", "operations/s", HIGHER),
    (r"disk-benchmark", r".+_lat_ns_[0-9.]+", "ns", LOWER),
    (r"disk-benchmark", r".+_lat_us_[0-9.]+", "us", LOWER),
    (r"disk-benchmark", r".+_lat_ms_[0-9.]+", "ms", LOWER),
)  # fmt: skip


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], re.Pattern[str], str, str], ...]:
    return tuple(
        (re.compile(benchmarks), re.compile(metrics), unit, better)
        for benchmarks, metrics, unit, better in TABLE
    )


def meaning_of(benchmark: str, metric: str) -> Meaning | None:
    """Return unit and direction of a metric; None if it is not documented.

    ``benchmark`` has no annotation, ``metric`` no rank."""
    for benchmarks, metrics, unit, better in _patterns():
        match = metrics.fullmatch(metric) if benchmarks.fullmatch(benchmark) else None
        if match:
            return Meaning(unit, better, **match.groupdict())
    return None
