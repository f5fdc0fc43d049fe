"""OneFlow adapter in OneFlow's own environment: features special to OneFlow."""

import math
from typing import Any

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

# Matmuls of a BERT without encoder layers.
HEADS_PRODUCTS = BERT_PRODUCTS - 2 * LAYER_PRODUCTS

# Code of scripts besides the prelude.
WEIGHTS = """
import numpy as np
def flat(arrays):
    return np.concatenate([np.asarray(array, "float64").ravel() for array in arrays])
def weights(adapter):
    return flat(adapter.weights().values())
"""

run = served("oneflow", prelude=WEIGHTS)


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_synchronize_waits_for_what_was_enqueued(run: ForkServer, compiler: str) -> None:
    """Fail if work is left when synchronize returns.
    OneFlow runs asynchronously on a CPU, too, in both modes."""
    (found,) = run(f"""
import time
adapter = built(small_bert(layers=1, hidden=512), compiler="{compiler}", batch=16)
adapter.read(adapter.step())
start = time.perf_counter()
handles = [adapter.step() for _ in range(3)]
enqueued = time.perf_counter()
adapter.synchronize()
complete = time.perf_counter()
values = [adapter.read(handle) for handle in handles]
end = time.perf_counter()
answer(waited=complete - enqueued, late=end - complete, values=values)
""")
    assert found["waited"] > found["late"], "synchronize() returned before the work was done"
    assert found["values"] == sorted(found["values"], reverse=True)


# Masks of dropout, from differing outputs of one batch.
DROPOUT = """
adapter = started(small_bert(dropout=0.5, layers=1), compiler="COMPILER")
adapter.build(batch_of(adapter.model_config))  # the same batch in every rank
one, other = adapter.outputs(), adapter.outputs()
modules = [m for m in adapter._model.modules() if type(m).__name__ == "Dropout"]
ones = adapter._oneflow.ones(64)
answer(one=flat(one).tolist(), again=np.array_equal(flat(one), flat(other)),
       masks=[modules[i](ones).numpy().tolist() for i in (1, 2)], settings=adapter.settings())
adapter.stop()
"""


def test_eager_dropout_differs_between_layers_steps_and_ranks(run: ForkServer) -> None:
    """Fail if eager dropout repeats between layers, steps or ranks.
    In OneFlow 0.9.0 each nn.Dropout has a generator with the same seed, whatever manual_seed() set.
    """
    first, second = run(DROPOUT.replace("COMPILER", "none"), ranks=2)
    assert first["masks"][0] != first["masks"][1], "two layers drop the same positions"
    assert not first["again"], "two steps drop the same positions"
    assert first["one"] != second["one"], "two ranks drop the same positions"


def test_a_graphs_dropout_differs_between_steps_and_the_record_says_how(run: ForkServer) -> None:
    (found,) = run(DROPOUT.replace("COMPILER", "graph"))
    assert not found["again"], "two steps drop the same positions"
    assert found["settings"]["dropout_has_seeds"] is False


@pytest.mark.parametrize(
    ("facts", "mode", "eager", "graph"),
    [
        # a matmul of the forward pass has two in the backward pass
        ("small_bert(dropout=0.1, layers=0)", "train", HEADS_PRODUCTS, 3 * HEADS_PRODUCTS),
        ("small_images()", "inference", RESNET_PRODUCTS, RESNET_PRODUCTS),
    ],
)
def test_eager_mode_and_graph_count_the_same_products(
    run: ForkServer, facts: str, mode: str, eager: int, graph: int
) -> None:
    (found,) = run(f"""
adapter = built({facts}, mode="{mode}")
state = weights(adapter)
random = adapter._oneflow.get_rng_state().numpy().tolist()
eager = adapter.matmul_dtypes(), sum(one.multiply_adds for one in adapter.matmuls(True))
kept = bool(np.array_equal(state, weights(adapter)))
same_random = random == adapter._oneflow.get_rng_state().numpy().tolist()
graph = built({facts}, mode="{mode}", compiler="graph")
multiply_adds = sum(one.multiply_adds for one in graph.matmuls(True))
answer(eager=eager, graph=[graph.matmul_dtypes(), multiply_adds], kept=kept,
       random=same_random)
""")
    assert found["eager"][0] == {"float32": eager}
    assert found["graph"][0] == {"float32": graph}
    assert found["eager"][1] == found["graph"][1] > 0
    assert found["kept"], "looking at the products changed the model"
    assert found["random"], "looking at the products drew random numbers"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_amp_that_has_no_effect_is_unsupported_in_oneflows_words(
    run: ForkServer, compiler: str
) -> None:
    (found,) = run(f"""
answer(reason=raised(Unsupported, lambda: started(small_bert(), precision="amp",
                                                  compiler="{compiler}")))
""")
    assert "CPU autocast is not supported currently" in str(found["reason"])
    assert "float32" in str(found["reason"])


