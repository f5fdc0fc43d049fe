"""Features special to PaddlePaddle."""

import gc
import math
import os

import numpy as np
import paddle
from harness.adapter import Mismatch, Unsupported

from ..processors import onednn_has_bfloat16
from .prelude import built, judged, raised, started
from .small import BERT_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images


def check_counting_products_changes_nothing():
    for compiler in ("none", "to_static"):
        count_products(small_bert(dropout=0.1), compiler, BERT_PRODUCTS)
        count_products(small_images(), compiler, RESNET_PRODUCTS)


def count_products(model_config, compiler, count):
    built(model_config, compiler=compiler)
    expected = paddle.rand([4]).tolist()
    adapter = built(model_config, compiler=compiler)
    fixed = [p.numpy() for p in adapter._model.parameters()]
    assert adapter.matmul_dtypes() == {"float32": count}
    assert all((a == p.numpy()).all() for a, p in zip(fixed, adapter._model.parameters()))
    assert paddle.rand([4]).tolist() == expected, "looking at the products drew random numbers"
    assert not any(p.grad is not None for p in adapter._model.parameters())
    assert math.isfinite(adapter.read(adapter.step()))


def check_amp_runs_in_a_program_where_paddle_can():
    """oneDNN has bfloat16 on some processors only, and batch normalisation refuses it."""
    if not onednn_has_bfloat16():
        return
    exact = built(small_bert(), mode="inference").outputs()
    options = {"mode": "inference", "precision": "amp", "compiler": "to_static"}
    adapter = built(small_bert(), **options)
    adapter.step()
    assert adapter.matmul_dtypes() == {"bfloat16": BERT_PRODUCTS}
    assert adapter.compiled()["programs"] == 1
    assert {str(p.dtype) for p in adapter._model.parameters()} == {"paddle.float32"}
    difference = max(float(abs(a - b).max()) for a, b in zip(exact, adapter.outputs()))
    assert 0 < difference < 0.05 * abs(exact[0]).max()
    normalization = raised(Unsupported, lambda: built(small_images(), **options))
    assert "batch_norm_" in normalization
    assert "bfloat16" in normalization


def check_programs_are_proved_to_have_run():
    adapter = built(small_bert(), mode="inference", compiler="to_static")
    assert raised(Mismatch, adapter.compiled), "a program that did not run counts as compiled"
    paddle.jit.enable_to_static(False)
    adapter.step()
    assert raised(Mismatch, adapter.compiled), "a model in the dynamic graph counts as compiled"
    dynamic = adapter.outputs()
    paddle.jit.enable_to_static(True)
    adapter.step()
    proof = adapter.compiled()
    assert proof["programs"] == 1, "the model was traced more than once"
    assert proof["forward_operations"] > 0
    assert max(float(abs(a - b).max()) for a, b in zip(dynamic, adapter.outputs())) < 1e-6


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    adapter = started(small_bert())
    assert judged(adapter, lambda: paddle.empty([2**50]))
    assert adapter.out_of_memory(OSError("(ResourceExhausted) Fail to alloc memory"))
    assert not judged(adapter, lambda: paddle.ones([2, 3]) @ paddle.ones([2, 3]))


def check_no_worker_of_a_loader_ends_inherited_garbage():
    """A worker that finalises an inherited reader waits forever for threads of its parent."""
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
    Circle()
    given = [batch[0].tolist() for batch in loader.batches(Samples(), 1, 1, "cpu")]
    assert given == [[[0.0, 0.0]], [[0.0, 0.0]]]
    gc.collect()
    assert ended == [parent]
