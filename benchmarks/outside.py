"""Benchmark programs of others against ours, in turn, on a CPU: step times and convolutions.

    .venv/bin/python benchmarks/outside.py [PROGRAM ..] [--results results/outside]

``superbench``: its model benchmarks ``resnet50`` and ``bert-base``, from a checkout as in
docs/reproduced.md. ``optimum``: optimum-benchmark, inference. ``openvino``: its ``benchmark_app``
with the five convolutions that take most of ResNet-50. All in fp32 and one thread on each physical
core; every figure is of a fresh process. A ratio above 1 means that ours takes less time. Writes
``outside.csv``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import in_turn
import peers
from in_turn import ROOT

#: Our model, batch and sequence length by SuperBench's name of the model.
MODELS = {"resnet50": ("resnet50_v1.5", 8, None), "bert-base": ("superbench_bert_base", 4, 64)}
CONVOLUTIONS = 5
COLUMNS = ("program", "what", "batch", "cores", "rounds", "ours_ms", "theirs_ms", "ratio",
           "ratio_low", "ratio_high")  # fmt: skip


def superbench(model: str, mode: str) -> float:
    """Return the milliseconds of a step of SuperBench, unmodified."""
    sys.path.insert(0, str(ROOT / ".peers" / "sources" / "superbench"))
    from superbench.benchmarks import BenchmarkRegistry, Framework, Platform

    _, batch, length = MODELS[model]
    parameters = f"--batch_size {batch} --precision float32 --model_action {mode} --no_gpu"
    parameters += f" --num_workers 0 --num_warmup 2 --num_steps 8 --sample_count {batch}"
    parameters += f" --seq_len {length}" if length else ""
    context = BenchmarkRegistry.create_benchmark_context(
        model, platform=Platform.CPU, parameters=parameters, framework=Framework.PYTORCH
    )
    result = BenchmarkRegistry.launch_benchmark(context).result
    return float(result[f"fp32_{mode}_step_time"][0])


def optimum(model: str, mode: str) -> float:
    """Return the milliseconds of a forward pass of optimum-benchmark."""
    import optimum_benchmark
    import transformers

    _, batch, length = MODELS[model]
    if length:
        built = transformers.BertModel(transformers.BertConfig())
        task, shapes = "feature-extraction", {"sequence_length": length}
    else:
        config = transformers.ResNetConfig(num_labels=1000)
        built = transformers.ResNetForImageClassification(config)
        task, shapes = "image-classification", {"height": 224, "width": 224}
    with tempfile.TemporaryDirectory() as folder:
        built.save_pretrained(folder)
        backend = optimum_benchmark.PyTorchConfig(
            model=folder, library="transformers", task=task, device="cpu"
        )
        scenario = optimum_benchmark.InferenceConfig(
            warmup_runs=2, iterations=8, duration=0, input_shapes={"batch_size": batch, **shapes}
        )
        launcher = optimum_benchmark.InlineConfig()
        report = optimum_benchmark.Benchmark.launch(
            optimum_benchmark.BenchmarkConfig("outside", backend, scenario, launcher)
        )
    return 1000 * float(report.forward.latency.p50)


def openvino(at: dict[str, Any], batch: int) -> float:
    """Return the milliseconds of a convolution in OpenVINO's benchmark_app."""
    import numpy as np
    from openvino import Model, opset13, save_model

    _, height, width, channels = map(int, at["images"].split("x"))
    kernel = tuple(map(int, at["kernel"].split("x")))
    padding = tuple(map(int, at["padding"].split("x")))
    images = opset13.parameter([batch, channels, height, width], np.float32)
    weights = np.ones((kernel[2], channels, *kernel[:2]), np.float32)
    strides = [at["stride"]] * 2
    result = opset13.convolution(images, weights, strides, padding, padding, [1, 1])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "convolution.xml"))
        save_model(Model([result], [images]), path, compress_to_fp16=False)
        program = str(Path(sys.executable).parent / "benchmark_app")
        options = ["-api", "sync", "-hint", "none", "-nstreams", "1", "-infer_precision", "f32"]
        options += ["-nthreads", str(len(os.sched_getaffinity(0))), "-t", "2", "-m", path]
        ran = subprocess.run([program, *options], capture_output=True, text=True, check=True)
    return float(re.findall(r"Median: +([\d.]+) ms", ran.stdout)[0])


