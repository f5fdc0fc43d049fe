"""Models in half precision."""

import numpy as np
import torch
from harness.adapter import Mismatch

from .prelude import batch_of, built, load_facts, raised, started
from .small import facts_of, small_bert


def train(precision):
    facts = facts_of("shufflenet_v2_x0_5")
    facts["inputs"][0]["shape"] = ["batch", 64, 64, 3]
    adapter = built(facts, precision=precision)
    adapter.step()
    dtypes = {}
    for module in adapter._model.modules():
        kind = "norm" if isinstance(module, torch.nn.BatchNorm2d) else "other"
        for array in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            if array.is_floating_point():
                dtypes.setdefault(kind, set()).add(str(array.dtype))
    moments = {
        str(entry.dtype) for kept in adapter._optimizer.state.values() for entry in kept.values()
    }
    return {
        "matmul_dtypes": sorted(adapter.matmul_dtypes()),
        "moments": sorted(moments),
        "scaler": adapter.settings()["grad_scaler"],
        **{kind: sorted(dtype) for kind, dtype in dtypes.items()},
    }


def train_small_epsilon(folder):
    facts = load_facts(folder)
    facts["hyperparameters"]["epsilon"] = 1e-8
    adapter = started(facts, precision="fp16")
    batch = batch_of(facts)
    batch["token_ids"] %= 3
    adapter.build(batch)
    for _ in range(2):
        loss = adapter.read(adapter.step())
    return {
        "loss": loss,
        "finite": all(bool(np.isfinite(weight).all()) for weight in adapter.weights().values()),
    }


def narrow_nothing():
    adapter = started(small_bert(), precision="bf16")
    adapter._devices.narrow = lambda model, dtype: model
    adapter.build(batch_of(small_bert()))
    return {"reason": raised(Mismatch, adapter.step)}
