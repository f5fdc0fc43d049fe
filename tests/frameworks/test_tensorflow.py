"""TensorFlow adapter in TensorFlow's own environment: features special to TensorFlow."""

import math

import pytest

from .fork_server import (
    BERT_PRODUCTS,
    LAYER_PRODUCTS,
    RESNET_PRODUCTS,
    ForkServer,
    distance,
    norm,
    served,
)

# Code of scripts besides the prelude.
WEIGHTS = """
import numpy as np
def flat(tensors):
    return np.concatenate([np.asarray(tensor.numpy(), "float64").ravel() for tensor in tensors])
def weights(adapter):
    return flat(adapter._model.trainable_variables)
"""

run = served("tensorflow", prelude=WEIGHTS)


def test_resnet50_is_version_1_5(run: ForkServer) -> None:
    (found,) = run("""
import keras
adapter = started(facts_of("resnet50_v1.5"))
model = adapter._definition.build(adapter.model_config)
convolutions = [l for l in model.layers if isinstance(l, keras.layers.Conv2D)]
norms = [l for l in model.layers if isinstance(l, keras.layers.BatchNormalization)]
wide = [l for l in convolutions if l.strides == (2, 2) and l.kernel_size != (1, 1)]
answer(
    layers=len(convolutions),
    biases=sum(l.use_bias for l in convolutions),
    strided=sorted(l.kernel_size[0] for l in convolutions if l.strides == (2, 2)),
    symmetric=[l.padding == "valid" for l in wide],
    norms=sorted({(l.epsilon, round(l.momentum, 6)) for l in norms}),
    different=float(np.std([float(l.kernel.numpy().ravel()[0]) for l in convolutions])) > 0,
)
""")
    assert found["layers"] == 53
    assert found["biases"] == 0, "a convolution before a batch normalisation has a bias"
    assert found["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert found["symmetric"] == [True] * 4, "a strided convolution pads one side only"
    assert found["norms"] == [[1e-05, 0.9]]
    assert found["different"]


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_batch_normalisation_is_fused(run: ForkServer, precision: str) -> None:
    (found,) = run(f"""
import keras
adapter = built(small_images(), precision="{precision}")
graph = adapter._step.graph.as_graph_def()
nodes = [*graph.node, *(node for entry in graph.library.function for node in entry.node_def)]
count = lambda kind: sum(node.op == kind for node in nodes)
norms = [l for l in adapter._model.layers if isinstance(l, keras.layers.BatchNormalization)]
answer(layers=len(norms), forward=count("FusedBatchNormV3"), apart=count("SquaredDifference"),
       backward=count("FusedBatchNormGradV3"))
""")
    assert found["layers"] > 1
    assert found["forward"] == found["backward"] == found["layers"]
    assert found["apart"] == 0


def test_bert_has_a_tied_decoder(run: ForkServer) -> None:
    (found,) = run("""
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
answer(
    embeddings=shapes.count((50, 32)),
    decoder_biases=shapes.count((50,)),
    tied=bool(np.any(flat(adapter.step()[:1]) != before)),
    repeated=any(np.array_equal(a, b) for i, a in enumerate(queries) for b in queries[:i]),
)
""")
    assert found["embeddings"] == 1, "the decoder has a weight of its own"
    assert found["decoder_biases"] == 1
    assert found["tied"], "the decoder does not use the token embedding"
    assert not found["repeated"], "two weights started from the same values"


def test_bert_honours_the_mask(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(dropout=0.5), mode="inference")
batch = batch_of(adapter.model_config)
batch["masked_positions"][:] = np.arange(batch["masked_positions"].shape[1])
batch["attention_mask"][:, -1] = 0
adapter.build(batch)
def outputs():
    adapter._step_batch = {name: adapter._tf.constant(array) for name, array in batch.items()}
    return adapter.step()
handle = outputs()
before = flat(handle)
batch["token_ids"][:, -1] = (batch["token_ids"][:, -1] + 1) % 50
hidden = float(np.abs(flat(outputs()) - before).max())
batch["token_ids"][:, -2] = (batch["token_ids"][:, -2] + 1) % 50
answer(shapes=[list(t.shape) for t in handle], mean=float(before.mean()),
       read=adapter.read(handle), hidden=hidden,
       seen=float(np.abs(flat(outputs()) - before).max()))
""")
    assert found["shapes"] == [[2, 2, 50], [2, 2]]
    assert found["read"] == pytest.approx(found["mean"], rel=1e-12)
    assert found["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert found["seen"] > 0.0, "no token is attended to"


def test_bert_layer_equals_keras_own_attention(run: ForkServer) -> None:
    (found,) = run("""
import keras
adapter = built(small_bert(), mode="inference")
layer = next(l for l in adapter._model.layers if type(l).__name__ == "EncoderLayer")
own = keras.layers.MultiHeadAttention(4, 8)
x = np.random.RandomState(0).standard_normal((2, 16, 32)).astype("float32")
own.build(x.shape, x.shape)
split = lambda dense: [dense.kernel.numpy().reshape(32, 4, 8), dense.bias.numpy().reshape(4, 8)]
attention = layer.attention
output = attention.output_dense
own.set_weights([array for dense in (attention.query, attention.key, attention.value)
                 for array in split(dense)]
                + [output.kernel.numpy().reshape(4, 8, 32), output.bias.numpy()])
norm = lambda y: (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-12)
y = norm(x + own(x, x).numpy())
inner = keras.activations.gelu(y @ layer.intermediate.kernel.numpy(), approximate=False)
expected = norm(y + inner.numpy() @ layer.output_dense.kernel.numpy())
actual = layer([x, np.ones((2, 16), "int64")]).numpy()
answer(difference=float(np.abs(actual - expected).max()))
""")
    assert found["difference"] < 1e-5, "a layer computes something else than BERT's encoder layer"


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run("""
adapter = started(small_bert())
tf, optimizers = adapter._tf, adapter._optimizers
random = np.random.RandomState(1)
start = random.standard_normal(20)
def run_tensorflow(facts, gradients):
    optimizer = optimizers.from_model_config(facts, str)
    variable = tf.Variable(start.astype("float32"))
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient.astype("float32"))], [variable])
    return variable.numpy()
