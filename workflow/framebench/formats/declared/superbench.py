"""SuperBench's results-summary.jsonl: an object for each node, a key for each metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...records.run import Run
from ...tables.results import CaseResult
from .. import rows
from ..format import Format, Results, Written
from ..source import Source

#: The first part of its keys: of figures without a mark, and of others.
CLEAN, MARKED = "framebench", "framebench-marked"
NODE = "framebench"
#: {precision}_{action}_{what}, as it is since version 0.3, and {what}_{action}_{precision} before.
_NEW = re.compile(r"(?P<precision>[a-z0-9_]+?)_(?P<mode>train|inference)_(?P<what>.+)")
_OLD = re.compile(r"(?P<what>steptime|throughput)_(?P<mode>train|inference)_(?P<precision>\w+)")
_PRECISIONS = {"float32": "fp32", "float16": "fp16", "float64": "fp64", "bfloat16": "bf16",
               "fp8_hybrid": "fp8"}  # fmt: skip
#: Of a model benchmark: unit, and which direction is better.
_MEANINGS = {
    "step_time": ("ms", "lower"),
    "steptime": ("ms", "lower"),
    "throughput": ("samples/s", "higher"),
    "tflops": ("TFLOP/s", "higher"),
    "mem_allocated": ("GiB", "lower"),
    "max_mem_allocated": ("GiB", "lower"),
}
#: Of a micro-benchmark, by how the name ends.
_ENDS = (
    (r"_bw$|_BW$|busbw$|algbw$", "GB/s", "higher"),
    (r"_flops$|^FP\d+|^TF32|^BF16", "GFLOP/s", "higher"),
    (r"_iops$|^INT\d", "operations/s", "higher"),
    (r"_throughput$", "", "higher"),
    (r"_time$|_cost$|_lat$|_overhead$|nosharding|allreduce$|allgather$", "", "lower"),
)


def write(results: Results) -> Written:
    """Each figure as SuperBench defines it: time of a step in ms, and the mean of the rates of the
    steps per device."""
    left_out: list[str] = []
    found: dict[str, Any] = {"node": NODE}
    for case in results.cases:
        name = results.name(case)
        if not case.case.is_step:
            left_out.append(f"{name}: {case.key.metric}: is of no steps")
            continue
        benchmark = f"{MARKED if case.marks else CLEAN}:{_rest(results, case)}"
        model = f"{benchmark}/{case.case.framework}-{case.case.model}"
        if f"{model}/return_code" in found:
            left_out.append(f"{name}: {case.key.metric}: another case has the same name there")
            continue
        # 0, and 1 where SuperBench tells no more than that it was no success.
        found[f"{model}/return_code"] = int(case.status != "ok")
        repeats = [run for run in case.ok if run.waited_seconds]
        if len(repeats) < len(case.runs):
            missing = len(case.runs) - len(repeats)
            left_out.append(f"{name}: {missing} of {len(case.runs)} repeats, without step times")
        for index, run in enumerate(repeats):
            prefix = f"{model}/{index}" if len(repeats) > 1 else model
            metric = f"{prefix}/{case.case.precision}_{case.case.mode}"
            steps = [seconds for seconds in run.waited_seconds if seconds > 0]
            batch = case.case.batch_per_device * case.conditions.accumulation
            found[f"{metric}_step_time"] = 1000 * sum(steps) / len(steps)
            found[f"{metric}_throughput"] = sum(batch / one for one in steps) / len(steps)
    return Written(json.dumps(found, ensure_ascii=False) + "\n", left_out)


def _rest(results: Results, case: CaseResult) -> str:
    """The name of the case but for its framework and model, as an annotation of the benchmark's:
    SuperBench has one return code for each of these."""
    own = {case.case.framework, case.case.model}
    words = [word for word in results.name(case).split("/") if word not in own]
    return re.sub(r"[^A-Za-z0-9_.=-]+", "-", "-".join(words))


def read(source: Source) -> Iterator[Run]:
    nodes: dict[str, int] = {}
    for line, found in source.objects():
        node = found.get("node")
        if not isinstance(node, str):
            source.refuse(
                "is of another format: 'node' missing (results-summary.jsonl has one a line)", line
            )
        if node in nodes:
            source.refuse(f"node {node!r} stands in line {nodes[node]} too", line)
        nodes[node] = line
        for key, value in found.items():
            if key != "node" and not key.startswith("monitor/"):
                yield from _figure(source, node, key, value, line)


def _figure(source: Source, node: str, key: str, value: Any, line: int) -> Iterator[Run]:
    benchmark, _, rest = key.partition("/")
    if not rest:
        source.refuse(f"key {key!r}: allowed: BENCHMARK/../METRIC", line)
    *middle, last = rest.split("/")
    metric, _, rank = last.rpartition(":") if re.search(r":\d+$", last) else (last, "", "")
    runs = [int(part) for part in middle if part.isdecimal()]
    names = [part for part in middle if not part.isdecimal()]
    parameters = {"benchmark": benchmark, **({"rank": rank} if rank else {})}
    framework, _, model = names[-1].partition("-") if names else ("", "", "")
    own: dict[str, Any] = {
        "node": node,
        "parameters": parameters,
        "repeat": max(runs, default=0) + 1,
        "framework": framework if model else "",
        "model": model or (names[-1] if names else ""),
    }
    if metric == "return_code":
        if value:
            yield rows.figure(
                "superbench", "superbench", "return_code", None, "", "lower", status="failed",
                reason=f"return code {value}", **own,
            )  # fmt: skip
        return
    number = source.number(value, f"key {key!r}", line)
    known = _OLD.fullmatch(metric) or _NEW.fullmatch(metric)
    if known and names:
        what = known["what"]
        # Percentiles of a throughput are in the wrong direction: their 99th is the best step.
        stem = re.sub(r"_(50|90|95|99|99\.9)$", "", what)
        if stem in _MEANINGS:
            unit, better = _MEANINGS[stem]
            what = what.replace("steptime", "step_time")
            what = what.replace("throughput", "throughput_per_device", 1)
            yield rows.figure(
                "superbench", f"superbench_{known['mode']}", what, number, unit, better,
                precision=_PRECISIONS.get(known["precision"], known["precision"]), **own,
            )  # fmt: skip
            return
    for pattern, unit, better in _ENDS:
        if re.search(pattern, metric):
            yield rows.figure("superbench", "superbench", metric, number, unit, better, **own)
            return
    source.directionless.append(key)


FORMATS = [
    Format(
        "superbench",
        ".jsonl",
        "SuperBench results-summary.jsonl",
        write=write,
        read=read,
        marks=f"the first part of the key is `{MARKED}` instead of `{CLEAN}`",
        lost="throughput of all devices: SuperBench's is the mean of the rates of the steps per "
        "device, and so is this; repeats without step times; intervals; reasons of what failed, "
        "which are return code 1",
        missing="batch, devices, versions, hardware: throughput is `throughput_per_device`, never "
        "ours; figures whose direction cannot be told from their name, and `monitor`, are not "
        "taken",
    )
]
