"""A small file of each readable format, as its tool writes it."""

from __future__ import annotations

import json
from typing import Any

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
    """Return a node with current names, and one with names before version 0.3."""
    new = {
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
    old = {
        "node": "sb-02",
        "bert_models/pytorch-bert-base/steptime_train_float16": 90.5,
        "bert_models/pytorch-bert-base/throughput_train_float16": 353.5,
        "pytorch-computation-communication-overlap/mul_cost:0": 44.2,
    }
    return "".join(json.dumps(node) + "\n" for node in (new, old))


def nvidia_report() -> str:
    """Return a report for one and four GPUs; the second failed, and its figures are bare NaN."""
    one = {"train.ips": 410.5, "val.ips": 1200.5, "val.latency_avg": 0.16, "val.latency_99": 0.17}
    failed = dict.fromkeys(one, float("nan"))
    report = {
        "model": "",
        "ngpus": [1, 4],
        "bs": [192],
        "metric_keys": list(one),
        "metrics": {"1": {"192": one}, "4": {"192": failed}},
    }
    return json.dumps(report, indent=1) + "\n"


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


def megatron(last: int = 40) -> str:
    arguments = {
        "world_size": 8, "tensor_model_parallel_size": 2, "micro_batch_size": 4, "bf16": True,
        "fp16": False, "seq_length": 2048,
    }  # fmt: skip
    lines = [f"  {name} {'.' * (40 - len(name))} {value}\n" for name, value in arguments.items()]
    times = {10: 1600.5, 20: 1000.0, 30: 1002.0, 40: 1001.0}
    for iteration, milliseconds in times.items():
        if iteration <= last:
            lines.append(
                f" [2025-04-13 23:41:12] iteration {iteration:8d}/      45 | consumed samples: "
                f"{16 * iteration:12d} | elapsed time per iteration (ms): {milliseconds:.1f} | "
                "throughput per GPU (TFLOP/s/GPU): 149.1 | learning rate: 1.000000E-05 | global "
                "batch size:    16 | lm loss: 7.399415E+00 | loss scale: 1.0 | number of skipped "
                "iterations:   0 | number of nan iterations:   0 |\n"
            )
    return "".join(lines)


def milabench(loss: str = "9.25", ended: bool = True) -> str:
    config = {
        "arch": "cuda", "group": "hf", "name": "bert-fp16", "tag": ["bert-fp16", "D0"],
        "argv": {"--precision": "fp16", "--batch-size": 32}, "device": "0",
    }  # fmt: skip
    rates = [{"task": "train", "rate": rate, "units": "items/s"} for rate in (150.5, 160.0, 155.0)]
    events = [
        {"event": "config", "data": config, "pipe": None},
        {"event": "start", "data": {"command": ["voir"], "time": 1683740952.5}, "pipe": None},
        *({"event": "data", "data": rate, "pipe": "data"} for rate in rates),
    ]
    end = {"event": "end", "data": {"command": ["voir"], "time": 1683741005.5, "return_code": 0}}
    lines = [json.dumps(event) for event in events]
    lines.append('{"event": "data", "data": {"task": "train", "loss": ' + loss + "}}")
    return "".join(f"{line}\n" for line in [*lines, *([json.dumps(end)] if ended else [])])


def optimum_benchmark() -> str:
    def measured(values: list[float], rate: float, unit: str) -> dict[str, Any]:
        return {
            "memory": {"unit": "MB", "max_ram": 980.5, "max_global_vram": None},
            "latency": {"unit": "s", "values": values, "mean": sum(values) / len(values)},
            "throughput": {"unit": unit, "value": rate},
            "energy": None,
            "efficiency": None,
        }

    config = {
        "name": "pytorch_bert",
        "backend": {
            "name": "pytorch", "version": "2.4.0", "model": "bert-base-uncased", "device": "cpu",
            "torch_dtype": None,
        },
        "scenario": {"name": "inference", "input_shapes": {"batch_size": 2}},
    }  # fmt: skip
    report = {
        "forward": measured([0.05, 0.04, 0.06], 40.0, "samples/s"),
        # Five steps, whose samples are all counted against the time of one.
        "train": measured([0.5] * 5, 20.0, "samples/s"),
    }
    return json.dumps({"config": config, "report": report}, indent=1) + "\n"


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


def pyperf() -> str:
    runs: list[dict[str, Any]] = [
        {"metadata": {"calibrate_loops": 8}, "warmups": [[8, 0.5]]},
        {"warmups": [[1, 0.011]], "values": [0.010, 0.012, 0.011]},
        {"warmups": [[1, 0.021]], "values": [0.020]},
    ]
    metadata = {"name": "json_loads", "unit": "second", "loops": 8}
    document = {"version": "1.0", "benchmarks": [{"metadata": metadata, "runs": runs}]}
    return json.dumps(document, indent=1) + "\n"


def google_benchmark() -> str:
    def row(index: int, time: float, **more: Any) -> dict[str, Any]:
        return {
            "name": "BM_copy/8", "run_name": "BM_copy/8", "run_type": "iteration",
            "repetitions": 2, "repetition_index": index, "threads": 1, "iterations": 100,
            "real_time": time, "cpu_time": time, "time_unit": "us", **more,
        }  # fmt: skip

    mean = {**row(0, 11.5), "name": "BM_copy/8_mean", "run_type": "aggregate"}
    rows = [row(0, 11.25), row(1, 11.75, items_per_second=5.0), mean]
    document = {"context": {"date": "2025-01-01", "num_cpus": 8}, "benchmarks": rows}
    return json.dumps(document, indent=1) + "\n"


ALL = {
    "csv": csv,
    "superbench": superbench,
    "nvidia-report": nvidia_report,
    "dllogger": dllogger,
    "megatron": megatron,
    "milabench": milabench,
    "optimum-benchmark": optimum_benchmark,
    "mllog": mllog,
    "pyperf": pyperf,
    "google-benchmark": google_benchmark,
}
