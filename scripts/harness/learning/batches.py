"""Samples in the order in which they are fed."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

from harness.adapter import Mismatch

#: Arrays of as many samples each, by name.
Arrays = Dict[str, Any]


def of_epoch(
    arrays: Arrays, batch: int, replica: int, replicas: int, seed: int
) -> Iterator[Arrays]:
    """The batches of one of so many ``replicas`` in an epoch. All of them draw the same order by
    ``seed`` and take other parts of it; what is left behind the last whole step is not fed."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    order = np.random.RandomState(seed % 2**32).permutation(samples)
    together = batch * replicas
    for first in range(0, samples - together + 1, together):
        begin = first + replica * batch
        chosen = order[begin : begin + batch]
        yield {name: array[chosen] for name, array in arrays.items()}


def in_turn(arrays: Arrays, batch: int) -> Iterator[Tuple[Arrays, int]]:
    """All samples in their own order, in batches of one size, and how many of each count: the last
    batch is filled up with the first samples."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    for first in range(0, samples, batch):
        chosen = np.arange(first, first + batch) % samples
        yield {name: array[chosen] for name, array in arrays.items()}, min(batch, samples - first)


def check_inputs(arrays: Arrays, declared: Sequence[Mapping[str, Any]], length: int) -> None:
    """Raises :class:`Mismatch` where the arrays are not those that a model takes, by its
    ``declared`` inputs, or have a number that is beyond what it knows. ``length``: of its
    sequences, 0 of a model without."""
    names = [one["name"] for one in declared]
    if sorted(arrays) != sorted(names):
        raise Mismatch(f"the task has {sorted(arrays)}, the model takes {sorted(names)}")
    for one in declared:
        array, below = arrays[one["name"]], one.get("below")
        limit = length if below == "sequence" else below
        if limit is not None and len(array) and not 0 <= array.min() <= array.max() < limit:
            raise Mismatch(
                f"{one['name']} of the task are {array.min()} to {array.max()}, those of the model "
                f"0 to {limit - 1}"
            )
