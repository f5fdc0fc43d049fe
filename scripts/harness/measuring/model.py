"""Build a model and check that it is the requested one."""

from __future__ import annotations

import functools
import math
import operator
import zlib
from typing import Any, Dict, Iterable, Mapping, Sequence

from harness.adapter import MatmulTrace, Mismatch, OwnModels, require
from harness.kind import Context
from harness.measuring import synthetic
from harness.measuring.checks import check_matmuls
from harness.measuring.verification import rounding, shared_steps


def batch_of_rank(context: Context) -> Dict[str, Any]:
    """Return this rank's batch, with the samples of all micro-steps, and store its checksum. Ranks
    of one replica get the same."""
    workload, rank_context = context.workload, context.rank_context
    if "own" in workload.model_config:
        return seed_of_batch(rank_context.seed, rank_context.rank)
    case = workload.case
    batch = synthetic.make_batch(
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
    require(adapter, MatmulTrace, *[OwnModels] * own, *shared_steps.needed(workload.case))
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
