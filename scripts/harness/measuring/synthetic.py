"""Make synthetic batches from a model's declared inputs, distributed alike for every framework."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union


def predictions(sequence_length: int) -> int:
    """Return the number of masked positions: 20 of 128 as in BERT's pre-training, at least one."""
    return max(1, round(20 * sequence_length / 128))


def shape_of(
    declared: List[Union[str, int]], batch: int, sequence_length: Optional[int]
) -> List[int]:
    """Replace the names batch, sequence and predictions in a declared shape by numbers. Raises
    KeyError for an unknown name."""
    sizes = {"batch": batch}
    if sequence_length is not None:
        sizes["sequence"] = sequence_length
        sizes["predictions"] = predictions(sequence_length)
    return [sizes[size] if isinstance(size, str) else size for size in declared]


def make_batch(
    inputs: List[Dict[str, Any]], batch: int, sequence_length: Optional[int], seed: int, rank: int
) -> Dict[str, Any]:
    """Return numpy arrays by input name: ``normal`` as float32, all others as int64. ``integers``
    are below a number or a word of :func:`shape_of`; ``padded`` is 1 up to a length from half of
    the sequence to all of it, and 0 after it. Another rank or another seed gives another batch.
    Raises ValueError for an unknown distribution."""
    if not inputs:
        return {}
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    random = np.random.RandomState((seed * 1000 + rank) % 2**32)
    arrays: Dict[str, Any] = {}
    for declared in inputs:
        shape = shape_of(declared["shape"], batch, sequence_length)
        distribution = declared["distribution"]
        if distribution == "normal":
            array = random.standard_normal(shape).astype(np.float32)
        elif distribution == "integers":
            (below,) = shape_of([declared["below"]], batch, sequence_length)
            array = random.randint(0, below, size=shape).astype(np.int64)
        elif distribution == "ones":
            array = np.ones(shape, dtype=np.int64)
        elif distribution == "padded":
            rows, longest = shape
            lengths = random.randint((longest + 1) // 2, longest + 1, size=(rows, 1))
            array = (np.arange(longest) < lengths).astype(np.int64)
        elif distribution == "positions":
            rows, count = shape
            assert sequence_length is not None
            array = np.stack(
                [np.sort(random.permutation(sequence_length)[:count]) for _ in range(rows)]
            ).astype(np.int64)
        else:
            raise ValueError(f"input {declared['name']!r}: unknown distribution {distribution!r}")
        arrays[declared["name"]] = array
    return arrays
