"""SuperBench's results-summary.jsonl: one object per node, one key per metric."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ....cases.conditions import series_of_model
from ....cases.superbench import (
    OLD_NAME,
    SUPERBENCH,
    SUPERBENCH_PRECISIONS,
    superbench_key,
    superbench_metric,
)
from ....statistics.descriptive import samples_needed
from ....tables.results import CaseResult
from .. import rows
from ..format import ExportedFile, Format, Results
from ..source import ImportedFile
from ..superbench_metrics import RETURN_CODE, meaning_of
from ..superbench_names import Name, names_of

#: First part of model benchmarks' keys. Micro-benchmarks have their own.
CLEAN = "model-benchmarks"
#: Node of figures without one.
NODE = "framebench"
_PERCENTILES = ("50", "90", "95", "99", "99.9")
#: Other spellings of precisions -> ours. Unknown spellings are kept.
_PRECISIONS = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    **{theirs: ours for ours, theirs in SUPERBENCH_PRECISIONS.items()},
}  # fmt: skip
#: Benchmark whose throughput is that of all devices.
_GLOBAL = "megatron-gpt"
#: Name of the file for a single node.
_OF_NODE = "results-summary.json"
_MONITOR = "the state of a machine, not a result of a benchmark"
_SETTING = "a setting of its benchmark, not a result"
_UNKNOWN = "SuperBench's documentation does not tell its unit and direction"


def write(results: Results) -> ExportedFile:
    """Write each figure that SuperBench has a name for, by SuperBench's definition.

    Model benchmarks: mean step time in ms and mean step rate per device; for inference also those
    percentiles of both that have enough steps."""
    return _Summary(results).written()


class _Summary:
    """Builder of the summary: keys and values by node."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._nodes: dict[str, dict[str, Any]] = {}
        self._left_out: list[str] = []

    def written(self) -> ExportedFile:
        for case in self._results.cases:
            if case.case.source == SUPERBENCH:
                self._add_imported(case)
            elif case.case.is_step:
                self._add_steps(case)
            elif names := names_of(case):
                for name in names:
                    self._add_micro(case, name)
            else:
                self._leave_out(case, "SuperBench has no metric of the same definition")
        lines = [
            json.dumps({"node": node, **entry}, ensure_ascii=False) + "\n"
            for node, entry in sorted(self._nodes.items())
            if entry
        ]
        return ExportedFile("".join(lines), self._left_out, not lines)

    def _leave_out(self, case: CaseResult, reason: str) -> None:
        self._left_out.append(f"{self._results.name(case)}: {case.key.metric}: {reason}")

    def _of_node(self, case: CaseResult) -> dict[str, Any]:
        return self._nodes.setdefault(case.case.node or NODE, {})

    def _add_imported(self, case: CaseResult) -> None:
        """Add an imported SuperBench figure under its original key."""
        head, _, metric = superbench_key(case.key).rpartition("/")
        found = self._of_node(case)
        for run in case.runs:
            key = f"{head}/{run.repeat - 1}/{metric}" if len(case.runs) > 1 else f"{head}/{metric}"
            code = re.fullmatch(r"return code (-?\d+)", run.reason)
            value = int(code[1]) if code else run.figure
            if value is None:
                self._leave_out(case, f"{run.status}: {run.reason}")
            else:
                found[key] = value

    def _add_steps(self, case: CaseResult) -> None:
        own = case.case
        model = series_of_model(own.model)
        if model.startswith(f"{SUPERBENCH}_"):
            model = model.removeprefix(f"{SUPERBENCH}_").replace("_", "-")
        benchmark = f"{CLEAN}:{self._annotation(case)}/{own.framework}-{model}"
        timed = [run for run in case.ok if run.waited_seconds]
        if not self._add_code(case, benchmark, failed=case.status != "ok"):
            return
        if len(timed) < len(case.runs):
            missing = len(case.runs) - len(timed)
            why = f"no step times of {missing} of {len(case.runs)} repeats"
            self._leave_out(case, why if case.status == "ok" else f"{why}; {case.reason}")
        batch = case.case.samples_of_replica
        for index, run in enumerate(timed):
            prefix = f"{benchmark}/{index}" if len(timed) > 1 else benchmark
            steps = [seconds for seconds in run.waited_seconds if seconds > 0]
            for what, values in (
                ("step_time", [1000 * seconds for seconds in steps]),
                ("throughput", [batch / seconds for seconds in steps]),
            ):
                key = f"{prefix}/{superbench_metric(own.precision, own.mode, what)}"
                self._of_node(case)[key] = sum(values) / len(values)
                if own.mode == "inference":
                    self._add_percentiles(case, key, values)

    def _add_percentiles(self, case: CaseResult, key: str, values: list[float]) -> None:
        for text in _PERCENTILES:
            fraction = float(Decimal(text) / 100)
            if len(values) >= samples_needed(fraction):
                # Same as numpy's method "nearest", which SuperBench uses.
                nearest = round((len(values) - 1) * fraction)
                self._of_node(case)[f"{key}_{text}"] = sorted(values)[nearest]
            else:
                needed = samples_needed(fraction)
                why = f"percentile {text} needs {needed} steps that were waited for one by one"
                self._leave_out(case, f"{key.rpartition('/')[2]}: {why}, has {len(values)}")

    def _add_micro(self, case: CaseResult, name: Name) -> None:
        benchmark = f"{name.benchmark}:{self._annotation(case)}"
        ok = [run for run in case.ok if run.value(case.key.metric, case.key.point) is not None]
        key = f"{benchmark}/{name.metric}"
        found = self._of_node(case)
        if any(text in found for text in (key, f"{benchmark}/0/{name.metric}")):
            self._leave_out(case, "another case has the same name there")
            return
        self._add_code(case, benchmark, failed=case.status != "ok")
        if len(ok) < len(case.runs):
            missing = len(case.runs) - len(ok)
            self._leave_out(case, f"no figure of {missing} of {len(case.runs)} repeats")
        for index, run in enumerate(ok):
            place = f"{benchmark}/{index}/{name.metric}" if len(ok) > 1 else key
            value = run.value(case.key.metric, case.key.point)
            assert value is not None
            found[place] = name.factor / value if name.is_inverse else name.factor * value

    def _add_code(self, case: CaseResult, benchmark: str, failed: bool) -> bool:
        """Add the return code: 0 for success, 1 for any failure.

        Returns False if a model benchmark has one already, from another case of the same name."""
        found, key = self._of_node(case), f"{benchmark}/{RETURN_CODE}"
        is_new = key not in found
        if not is_new and case.case.is_step:
            self._leave_out(case, "another case has the same name there")
            return False
        found[key] = max(int(failed), found.get(key, 0))
        return True

    def _annotation(self, case: CaseResult) -> str:
        """Return the case's name as annotation of the benchmark.

        Framework and model of a model benchmark, and the mode of others, are left out. SuperBench
        has one return code per annotation."""
        model = series_of_model(case.case.model)
        own = {case.case.framework, model} if case.case.is_step else {case.case.mode}
        parts = [word for word in self._results.name(case).split("/") if word not in own]
        flagged = "flagged:" if case.flags else ""
        return flagged + re.sub(r"[^A-Za-z0-9_.=-]+", "-", "-".join(parts))


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    nodes: dict[str, int] = {}
    for line, entry in _objects(source):
        node = entry.get("node")
        if not isinstance(node, str):
            source.refuse(
                "is of another format: 'node' missing (results-summary.jsonl has one a line)", line
            )
        if node in nodes:
            source.refuse(f"node {node!r} is also in line {nodes[node]}", line)
        nodes[node] = line
        for key, value in entry.items():
            if key != "node":
                yield from _figure(source, node, key, value, line)


