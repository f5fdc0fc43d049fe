"""Text of a case in tables and on the terminal, and as SuperBench spells it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core import precisions
from core.case import Case

from ..config.catalog import framework_title, model_title
from .conditions import MODES, Key

#: Modes and precisions in words; others are called by their name.
_WORDS = {"train": "training", "amp": "mixed"}
#: Source of figures imported from SuperBench.
SUPERBENCH = "superbench"
#: SuperBench's spelling of our precisions, if different.
SUPERBENCH_PRECISIONS = {"fp8": "fp8_hybrid"}
#: Most models to list by name; for more, the text only counts them.
MOST_MODELS = 6


def in_words(name: str) -> str:
    """Return a mode or precision in words, such as ``training`` or ``mixed``."""
    return _WORDS.get(name, name.replace("_", " "))


def workload(case: Case) -> str:
    """Return model and mode of a case in words, such as ``ResNet-50 training``."""
    model = [model_title(case.model)] if case.model else []
    return " ".join([*model, in_words(case.mode)])


def devices(case: Case, noun: str = "device") -> str:
    """Return nodes and devices of a case in words, such as ``2 nodes x 8 GPUs``."""
    nodes = f"{case.nodes} nodes x " if case.nodes > 1 else ""
    return f"{nodes}{case.devices_per_node} {noun}{'s' * (case.devices_per_node > 1)}"


def setting(case: Case, accelerator: str) -> str:
    """Return the workload that frameworks compete in: ``ResNet-50 training, mixed, 8 GPUs``."""
    parts = [workload(case), in_words(case.precision)]
    if accelerator == "cuda" or case.devices > 1:
        parts.append(devices(case, "GPU" if accelerator == "cuda" else "device"))
    return ", ".join(filter(None, parts))


def frameworks(cases: Iterable[Case]) -> list[str]:
    """Return the titles of the frameworks of some cases, in their order."""
    return list(dict.fromkeys(framework_title(case.framework) for case in cases if case.framework))


def workloads(cases: Iterable[Case]) -> str:
    """Return models, modes and reduced precisions of some cases in words, such as ``ResNet-50 and
    BERT training, mixed``."""
    cases = list(cases)
    models = list(dict.fromkeys(model_title(case.model) for case in cases if case.model))
    modes = list(dict.fromkeys(in_words(case.mode) for case in cases))
    parts = [f"{len(models)} models"] if len(models) > MOST_MODELS else [listed(models)]
    parts = [", ".join([*parts, listed(modes)]) if len(models) > 1 < len(modes) else
             " ".join(filter(None, [*parts, listed(modes)]))]  # fmt: skip
    if all(precisions.baseline(case.precision) for case in cases):
        parts.append(listed(in_words(case.precision) for case in cases))
    return ", ".join(parts)


def listed(words: Iterable[str]) -> str:
    """Return different words as a list, such as ``A, B and C``."""
    *most, last = dict.fromkeys(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def topology(nodes: Any, devices_per_node: Any) -> str:
    """Return nodes x devices per node in DLPerf's form, such as 2n8g; "" if unknown."""
    nodes, devices = _count(nodes), _count(devices_per_node)
    return f"{nodes}n{devices}g" if nodes and devices else ""


def topology_of(case: Any) -> str:
    """Return the topology of a case, a run or a row."""
    return topology(case.nodes, case.devices_per_node)


def batch_of(case: Any, prefix: str = "b") -> str:
    """Return ``prefix`` and the batch per device of a case, a run or a row; "" if unknown."""
    batch = _count(case.batch_per_device)
    return f"{prefix}{batch}" if batch else ""


def _count(value: Any) -> int:
    """Return a count; 0 for the missing values of data frames."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def superbench_metric(precision: str, mode: str, what: str) -> str:
    """Return a model benchmark's metric name in SuperBench 0.4 and later."""
    return f"{SUPERBENCH_PRECISIONS.get(precision, precision)}_{mode}_{what}"


def superbench_key(key: Key) -> str:
    """Return the key under which SuperBench wrote an imported figure."""
    case, given = key.case, dict(key.case.parameters)
    model = "-".join(filter(None, (case.framework, case.model)))
    metric = key.metric
    mode = case.mode.removeprefix(f"{SUPERBENCH}_")
    if mode in MODES:
        what = metric.replace("throughput_per_device", "throughput")
        metric = superbench_metric(case.precision, mode, what)
    name = "/".join(filter(None, (str(given.get("benchmark", "")), model, metric)))
    return f"{name}:{given['rank']}" if given.get("rank") else name
