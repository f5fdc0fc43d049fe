"""What a training step, or a forward pass, has to move between a device and its memory, from the
facts of its model: compulsory traffic, a lower bound (Williams, Waterman & Patterson, "Roofline",
*Communications of the ACM* 52(4), 2009).

Of N parameters of s bytes, k values of an optimizer's state beside each, gradients of c bytes, and
n of the parameters outside tables that a step only looks rows up in:

1. Training reads and writes each parameter and each value of the optimizer's state once, and
   writes and reads each gradient once: 2 (s (1 + k) N + c n) bytes.
2. A forward pass reads its parameters once, in the smallest dtype that the precision has for its
   products: c n bytes.

Activations, inputs and all that a framework moves besides do not count: no model's facts say how
much of that leaves the caches. Real traffic is more, unless a cache keeps some of it from one step
to the next, which ``held`` is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from core import precisions
from core.parallelism import DATA

from ...records.run import Run

#: Values beside each parameter that an optimizer keeps.
STATE = {"sgd": 1, "adamw": 2, "lamb": 2}


class Traffic(NamedTuple):
    """Bytes of a step on each device: ``moved`` to and from its memory, and ``held``: of all that
    this is of. None where they are not known, and ``reason`` says why."""

    moved: float | None
    held: float | None
    reason: str = ""


def of_step(run: Run, models: Mapping[str, Mapping[str, Any]]) -> Traffic:
    """``models``: facts by name."""
    facts = models.get(run.case.model)
    if facts is None or "trainable_parameters" not in facts:
        return _unknown("the parameters of this model are not known")
    if run.conditions.parallelism != DATA:
        shared = run.conditions.parallelism
        return _unknown(f"with {shared} devices share the parameters: what each moves is not known")
    stored, computed = _bytes_of(run.case.precision)
    if stored is None or computed is None:
        return _unknown(f"in which dtype {run.case.precision} keeps parameters is not known")
    count = int(facts["trainable_parameters"])
    outside = count - _looked_up(facts)
    if run.case.mode != "train":
        if "per_sample_in_training" in facts["forward_multiply_adds"]:
            return _unknown("how many of its parameters only training reads is not known")
        return Traffic(computed * outside, computed * outside)
    kept = _state(facts["hyperparameters"])
    if kept is None:
        return _unknown("what its optimizer keeps of each parameter is not known")
    held = stored * (1 + kept) * count + computed * outside
    return Traffic(2 * held, held)


def _unknown(reason: str) -> Traffic:
    return Traffic(None, None, reason)


def _bytes_of(name: str) -> tuple[int | None, int | None]:
    """Of a parameter as it is kept, and of the smallest dtype that products read it in."""
    precision = precisions.known().get(name)
    if precision is None:
        return None, None
    stored = precisions.BYTES.get(precision.storage)
    sizes = [precisions.BYTES.get(dtype) for dtype in precision.dtypes]
    known = [size for size in (*sizes, stored) if size is not None]
    return stored, min(known) if len(known) == len(sizes) + 1 else None


def _looked_up(facts: Mapping[str, Any]) -> int:
    """Parameters in tables of tokens and positions. Where the table of tokens is that of the
    logits too all of it is read, and the bound lies lower than it could."""
    hyper = facts["hyperparameters"]
    rows = hyper.get("vocabulary", 0) + hyper.get("positions", 0)
    return int(rows * hyper.get("hidden", 0))


def _state(hyper: Mapping[str, Any]) -> int | None:
    kept = STATE.get(str(hyper.get("optimizer")))
    return 0 if hyper.get("optimizer") == "sgd" and not hyper.get("momentum") else kept
