"""SuperBench's results-summary.jsonl: one object per node, one key per metric."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from ....cases.conditions import series_of_model
from ....cases.names import SUPERBENCH, SUPERBENCH_PRECISIONS, superbench_key, superbench_metric
from ....records.run import MetricValue
from ....statistics.descriptive import samples_needed
from ....tables.results import CaseResult
from ..file_formats import ExportedFile, Format, Results
from ..imported import ImportedFigure, ImportedFile, figure
from ..superbench_metrics import RETURN_CODE, meaning_of, names_of

#: First part of model benchmarks' keys. Micro-benchmarks have their own.
CLEAN = "model-benchmarks"
#: Node name for figures that state no node.
NODE = "framebench"
_PERCENTILES = ("50", "90", "95", "99", "99.9")
_OURS = {theirs: ours for ours, theirs in SUPERBENCH_PRECISIONS.items()}
#: Benchmark whose throughput is the total of all devices, and our name of its model.
_GLOBAL, _MEGATRON = "megatron-gpt", "gpt_6.7b"
_UNKNOWN = "SuperBench does not document its unit and direction"

#: Figures by metric, for each repeat of a benchmark that has any.
_Repeats = Sequence[dict[str, float]]


def write(results: Results) -> ExportedFile:
    """Write each figure that SuperBench has a name for, by SuperBench's definition.

    Model benchmarks: step time in ms and throughput per device, as means over steps; for inference
    also percentiles of both, if there are enough steps."""
    nodes: dict[str, dict[str, Any]] = defaultdict(dict)
    left_out: list[str] = []
    for case in results.cases:
        name, found = results.name(case), nodes[case.case.node or NODE]
        if case.case.source == SUPERBENCH:
            problems = _add_imported(case, found)
        elif benchmarks := [*_benchmarks(case, _annotation(case, name))]:
            problems = [why for one in benchmarks if (why := _add(case, found, *one))]
        else:
            problems = ["SuperBench has no metric of the same definition"]
        left_out += [f"{name}: {case.key.metric}: {why}" for why in problems]
    lines = [
        json.dumps({"node": node, **found}, ensure_ascii=False) + "\n"
        for node, found in sorted(nodes.items())
        if found
    ]
    return ExportedFile("".join(lines), left_out, not lines)


def _add_imported(case: CaseResult, found: dict[str, Any]) -> list[str]:
    """Add an imported SuperBench figure under its original key; return what is left out."""
    head, _, metric = superbench_key(case.key).rpartition("/")
    left_out = []
    for run in case.runs:
        key = f"{head}/{run.repeat - 1}/{metric}" if len(case.runs) > 1 else f"{head}/{metric}"
        code = re.fullmatch(r"return code (-?\d+)", run.reason)
        value = int(code[1]) if code else run.figure
        if value is None:
            left_out.append(f"{run.status}: {run.reason}")
        else:
            found[key] = value
    return left_out


def _add(case: CaseResult, found: dict[str, Any], benchmark: str, repeats: _Repeats) -> str:
    """Add a benchmark's figures and return code (1 for any failure). Return what is left out."""
    several = len(repeats) > 1
    figures = {
        f"{benchmark}/{number}/{metric}" if several else f"{benchmark}/{metric}": value
        for number, repeat in enumerate(repeats)
        for metric, value in repeat.items()
    }
    metrics = {metric for repeat in repeats for metric in repeat}
    if any(f"{benchmark}/{at}{metric}" in found for metric in metrics for at in ("", "0/")):
        return "another case has the same name in SuperBench"
    code = f"{benchmark}/{RETURN_CODE}"
    found[code] = max(int(case.status != "ok"), found.get(code, 0))
    found |= figures
    if missing := len(case.runs) - len(repeats):
        why = "" if case.status == "ok" else f"; {case.reason}"
        return f"{missing} of {len(case.runs)} repeats have no figure{why}"
    return ""


def _benchmarks(case: CaseResult, annotation: str) -> Iterator[tuple[str, _Repeats]]:
    """Yield each SuperBench benchmark that a case corresponds to, with its figures."""
    if case.case.is_step:
        model = series_of_model(case.case.model)
        if model == _MEGATRON:
            yield f"{_GLOBAL}:{annotation}/{_GLOBAL}", _steps(case)
            return
        if model.startswith(f"{SUPERBENCH}_"):
            model = model.removeprefix(f"{SUPERBENCH}_").replace("_", "-")
        yield f"{CLEAN}:{annotation}/{case.case.framework}-{model}", _steps(case)
        return
    values = [run.value(case.key.metric, case.key.point) for run in case.ok]
    for name in names_of(case):
        figures = [
            {name.metric: name.factor / value if name.is_inverse else name.factor * value}
            for value in values
            if value is not None
        ]
        yield f"{name.benchmark}:{annotation}", figures


