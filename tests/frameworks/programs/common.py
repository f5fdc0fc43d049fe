"""Programs that the tests of several adapters run."""

import numpy as np
from harness.adapter import Mismatch, RankContext, Unsupported

from . import ranks
from .prelude import ADDRESSES, FRAMEWORK, LOCAL_RANK, RANK, batch_of, built, raised, started
from .small import small_bert


def check(name):
    ranks.run(f"{FRAMEWORK}.{name}")
    return {}


def refuse(model_config=None, build=False, **options):
    """Start an adapter, or build a model in it, with options that it refuses."""
    start = built if build else started
    refusals = (Unsupported, Mismatch)  # refusals by the framework, or faults of the machine
    return {"reason": raised(refusals, lambda: start(model_config or small_bert(), **options))}


def refuse_own_gpu(model_config):
    """Start an adapter whose framework is built for processors on the rank's GPU."""
    own_gpu = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cuda", 1, seed=7)
    return refuse(model_config, rank_context=own_gpu)


def flat(arrays):
    arrays = [array.numpy() if hasattr(array, "numpy") else array for array in arrays]
    return np.concatenate([np.asarray(array, "float64").ravel() for array in arrays])


def read_nan(model_config, compiler="none"):
    adapter = started(model_config, compiler=compiler)
    batch = batch_of(model_config)
    batch["images"][0, 0, 0, 0] = float("nan")
    adapter.build(batch)
    return {"poisoned": adapter.read(adapter.step())}
