"""Programs of TensorFlow's tests."""

import keras
import numpy as np
from harness.adapter import Mismatch

from .common import flat
from .prelude import batch_of, built, judged, library, module_of, raised, started
from .small import small_bert, small_images


def weights(adapter):
    return flat(adapter._model.trainable_variables)


def trace_normalisation(precision):
    adapter = built(small_images(), precision=precision)
    graph = adapter._step.graph.as_graph_def()
    nodes = [*graph.node, *(node for entry in graph.library.function for node in entry.node_def)]
    kinds = [node.op for node in nodes]
    kind = keras.layers.BatchNormalization
    norms = [layer for layer in adapter._model.layers if isinstance(layer, kind)]
    return {
        "layers": len(norms),
        "forward": kinds.count("FusedBatchNormV3"),
        "apart": kinds.count("SquaredDifference"),
        "backward": kinds.count("FusedBatchNormGradV3"),
    }


def trace_amp(model_config):
    adapter = built(model_config, precision="amp")
    state = flat(adapter._model.variables)
    counted = adapter.matmul_dtypes()
    kept = bool(np.array_equal(state, flat(adapter._model.variables)))
    return {
        "matmul_dtypes": counted,
        "kept": kept,
        "loss": adapter.read(adapter.step()),
        "settings": adapter.settings(),
    }


def scale_loss():
    adapter = started(small_bert(layers=1), precision="amp")
    adapter._policy = "mixed_float16"  # as on a GPU without bfloat16
    library().keras.mixed_precision.set_global_policy("mixed_float16")
    adapter.build(batch_of(adapter.model_config))
    scale = adapter._optimizer.dynamic_scale

    def gradients(scaled_by):
        scale.assign(scaled_by)
        return np.concatenate([gradient.ravel() for gradient in adapter.gradients().values()])

    once, much = gradients(1.0), gradients(1024.0)
    losses = [adapter.read(adapter.step()) for _ in range(3)]
    scale.assign(1e38)
    before = weights(adapter)
    adapter.step()
    return {
        "matmul_dtypes": adapter.matmul_dtypes(),
        "losses": losses,
        "scale": float(scale.numpy()),
        "unscaled": float(np.linalg.norm(much - once) / np.linalg.norm(once)),
        "kept": bool(np.array_equal(before, weights(adapter))),
    }


def compile_nothing():
    adapter = started(small_bert(layers=0), compiler="xla")
    steps = module_of("steps")
    original = steps.training
    steps.training = lambda *arguments: original(*arguments[:-1], False)
    adapter.build(batch_of(adapter.model_config))
    adapter.step()
    return {"reason": raised(Mismatch, adapter.compiled)}


def run_out_of_memory():
    adapter = started(small_bert())
    tf = library()
    full = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
    return {
        "xla": adapter.out_of_memory(tf.errors.InternalError(None, None, full)),
        "shapes": judged(adapter, lambda: tf.zeros([2, 3]) @ tf.zeros([2, 3])),
    }
