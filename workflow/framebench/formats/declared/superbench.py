"""SuperBench's results-summary.jsonl: an object for each node, a key for each metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...tables.nodes.figures import (
    OLD_NAME,
    SUPERBENCH,
    SUPERBENCH_PRECISIONS,
    superbench_metric,
)
from ...tables.results import CaseResult
from .. import rows
from ..format import Format, Results, Written
from ..source import Source
from ..superbench_metrics import RETURN_CODE, meaning_of

#: The first part of its keys: of figures without a mark, and of others.
CLEAN, MARKED = "framebench", "framebench-marked"
NODE = "framebench"
#: Spellings of precisions -> ours. A spelling without an entry stays as it is.
_PRECISIONS = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    **{theirs: ours for ours, theirs in SUPERBENCH_PRECISIONS.items()},
}  # fmt: skip
_MONITOR = "the state of a machine, not a result of a benchmark"
_SETTING = "a setting of its benchmark, not a result"
_UNKNOWN = "SuperBench's documentation does not tell its unit and direction"


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


def read(source: Source) -> Iterator[rows.Figure]:
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
            if key != "node":
                yield from _figure(source, node, key, value, line)


def _figure(source: Source, node: str, key: str, value: Any, line: int) -> Iterator[rows.Figure]:
    """Yield the figure of a key, or the failure that its value stands for."""
    benchmark, _, rest = key.partition("/")
    if not rest:
        source.refuse(f"key {key!r}: allowed: BENCHMARK/../METRIC", line)
    if benchmark == "monitor":
        source.leave_out(key, _MONITOR)
        return
    *middle, last = rest.split("/")
    metric, _, rank = last.rpartition(":") if re.search(r":\d+$", last) else (last, "", "")
    meaning = meaning_of(benchmark.partition(":")[0], metric)
    if meaning is None or not meaning.better:
        source.leave_out(key, _SETTING if meaning else _UNKNOWN)
        return
    number = source.number(value, f"key {key!r}", line)
    runs = [int(part) for part in middle if part.isdecimal()]
    *outer, name = [part for part in middle if not part.isdecimal()] or [""]
    framework, _, model = name.rpartition("-") if "-" not in name else name.partition("-")
    parameters = {"benchmark": "/".join([benchmark, *outer])}
    if rank:
        parameters["rank"] = rank
    mode, what, precision = SUPERBENCH, metric, ""
    if meaning.mode:
        mode = f"{SUPERBENCH}_{meaning.mode}"
        what = meaning.what.replace("steptime", "step_time")
        precision = _PRECISIONS.get(meaning.precision, meaning.precision)
        if superbench_metric(precision, meaning.mode, what) != metric:
            parameters[OLD_NAME] = metric
        what = what.replace("throughput", "throughput_per_device")
    failure = ""
    if metric == RETURN_CODE:
        failure = f"return code {value}" if value else ""
    elif number < 0:
        failure = f"SuperBench wrote {value}, as it does for what failed"
    yield rows.figure(
        SUPERBENCH, mode, what, number, meaning.unit, meaning.better, node=node,
        repeat=max(runs, default=0) + 1, status="failed" if failure else "ok", reason=failure,
        framework=framework, model=model, precision=precision, parameters=parameters,
    )  # fmt: skip


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
        taken="every metric of which SuperBench's documentation tells unit and direction, and "
        "return codes; throughput is `throughput_per_device`, never ours",
        not_taken="settings, `monitor`, and metrics without unit and direction in SuperBench's "
        "documentation",
        missing="batch, devices, versions, hardware",
    )
]