def ours(python: str, kind: str, model: str, batch: int, *arguments: str) -> dict[str, Any]:
    """Return the metrics that the harness records."""
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        command = [python, f"{ROOT}/scripts/harness", f"--kind={kind}", f"--output={path}"]
        command += [f"--framework={ROOT}/scripts/frameworks/pytorch", "--accelerator=cpu"]
        command += [f"--model={ROOT}/scripts/models/{model}.json", f"--cores-per-device={cores}"]
        command += [f"--batch-per-device={batch}", *arguments]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return dict(json.loads(path.read_text())["metrics"])


def convolution_times(python: str, batch: int) -> dict[str, tuple[dict[str, Any], float]]:
    """Return shape and milliseconds of the convolutions with most of ResNet-50's operations."""
    metrics = ours(python, "convolution", "resnet50_v1.5", batch)

    def operations(name: str) -> float:
        rate = metrics[name.replace("forward_time", "forward_rate")]["value"]
        return float(rate * metrics[name]["value"] * metrics[name]["at"]["times"])

    names = [name for name, m in metrics.items() if m.get("quantity") == "forward_time"]
    most = sorted(names, key=operations, reverse=True)[:CONVOLUTIONS]
    return {name: (metrics[name]["at"], metrics[name]["value"] / 1000) for name in most}


def measure(program: str, own: str, python: str) -> Iterator[tuple[str, int, float, float]]:
    """Yield operation, batch, milliseconds in our harness, and milliseconds in ``program``."""
    if program == "openvino":
        batch = MODELS["resnet50"][1]
        for name, (at, milliseconds) in convolution_times(own, batch).items():
            theirs = in_turn.run_inside(python, __file__, [program, at, batch])
            yield name.removeprefix("forward_time at "), batch, milliseconds, theirs
        return
    for model, (name, batch, length) in MODELS.items():
        arguments = ["--warmup-steps=2", "--timed-steps=8"]
        arguments += [f"--sequence-length={length}"] if length else []
        for mode in ("inference", "train") if program == "superbench" else ("inference",):
            rate = ours(own, mode, name, batch, *arguments)["throughput"]["value"]
            theirs = in_turn.run_inside(python, __file__, [program, model, mode])
            yield f"{model} {mode}", batch, 1000 * batch / rate, theirs


def main() -> int:
    programs = {function.__name__: function for function in (superbench, optimum, openvino)}
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(programs)}")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "outside")
    parser.add_argument("--inside", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        # Stub for the operators of torchvision's extension, which PyTorch for CPUs does not load.
        sys.modules["torchvision._meta_registrations"] = ModuleType("_meta_registrations")
        program, *arguments = options.inside
        print(f"\n{programs[program](*arguments)}")
        return 0
    from framebench.statistics import descriptive

    peers.use_physical_cores()
    own, python = peers.environment("pytorch"), peers.environment("outside", "pytorch")
    cores = len(os.sched_getaffinity(0))
    rows: list[tuple[Any, ...]] = []
    for program in options.programs or programs:
        found: dict[tuple[str, int], list[list[float]]] = {}
        for _ in range(options.rounds):
            for what, batch, *milliseconds in measure(program, own, python):
                found.setdefault((what, batch), []).append(milliseconds)
        for (what, batch), both in found.items():
            sides = list(map(list, zip(*both, strict=True)))
            medians = (round(descriptive.median(side), 3) for side in sides)
            ratios = (round(value, 3) for value in in_turn.ratio(*sides))
            rows.append((program, what, batch, cores, options.rounds, *medians, *ratios))
            print(*rows[-1], flush=True)
            peers.write(COLUMNS, rows, options.results / "outside.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
