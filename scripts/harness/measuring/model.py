"""A model that is built, and is what was asked for."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness.adapter import Accumulation, MatmulTrace, Mismatch, OwnModels, require
from harness.kind import Context
from harness.measuring import synthetic
from harness.measuring.checks import check_matmuls, check_other_batches, check_parameters
from harness.measuring.verification import rounding
from harness.measuring.verification.accumulation import check_micro_steps
from harness.parallelism import DATA
from harness.sharded import Sharded


def batch_of_rank(context: Context) -> Dict[str, Any]:
    """What this rank's steps compute with; of several micro-steps each has samples of its own.
    Ranks of one replica of the model have the same."""
    workload, rank_context = context.workload, context.rank_context
    if "own" in workload.facts:
        return seed_of_batch(rank_context.seed, rank_context.rank)
    case = workload.case
    return synthetic.make_batch(
        workload.facts["inputs"],
        case.samples_of_replica,
        case.sequence_length,
        rank_context.seed,
        case.layout.replica(rank_context.rank),
    )


def check_classes(facts: Mapping[str, Any], classes: int) -> None:
    """Raises :class:`Mismatch` where the model tells fewer ``classes`` apart than its data have."""
    known = facts.get("hyperparameters", {}).get("classes")
    if known is not None and classes > known:
        raise Mismatch(f"the data have {classes} classes, {facts['name']} has {known}")


def seed_of_batch(seed: int, rank: int) -> Dict[str, Any]:
    """Of a model that the user brings, what its own batch is drawn by: another in each rank."""
    import numpy as np

    return {"seed": np.array(seed + 1 + rank)}


def build(context: Context, batch: Dict[str, Any]) -> None:
    """Build the model with ``batch``. Raises what the adapter raises, Mismatch where its size, the
    precision of its products or the number of its micro-steps is another, Unsupported where that
    cannot be told."""
    adapter, workload, fields = context.adapter, context.workload, context.fields
    own, accumulates = "own" in workload.facts, workload.case.accumulation > 1
    shares = workload.case.parallelism != DATA
    needed = [*[OwnModels] * own, *[Accumulation] * accumulates, *[Sharded] * shares]
    require(adapter, MatmulTrace, *needed)
    context.phase("build", lambda: adapter.build(batch))
    fields["settings"] = adapter.settings()
    fields["trainable_parameters"] = int(adapter.trainable_parameters())
    if own:
        check_other_batches(adapter)
    else:
        check_parameters(fields["trainable_parameters"], workload.facts["trainable_parameters"])
    context.phase("product count", lambda: _observe_matmuls(adapter, fields), "products")
    check_matmuls(workload.case.precision, fields["products"])
    if accumulates:
        step, micro_step = adapter.step_matmuls(), adapter.micro_step_matmuls()
        fields["micro_steps"] = check_micro_steps(workload.case.accumulation, step, micro_step)


def _observe_matmuls(adapter: MatmulTrace, fields: Dict[str, Any]) -> None:
    bits = rounding.observe(adapter)
    if bits:
        fields["significant_bits"] = bits
    fields["products"] = rounding.named(adapter.matmul_dtypes(), bits)
