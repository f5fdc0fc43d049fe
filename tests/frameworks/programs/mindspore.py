"""Features special to MindSpore."""

import ctypes
import os
import time

import numpy as np
from harness.measuring.model import make_batch

from .prelude import RANK, built, module_of, started
from .small import model_config_of, small_bert, small_images


def check_no_convolution_runs_in_the_reference_code_of_onednn():
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
    kernels = [line[line.index("convolution") + 1] for line in lines]
    assert kernels
    assert not [kernel for kernel in kernels if "ref:any" in kernel]


def check_nothing_of_a_graph_is_left_to_python():
    assert not dispatched("jit")
    assert dispatched("none")


def dispatched(compiler):
    """Return the operations that Python dispatches in passes that are compiled already."""
    adapter, names = built(small_bert(), compiler=compiler), []

    class Calls(module_of("steps").Watch):
        def __ms_dispatch__(self, func, args, kwargs=None):
            names.append(func.name)
            return func(*args, **(kwargs or {}))

    def evaluate():
        adapter.raw_gradients()
        adapter.logits()
        adapter.synchronize()

    evaluate()  # which compiles
    with Calls():
        evaluate()
    return names


def leave():
    adapter = started(small_bert(layers=0))
    adapter.all_reduce(1.0)
    time.sleep(RANK)
    begun = time.monotonic()
    adapter.stop()
    return {"begun": begun, "left": time.monotonic()}


def check_a_graph_learns_of_each_batch_as_operations_do():
    model_config = model_config_of("digits_resnet")
    values = {}
    for compiler in ("none", "jit"):
        adapter = built(model_config, compiler=compiler)
        values[compiler] = []
        for seed in range(3):
            adapter.feed(make_batch(model_config["inputs"], 2, None, seed=seed, rank=0))
            values[compiler].append(adapter.read(adapter.step()))
            if compiler == "jit":
                assert adapter.compiled() == {"graphs": 1}
    assert len({*values["none"]}) == 3
    assert np.allclose(values["jit"], values["none"], rtol=1e-4)
