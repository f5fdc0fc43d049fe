"""Formats that are written: the project's own table of runs (CSV, which is also read, and Parquet);
JUnit XML with a test case per case; OpenMetrics text for Prometheus; JSON of Bencher and of
github-action-benchmark, services that keep figures over commits; pyperf's and google-benchmark's
JSON of steps; LaTeX."""

from __future__ import annotations

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as Xml

import pandas as pd

from ....cases.conditions import series_of_model
from ....config.statuses import FAILURES
from ....records import tidy_csv
from ....tables.results import CaseResult
from ..file_formats import ExportedFile, Format, Results, flags, not_measured, notes
from ..imported import ImportedFigure, ImportedFile

_WHOLE = ("nodes", "devices_per_node", "batch_per_device", "repeat")
_FLAG = "Quality flags of the figure with the same labels."
_REPEATS = "Repeats of the case by status."
#: Unit names that OpenMetrics requires: base units in the plural.
_UNITS = {"s": "seconds", "TFLOP/s": "teraflops_per_second"}
#: Help texts by the endings of OpenMetrics' names.
_ENDS = {
    "": "Median over repeats.",
    "_ci_low": "Lower end of the 95 % interval of the median.",
    "_ci_high": "Upper end of the 95 % interval of the median.",
}
#: Suffix that Bencher removes from a benchmark's name and that silences its alerts.
_IGNORED = "-bencher-ignore"
#: Bencher's limits on the length of names, in characters.
_LONGEST_BENCHMARK, _LONGEST_MEASURE = 1024, 64
_PYPERF = {"version": "1.0", "metadata": {"unit": "second"}}
_GOOGLE = {"context": {"executable": "framebench", "json_schema_version": 1}}


def _csv(results: Results) -> ExportedFile:
    return ExportedFile(tidy_csv.text_of(results.rows()))


def _read_csv(source: ImportedFile) -> Iterator[ImportedFigure]:
    runs, problems = tidy_csv.read_csv(source.path)
    if problems:
        source.refuse(problems[0].message)
    yield from map(ImportedFigure, runs)


def _parquet(results: Results) -> ExportedFile:
    # Fixed types, because the default string type depends on the installed libraries.
    missing = [{name: cell or None for name, cell in row.items()} for row in results.rows()]
    frame = pd.DataFrame(missing, dtype="object").astype("string[python]")
    frame["value"] = pd.to_numeric(frame["value"]).astype("Float64")
    for column in _WHOLE:
        frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    out = io.BytesIO()
    try:
        frame.to_parquet(out, index=False)
    except ImportError:
        raise OSError(
            "Parquet needs fastparquet or pyarrow next to Framebench: pip install fastparquet"
        ) from None
    return ExportedFile(out.getvalue())


def _junit(results: Results) -> ExportedFile:
    """Write a test case for each case; those without a figure are failed or skipped."""
    whole = Xml.Element("testsuites")
    suite = Xml.SubElement(whole, "testsuite", name="framebench")
    counts = Counter[str]()
    for case in results.cases:
        element = FAILURES[case.status].in_junit if case.status in FAILURES else ""
        counts[element] += 1
        suite.append(_junit_case(results.name(case), case, element))
    suite.set("tests", str(len(results.cases)))
    for element, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(counts[element]))
    Xml.indent(whole)
    return ExportedFile(Xml.tostring(whole, encoding="utf-8", xml_declaration=True) + b"\n")


