"""Updates of a framework, compared with the reference's rule on the framework's own gradients."""

from __future__ import annotations

import json
from typing import Any

from .comparing import in_one_process

UPDATES = """
import numpy as np
from harness.measuring.verification.errors import compare_arrays
from reference.optimizers import OPTIMIZERS, clip_by_global_norm

COMPILER = "jit" if FRAMEWORK == "jax" else "none"
FACTS = json.loads(TEXT)

def with_facts(**changed):
    return {**FACTS, "hyperparameters": {**FACTS["hyperparameters"], **changed}}

def widened(arrays):
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}

def clipped(gradients):
    return clip_by_global_norm(gradients, FACTS["hyperparameters"]["clip_global_norm"])

def mean(several):
    return {name: sum(one[name] for one in several) / len(several) for name in several[0]}

def apart(change, hyper, weights, gradients):
    # from the change that the reference makes with these gradients
    after = dict(weights)
    OPTIMIZERS[hyper["optimizer"]](hyper).step(after, dict(gradients))
    wanted = {name: after[name] - weights[name] for name in after}
    return ["fp32", compare_arrays("first update", change, wanted, 0.05)]

def prepared(facts, steps=1, **options):
    adapter = started(facts, compiler=COMPILER, steps=steps, **options)
    adapter.build(batch_of(facts, 2 * steps, rank=RANK))
    return adapter

def moved(adapter):
    # weights, gradients, and the change of the weights by a step
    weights, gradients = widened(adapter.weights()), widened(adapter.gradients())
    adapter.step()
    after = adapter.weights()
    return weights, gradients, {name: after[name] - weights[name] for name in weights}
"""


def script(framework: str, facts: dict[str, Any], text: str) -> str:
    """Return ``text`` after the code above, for a process of this framework with the config
    ``FACTS``."""
    return f"{in_one_process(framework)}TEXT = {json.dumps(facts)!r}\n{UPDATES}{text}"
