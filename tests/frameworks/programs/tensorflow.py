"""Features special to TensorFlow."""

import math

import keras
import numpy as np
import tensorflow as tf
from harness.adapter import Mismatch

from .common import flat
from .prelude import batch_of, built, judged, module_of, raised, started
from .small import BERT_PRODUCTS, LAYER_PRODUCTS, RESNET_PRODUCTS, small_bert, small_images

#: Matmuls of a training step of a BERT with one layer: two in the backward pass for each in the
#: forward pass.
OF_ONE_LAYER = 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)


def check_batch_normalisation_is_fused():
    for precision in ("fp32", "amp"):
        adapter = built(small_images(), precision=precision)
        graph = adapter._step.graph.as_graph_def()
        functions = graph.library.function
        nodes = [*graph.node, *(node for entry in functions for node in entry.node_def)]
        kinds = [node.op for node in nodes]
        kind = keras.layers.BatchNormalization
        layers = sum(isinstance(layer, kind) for layer in adapter._model.layers)
        assert layers > 1
        assert kinds.count("FusedBatchNormV3") == kinds.count("FusedBatchNormGradV3") == layers
        assert "SquaredDifference" not in kinds


def check_all_products_of_amp_are_seen_and_run_in_bfloat16():
    for model_config, count in (
        (small_bert(dropout=0.1, layers=1), OF_ONE_LAYER),
        (small_images(), 3 * RESNET_PRODUCTS),
    ):
        adapter = built(model_config, precision="amp")
        state = flat(adapter._model.variables)
        assert adapter.matmul_dtypes() == {"bfloat16": count}
        assert np.array_equal(state, flat(adapter._model.variables))
        assert math.isfinite(adapter.read(adapter.step()))
        settings = adapter.settings()
        assert settings["amp_dtype"] == "bfloat16"
        assert settings["tf32"] is False
        assert settings["intra_op_threads"] == 1


def check_float16_scales_its_loss_and_skips_what_overflows():
    adapter = started(small_bert(layers=1), precision="amp")
    adapter._policy = "mixed_float16"  # as on a GPU without bfloat16
    keras.mixed_precision.set_global_policy("mixed_float16")
    adapter.build(batch_of(adapter.model_config))
    scale = adapter._optimizer.dynamic_scale

    def gradients(scaled_by):
        scale.assign(scaled_by)
        return np.concatenate([gradient.ravel() for gradient in adapter.gradients().values()])

    once, much = gradients(1.0), gradients(1024.0)
    difference = np.linalg.norm(much - once) / np.linalg.norm(once)
    assert difference < 1e-2, "the scale of the loss is in the gradients"
    losses = [adapter.read(adapter.step()) for _ in range(3)]
    assert losses[-1] < losses[0]
    scale.assign(1e38)
    before = flat(adapter._model.trainable_variables)
    adapter.step()
    after = flat(adapter._model.trainable_variables)
    assert np.array_equal(before, after), "an overflow reached the weights"
    assert np.isclose(float(scale.numpy()), 5e37)
    assert adapter.matmul_dtypes() == {"float16": OF_ONE_LAYER}


def check_compiled_raises_where_xla_did_not_compile():
    adapter = started(small_bert(layers=0), compiler="xla")
    steps = module_of("steps")
    original = steps.training
    steps.training = lambda *arguments: original(*arguments[:-1], False)
    adapter.build(batch_of(adapter.model_config))
    adapter.step()
    assert raised(Mismatch, adapter.compiled), "a step without XLA counts as compiled"


def check_memory_that_ran_out_is_distinguished_from_other_errors():
    adapter = started(small_bert())
    full = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
    assert adapter.out_of_memory(tf.errors.InternalError(None, None, full))
    assert not judged(adapter, lambda: tf.zeros([2, 3]) @ tf.zeros([2, 3]))
