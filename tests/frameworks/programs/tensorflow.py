"""Features special to TensorFlow."""

import math

import keras
import numpy as np
from harness.adapter import Mismatch

from .common import flat
from .prelude import batch_of, built, module_of, raised, started
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


def check_compiled_raises_where_xla_did_not_compile():
    adapter = started(small_bert(layers=0), compiler="xla")
    steps = module_of("steps")
    original = steps.training
    steps.training = lambda *arguments: original(*arguments[:-1], False)
    adapter.build(batch_of(adapter.model_config))
    adapter.step()
    assert raised(Mismatch, adapter.compiled), "a step without XLA counts as compiled"