def _junit_case(name: str, case: CaseResult, element: str) -> Xml.Element:
    test = Xml.Element("testcase", classname=case.case.mode, name=f"{name} {case.key.metric}")
    took = [run.wall_seconds for run in case.runs if run.wall_seconds is not None]
    if took:
        test.set("time", f"{sum(took):.3f}")
    low, high = case.interval or (None, None)
    figures = {"median": case.throughput, "ci_low": low, "ci_high": high}
    properties = Xml.SubElement(test, "properties")
    for key, value in {
        "status": case.status,
        "unit": case.unit,
        "better": case.better,
        "repeats": str(len(case.values)),
        **{name: repr(value) for name, value in figures.items() if value is not None},
        **({"flags": flags(case)} if case.flags else {}),
    }.items():
        Xml.SubElement(properties, "property", name=key, value=value)
    if element:
        Xml.SubElement(test, element, message=case.reason, type=case.status)
    summary = f"{case.status}: {case.reason}"
    if case.throughput is not None:
        summary = f"{case.throughput:.6g} {case.unit}, median of {len(case.values)}"
        summary = "; ".join(filter(None, (summary, notes(case))))
    Xml.SubElement(test, "system-out").text = summary
    return test


def _openmetrics(results: Results) -> ExportedFile:
    """Write gauges for medians and intervals, flags, and repeats by status."""
    from prometheus_client.metrics_core import Metric
    from prometheus_client.openmetrics.exposition import generate_latest

    families: dict[str, Metric] = {}

    def add(name: str, unit: str, text: str, labels: dict[str, str], value: float) -> None:
        family = families.setdefault(name, Metric(name, text, "gauge", unit))
        family.add_sample(name, labels, value)

    for case in results.cases:
        labels = _labels(results, case)
        if case.compared is not None:
            unit = _UNITS.get(case.unit) or _word(case.unit.replace("/s", "_per_second"))
            values = case.compared, *(case.interval or ())
            for (end, what), value in zip(_ENDS.items(), values, strict=False):
                name = f"framebench_{_word(case.key.metric)}{end}" + (f"_{unit}" if unit else "")
                add(name, unit, what, labels, value)
        for flag in sorted(case.flags) if case.throughput is not None else ():
            add("framebench_flag", "", _FLAG, {**labels, "flag": flag}, 1)
        for status, count in sorted(Counter(run.status for run in case.runs).items()):
            add("framebench_repeats", "", _REPEATS, {**labels, "status": status}, count)
    registry = SimpleNamespace(collect=families.values)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    # A case without a figure appears only in the count of repeats.
    return ExportedFile(text.decode(), list(not_measured(results)))