def _objects(source: ImportedFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each node.

    SuperBench also writes one file per node, into a folder named after the node."""
    if source.path.name != _OF_NODE:
        yield from source.objects()
        return
    yield 1, {"node": source.path.absolute().parent.name, **source.object_of(source.text, 1)}


def _figure(
    source: ImportedFile, node: str, key: str, value: Any, line: int
) -> Iterator[rows.ImportedFigure]:
    """Yield the figure of a key, or the failure that its value encodes."""
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
    is_missing = value is None or (isinstance(value, float) and not math.isfinite(value))
    number = -1.0 if is_missing else source.number(value, f"key {key!r}", line)
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
        # Megatron-GPT divides the global batch by the step time.
        if not benchmark.startswith(_GLOBAL):
            what = what.replace("throughput", "throughput_per_device")
    failure = ""
    if metric == RETURN_CODE and not is_missing:
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
        holds="each repeat: step time and rate, percentiles of inference, micro-benchmarks that "
        "SuperBench has, in its units; imported figures of SuperBench unchanged; one line per "
        "node; return codes",
        flags="the annotation of the benchmark begins with `flagged:`",
        lost="throughput of all devices: as in SuperBench, it is the mean of the steps' rates per "
        "device; metrics that SuperBench does not have; repeats without step times; percentiles "
        "of too few steps; intervals; reasons of failures, which have return code 1",
        taken="every metric whose unit and direction SuperBench documents, and return codes; "
        "throughput is `throughput_per_device`, never ours; that of megatron-gpt is of all devices",
        not_taken="settings, `monitor`, and metrics without documented unit and direction",
        missing="batch, devices, versions, hardware",
    )
]
