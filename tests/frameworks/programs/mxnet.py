"""Programs of MXNet's tests."""

import multiprocessing
import os
import resource
import time

import numpy as np
from harness.adapter import Mismatch, Unsupported
from mxnet.contrib import amp

from .prelude import batch_of, built, library, module_of, raised, started
from .ranks import answer
from .small import small_bert, small_images


def trace(model_config, mode, compiler):
    adapter = built(model_config, mode=mode, compiler=compiler)

    def state():
        return [p.data().asnumpy() for p in adapter._model.collect_params().values()]

    before = state()
    products = adapter.matmul_dtypes()
    kept = all(map(np.array_equal, before, state()))
    adapter.step()
    return {
        "matmul_dtypes": products,
        "again": adapter.matmul_dtypes(),
        "kept": kept,
        "compiled": compiler != "none" and adapter.compiled(),
        "fused": adapter._hybridize.get("backend"),
    }


def train_in_bfloat16(compiler):
    adapter = built(small_images(), precision="amp", compiler=compiler)
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "loss": adapter.read(adapter.step()),
        "logits": str(adapter.logits()[0].dtype),
        "amp": adapter.settings()["amp_dtype"],
    }


def lose_amp(compiler):
    amp.init = lambda *arguments, **options: None
    return {
        "matmul_dtypes": built(small_images(), precision="amp", compiler=compiler).matmul_dtypes()
    }


def train_bert_in_bfloat16(compiler):
    adapter = built(small_bert(), precision="amp", compiler=compiler)
    losses = [adapter.read(adapter.step()) for _ in range(8)]
    return {"matmul_dtypes": adapter.matmul_dtypes(), "losses": losses}


def refuse_bfloat16():
    adapter = started(small_bert())
    return {
        "reason": raised(
            Unsupported,
            lambda: module_of("devices").set_precision("amp", adapter._context, ("batch_dot",)),
        )
    }


def scale_loss():
    def gradients(dtype):
        adapter._dtype = dtype
        adapter.build(batch_of(adapter.model_config))
        return adapter.gradients()

    adapter = started(small_images(), precision="amp")
    plain, scaled = gradients("bfloat16"), gradients("float16")
    start = adapter.weights_checksum()
    scaler = adapter._trainer._amp_loss_scaler
    scaler._loss_scale = scaler._next_loss_scale = 3e38
    adapter.step()
    kept = adapter.weights_checksum() == start
    scaler._loss_scale = scaler._next_loss_scale = 2.0**16
    adapter.step()
    return {
        "plain": [float(np.linalg.norm(g)) for g in plain.values()],
        "kept": kept,
        "scaled": [float(np.linalg.norm(g)) for g in scaled.values()],
        "trained": adapter.weights_checksum() != start,
    }


def compile_parts():
    adapter = built(small_bert(), mode="inference", compiler="hybridize")
    early = raised(Mismatch, adapter.compiled)
    adapter._model.hybridize(active=False)
    adapter._model.layers.hybridize()
    adapter.step()
    return {"early": early, "parts": raised(Mismatch, adapter.compiled)}


def load_fused():
    adapter = built(small_bert(), mode="inference", compiler="hybridize")
    first = adapter.read(adapter.step())
    changed = {name: array * 2 for name, array in adapter.weights().items()}
    adapter.load_weights(changed)
    again = adapter.read(adapter.step())
    other = built(small_bert(), mode="inference")
    other.load_weights(changed)
    return {"first": first, "again": again, "imperative": other.read(other.step())}


def kill_ranks(folder):
    adapter = started(small_bert())
    adapter.all_reduce(0.0)
    answer(children=[child.pid for child in adapter._group._children])
    os.mkdir(f"{folder}/{os.getpid()}")
    while len(os.listdir(folder)) < 2:  # the other would wait for its sum without an end
        time.sleep(0.02)
    os.kill(os.getpid(), 9)


def run_out_of_memory():
    adapter = started(small_bert())
    nd = library().nd

    def judge(action):
        try:
            action().wait_to_read()
        except Exception as error:
            return adapter.out_of_memory(error), str(error).splitlines()[0]

    shape = judge(lambda: nd.ones((2, 3)).reshape((7, 7)))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
    return {
        "memory": judge(lambda: nd.zeros((1 << 29, 3))),
        "shape": shape,
        "host": adapter.out_of_memory(MemoryError()),
    }


def end_workers(to_the_end):
    started(small_bert())
    from framework_under_test import loader

    class Samples:
        def __len__(self):
            return 8

        def __getitem__(self, number):
            time.sleep(0.3 * (number > 1))
            return (np.float32([number]),)

    given = loader.batches(Samples(), 2, 2, "cpu")
    first = next(given)[0].tolist()
    workers = multiprocessing.active_children()
    rest = [entry[0].tolist() for entry in given] if to_the_end else given.close()
    for worker in workers:
        worker.join(120)
    return {"first": first, "rest": rest, "codes": [worker.exitcode for worker in workers]}