def _labels(results: Results, case: CaseResult) -> dict[str, str]:
    own = case.case
    model = series_of_model(own.model)
    named = {
        "case": results.name(case),
        "metric": case.key.metric,
        "unit": case.unit,
        "better": case.better,
        "model": model,
        "model_version": own.model[len(model) + 1 :],  # version of a user's own model
    }
    axes = ("framework", "framework_version", "mode", "precision", "compiler")
    counts = ("nodes", "devices_per_node", "batch_per_device")
    named.update({axis: getattr(own, axis) for axis in axes})
    named.update({count: str(getattr(own, count) or "") for count in counts})
    return {name: value for name, value in named.items() if value or name == "unit"}


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _bencher(results: Results) -> ExportedFile:
    """Write Bencher Metric Format: {benchmark: {measure: {value, lower_value, upper_value}}}."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    left_out = list(not_measured(results))
    for case in results.cases:
        if case.compared is None:
            continue
        name = results.name(case) + (_IGNORED if case.flags else "")
        measure = f"{case.key.metric} ({case.unit})" if case.unit else case.key.metric
        if len(name) > _LONGEST_BENCHMARK or len(measure) > _LONGEST_MEASURE:
            left_out.append(f"{name}: {measure}: its name is too long for Bencher")
            continue
        low, high = case.interval or (None, None)
        figures = {"value": case.throughput, "lower_value": low, "upper_value": high}
        benchmarks[name][measure] = {
            key: figure for key, figure in figures.items() if figure is not None
        }
    return ExportedFile(_json(benchmarks), left_out, not benchmarks)


def _action(results: Results, better: str) -> ExportedFile:
    """Write input for a custom tool of github-action-benchmark: {name, unit, value, range, extra}
    of each metric whose direction is ``better``."""
    left_out = list(not_measured(results))
    entries = []
    for case in results.cases:
        if case.compared is None:
            continue
        metric, name = case.key.metric, results.name(case)
        if case.better != better:
            left_out.append(f"{name}: {metric}: {case.better} is better, here {better}")
            continue
        entry = {"name": f"{name} {metric}", "unit": case.unit, "value": case.throughput}
        if case.interval:
            low, high = case.interval
            entry["range"] = f"{low:.6g} to {high:.6g}"
        entries.append({**entry, "extra": notes(case) or "no flags"})
    return ExportedFile(_json(entries), left_out, not entries)


def _document(
    results: Results, head: dict[str, Any], write: Callable[[str, CaseResult], list[dict[str, Any]]]
) -> ExportedFile:
    """Return a JSON document with a list of benchmarks, for the cases of steps."""
    left_out, benchmarks = list[str](), list[dict[str, Any]]()
    for case in results.cases:
        name = results.name(case)
        for run in case.runs:
            if run.status != "ok":
                left_out.append(f"{name}: repeat {run.repeat}: {run.status}: {run.reason}")
        if not case.case.is_step:
            left_out.append(f"{name}: {case.key.metric}: has no steps")
        elif case.ok:
            benchmarks += write(name, case)
    return ExportedFile(_json({**head, "benchmarks": benchmarks}), left_out, not benchmarks)


def _pyperf(name: str, case: CaseResult) -> list[dict[str, Any]]:
    metadata, runs = {"framebench_flags": flags(case)} if case.flags else {}, []
    for run in case.ok:
        seconds = [value for value in run.waited_seconds if value > 0]
        mean = case.case.samples_per_step / (run.throughput or 1.0)  # if seconds are unknown
        runs.append({"metadata": metadata, "values": seconds or [mean]})
    return [{"metadata": {"name": name}, "runs": runs}]


def _google(name: str, case: CaseResult) -> list[dict[str, Any]]:
    label = {"label": flags(case)} if case.flags else {}
    rows = []
    for index, run in enumerate(case.ok):
        rate = run.throughput or 1.0
        time = 1e6 * case.case.samples_per_step / rate
        rows.append({
            "name": name, "run_name": name, "run_type": "iteration", "repetitions": len(case.ok),
            "repetition_index": index, "threads": 1, "iterations": len(run.step_seconds) or 1,
            # google-benchmark's compare.py requires cpu_time, which is not measured.
            "real_time": time, "cpu_time": time, "time_unit": "us",
            "items_per_second": rate, **label,
        })  # fmt: skip
    return rows


def _latex(results: Results) -> ExportedFile:
    rows = [
        {
            "case": results.name(case),
            "metric": case.key.metric,
            "median": case.status if case.throughput is None else f"{case.throughput:.4g}",
            "95 % interval": "{:.4g} to {:.4g}".format(*case.interval) if case.interval else "",
            "unit": case.unit,
            "repeats": str(len(case.values)),
            "flags": flags(case),
        }
        for case in results.cases
    ]
    style = pd.DataFrame(rows).style.hide(axis="index").format(escape="latex")
    text = style.format_index(escape="latex", axis=1).to_latex(environment="longtable", hrules=True)
    return ExportedFile(f"% needs \\usepackage{{booktabs,longtable}}\n{text}")


FORMATS = [
    Format("csv", ".csv", _csv, _read_csv),
    Format("parquet", ".parquet", _parquet),
    Format("junit", ".xml", _junit),
    Format("openmetrics", ".txt", _openmetrics),
    Format("bencher", ".json", _bencher),
    Format("github-action-benchmark", ".json", partial(_action, better="higher")),
    Format("github-action-benchmark-smaller", ".json", partial(_action, better="lower")),
    Format("pyperf", ".json", lambda results: _document(results, _PYPERF, _pyperf)),
    Format("google-benchmark", ".json", lambda results: _document(results, _GOOGLE, _google)),
    Format("latex", ".tex", _latex),
]
