"""A small file of each readable format, and the records that imports leave."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framebench.features.formats import file_formats
from framebench.records import record_sets
from framebench.records.record_sets import RecordSet
from framebench.records.run import Run

READ = [name for name, form in file_formats.known().items() if form.read]


def brought(name: str, text: str, folder: Path, at: str = "results") -> RecordSet:
    """Return the result set that the import of one file writes, as report and compare read it."""
    file = folder / f"given{file_formats.reader(name).suffix}"
    file.write_text(text)
    file_formats.import_files(name, file, folder / at)
    actual = record_sets.load(folder / at / "runs")
    assert not actual.problems
    return actual


def imported(
    name: str, files: Mapping[str, str | bytes], folder: Path
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs that an import of a folder with these files leaves, and the printed lines."""
    for path, content in files.items():
        file = folder / "given" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    said = file_formats.import_files(name, folder / "given", folder / "results")
    actual = record_sets.load(folder / "results" / "runs")
    assert not actual.problems
    return tuple(actual.runs), said


def values_by_case(runs: tuple[Run, ...], metric: str) -> list[list[float | None]]:
    """Return the figures of each case, cases ordered by their first figure."""
    cases: dict[Any, list[float | None]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.repeat):
        if run.metrics[0].name == metric:
            cases[run.key].append(run.figure)
    return sorted(cases.values(), key=str)


CSV_HEADER = (
    "framework,framework_version,source,model,mode,precision,compiler,input_pipeline,variant,"
    "batch_per_device,nodes,devices_per_node,repeat,throughput,unit\n"
)
CSV_ROW = (
    "mxnet,1.6.0,here,resnet50_v1.5,train,fp32,none,,,128,1,{devices},{repeat},{rate},images/s\n"
)


def csv() -> str:
    rows = [(1, 1, 390.5), (1, 2, 392.25), (8, 1, 3008.52)]
    return CSV_HEADER + "".join(
        CSV_ROW.format(devices=devices, repeat=repeat, rate=rate) for devices, repeat, rate in rows
    )


def superbench() -> str:
    first = {
        "node": "sb-01",
        "bert_models/return_code": 0,
        "bert_models/pytorch-bert-base/0/fp16_train_step_time": 83.9,
        "bert_models/pytorch-bert-base/1/fp16_train_step_time": 84.1,
        "bert_models/pytorch-bert-base/0/fp16_train_throughput": 381.4,
        "resnet_models/pytorch-resnet50/fp32_inference_throughput_99": 910.0,
        "nccl-bw:nvlink/allreduce_8388608_busbw:0": 210.5,
        "nccl-bw:nvlink/allreduce_8388608_busbw:1": 0.0,
        "gpu-burn/return_code": 4,
        "gpu-sm-copy-bw/dtoh:0": 3.9,
        "monitor/gpu_temperature:0": 61,
    }
    second = {
        "node": "sb-02",
        "bert_models/pytorch-bert-base/fp16_train_step_time": 90.5,
        "bert_models/pytorch-bert-base/fp16_train_throughput": 353.5,
        "pytorch-computation-communication-overlap/mul_cost:0": 44.2,
    }
    return "".join(json.dumps(node) + "\n" for node in (first, second))


def dllogger() -> str:
    def log(step: Any, data: Any) -> str:
        entry = {
            "timestamp": "1600000000.5", "datetime": "2020-09-13 12:26:40.5",
            "elapsedtime": "12.5", "type": "LOG", "step": step, "data": data,
        }  # fmt: skip
        return f"DLLL {json.dumps(entry)}\n"

    def unit(metric: str, quantity: str) -> str:
        metadata = {"unit": quantity, "format": ":.1f"}
        entry = {"type": "METADATA", "metric": metric, "metadata": metadata}
        return f"DLLL {json.dumps(entry)}\n"

    return "".join(
        [
            "[1,0]<stdout>:Using 8 GPUs\n",
            unit("training_sequences_per_second", "sequences/s"),
            unit("e2e_train_time", "s"),
            log("PARAMETER", {"train_batch_size": 32}),
            log([1], {"train_perf": 300.0, "total_loss": 8.9}),
            log([], {"training_sequences_per_second": 317.5, "final_loss": 8.7, "seed": 42}),
            log([], {"e2e_train_time": 512.25}),
        ]
    )


def mllog(status: str = "success") -> str:
    def event(time: int, kind: str, key: str, value: Any, **metadata: Any) -> str:
        line = {
            "namespace": "", "time_ms": time, "event_type": kind, "key": key, "value": value,
            "metadata": {"file": "train.py", "lineno": 5, **metadata},
        }  # fmt: skip
        return f"0: :::MLLOG {json.dumps(line)}\n"

    return "".join(
        [
            "+ srun run_and_time.sh\n",
            event(1000, "POINT_IN_TIME", "submission_benchmark", "bert"),
            event(1000, "POINT_IN_TIME", "global_batch_size", 448),
            event(2000, "INTERVAL_START", "run_start", None),
            event(9000, "POINT_IN_TIME", "tracked_stats", {"throughput": 14214.5}, step=1),
            event(62500, "INTERVAL_END", "run_stop", None, status=status),
        ]
    )


ALL = {"csv": csv, "superbench": superbench, "dllogger": dllogger, "mllog": mllog}