def error(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected - start).max())

h = dict(facts_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1)
gradients = [random.standard_normal(20) for _ in range(3)]
weight, buffer = start.copy(), 0.0
for gradient in gradients:
    buffer = h["momentum"] * buffer + gradient + h["weight_decay"] * weight
    weight = weight - h["learning_rate"] * buffer
sgd = error(run_tensorflow({"hyperparameters": h}, gradients), weight)

h = dict(facts_of("bert_base")["hyperparameters"], learning_rate=0.1)
small = [random.standard_normal(20) * 1e-6 for _ in range(3)]
weight, m, v = start.copy(), 0.0, 0.0
for t, gradient in enumerate(small, 1):
    weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
    m = h["beta1"] * m + (1 - h["beta1"]) * gradient
    v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
    denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"]**t) + h["epsilon"]
    weight = weight - h["learning_rate"] / (1 - h["beta1"]**t) * m / denominator
adamw = error(run_tensorflow({"hyperparameters": h}, small), weight)
answer(sgd=sgd, adamw=adamw)
""")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert found["adamw"] < 1e-4, "AdamW's epsilon is not outside the bias correction"


# Gradients in the optimizer (its first moment holds a tenth of them): clipped by their global norm,
# and compiled by XLA without a limit. ``test_contract.py`` compares those that are not compiled.
GRADIENTS = """
facts = small_bert(layers=0)
adapter = started(facts)
reached = adapter.all_reduce(RANK + 1.0)  # the harness asks before the model is there
halves = [batch_of(facts, rank=rank) for rank in range(2)]
both = {name: np.concatenate([half[name] for half in halves]) for name in halves[0]}
def first_step(**changes):
    adapter.model_config = small_bert(layers=0, **changes)
    adapter.build(both if WORLD == 1 else halves[RANK])
    start = adapter.weights_checksum()
    loss = adapter.read(adapter.step())
    moments = flat(adapter._optimizer._momentums)
    return (moments / 0.1).tolist(), loss, start, adapter.weights_checksum()
