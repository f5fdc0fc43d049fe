"""github-action-benchmark's custom tools: a list of {name, unit, value, range, extra}.

A file holds figures of one direction."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from ..format import ExportedFile, Format, Results, not_measured, notes

#: Name of the tool by direction.
TOOLS = {"higher": "customBiggerIsBetter", "lower": "customSmallerIsBetter"}


def write(results: Results, better: str) -> ExportedFile:
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
    return ExportedFile(
        json.dumps(entries, indent=1, ensure_ascii=False) + "\n", left_out, not entries
    )


def _format(name: str, better: str) -> Format:
    writer: Callable[[Results], ExportedFile] = partial(write, better=better)
    return Format(
        name,
        ".json",
        f"github-action-benchmark, tool {TOOLS[better]}",
        write=writer,
        holds="median, unit and interval of each figure; remarks in `extra`",
        flags="text in `extra`",
        lost=f"figures of which not {better} is better; single repeats",
    )


FORMATS = [
    _format("github-action-benchmark", "higher"),
    _format("github-action-benchmark-smaller", "lower"),
]
