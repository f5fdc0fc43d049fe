"""Programs of MindSpore's tests."""

import ctypes
import os
import time

from harness.measuring.synthetic import make_batch

from .prelude import RANK, built, module_of, started
from .small import model_config_of, small_bert, small_images


def convolve():
    os.environ["ONEDNN_VERBOSE"] = "1"
    adapter = built(small_images(), mode="inference")
    output = os.dup(1)
    with open("kernels", "w") as file:
        os.dup2(file.fileno(), 1)
        adapter.step()
        ctypes.CDLL(None).fflush(None)
        os.dup2(output, 1)
    with open("kernels") as file:
        lines = [line.split(",") for line in file if ",exec,cpu,convolution," in line]
    return {"kernels": [line[line.index("convolution") + 1] for line in lines]}


def dispatch(compiler):
    adapter = built(small_bert(), compiler=compiler)

    class Calls(module_of("matmuls").Watch):
        def __ms_dispatch__(self, func, args, kwargs=None):
            names.append(func.name)
            return func(*args, **(kwargs or {}))

    def evaluate():
        adapter.raw_gradients()
        adapter.logits()
        adapter.synchronize()

    names = []
    evaluate()  # which compiles
    with Calls():
        evaluate()
    return {"names": names}


def leave():
    adapter = started(small_bert(layers=0))
    adapter.all_reduce(1.0)
    time.sleep(RANK)
    begun = time.monotonic()
    adapter.stop()
    return {"begun": begun, "left": time.monotonic()}


def feed():
    model_config = model_config_of("digits_resnet")
    values, graphs = {}, []
    for compiler in ("none", "jit"):
        adapter = built(model_config, compiler=compiler)
        values[compiler] = []
        for seed in range(3):
            adapter.put(make_batch(model_config["inputs"], 2, None, seed=seed, rank=0))
            values[compiler].append(adapter.read(adapter.step()))
            graphs.append(adapter.compiled().get("graphs"))
    return {"values": values, "graphs": graphs}
