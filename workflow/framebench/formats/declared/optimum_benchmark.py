"""optimum-benchmark's benchmark.json (configuration and report), or its report alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records.run import Run
from ...statistics import descriptive
from .. import rows
from ..format import Format
from ..json_places import Keys
from ..source import Source

PARTS = ("memory", "latency", "throughput", "energy", "efficiency")
#: Targets whose throughput is that of all steps over the time of one.
_WRONG = ("overall", "warmup", "train")


def read(source: Source) -> Iterator[Run]:
    document = source.json()
    is_whole = isinstance(document.get("report"), dict) and isinstance(document.get("config"), dict)
    report = document["report"] if is_whole else document
    within: Keys = ("report",) if is_whole else ()
    case, parameters = _case(document["config"]) if is_whole else ({}, {})
    targets = {
        name: one for name, one in report.items() if isinstance(one, dict) and {*one} & {*PARTS}
    }
    if not targets:
        lacking = "no target has a latency, a throughput or a memory"
        source.refuse(f"is of another format: {lacking}", within)
    for target, measured in targets.items():
        for metric, value, unit, better in _figures(source, (*within, target), measured):
            yield rows.figure(
                "optimum-benchmark", "optimum_benchmark", metric, value, unit, better,
                parameters={**parameters, "target": target}, **case,
            )  # fmt: skip


def _figures(
    source: Source, within: Keys, measured: dict[str, Any]
) -> Iterator[tuple[str, float, str, str]]:
    target = within[-1]
    latency, throughput = measured.get("latency"), measured.get("throughput")
    memory = measured.get("memory")
    if isinstance(latency, dict) and isinstance(latency.get("values"), list) and latency["values"]:
        values = [
            source.number(one, f"{target}.latency.values", (*within, "latency", "values", index))
            for index, one in enumerate(latency["values"])
        ]
        yield "latency", descriptive.median(values), str(latency.get("unit", "")), "lower"
    if isinstance(throughput, dict) and target not in _WRONG:
        place = (*within, "throughput", "value")
        value = source.number(throughput.get("value"), f"{target}.throughput.value", place)
        yield "rate", value, str(throughput.get("unit", "")), "higher"
    if isinstance(memory, dict):
        for name, one in memory.items():
            if name.startswith("max_") and one is not None:
                place = (*within, "memory", name)
                value = source.number(one, f"{target}.memory.{name}", place)
                yield name, value, str(memory.get("unit", "")), "lower"


def _case(config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    backend, scenario = (_mapping(config.get(name)) for name in ("backend", "scenario"))
    texts = {
        "framework": backend.get("name"), "framework_version": backend.get("version"),
        "model": backend.get("model"), "precision": backend.get("torch_dtype"),
    }  # fmt: skip
    case = {name: str(one) for name, one in texts.items() if one}
    batch = _mapping(scenario.get("input_shapes")).get("batch_size")
    parameters = {"batch_size": batch} if isinstance(batch, int) else {}
    return {**case, "accelerator": str(backend.get("device") or "")}, parameters


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


FORMATS = [
    Format(
        "optimum-benchmark",
        "benchmark.json",
        "optimum-benchmark's benchmark.json or benchmark_report.json",
        read=read,
        missing="devices; of a report alone all of the case; the median of the latencies is taken; "
        "the throughput of `overall`, `warmup` and `train` is not, because it is the samples of "
        "all steps over the time of one",
    )
]
