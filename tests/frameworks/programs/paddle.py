"""Programs of PaddlePaddle's tests."""

import gc
import os

import numpy as np
import paddle
from harness.adapter import Mismatch, Unsupported

from .prelude import NO_GPU, built, judged, raised, started
from .small import small_bert, small_images


def trace(model_config, compiler):
    built(model_config, compiler=compiler)
    expected = paddle.rand([4]).tolist()
    adapter = built(model_config, compiler=compiler)
    fixed = [p.numpy() for p in adapter._model.parameters()]
    counted = adapter.matmul_dtypes()
    return {
        "matmul_dtypes": counted,
        "kept": all((a == p.numpy()).all() for a, p in zip(fixed, adapter._model.parameters())),
        "random": paddle.rand([4]).tolist() == expected,
        "gradients": sum(p.grad is not None for p in adapter._model.parameters()),
        "first": adapter.read(adapter.step()),
    }


def reason(model_config, mode):
    """Return why mixed precision is refused in a program."""
    options = {"mode": mode, "precision": "amp", "compiler": "to_static"}
    return raised(Unsupported, lambda: built(model_config, **options))


def infer_in_bfloat16():
    exact = built(small_bert(), mode="inference").outputs()
    adapter = built(small_bert(), mode="inference", precision="amp", compiler="to_static")
    adapter.step()
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "compiled": adapter.compiled(),
        "weights": sorted({str(p.dtype) for p in adapter._model.parameters()}),
        "difference": max(float(abs(a - b).max()) for a, b in zip(exact, adapter.outputs())),
        "scale": float(abs(exact[0]).max()),
        "normalization": reason(small_images(), "inference"),
    }


def leave_programs():
    adapter = built(small_bert(), mode="inference", compiler="to_static")
    early = raised(Mismatch, adapter.compiled)
    paddle.jit.enable_to_static(False)
    adapter.step()
    disabled = raised(Mismatch, adapter.compiled)
    dynamic = adapter.outputs()
    paddle.jit.enable_to_static(True)
    adapter.step()
    return {
        "early": early,
        "disabled": disabled,
        **adapter.compiled(),
        "same": max(float(abs(a - b).max()) for a, b in zip(dynamic, adapter.outputs())),
    }


def refuse_gpus():
    return {"cuda": raised(Unsupported, lambda: started(small_bert(), rank_context=NO_GPU))}


def run_out_of_memory():
    adapter = started(small_bert())
    return {
        "memory": judged(adapter, lambda: paddle.empty([2**50])),
        "shape": judged(adapter, lambda: paddle.ones([2, 3]) @ paddle.ones([2, 3])),
        "program": adapter.out_of_memory(OSError("(ResourceExhausted) Fail to alloc memory")),
    }


def collect_garbage(frozen):
    started(small_bert())
    from framework_under_test import loader

    parent, ended = os.getpid(), []

    class Circle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            ended.append(os.getpid())

    class Samples:
        def __len__(self):
            return 2

        def __getitem__(self, number):
            gc.collect()
            return (np.float32([os.getpid() in ended, os.getpid() == parent]),)

    gc.disable()
    if frozen:
        gc.freeze()
    Circle()
    given = [batch[0].tolist() for batch in loader.batches(Samples(), 1, 1, "cpu")]
    kept = bool(gc.get_freeze_count()) == frozen
    gc.collect()
    return {"given": given, "ended": ended == [parent], "kept": kept}
