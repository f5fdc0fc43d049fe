"""Several small models, compared with their references in one process of a framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from framebench.records import parity

from .fork_server import ForkServer

#: What a process does before it starts several adapters.
BEFORE = {
    # operation by operation, each would be compiled by itself for each shape; amp as on a device
    # whose products it reaches: XLA for CPUs widens what was rounded to bfloat16
    "jax": """
import dataclasses
start = started
def started(facts, mode, precision):
    adapter = start(facts, mode=mode, compiler="jit")
    adapter.case = dataclasses.replace(adapter.case, precision=precision)
    adapter._devices.probe = lambda dtype: {}
    adapter._dtype = adapter._devices.compute_dtype(precision, adapter._device)
    return adapter
""",
    "pytorch": """
import torch
torch.set_num_interop_threads(1)
torch.set_num_interop_threads = lambda number: None
""",
}
COMPARE = """
import json
from harness.kinds.parity import Comparison, compare
errors = {}
for folder, name, mode, precision in COMPUTATIONS:
    with open(f"{folder}/{name}.json") as file:
        facts = json.load(file)
    reference = Comparison(folder)
    adapter = started(facts, mode=mode, precision=precision)
    adapter.build(dict(reference.arrays("batch-0")))
    key = f"{facts['name']}, {name}, {mode}, {precision}"
    errors[key] = [precision, compare(adapter, reference, print)]
    adapter.stop()
answer(errors=errors)
"""

#: By computation, its precision and what was found.
Errors = Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]]


def compared(
    run: ForkServer, folders: Sequence[Path], precisions: Sequence[str] = ("fp32",)
) -> Errors:
    """Training and inference of the model of each folder; of one with dropout that, too."""
    computations = [
        (str(folder), name, mode, precision)
        for folder in folders
        for name, modes in (("facts", ("train", "inference")), ("facts-dropout", ("train",)))
        for mode in modes
        for precision in precisions
        if (folder / f"{name}.json").exists()
    ]
    script = COMPARE.replace("COMPUTATIONS", repr(computations))
    (found,) = run(BEFORE.get(run.framework, "") + script)
    errors: Errors = found["errors"]
    assert len(errors) == len(computations)
    return errors


def beyond(errors: Errors, bounds: Mapping[str, float] | None = None) -> dict[Any, float]:
    """Errors above the bounds of their precision, or above ``bounds``, by quantity, where those
    are given."""
    own = bounds or {}
    return {
        (computation, one["quantity"], one["where"]): one["error"]
        for computation, (precision, measured) in errors.items()
        for one in measured
        if not one["error"] <= own.get(one["quantity"], parity.bound(precision, one["quantity"]))
    }
