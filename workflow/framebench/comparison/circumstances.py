"""Conditions under which a case was measured, flattened, and their differences between two sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..records.fields.facts import leaves
from ..records.record_sets import load_record
from ..records.run import RecordsError, Run

#: Parts of a record's environment in which two sets may differ.
ENVIRONMENT = ("python", "packages", "variables", "hardware", "system", "code")


def of(runs: Sequence[Run]) -> Mapping[str, Any]:
    """Return the environment and settings of the first ok run's record, flattened.
    For an imported run, return the hardware that it has."""
    run = next((run for run in runs if run.status == "ok"), runs[0])
    if run.record is None:
        return {"hardware": run.hardware} if run.hardware else {}
    try:
        record = load_record(run.record)
    except RecordsError:
        return {}
    parts = {part: record["environment"][part] for part in ENVIRONMENT}
    parts["settings"] = [rank.get("settings") for rank in record["ranks"][:1]]
    parts["given"] = record["settings"].get("variables", {})
    if own := record.get("own_model"):
        parts["model_version"] = (own["sha256"] or "")[:8]
    return {
        ".".join(part for part in path if isinstance(part, str)): value
        for path, value in leaves(parts)
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference by name, as text."""
    for name in sorted({*one, *other}):
        # Older records lack the processor; that is no difference.
        untold = name.startswith("hardware.processor.") and not (name in one and name in other)
        if one.get(name) != other.get(name) and not untold:
            yield f"{name} {one.get(name, 'none')} -> {other.get(name, 'none')}"
