"""Programs of TensorFlow's tests."""

import keras
import numpy as np
from harness.adapter import Mismatch

from .common import batch_of_halves, flat, hide_tokens, optimizer_errors
from .prelude import RANK, WORLD, batch_of, built, judged, library, module_of, raised, started
from .small import model_config_of, small_bert, small_images


def weights(adapter):
    return flat(adapter._model.trainable_variables)


def describe_resnet():
    adapter = started(model_config_of("resnet50_v1.5"))
    model = adapter._definition.build(adapter.model_config)
    layers, kinds = model.layers, keras.layers
    convolutions = [layer for layer in layers if isinstance(layer, kinds.Conv2D)]
    norms = [layer for layer in layers if isinstance(layer, kinds.BatchNormalization)]
    strided = [convolution for convolution in convolutions if convolution.strides == (2, 2)]
    return {
        "layers": len(convolutions),
        "biases": sum(convolution.use_bias for convolution in convolutions),
        "strided": sorted(entry.kernel_size[0] for entry in strided),
        "symmetric": [entry.padding == "valid" for entry in strided if entry.kernel_size != (1, 1)],
        "norms": sorted({(norm.epsilon, round(norm.momentum, 6)) for norm in norms}),
        "different": float(
            np.std([convolution.kernel.numpy().ravel()[0] for convolution in convolutions])
        )
        > 0,
    }


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


def tie_decoder():
    adapter = built(small_bert(), mode="inference")
    before = flat(adapter.step()[:1])
    tokens = next(v for v in adapter._model.trainable_variables if v.shape == (50, 32))
    used = set(adapter._batch["token_ids"].numpy().ravel().tolist())
    unused = next(token for token in range(50) if token not in used)
    values = tokens.numpy()
    values[unused] += 1.0
    tokens.assign(values)  # only the decoder can see a token that no sequence holds
    queries = [v.numpy() for v in adapter._model.trainable_variables if v.shape == (32, 32)]
    shapes = [tuple(v.shape) for v in adapter._model.trainable_variables]
    return {
        "embeddings": shapes.count((50, 32)),
        "decoder_biases": shapes.count((50,)),
        "tied": bool(np.any(flat(adapter.step()[:1]) != before)),
        "repeated": any(np.array_equal(a, b) for i, a in enumerate(queries) for b in queries[:i]),
    }


def honour_mask():
    adapter = started(small_bert(dropout=0.5), mode="inference")
    batch = batch_of(adapter.model_config)
    adapter.build(batch)

    def outputs():
        adapter._step_batch = {name: library().constant(array) for name, array in batch.items()}
        return flat(adapter.step())

    handle = adapter.step()
    return {
        "shapes": [list(t.shape) for t in handle],
        "mean": float(flat(handle).mean()),
        "read": adapter.read(handle),
        **hide_tokens(batch, outputs),
    }


def compare_layer():
    adapter = built(small_bert(), mode="inference")
    layer = next(layer for layer in adapter._model.layers if type(layer).__name__ == "EncoderLayer")
    own = keras.layers.MultiHeadAttention(4, 8)
    x = np.random.RandomState(0).standard_normal((2, 16, 32)).astype("float32")
    own.build(x.shape, x.shape)

    def split(dense):
        return [dense.kernel.numpy().reshape(32, 4, 8), dense.bias.numpy().reshape(4, 8)]

    attention = layer.attention
    output = attention.output_dense
    own.set_weights(
        [
            array
            for dense in (attention.query, attention.key, attention.value)
            for array in split(dense)
        ]
        + [output.kernel.numpy().reshape(4, 8, 32), output.bias.numpy()]
    )

    def norm(y):
        return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-12)

    y = norm(x + own(x, x).numpy())
    inner = keras.activations.gelu(y @ layer.intermediate.kernel.numpy(), approximate=False)
    expected = norm(y + inner.numpy() @ layer.output_dense.kernel.numpy())
    actual = layer([x, np.ones((2, 16), "int64")]).numpy()
    return {"difference": float(np.abs(actual - expected).max())}


def average():
    """Tell gradients as the first moment holds them: clipped, and by XLA without a limit."""
    model_config = small_bert(layers=0)
    adapter = started(model_config)
    reached = adapter.all_reduce(RANK + 1.0)  # the harness asks before the model is there

    def first_step(**changes):
        adapter.model_config = small_bert(layers=0, **changes)
        adapter.build(batch_of_halves(model_config, range(2) if WORLD == 1 else [RANK]))
        start = adapter.weights_checksum()
        loss = adapter.read(adapter.step())
        moments = flat(adapter._optimizer._momentums)
        return (moments / 0.1).tolist(), loss, start, adapter.weights_checksum()

    clipped = first_step(clip_global_norm=0.01)[0] if WORLD > 1 else []
    adapter.case = adapter.case._replace(compiler="xla")
    gradients, loss, start, checksum = first_step(clip_global_norm=1e9)
    answers = {
        "gradients": gradients,
        "clipped": clipped,
        "compiled": adapter.compiled(),
        "loss": loss,
        "start": start,
        "checksum": checksum,
        "reached": reached,
        "settings": adapter.settings(),
    }
    adapter.stop()
    return answers


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


def follow_torch():
    def by_tensorflow(hyper, starts, steps):
        optimizer = optimizers.from_model_config({"hyperparameters": hyper}, str)
        variable = tf.Variable(starts[0].astype("float32"))
        for gradients in steps:
            optimizer.apply([tf.constant(gradients[0].astype("float32"))], [variable])
        return [variable.numpy()]

    started(small_bert())
    tf, optimizers = library(), module_of("optimizers")
    return optimizer_errors(by_tensorflow)
