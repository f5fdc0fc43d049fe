"""optimum-benchmark's benchmark.json (configuration and report), or its report only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....files.json_files import object_at
from ....statistics import descriptive
from .. import rows
from ..format import Format
from ..json_places import Keys
from ..source import ImportedFile

PARTS = ("memory", "latency", "throughput", "energy", "efficiency")
WHOLE, REPORT, CONFIG = "benchmark.json", "benchmark_report.json", "benchmark_config.json"
#: Targets whose throughput divides the samples of all steps by the time of one.
_WRONG = ("overall", "warmup", "train")
#: Statistics of a latency that are skipped without a message.
_STATISTICS = ("count", "total", "mean", "stdev", "stdev_", "p50", "p90", "p95", "p99")
#: Backend keys that always distinguish cases, if set.
_BACKEND = (
    "task", "quantization_scheme", "torch_compile", "autocast_dtype", "attn_implementation",
    "cache_implementation", "device_ids",
)  # fmt: skip
#: Configuration keys that differ between runs of a case or are in the case already.
_INCIDENTAL = (
    "name", "print_report", "log_report", "backend.name", "backend.version", "backend.model",
    "backend.torch_dtype", "backend.device", *(f"backend.{name}" for name in _BACKEND),
    "scenario.input_shapes", "scenario.generate_kwargs", "environment.processor",
)  # fmt: skip


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    document = source.json(constants=True)  # a deviation may be NaN
    is_whole = isinstance(document.get("report"), dict) and isinstance(document.get("config"), dict)
    report = document["report"] if is_whole else document
    within: Keys = ("report",) if is_whole else ()
    targets = {
        name: entry
        for name, entry in report.items()
        if isinstance(entry, dict) and {*entry} & {*PARTS}
    }
    if not targets:
        lacking = f"no target has one of {', '.join(PARTS)}"
        source.refuse(f"is of another format: {lacking}", within)
    config = document["config"] if is_whole else _config_beside(source)
    case, parameters = _case(config)
    settings = rows.settings_of(config, _INCIDENTAL) if config else source.its_name
    for target, measured in targets.items():
        for metric, value, unit, better in _figures(source, (*within, target), measured):
            yield rows.figure(
                "optimum-benchmark", "optimum_benchmark", metric, value, unit, better,
                parameters={**parameters, "target": target}, settings=settings, **case,
            )  # fmt: skip


def _config_beside(source: ImportedFile) -> dict[str, Any]:
    """Return the configuration file next to a report; {} if there is none."""
    if source.path.name != REPORT:
        return {}
    if source.is_one_of_many and source.path.with_name(WHOLE).is_file():
        source.refuse(f"holds the same figures as {WHOLE} beside it")
    beside = source.path.with_name(CONFIG)
    return ImportedFile(beside).json(constants=True) if beside.exists() else {}


def _figures(
    source: ImportedFile, within: Keys, measured: Mapping[str, Any]
) -> Iterator[tuple[str, float, str, str]]:
    """Yield metric, value, unit and direction of each figure of a target."""
    target = within[-1]
    for name, part in measured.items():
        if not isinstance(part, dict):
            continue
        unit, keys = str(part.get("unit", "")), (*within, name)
        if name == "latency":
            yield from _latency(source, keys, part, unit)
        elif name == "throughput" and target in _WRONG:
            why = "is the samples of all steps over the time of one"
            source.leave_out(f"{target}.throughput", why)
        elif name in ("throughput", "efficiency"):
            metric = "rate" if name == "throughput" else name
            yield from _numbers(source, keys, {"value": metric}, unit, "higher", part)
        elif name == "memory":
            names = {entry: entry for entry in part if entry.startswith("max_")}
            yield from _numbers(source, keys, names, unit, "lower", part)
        elif name == "energy":
            names = {
                "total": "energy",
                **{text: f"energy_{text}" for text in ("cpu", "gpu", "ram")},
            }
            yield from _numbers(source, keys, names, unit, "lower", part)
        else:
            source.leave_out(f"{target}.{name}", "is not known")


def _latency(
    source: ImportedFile, keys: Keys, part: Mapping[str, Any], unit: str
) -> Iterator[tuple[str, float, str, str]]:
    values = part.get("values")
    if isinstance(values, list) and values:
        what = f"{keys[-2]}.latency.values"
        numbers = [
            source.number(value, what, (*keys, "values", index))
            for index, value in enumerate(values)
        ]
        yield "latency", descriptive.median(numbers), unit, "lower"
    else:
        yield from _numbers(source, keys, {"p50": "latency"}, unit, "lower", part)


def _numbers(
    source: ImportedFile,
    keys: Keys,
    names: Mapping[str, str],
    unit: str,
    better: str,
    part: Mapping[str, Any],
) -> Iterator[tuple[str, float, str, str]]:
    """Yield the figures of a part. ``names``: metric by key of the part."""
    what = ".".join(map(str, keys[-2:]))
    for key, metric in names.items():
        if part.get(key) is not None:
            value = source.number(part[key], f"{what}.{key}", (*keys, key))
            yield metric, value, unit, better
    for key, value in part.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and key not in names and key not in _STATISTICS:
            source.leave_out(f"{what}.{key}", "is not known")
    if not any(part.get(key) is not None for key in names):
        source.leave_out(what, f"has none of {', '.join(names)}")


def _case(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    backend = object_at(config, "backend")
    # Versions before 0.3 call the scenario "benchmark".
    scenario = object_at(config, "scenario") or object_at(config, "benchmark")
    texts = {
        "framework": backend.get("name"), "framework_version": backend.get("version"),
        "model": backend.get("model"), "precision": backend.get("torch_dtype"),
    }  # fmt: skip
    case = {name: str(text) for name, text in texts.items() if text}
    parts = ("input_shapes", "generate_kwargs")
    told = [object_at(scenario, name) for name in parts]
    told.append({name: backend.get(name) for name in _BACKEND})
    parameters = {name: value for part in told for name, value in rows.settings_of(part).items()}
    return {**case, "accelerator": str(backend.get("device") or "")}, parameters


FORMATS = [
    Format(
        "optimum-benchmark",
        WHOLE,
        "optimum-benchmark's benchmark.json or benchmark_report.json",
        read=read,
        others=(REPORT,),
        taken="per target: median latency, throughput (as `rate`), peak memory, energy (total, "
        "CPU, GPU, RAM) and efficiency, in the units of the file; parameters: input shapes, "
        "generation, quantization, compilation, attention, and other differences between "
        "configurations; a report's configuration comes from `benchmark_config.json` next to it",
        not_taken="other statistics of latencies; the throughput of `overall`, `warmup` and "
        "`train`, because it divides the samples of all steps by the time of one",
        missing="devices; for a report without configuration, the whole case",
    )
]
