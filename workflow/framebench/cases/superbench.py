"""SuperBench's names of figures, as its files and its rules for nodes spell them."""

from __future__ import annotations

from ..config.kinds import MODES
from .conditions import Key

#: Source of figures imported from SuperBench.
SUPERBENCH = "superbench"
#: SuperBench's spelling of our precisions, if different.
SUPERBENCH_PRECISIONS = {"fp8": "fp8_hybrid"}


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
