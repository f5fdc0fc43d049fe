"""Models in half precision."""

import numpy as np
import torch
from harness.adapter import Mismatch

from .prelude import batch_of, built, load_model_config, module_of, raised, started
from .small import model_config_of, small_bert


def train(precision):
    model_config = model_config_of("shufflenet_v2_x0_5")
    model_config["inputs"][0]["shape"] = ["batch", 64, 64, 3]
    adapter = built(model_config, precision=precision)
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
    model_config = load_model_config(folder)
    model_config["hyperparameters"]["epsilon"] = 1e-8
    adapter = started(model_config, precision="fp16")
    batch = batch_of(model_config)
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
    module_of("devices").narrow = lambda model, dtype: model
    adapter.build(batch_of(small_bert()))
    return {"reason": raised(Mismatch, adapter.step)}
