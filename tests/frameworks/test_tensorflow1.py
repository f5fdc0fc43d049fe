"""TensorFlow 1 adapter in TensorFlow's own environment: features special to TensorFlow 1."""

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
ARRAYS = """
import numpy as np
def flat(arrays):
    return np.concatenate([np.asarray(array, "float64").ravel() for array in arrays])
def state(adapter):
    return flat(adapter._run.run(adapter._run.graph.get_collection("variables")))
def nodes(adapter, kind):
    return [op for op in adapter._run.graph.get_operations() if op.type == kind]
"""

run = served("tensorflow1", prelude=ARRAYS)


def test_resnet50_strides_pads_and_normalizes_as_version_1_5(run: ForkServer) -> None:
    (found,) = run("""
facts = small_images()
facts["hyperparameters"]["batch_norm_epsilon"] = 1e-7
adapter = built(facts, mode="inference")
convolutions = nodes(adapter, "Conv2D")
kernel = lambda op: op.inputs[1].shape[0].value
margin = lambda op: [kernel(op) // 2] * 2
answer(
    layers=len(convolutions),
    strided=sorted(kernel(op) for op in convolutions if op.get_attr("strides")[1] == 2),
    symmetric=all(op.get_attr("padding") != b"SAME" or kernel(op) == 1 for op in convolutions)
    and all(op.get_attr("explicit_paddings") == [0, 0] + margin(op) * 2 + [0, 0]
            for op in convolutions if op.get_attr("padding") == b"EXPLICIT"),
    epsilons=sorted({op.get_attr("epsilon") for op in nodes(adapter, "FusedBatchNormV3")}),
    fed=len(nodes(adapter, "Placeholder")),
)
""")
    assert found["layers"] == RESNET_PRODUCTS - 1
    assert found["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert found["symmetric"], "a convolution pads one side more than the other"
    # tf.nn.fused_batch_norm would make it 1.001e-5.
    assert found["epsilons"] == [pytest.approx(1e-7)]
    assert found["fed"] == 0, "data are copied to the device in every step"


def test_only_a_step_moves_running_statistics(run: ForkServer) -> None:
    """Fail if anything but a step updates running statistics.
    They are not part of the loss: a session updates them only when told to."""
    (found,) = run("""
facts = small_images()
facts["hyperparameters"]["blocks"] = [1]
adapter = built(facts)
before, names = state(adapter), [n for n in adapter._model if "running" in n]
products = adapter.matmul_dtypes()
adapter.gradients()
kept = bool(np.array_equal(before, state(adapter)))
old = adapter._run.run({name: adapter._model[name] for name in names})
adapter.step()
new = adapter._run.run({name: adapter._model[name] for name in names})
moved = sum(bool((old[name] != new[name]).all()) for name in names)
answer(matmul_dtypes=products, kept=kept, statistics=len(names), moved=moved,
       trainable=len(adapter.weights()), running=any("running" in n for n in adapter.weights()))
""")
    convolutions = 1 + 3 + 1  # the first, those of a block and its shortcut
    # Two in the backward pass for each in the forward pass, but none for the images' gradient.
    assert found["matmul_dtypes"] == {"float32": 3 * (convolutions + 1) - 1}
    assert found["kept"], "looking at the model changed it"
    assert found["moved"] == found["statistics"] == 2 * convolutions
    assert found["trainable"] == 3 * convolutions + 2
    assert not found["running"]


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run("""
adapter = started(small_bert())
tf, optimizers = adapter._tf, adapter._optimizers
random = np.random.RandomState(1)
start = random.standard_normal(20)
def run_tensorflow(hyper, gradients):
    with tf.Graph().as_default():
        variable = tf.Variable(start.astype("float32"), use_resource=True)
        gradient = tf.placeholder(tf.float32, [20])
        rate = tf.Variable(hyper["learning_rate"], trainable=False, use_resource=True)
        optimizer = optimizers.from_model_config({"hyperparameters": hyper}, rate, {})
        update = optimizer.apply_gradients([(gradient, variable)])
        session = tf.Session(config=adapter._config)
        session.run(tf.global_variables_initializer())
        for value in gradients:
            session.run(update, {gradient: value})
        return session.run(variable)
def error(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected - start).max())

h = dict(facts_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1)
gradients = [random.standard_normal(20) for _ in range(3)]
weight, buffer = start.copy(), 0.0
for gradient in gradients:
    buffer = h["momentum"] * buffer + gradient + h["weight_decay"] * weight
    weight = weight - h["learning_rate"] * buffer
sgd = error(run_tensorflow(h, gradients), weight)

h = dict(facts_of("bert_base")["hyperparameters"], learning_rate=0.1)
small = [random.standard_normal(20) * 1e-6 for _ in range(3)]
weight, m, v = start.copy(), 0.0, 0.0
for t, gradient in enumerate(small, 1):
    weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
    m = h["beta1"] * m + (1 - h["beta1"]) * gradient
    v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
    denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"]**t) + h["epsilon"]
    weight = weight - h["learning_rate"] / (1 - h["beta1"]**t) * m / denominator
adamw = error(run_tensorflow(h, small), weight)
answer(sgd=sgd, adamw=adamw)
""")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert found["adamw"] < 1e-4, "AdamW's epsilon is not outside the bias correction"


# Gradients in the optimizer: its first moment holds a tenth of them.
GRADIENTS = """
facts = small_bert(layers=0, clip_global_norm=0.01, weight_decay=100.0)
adapter = started(facts)
reached = adapter.all_reduce(RANK + 1.0)  # the harness asks before the model is there
adapter.build(batch_of(facts, rank=RANK))
gradients = flat(adapter.gradients().values())
adapter.step()
moments = {v.op.name: v for v in adapter._run.graph.get_collection("variables")
           if v.op.name.endswith("/AdamW")}
names = [variable.op.name for variable in adapter._model.values()]
seen = flat(adapter._run.run([moments[name + "/AdamW"] for name in names])) / 0.1
answer(reached=reached, gradients=gradients.tolist(), seen=seen.tolist())
adapter.stop()
"""


def test_a_step_clips_the_average_and_decays_last(run: ForkServer) -> None:
    """Fail if a step does not clip the average, or does not decay last.
    Unordered operations of a graph run in any order: decay before the forward pass changed
    gradients."""
    first, second = run(GRADIENTS.replace("/AdamW", "/Adam"), ranks=2)
    assert first["reached"] == second["reached"] == 3.0
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    assert first["seen"] == second["seen"]
    # The average of two clipped gradients would be shorter than the limit.
    length = norm(first["gradients"])
    assert norm(first["seen"]) == pytest.approx(0.01, rel=1e-3)
    clipped = [value * 0.01 / length for value in first["gradients"]]
    assert distance(first["seen"], clipped) < 1e-5 * 0.01, "the step has gradients of its own"


@pytest.mark.parametrize("compiler", ["none", "xla"])
def test_dropout_differs_between_steps_and_ranks(run: ForkServer, compiler: str) -> None:
    first, second = run(
        f"""
adapter = started(small_bert(dropout=0.5, layers=0), compiler="{compiler}")
adapter.build(batch_of(adapter.model_config))
answer(outputs=[float(flat(adapter.outputs()).sum()) for _ in range(2)])
adapter.stop()
""",
        ranks=2,
    )
    assert len({*first["outputs"], *second["outputs"]}) == 4


@pytest.mark.parametrize(
    ("facts", "products"), [("small_bert()", BERT_PRODUCTS), ("small_images()", RESNET_PRODUCTS)]
)
def test_products_in_fused_operations_are_counted(
    run: ForkServer, facts: str, products: int
) -> None:
    (found,) = run(f"""
adapter = built({facts}, mode="inference")
answer(matmul_dtypes=adapter.matmul_dtypes())
""")
    assert found["matmul_dtypes"] == {"float32": products}


def test_an_inference_step_computes_everything_and_fetches_nothing(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(small_bert(), mode="inference")
adapter.step()
executed = adapter._graphs.matmuls(adapter._executed)
first, fetched = adapter.outputs(), adapter._step()
bias = {"pooler.bias": adapter._model["pooler.bias"]}
adapter._variables.load(bias, {"pooler.bias": np.ones(32, "float32")}, adapter._run)
before = adapter.read(adapter._outputs)
after = adapter.read(adapter.step())
expected = adapter._run.run(adapter._logits)
answer(executed=len(executed), fetched=str(fetched), before=before, after=after,
       first=float(np.concatenate([array.ravel() for array in first]).mean()),
       right=all(np.array_equal(*pair) for pair in zip(adapter.outputs(), expected)))
""")
    assert found["executed"] == BERT_PRODUCTS
    assert found["fetched"] == "[None]", "the outputs are copied to the host in every step"
    assert found["before"] == pytest.approx(found["first"])
    assert found["after"] != found["before"], "the step did not compute its outputs anew"
    assert found["right"]


@pytest.mark.parametrize("mode", ["train", "inference"])
def test_amp_without_a_gpu_is_unsupported_for_tensorflows_reason(
    run: ForkServer, mode: str
) -> None:
    (found,) = run(f"""
from harness.adapter import ExecutedMatmul
adapter = started(small_bert(layers=0), mode="{mode}", precision="amp")
reason = raised(Unsupported, lambda: adapter.build(batch_of(adapter.model_config)))
matmuls = [ExecutedMatmul("float16"), ExecutedMatmul("float32")]
rewritten = lambda: adapter._mixed_precision.require(matmuls)
answer(reason=reason, rewritten=raised(Unsupported, rewritten))
""")
    assert "No (suitable) GPUs detected" in str(found["reason"])
    assert found["rewritten"] is None, "would be refused on the day that it works"


def test_xla_compiles_all_products_of_the_step(run: ForkServer) -> None:
    (found,) = run("""
def losses(compiler):
    adapter = built(small_bert(layers=1), compiler=compiler)
    return adapter, [adapter.read(adapter.step()) for _ in range(3)]
_, plain = losses("none")
adapter, compiled = losses("xla")
answer(plain=plain, compiled=compiled, proof=adapter.compiled(),
       matmul_dtypes=adapter.matmul_dtypes(),
       remapping=adapter.settings()["grappler_remapping"])
""")
    assert found["matmul_dtypes"] == {"float32": 3 * (BERT_PRODUCTS - LAYER_PRODUCTS)}
    # A layer, embeddings and heads, forward and backward.
    assert found["proof"]["clusters"] >= 6
    assert found["compiled"] == pytest.approx(found["plain"], rel=1e-5)
    assert found["remapping"] is False


def test_compiled_raises_where_xla_left_something_out(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(), mode="inference", compiler="xla")
jit_scope, scopes = adapter._tf.xla.experimental.jit_scope, []
def reason(without):
    def scope():
        scopes.append(without(len(scopes)))
        return jit_scope(compile_ops=not scopes[-1])
    adapter._compiler.scope = lambda compiler: scope
    adapter.build(batch_of(adapter.model_config))
    adapter.step()
    return raised(Mismatch, adapter.compiled)
answer(nothing=reason(lambda number: True), layer=reason(lambda number: number == 5))
""")
    assert "0 clusters" in str(found["nothing"])
    assert "MatMul" in str(found["layer"]), "a layer that was left out counts as compiled"


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert())
tf = adapter._tf
def judge(action):
    try:
        tf.Session(config=adapter._config).run(action())
    except Exception as error:
        return adapter.out_of_memory(error)
answer(
    allocation=judge(lambda: tf.random.uniform([1 << 46])),
    host=adapter.out_of_memory(MemoryError()),
    missing=judge(lambda: tf.io.read_file("/no/such/file")),
)
""")
    assert found == {"allocation": True, "host": True, "missing": False}


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(99, 99, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)))
""")
    assert "without CUDA" in str(found["reason"])
