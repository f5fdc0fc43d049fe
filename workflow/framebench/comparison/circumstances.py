"""Conditions under which a case was measured, flattened, and their differences between two sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..records import record_files
from ..records.run import Run

#: Parts of a record's environment in which two sets may differ.
ENVIRONMENT = ("python", "packages", "variables", "hardware", "system", "code")
#: Digits of the content of a user's own model, and digest of all that computes a figure.
MODEL_VERSION, COMPUTATION = "model_version", "code.computation"
#: Keys and list positions that lead to a value.
Path = tuple[str | int, ...]
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def of_first_ok(runs: Sequence[Run]) -> Mapping[str, Any]:
    """Return the environment and settings of the first ok run's record, flattened.
    For an imported run, return the hardware that it has."""
    run = next((run for run in runs if run.status == "ok"), runs[0])
    if run.record is None:
        return {"hardware": run.hardware} if run.hardware else {}
    try:
        record = record_files.read(run.record)
    except (OSError, ValueError):
        return {}
    parts = {part: record["environment"][part] for part in ENVIRONMENT}
    parts["settings"] = [rank.get("settings") for rank in record["ranks"][:1]]
    parts["given"] = record["settings"].get("variables", {})
    if own_model := record.get("own_model"):
        parts[MODEL_VERSION] = (own_model["sha256"] or "")[:8]
    return {
        ".".join(part for part in path if isinstance(part, str)): value
        for path, value in _leaves(parts)
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference by name, as text: first the version of a user's own model, which is
    part of the computation. Digests are shortened."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if MODEL_VERSION in names:
        names.discard(COMPUTATION)
    for name in sorted(names, key=lambda name: (name != MODEL_VERSION, name)):
        # Older records lack the processor; that is no difference.
        untold = name.startswith("hardware.processor.") and not (name in before and name in after)
        if not untold:
            yield f"{name} {_short(before.get(name, 'none'))} -> {_short(after.get(name, 'none'))}"


def _short(value: Any) -> str:
    text = str(value)
    return text[:10] if _DIGEST.fullmatch(text) else text


def _leaves(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path and value of each leaf: a scalar, or a list without mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for position, inner in enumerate(value):
            yield from _leaves(inner, (*path, position))
    else:
        yield path, value