def _steps(case: CaseResult) -> _Repeats:
    """Return step time in ms and samples/s per replica of each repeat with step times; for
    Megatron's model samples/s of all devices, and peak memory in GiB."""
    own, repeats = case.case, list[dict[str, float]]()
    is_global = series_of_model(own.model) == _MEGATRON
    samples = own.samples_per_step if is_global else own.samples_of_replica
    for run in case.ok:
        steps = [seconds for seconds in run.waited_seconds if seconds > 0]
        if not steps:
            continue
        figures = {}
        for what, values in (
            ("step_time", [1000 * seconds for seconds in steps]),
            ("throughput", [samples / seconds for seconds in steps]),
        ):
            metric = superbench_metric(own.precision, own.mode, what)
            figures[metric] = sum(values) / len(values)
            for text in _PERCENTILES if own.mode == "inference" else ():
                fraction = float(Decimal(text) / 100)
                if len(values) >= samples_needed(fraction):
                    # Same as numpy's method "nearest", which SuperBench uses.
                    nearest = round((len(values) - 1) * fraction)
                    figures[f"{metric}_{text}"] = sorted(values)[nearest]
        if is_global and run.peak_device_memory:
            memory = superbench_metric(own.precision, own.mode, "max_mem_allocated")
            figures[memory] = run.peak_device_memory / 2**30
        repeats.append(figures)
    return repeats


def _annotation(case: CaseResult, name: str) -> str:
    """Return the case's name as annotation of the benchmark.

    Framework and model of a model benchmark, and the mode of others, are left out. SuperBench has
    one return code per annotation."""
    model = series_of_model(case.case.model)
    own = {case.case.framework, model} if case.case.is_step else {case.case.mode}
    parts = [word for word in name.split("/") if word not in own]
    flagged = "flagged:" if case.flags else ""
    return flagged + re.sub(r"[^A-Za-z0-9_.=-]+", "-", "-".join(parts))


def read(source: ImportedFile) -> Iterator[ImportedFigure]:
    nodes: dict[str, int] = {}
    for line, text in source.lines():
        entry = source.object_of(text, line)
        node = entry.pop("node", None)
        if not isinstance(node, str):
            source.refuse(
                "is of another format: 'node' missing (results-summary.jsonl has one a line)", line
            )
        if node in nodes:
            source.refuse(f"node {node!r} is also in line {nodes[node]}", line)
        nodes[node] = line
        for key, value in entry.items():
            yield from _figure(source, node, key, value, line)


def _figure(
    source: ImportedFile, node: str, key: str, value: Any, line: int
) -> Iterator[ImportedFigure]:
    """Yield the figure of a key, or the failure that its value encodes."""
    benchmark, _, rest = key.partition("/")
    if not rest:
        source.refuse(f"key {key!r}: allowed: BENCHMARK/../METRIC", line)
    *middle, last = rest.split("/")
    metric, _, rank = last.rpartition(":") if re.search(r":\d+$", last) else (last, "", "")
    meaning = meaning_of(benchmark.partition(":")[0], metric)
    if meaning is None or not meaning.better:
        source.leave_out(key, _UNKNOWN)
        return
    is_missing = value is None or (isinstance(value, float) and not math.isfinite(value))
    number = -1.0 if is_missing else source.number(value, f"key {key!r}", line)
    runs = [int(part) for part in middle if part.isdecimal()]
    *outer, name = [part for part in middle if not part.isdecimal()] or [""]
    framework, _, model = name.rpartition("-") if "-" not in name else name.partition("-")
    parameters = {"benchmark": "/".join([benchmark, *outer])}
    if rank:
        parameters["rank"] = rank
    mode, what = SUPERBENCH, metric
    if meaning.mode:
        mode, what = f"{SUPERBENCH}_{meaning.mode}", meaning.what
        # Megatron-GPT divides the global batch by the step time.
        if not benchmark.startswith(_GLOBAL):
            what = what.replace("throughput", "throughput_per_device")
    failure = ""
    if metric == RETURN_CODE and not is_missing:
        failure = f"return code {value}" if value else ""
    elif number < 0:
        failure = f"SuperBench wrote {value}, which marks a failure"
    yield figure(
        SUPERBENCH, mode, MetricValue(what, number, meaning.unit, meaning.better),
        repeat=max(runs, default=0) + 1, failure=failure, parameters=parameters, node=node,
        framework=framework, model=model,
        precision=_OURS.get(meaning.precision, meaning.precision),
    )  # fmt: skip


FORMATS = [Format("superbench", ".jsonl", write, read)]
