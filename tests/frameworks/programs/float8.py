"""Models with matmuls in float8."""

import numpy
import torch
from harness.adapter import Mismatch, Unsupported
from harness.measuring.checks import check_matmuls

from .prelude import batch_of, built, load_model_config, module_of, raised, started
from .small import model_config_of, small_bert


def train(precision):
    model_config = small_bert()
    adapter = built(model_config, precision=precision)
    adapter.step()
    with module_of("steps").Watch() as watch:
        adapter.differentiate()
    layers = model_config["hyperparameters"]["layers"]
    return {
        "forward": adapter.matmul_dtypes(),
        "both": watch.matmuls,
        "layers": layers,
        "outputs": sorted(str(logit.dtype) for logit in adapter.logits()),
    }


def convert(folder):
    model_config = load_model_config(folder)
    adapter = built(model_config, precision="fp8")
    model = torch.nn.Sequential(torch.nn.Linear(32, 24), torch.nn.Linear(32, 32))
    module_of("devices").convert_to_float8(model, "fp8", torch.bfloat16)
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "layers": model_config["hyperparameters"]["layers"],
        "kinds": [type(layer).__name__ for layer in model],
    }


def convert_nothing():
    adapter = started(small_bert(), precision="fp8")
    module_of("devices").convert_to_float8 = lambda model, precision, dtype: None
    adapter.build(batch_of(small_bert()))
    return {"reason": raised(Mismatch, lambda: check_matmuls("fp8", adapter.matmul_dtypes()))}


def refuse():
    model_config = model_config_of("digits_resnet")
    small = small_bert()
    for name in ("hidden", "intermediate"):
        small["hyperparameters"][name] = 24
    adapter = started(small_bert(), precision="fp8")
    array = numpy.ones((16, 16), numpy.float32)
    return {
        "convolutions": raised(Unsupported, lambda: built(model_config, precision="fp8")),
        "sides": raised(Unsupported, lambda: built(small, precision="fp8")),
        "product": raised(Unsupported, lambda: adapter.primitives().layer_matmul(array, array)),
    }