def test_compiled_raises_where_nothing_was_compiled(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(small_bert(layers=0), compiler="graph")
compiled = adapter.compiled()
adapter._graph._is_compiled = False
answer(compiled=compiled, reason=raised(Mismatch, adapter.compiled))
""")
    assert found["compiled"]["matmuls"] == 3 * HEADS_PRODUCTS
    assert found["compiled"]["operators"] > found["compiled"]["matmuls"]
    assert found["reason"], "a step that was not compiled counts as compiled"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_optimizers_follow_torch(run: ForkServer, compiler: str) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run(f"""
adapter = started(small_bert())
flow, optimizers = adapter._oneflow, adapter._optimizers
random = np.random.RandomState(1)
start = random.standard_normal(20)
class Linear(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = flow.nn.Parameter(flow.tensor(start.astype("float32")))
    def forward(self, gradient):
        return (self.weight * gradient).sum()
def run_oneflow(hyper, gradients):
    model = Linear()
    optimizer = optimizers.from_model_config(model, {{"hyperparameters": hyper}}, False, clips=True)
    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)
        def build(self, gradient):
            loss = self.model(gradient)
            loss.backward()
            return loss
    step = Step()
    for gradient in gradients:
        gradient = flow.tensor(gradient.astype("float32"))
        if "{compiler}" == "graph":
            step(gradient)
            continue
        optimizer.zero_grad(set_to_none=True)
        model(gradient).backward()
        optimizer.clip_grad()
        optimizer.step()
    return model.weight.numpy()
def error(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected - start).max())

h = dict(facts_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1)
gradients = [random.standard_normal(20) for _ in range(3)]
weight, buffer = start.copy(), 0.0
for gradient in gradients:
    buffer = h["momentum"] * buffer + gradient + h["weight_decay"] * weight
    weight = weight - h["learning_rate"] * buffer
sgd = error(run_oneflow(h, gradients), weight)

h = dict(facts_of("bert_base")["hyperparameters"], learning_rate=0.1, clip_global_norm=5e-6)
small = [random.standard_normal(20) * 10.0**-i for i in (5, 6, 6)]  # the first is clipped
weight, m, v = start.copy(), 0.0, 0.0
for t, gradient in enumerate(small, 1):
    gradient = gradient * min(1, h["clip_global_norm"] / (np.linalg.norm(gradient) + 1e-6))
    weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
    m = h["beta1"] * m + (1 - h["beta1"]) * gradient
    v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
    denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"]**t) + h["epsilon"]
    weight = weight - h["learning_rate"] / (1 - h["beta1"]**t) * m / denominator
adamw = error(run_oneflow(h, small), weight)
answer(sgd=sgd, adamw=adamw)
""")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert found["adamw"] < 1e-4, "AdamW does not follow torch.optim"


# Gradients of two steps and weights after a clipped step, with one half of a batch.
HALF = """
facts = small_bert(layers=0, clip_global_norm=0.01)
def computed(compiler, half):
    adapter = started(facts, compiler=compiler)
    adapter.build(batch_of(facts, rank=half))
    gradients = flat(adapter.gradients().values())
    again = flat(adapter.gradients().values())
    found = dict(
        gradients=gradients.tolist(), changed=float(np.linalg.norm(again - gradients)),
        loss=adapter.read(adapter.step()), checksum=adapter.weights_checksum())
    return adapter, found
"""
ALONE = "answer(halves=[computed('none', half)[1] for half in range(2)])"
TOGETHER = """
adapter, found = computed(COMPILER, RANK)
answer(**found, settings=adapter.settings(), reached=adapter.all_reduce(RANK + 1.0))
adapter.stop()
"""


@pytest.fixture(scope="module")
def alone(run: ForkServer) -> list[dict[str, Any]]:
    """Return the results of each half by itself, in eager mode."""
    (found,) = run(HALF + ALONE)
    halves: list[dict[str, Any]] = found["halves"]
    return halves


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_two_ranks_average_gradients(
    run: ForkServer, alone: list[dict[str, Any]], compiler: str
) -> None:
    """Fail if two ranks share losses or do not average gradients.
    Also fail if gradients accumulate in the buckets of DistributedDataParallel, as without views.
    """
    ranks = run(HALF + TOGETHER.replace("COMPILER", repr(compiler)), ranks=2)
    mean = [(a + b) / 2 for a, b in zip(*(found["gradients"] for found in alone), strict=True)]
    for found, own in zip(ranks, alone, strict=True):
        assert found["reached"] == 3.0
        assert found["loss"] == pytest.approx(own["loss"], rel=1e-6)
        assert distance(found["gradients"], mean) < 1e-5 * norm(mean)
        assert found["changed"] < 1e-5 * norm(mean), "gradients pile up"
    assert ranks[0]["checksum"] == ranks[1]["checksum"]
    kind = "DDP" if compiler == "none" else "global tensors"
    assert ranks[0]["settings"]["data_parallel"] == kind


def test_batch_normalisation_of_a_graph_takes_each_ranks_own_statistics(run: ForkServer) -> None:
    ranks = run(
        """
