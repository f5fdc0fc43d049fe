"""Build a model and check that it is the requested one; make synthetic batches from its declared
inputs, distributed alike for every framework."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import zlib
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from harness.adapter import MatmulTrace, Mismatch, OwnModels, require
from harness.kind import Context
from harness.measuring import rounding
from harness.measuring.checks import CAPABILITIES, check_matmuls


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


def batch_of_rank(context: Context) -> Dict[str, Any]:
    """Return this rank's batch, with the samples of all micro-steps, and store its checksum. Ranks
    of one replica get the same."""
    workload, rank_context = context.workload, context.rank_context
    if "own" in workload.model_config:
        return seed_of_batch(rank_context.seed, rank_context.rank)
    case = workload.case
    batch = make_batch(
        workload.model_config["inputs"],
        case.samples_of_replica,
        case.sequence_length,
        rank_context.seed,
        case.layout.replica(rank_context.rank),
    )
    _observe_batch(context, batch.values())
    return batch


def _observe_batch(context: Context, arrays: Iterable[Any]) -> None:
    """Store the checksum of a batch, to compare with the checksums of other ranks."""
    given = list(arrays)
    if context.rank_context.world_size > 1 and given:
        checksum = 0
        for array in given:
            checksum = zlib.crc32(array.tobytes(), checksum)
        context.fields["batch_checksum"] = checksum


def check_classes(model_config: Mapping[str, Any], classes: int) -> None:
    """Raise :class:`Mismatch` where the data have more ``classes`` than the model."""
    known = model_config.get("hyperparameters", {}).get("classes")
    if known is not None and classes > known:
        raise Mismatch(f"the data have {classes} classes, {model_config['name']} has {known}")


def seed_of_batch(seed: int, rank: int) -> Dict[str, Any]:
    """Return the seed that a user's model draws its batch from, different in each rank."""
    import numpy as np

    return {"seed": np.array(seed + 1 + rank)}


def build(context: Context, batch: Dict[str, Any]) -> None:
    """Build the model with ``batch``.

    Raises the adapter's errors, Mismatch where size or precision differ from the request, and
    Unsupported where they cannot be observed."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    own = "own" in workload.model_config
    needed = (CAPABILITIES[axis.name] for axis in workload.case.differing())
    require(adapter, MatmulTrace, *[OwnModels] * own, *itertools.chain(*needed))
    context.phase("build", lambda: adapter.build(batch))
    fields["settings"] = adapter.settings()
    fields["trainable_parameters"] = int(adapter.trainable_parameters())
    if own:
        arrays = adapter.batch_arrays()
        _observe_batch(context, arrays)
    else:
        built, exact = fields["trainable_parameters"], workload.model_config["trainable_parameters"]
        if built != exact:
            raise Mismatch(f"the model has {built} trainable parameters, not {exact}")
    context.phase("matmul dtypes", lambda: _observe_matmuls(adapter, fields), "matmul_dtypes")
    if own:
        fields["sample_work"] = sample_work(adapter, arrays, workload.case.batch_per_device)
    check_matmuls(workload.case.precision, fields["matmul_dtypes"])


def sample_work(adapter: Any, arrays: Sequence[Any], batch: int) -> Dict[str, Any]:
    """Return multiply-adds and tokens of one sample of a user's model, None where unknown, and how
    many parameters a forward pass reads at least.

    A sample is a sequence of tokens where the first integers of the batch have two axes. Tables
    with a row for each token do not count, because a pass may read a few rows of them."""
    multiply_adds = adapter.multiply_adds()
    whole = [array for array in arrays if array.dtype.kind in "iu"]
    is_sequence = bool(whole) and whole[0].ndim == 2
    rows = int(whole[0].max()) + 1 if is_sequence else math.inf
    shapes = [tuple(entry.tensor.shape) for entry in adapter.state().values()]
    return {
        "multiply_adds": multiply_adds / batch if multiply_adds else None,
        "tokens": int(whole[0].shape[1]) if is_sequence else None,
        "read_parameters": sum(
            functools.reduce(operator.mul, shape, 1)
            for shape in shapes
            if len(shape) != 2 or max(shape) < rows
        ),
    }


def _observe_matmuls(adapter: MatmulTrace, fields: Dict[str, Any]) -> None:
    """Store the dtypes and significant bits of the model's matmuls."""
    bits = rounding.observe(adapter)
    if bits:
        fields["significant_bits"] = bits
    fields["matmul_dtypes"] = rounding.named(adapter.matmul_dtypes(), bits)