clipped = first_step(clip_global_norm=0.01)[0] if WORLD > 1 else []
adapter.case = adapter.case._replace(compiler="xla")
gradients, loss, start, checksum = first_step(clip_global_norm=1e9)
answer(gradients=gradients, clipped=clipped, compiled=adapter.compiled(), loss=loss, start=start,
       checksum=checksum, reached=reached, settings=adapter.settings())
adapter.stop()
"""


def test_two_ranks_average_and_then_clip_their_gradients(run: ForkServer) -> None:
    (alone,) = run(GRADIENTS)
    first, second = run(GRADIENTS, ranks=2)
    assert first["settings"]["strategy"] == "CollectiveAllReduceStrategy"
    assert first["reached"] == second["reached"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["start"] == second["start"] == alone["start"]
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    length = norm(alone["gradients"])
    assert distance(first["gradients"], alone["gradients"]) < 1e-4 * length, (
        "the gradients of two ranks are not those of one process with both batches"
    )
    assert first["checksum"] == second["checksum"]
    # The average of two clipped gradients would be shorter than the limit.
    assert norm(first["clipped"]) == pytest.approx(0.01, rel=1e-3)
    assert first["clipped"] == second["clipped"]
    for found in (alone, first):
        assert found["compiled"] == {"xla_functions": 2}, "another program than on one device"
        assert found["settings"]["xla_scope"] == "forward and backward pass, optimizer"


# A matmul of the forward pass has two in the backward pass.
@pytest.mark.parametrize(
    ("facts", "products"),
    [
        ("small_bert(dropout=0.1, layers=1)", 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)),
        ("small_images()", 3 * RESNET_PRODUCTS),
    ],
)
def test_all_products_of_amp_are_seen_and_run_in_bfloat16(
    run: ForkServer, facts: str, products: int
) -> None:
    (found,) = run(f"""
adapter = built({facts}, precision="amp")
state = flat(adapter._model.variables)
counted = adapter.matmul_dtypes()
kept = bool(np.array_equal(state, flat(adapter._model.variables)))
answer(matmul_dtypes=counted, kept=kept, loss=adapter.read(adapter.step()),
       settings=adapter.settings())
""")
    assert found["matmul_dtypes"] == {"bfloat16": products}
    assert found["kept"], "looking at the products changed the model"
    assert math.isfinite(found["loss"])
    settings = found["settings"]
    assert settings["amp_dtype"] == "bfloat16"
    assert settings["tf32"] is False
    assert settings["intra_op_threads"] == 1


def test_float16_scales_its_loss_and_skips_what_overflows(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(layers=1), precision="amp")
adapter._policy = "mixed_float16"  # as on a GPU without bfloat16
adapter._tf.keras.mixed_precision.set_global_policy("mixed_float16")
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
answer(matmul_dtypes=adapter.matmul_dtypes(), losses=losses, scale=float(scale.numpy()),
       unscaled=float(np.linalg.norm(much - once) / np.linalg.norm(once)),
       kept=bool(np.array_equal(before, weights(adapter))))
""")
    assert found["matmul_dtypes"] == {"float16": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    assert found["unscaled"] < 1e-2, "the scale of the loss is in the gradients"
    assert found["losses"][-1] < found["losses"][0]
    assert found["kept"], "an overflow reached the weights"
    assert found["scale"] == pytest.approx(5e37)


def test_compiled_raises_where_xla_did_not_compile(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(layers=0), compiler="xla")
steps = adapter._steps
original = steps.training
steps.training = lambda *arguments: original(*arguments[:-1], False)
adapter.build(batch_of(adapter.model_config))
adapter.step()
answer(reason=raised(Mismatch, adapter.compiled))
""")
    assert found["reason"], "a step that XLA did not compile counts as compiled"


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert())
tf = adapter._tf
def judge(action):
    try:
        action()
    except Exception as error:
        return adapter.out_of_memory(error)
def raise_(error):
    raise error
answer(
    xla=judge(lambda: raise_(tf.errors.InternalError(None, None, "RESOURCE_EXHAUSTED: Out of "
                                                     "memory while trying to allocate"))),
    shapes=judge(lambda: tf.zeros([2, 3]) @ tf.zeros([2, 3])),
)
""")
    assert found == {"xla": True, "shapes": False}
