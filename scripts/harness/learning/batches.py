"""Batches of samples in training and evaluation order."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

from harness.adapter import Mismatch

#: Arrays by name, with equal numbers of samples.
Arrays = Dict[str, Any]


def epoch_batches(
    arrays: Arrays, batch: int, replica: int, replicas: int, seed: int
) -> Iterator[Arrays]:
    """Yield the batches of one of several ``replicas`` in an epoch.

    All replicas draw the same order by ``seed`` and take different parts of it. The rest after the
    last whole step is dropped."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    order = np.random.RandomState(seed % 2**32).permutation(samples)
    together = batch * replicas
    for first in range(0, samples - together + 1, together):
        begin = first + replica * batch
        chosen = order[begin : begin + batch]
        yield {name: array[chosen] for name, array in arrays.items()}


def evaluation_batches(arrays: Arrays, batch: int) -> Iterator[Tuple[Arrays, int]]:
    """Yield all samples in order, in batches of one size, with the number of samples that count.

    The last batch is filled up with the first samples."""
    import numpy as np

    (samples,) = {len(array) for array in arrays.values()}
    for first in range(0, samples, batch):
        chosen = np.arange(first, first + batch) % samples
        yield {name: array[chosen] for name, array in arrays.items()}, min(batch, samples - first)


def check_inputs(arrays: Arrays, declared: Sequence[Mapping[str, Any]], length: int) -> None:
    """Raise :class:`Mismatch` where the arrays have numbers beyond those of the model's ``declared``
    inputs. ``length``: of its sequences, 0 for a model without."""
    for entry in declared:
        array, below = arrays[entry["name"]], entry.get("below")
        limit = length if below == "sequence" else below
        if limit is not None and len(array) and not 0 <= array.min() <= array.max() < limit:
            raise Mismatch(
                f"{entry['name']} of the task are {array.min()} to {array.max()}, those of the "
                f"model 0 to {limit - 1}"
            )
