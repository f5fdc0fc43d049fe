"""Work of a sample of a user's own model, as the run observed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class SampleWork(NamedTuple):
    """Work of one sample.

    ``multiply_adds``: of the forward pass; ``tokens``: of its sequence; None if unknown.
    ``parameters``: trainable ones of the model; ``read_parameters``: those that a forward pass
    reads at least."""

    multiply_adds: float | None
    tokens: int | None
    parameters: int
    read_parameters: int


def sample_work_of(ranks: Sequence[Mapping[str, Any]]) -> SampleWork | None:
    """Return the work of a sample; None for models of the project and in older records."""
    for rank in ranks[:1]:
        if work := rank.get("sample_work"):
            parameters = int(rank["trainable_parameters"])
            read = int(work["read_parameters"])
            return SampleWork(work["multiply_adds"], work["tokens"], parameters, read)
    return None
