"""Steps that were given their batches by the host: what a record tells of the way there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median


class Fed(NamedTuple):
    """Of all ranks together, in samples/s: ``compute`` without feeding, ``loader`` without steps,
    None where no loader was at work. Seconds of a median step of the slowest rank: ``wait`` until
    its batch was there, ``copy`` until the call that copies it had returned. ``skipped``: images
    that were left out because they are bad, None where none were read."""

    compute: float
    loader: float | None
    wait: float
    copy: float
    skipped: int | None


def fed_of(record: Mapping[str, Any], rank: Mapping[str, Any], samples: int) -> Fed | None:
    """None where no batch was given to a step. ``rank``: the slowest; ``samples``: of a step of all
    ranks together. Raises ValueError where the record does not tell it all."""
    found = rank.get("feeding")
    if found is None:
        return None
    steps = found["compute_step_seconds"]
    if not steps or not found["wait_seconds"] or not found["copy_seconds"]:
        raise ValueError("holds steps that were given batches, and not how long that took")
    data_set = rank.get("data_set")
    return Fed(
        compute=samples * len(steps) / sum(steps),
        loader=_loader(record["ranks"]),
        wait=median(found["wait_seconds"]),
        copy=median(found["copy_seconds"]),
        skipped=int(data_set["skipped"]) if data_set else None,
    )


def _loader(ranks: Sequence[Mapping[str, Any]]) -> float | None:
    """Sum of what each rank's loader gives."""
    rates = []
    for rank in ranks:
        found = rank.get("feeding", {})
        if not found.get("loader_seconds"):
            return None
        rates.append(found["loader_samples"] / found["loader_seconds"])
    return float(sum(rates))
