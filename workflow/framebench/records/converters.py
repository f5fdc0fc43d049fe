"""Records of earlier formats, turned into those of today. Standard library only.

A converter never says what is wrong with a record: it takes over what is there, and the schema
says of the result what it says of any other record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

FORMAT = "framebench-record-2"


def current(record: Any) -> Any:
    """``record`` in today's format, where it is of an earlier one; else as it is."""
    if not isinstance(record, dict):
        return record
    convert = _CONVERTERS.get(_text(record.get("format")))
    return convert(record) if convert else record


def tflops_of(block: Mapping[str, Any]) -> float:
    """A product of two matrices of n rows takes n^3 multiplications and as many additions."""
    return float(2e-12 * block["size"] ** 3 * block["products"] / min(block["seconds"]))


def _run(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of a step: the mode is the kind, and throughput one metric."""
    mode, case = _mode_and_case(record)
    throughput = {"value": record.get("throughput"), "better": "higher"}
    if "unit" in record:
        throughput["unit"] = record["unit"]
    return _renewed(record, case, mode, {}, {"throughput": throughput})


def _parity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of a comparison, whose reference the command names, and whose dropout the first of these
    records do not state: the file of the model's facts does."""
    mode, case = _mode_and_case(record)
    parameters = {"mode": mode}
    command, settings = record.get("command"), record.get("settings")
    if isinstance(command, list) and "--parity" in command[:-1]:
        parameters["reference"] = command[command.index("--parity") + 1]
    if isinstance(command, list) and isinstance(settings, dict):
        with_dropout = any(str(word).endswith("facts-dropout.json") for word in command)
        record = {**record, "settings": {"dropout": float(with_dropout), **settings}}
    return _without_steps(_renewed(record, case, "parity", parameters, {}))


def _probe(record: Mapping[str, Any]) -> dict[str, Any]:
    """Of the peak, which has neither a batch nor a compiler."""
    _, case = _mode_and_case(record)
    ranks = record.get("ranks")
    if isinstance(ranks, list):
        ranks = [_renamed(rank, "probe", "matmuls") for rank in ranks]
    value = _peak(ranks) if record.get("status") == "ok" else None
    metrics = {"peak": {"value": value, "unit": "TFLOP/s", "better": "higher"}}
    if isinstance(case, dict):
        case = {**case, "batch_per_device": None, "compiler": None}
    return _without_steps(_renewed({**record, "ranks": ranks}, case, "peak", {}, metrics))


def _search(result: Mapping[str, Any]) -> dict[str, Any]:
    """Of the largest batch: neither when it was looked for was written down, nor by which
    command."""
    mode, case = _mode_and_case(result)
    parameters = {"mode": mode, **_those(result, "multiple_of", "at_most")}
    found = {"value": result.get("batch_per_device"), "unit": "samples/device", "better": "higher"}
    if isinstance(case, dict):
        case = {**case, "batch_per_device": None}
    kept = ("status", "reason", "framework_version", "settings", "attempts", "environment")
    record = {
        "source": "framebench",
        "repeat": 1,
        "samples": None,
        "window_seconds": None,
        "wall_seconds": _seconds(result.get("attempts")),
        "started": "",
        "command": [],
        "ranks": [],
        **_those(result, *kept),
    }
    return _renewed(record, case, "largest_batch", parameters, {"largest_batch": found})


_CONVERTERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "framebench-record-1": _run,
    "framebench-parity-1": _parity,
    "framebench-probe-1": _probe,
    "framebench-largest-batch-1": _search,
}


def _mode_and_case(record: Mapping[str, Any]) -> tuple[Any, Any]:
    case = record.get("case")
    if not isinstance(case, dict):
        return None, case
    return case.get("mode"), {key: value for key, value in case.items() if key != "mode"}


def _renewed(
    record: Mapping[str, Any],
    case: Any,
    kind: Any,
    parameters: dict[str, Any],
    metrics: dict[str, Any],
) -> dict[str, Any]:
    rest = {key: value for key, value in record.items() if key not in ("throughput", "unit")}
    added = {"format": FORMAT, "kind": kind, "parameters": parameters, "metrics": metrics}
    return {**rest, **added, **({} if case is None else {"case": case})}


def _without_steps(record: dict[str, Any]) -> dict[str, Any]:
    """Numbers of steps that were not run."""
    steps = ("warmup_steps", "warmup_limit", "timed_steps")
    settings = record.get("settings")
    if isinstance(settings, dict):
        record["settings"] = {key: value for key, value in settings.items() if key not in steps}
    return record


def _renamed(fields: Any, old: str, new: str) -> Any:
    if not isinstance(fields, dict):
        return fields
    return {new if key == old else key: value for key, value in fields.items()}


def _those(record: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: record[key] for key in keys if key in record}


def _seconds(attempts: Any) -> float | None:
    """Of all together; None where it does not follow from them: the reader says why."""
    try:
        return float(sum(one["seconds"] for one in attempts))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None


def _peak(ranks: Any) -> float | None:
    """None where it does not follow from the ranks: the reader says why."""
    try:
        return min(max(map(tflops_of, rank["matmuls"])) for rank in ranks)
    except (TypeError, KeyError, ValueError, ZeroDivisionError, OverflowError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
