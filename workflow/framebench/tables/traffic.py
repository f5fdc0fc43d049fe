"""Least memory traffic of a training step or a forward pass, from the model config.

This is compulsory traffic, a lower bound (Williams, Waterman & Patterson, "Roofline",
*Communications of the ACM* 52(4), 2009). Symbols: N parameters of s bytes; k optimizer values per
parameter; gradients of c bytes; n parameters outside lookup tables.

1. Training reads and writes each parameter and optimizer value once, and writes and reads each
   gradient once: 2 (s (1 + k) N + c n) bytes.
2. A forward pass reads its parameters once, in the smallest dtype that the precision has for
   matmuls: c n bytes.

Activations, inputs and other traffic do not count, because no model config tells how much of it
leaves the caches. Real traffic is higher, unless a cache keeps data from one step to the next;
``held`` allows to check that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from core import precisions
from core.parallelism import DATA

from ..records.run import Run

#: Values per parameter that an optimizer keeps.
STATE = {"sgd": 1, "adamw": 2, "lamb": 2}


class Traffic(NamedTuple):
    """Memory traffic of a step on each device.

    ``moved``: bytes to and from memory; ``held``: bytes of the data moved. None if unknown;
    ``reason`` says why."""

    moved: float | None
    held: float | None
    reason: str = ""


def of_step(run: Run, models: Mapping[str, Mapping[str, Any]]) -> Traffic:
    """Return the least traffic of a run's step. ``models``: model config by name.

    A training of a user's own model reads and writes each parameter; its optimizer's values and
    gradients, which are not known, come on top."""
    case, work = run.case, run.sample_work
    stored, computed = _bytes_of(case.precision)
    if stored is None or computed is None:
        return _unknown(f"in which dtype {case.precision} keeps parameters is not known")
    if work:
        if case.mode == "train":
            return _moved(stored * work.parameters)
        if not work.read_parameters:
            return _unknown("the model has no parameters")
        return _read(computed * work.read_parameters)
    model_config = models.get(case.model)
    if model_config is None or "trainable_parameters" not in model_config:
        return _unknown("the parameters of this model are not known")
    if case.parallelism != DATA:
        shared = case.parallelism
        return _unknown(f"with {shared} devices share the parameters: what each moves is not known")
    hyper = model_config["hyperparameters"]
    count = int(model_config["trainable_parameters"])
    # Rows of tables that a step does not look up. If logits share the token table, all of it is
    # read; the bound is then lower than it could be.
    rows = hyper.get("vocabulary", 0) + hyper.get("positions", 0)
    outside = count - int(rows * hyper.get("hidden", 0))
    if case.mode != "train":
        if "per_sample_in_training" in model_config["forward_multiply_adds"]:
            return _unknown("how many of its parameters only training reads is not known")
        return _read(computed * outside)
    kept = STATE.get(str(hyper.get("optimizer")))
    if kept is None:
        return _unknown("what its optimizer keeps of each parameter is not known")
    if hyper["optimizer"] == "sgd" and not hyper.get("momentum"):
        kept = 0
    return _moved(stored * (1 + kept) * count + computed * outside)


def _read(held: float) -> Traffic:
    return Traffic(float(held), float(held))


def _moved(held: float) -> Traffic:
    """Return the traffic of data that are read and written."""
    return Traffic(2.0 * held, float(held))


def _unknown(reason: str) -> Traffic:
    return Traffic(None, None, reason)


def _bytes_of(name: str) -> tuple[int | None, int | None]:
    """Return bytes of a stored parameter, and of the smallest dtype that matmuls read."""
    precision = precisions.known().get(name)
    if precision is None:
        return None, None
    stored = precisions.BYTES.get(precision.storage)
    sizes = [precisions.BYTES.get(dtype) for dtype in precision.dtypes]
    present = [size for size in (*sizes, stored) if size is not None]
    return stored, min(present) if len(present) == len(sizes) + 1 else None