adapter = started(small_images(), compiler="graph")
flow, ranks, graphs = adapter._oneflow, adapter._data_parallel, adapter._graphs
class Definition:
    inputs = staticmethod(lambda batch: (batch["images"],))
class Model(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = flow.nn.BatchNorm2d(3)
    def forward(self, images):
        return (self.norm(images),)
images = flow.randn(4, 3, 8, 8) + RANK
(alone,) = Model().train()(images)
model = ranks.replicate(Model().train(), adapter._device)
graph = graphs.Forward(Definition, model, {}, None)
(together,) = graph(ranks.join({"images": images}, adapter._device))
answer(alone=alone.numpy().ravel().tolist(), together=together.to_local().numpy().ravel().tolist(),
       running=float(model.norm.running_mean.to_local().numpy().mean()))
adapter.stop()
""",
        ranks=2,
    )
    for found in ranks:
        difference = distance(found["together"], found["alone"])
        assert difference < 1e-5 * norm(found["alone"]), "batch normalisation saw other ranks"
    assert ranks[0]["running"] != ranks[1]["running"]


def test_masked_tokens_are_not_attended_to(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(), mode="inference")
batch = batch_of(adapter.model_config)
batch["masked_positions"][:] = np.arange(batch["masked_positions"].shape[1])
batch["attention_mask"][:, -1] = 0
def outputs():
    adapter.build(batch)  # the same seed: the same weights
    return flat(adapter.outputs())
before = outputs()
batch["token_ids"][:, -1] = (batch["token_ids"][:, -1] + 1) % 50
hidden = float(np.abs(outputs() - before).max())
batch["token_ids"][:, -2] = (batch["token_ids"][:, -2] + 1) % 50
answer(hidden=hidden, seen=float(np.abs(outputs() - before).max()))
""")
    assert found["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert found["seen"] > 0.0, "no token is attended to"


@pytest.mark.parametrize("compiler", ["none", "graph"])
def test_another_batch_is_built_afresh(run: ForkServer, compiler: str) -> None:
    (found,) = run(f"""
adapter = started(small_bert(layers=0), mode="inference", compiler="{compiler}")
def outputs(rank):
    adapter.build(batch_of(adapter.model_config, rank=rank))
    return flat(adapter.outputs()), adapter.read(adapter.step())
(one, mean), (other, _), (again, _) = outputs(0), outputs(1), outputs(0)
answer(kept=np.array_equal(one, again), differs=not np.array_equal(one, other),
       mean=float(one.mean()), read=mean)
""")
    assert found["kept"]
    assert found["differs"], "the batch of an earlier build() is still used"
    assert found["read"] == pytest.approx(found["mean"], rel=1e-6)


def test_a_nan_is_read_as_it_is(run: ForkServer) -> None:
    (found,) = run("""
facts = small_images()
facts["hyperparameters"]["blocks"] = [1]
adapter = started(facts)
batch = batch_of(adapter.model_config)
batch["images"][0, 0, 0, 0] = float("nan")
adapter.build(batch)
answer(poisoned=adapter.read(adapter.step()))
""")
    assert math.isnan(found["poisoned"]), "a NaN in the input was lost on the way to the loss"


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(0, 99, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)))
""")
    assert "CUDA" in str(found["reason"])


def test_clipping_knows_the_norm_of_many_gradients(run: ForkServer) -> None:
    """Fail if clipping uses OneFlow's norm, off by a fortieth for BERT's word embeddings."""
    (found,) = run("""
clip_global_norm = started(small_bert())._steps.clip_global_norm
import oneflow
values = np.random.default_rng(0).standard_normal((30522, 768)).astype("float32")
gradients = [oneflow.tensor(values), oneflow.tensor(values[:100])]
clip_global_norm(gradients, 0.5)
after = flat(gradient.numpy() for gradient in gradients)
few = [oneflow.tensor(values[:1] / 1e6)]
clip_global_norm(few, 0.5)
answer(norm=float(np.sqrt(after @ after)), kept=bool((few[0].numpy() == values[:1] / 1e6).all()))
""")
    assert found["norm"] == pytest.approx(0.5, rel=1e-5)
    assert found["kept"]
