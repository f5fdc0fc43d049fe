"""Programs of PyTorch's tests."""

import contextlib
import importlib

import numpy as np
import torch
import torch._inductor.config
from harness.adapter import Mismatch, Unsupported
from harness.measuring.loading import PACKAGE
from torch.utils._python_dispatch import TorchDispatchMode

from .prelude import built, judged, module_of, raised, started
from .small import model_config_of, small_bert


def trace_amp(model_config):
    adapter = built(model_config, precision="amp")
    buffers = [b.clone() for b in adapter._model.buffers()]
    state = torch.get_rng_state()
    products = adapter.matmul_dtypes()
    return {
        "matmul_dtypes": products,
        "kept": all(map(torch.equal, buffers, adapter._model.buffers())),
        "random": torch.equal(state, torch.get_rng_state()),
        "gradients": sum(p.grad is not None for p in adapter._model.parameters()),
        "first": adapter.read(adapter.step()),
        "settings": adapter.settings(),
    }


def disable_autocast():
    adapter = built(small_bert(), precision="amp")
    torch.autocast = lambda *arguments, **options: contextlib.nullcontext()
    return {"reason": raised(Mismatch, adapter.step)}


def compile_once():
    torch._inductor.config.compile_threads = 1  # no pool of processes that all import PyTorch
    adapter = built(small_bert(layers=0), mode="inference", compiler="inductor")
    adapter.matmul_dtypes()
    first, second = adapter.read(adapter.step()), adapter.read(adapter.step())
    adapter._model._compiled_call_impl = None
    return {
        **adapter.compiled(),
        "same": first == second,
        "difference": abs(first - adapter.read(adapter.step())),
    }


def compile_nothing():
    adapter = built(small_bert(), mode="inference", compiler="inductor")
    early = raised(Mismatch, adapter.compiled)
    torch._dynamo.config.disable = True  # what TORCHDYNAMO_DISABLE sets

    def run_it():
        adapter.step()  # newer versions of PyTorch raise by themselves
        adapter.compiled()

    return {"early": early, "disabled": raised((Mismatch, RuntimeError), run_it)}


def tune():
    torch._inductor.config.compile_threads = 1
    model_config = model_config_of("digits_resnet")
    model_config["hyperparameters"]["layers"] = [
        {"op": "flatten", "name": "flat"},
        {"op": "linear", "name": "fc", "features": 16},
    ]
    adapter = built(model_config, mode="inference", compiler="inductor:max-autotune")
    outputs = adapter.outputs()
    weights = {name: 2 * array for name, array in adapter.weights().items()}
    adapter.load_weights(weights)
    changed = any((a != b).any() for a, b in zip(outputs, adapter.outputs()))
    from torch._dynamo.utils import counters

    tuned = adapter.compiled()["autotuned"]
    counters["inductor"].clear()
    return {"tuned": tuned, "changed": changed, "untuned": raised(Unsupported, adapter.compiled)}


def use_zentorch():
    @torch.library.custom_op("zentorch::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    started(small_bert(), mode="inference")
    backend = module_of("zentorch_backend")
    x = torch.ones(3)
    return {
        "ran": backend.executed(lambda: [double(x), double(x), x + x]),
        "none": raised(Mismatch, lambda: backend.executed(lambda: x + x)),
    }


def freeze():
    inductor = torch._inductor.config
    model, frozen = torch.nn.Linear(1, 1).eval(), {}
    started(small_bert(), mode="inference")
    for device in ("cuda", "cpu"):
        module_of("compiler").compile_module(
            model, "inductor:max-autotune", torch.device(device), True
        )
        frozen[device] = inductor.freezing
    return frozen


def add_residuals():
    class Sums(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            is_sum = operation._schema.name in ("aten::add", "aten::add_")
            if is_sum and getattr(args[1], "ndim", 0) == 4:
                self.names.append(operation._schema.name)
            return operation(*args, **(kwargs or {}))

    small = built(model_config_of("digits_resnet"), mode="inference")
    with Sums() as sums, torch.inference_mode():
        small.step()
    return {"names": sums.names}


def run_out_of_memory():
    adapter = started(small_bert())
    return {
        "shape": judged(adapter, lambda: torch.ones(2, 3) @ torch.ones(2, 3)),
        "device": adapter.out_of_memory(torch.cuda.OutOfMemoryError("full")),
    }


def copy_between():
    adapter = started(small_bert())
    array = np.arange(5, dtype=np.float32)
    host = torch.device("cpu")
    micro = importlib.import_module(PACKAGE + ".micro")
    made = micro.transfer_between(host, host, array, host)
    before = made.result().tolist()
    made.run()
    after = made.result().tolist()
    asked = raised(Exception, lambda: adapter.transfer_between(0, 1, array))
    return {"before": before, "after": after, "dtype": made.dtype, "asked": str(asked)}


def lack_compiler():
    torch._inductor.config.cpp.cxx = (None, "no-such-compiler")  # what CXX sets
    return {"reason": raised(Unsupported, lambda: started(small_bert(), compiler="inductor"))}
