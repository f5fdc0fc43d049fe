"""JAX adapter in JAX's own environment: features special to JAX."""

import math

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served

# Scripts' models besides the prelude: a ResNet of one block and a BERT without encoder layers,
# since compiling is slow.
SMALL_MODELS = """
def tiny_bert(**changes):
    return small_bert(layers=0, **changes)

def small_resnet(**options):
    facts = small_images()
    facts["hyperparameters"]["blocks"] = [1]
    return started(facts, **options)
"""

run = served("jax", prelude=SMALL_MODELS)


def test_a_plugin_that_does_not_work_gives_the_reason(run: ForkServer) -> None:
    (found,) = run("""
from types import SimpleNamespace
def initialize():
    raise RuntimeError("Unable to load cuPTI. Is it installed?")
plugin = SimpleNamespace(name="xla_cuda13", load=lambda: SimpleNamespace(initialize=initialize))
adapter = started(small_bert(layers=0))
adapter._devices.entry_points = lambda group: [plugin]
rank_context = RankContext(0, 0, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: adapter._devices.take(rank_context)))
""")
    assert "Unknown backend cuda" in found["reason"]
    assert found["reason"].endswith("; xla_cuda13: Unable to load cuPTI. Is it installed?")


def test_amp_is_unsupported_where_xla_multiplies_in_float32(run: ForkServer) -> None:
    """Fail if amp runs where XLA multiplies in float32.
    XLA for CPUs keeps bfloat16 arrays but widens some of their matmuls; JAX's own graph hides
    it."""
    (found,) = run("""
reason = raised(Unsupported, lambda: started(small_bert(), precision="amp"))
import jax.numpy as jnp
from framework_under_test import devices, programs
single, half = devices.probe(jnp.float32), devices.probe(jnp.bfloat16)
devices.probe = lambda dtype: {}
executed = {
    model["name"]: sorted(programs.executed_dtypes(
        built(model, precision="amp", compiler="jit")._step))
    for model in (small_bert(layers=1), small_images())
}
answer(reason=reason, single=single, half=half, executed=executed)
""")
    assert {form for dtypes in found["single"].values() for form in dtypes} == {"float32"}
    forms = found["half"]
    if any("float32" in executed for executed in found["executed"].values()):
        assert found["reason"] is not None
        for form in forms:
            assert (form in found["reason"]) == ("float32" in forms[form])
    else:
        assert found["reason"] is None


@pytest.mark.parametrize(
    ("facts", "precision", "products"),
    [
        ("small_bert(dropout=0.1)", "fp32", {"float32": 3 * BERT_PRODUCTS}),
        ("small_bert(dropout=0.1)", "amp", {"bfloat16": 3 * BERT_PRODUCTS}),
        # images have no gradient
        ("small_images()", "amp", {"bfloat16": 3 * RESNET_PRODUCTS - 1}),
    ],
)
def test_products_have_the_precision_asked_for(
    run: ForkServer, facts: str, precision: str, products: dict[str, int]
) -> None:
    """Fail if matmuls do not have the requested precision.
    Mixed precision is traced as on a device that supports it."""
    (found,) = run(f"""
adapter = started({facts})
adapter.case = adapter.case._replace(precision="{precision}")
adapter._devices.probe = lambda dtype: {{}}
adapter._dtype = adapter._devices.compute_dtype("{precision}", adapter._device)
adapter.build(batch_of(adapter.model_config))
master = sorted({{str(a.dtype) for a in adapter._shared.parameters.values()}})
outputs = adapter._jax.eval_shape(adapter._logits, *adapter._local_arguments())
logits = sorted({{str(output.dtype) for output in outputs}})
answer(matmul_dtypes=adapter.matmul_dtypes(), master=master, logits=logits,
       amp=adapter.settings()["amp_dtype"])
""")
    assert found["matmul_dtypes"] == products
    assert found["master"] == ["float32"]
    assert found["logits"] == list({"fp32": ["float32"], "amp": ["bfloat16"]}[precision])
    assert found["amp"] == (None if precision == "fp32" else "bfloat16")


def test_float32_that_may_become_tf32_does_not_count_as_float32(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert(), mode="inference")
adapter.build(batch_of(adapter.model_config))
before = adapter.matmul_dtypes()
adapter._jax.config.update("jax_default_matmul_precision", None)
adapter.build(batch_of(adapter.model_config))
answer(before=before, after=adapter.matmul_dtypes())
""")
    assert found["before"] == {"float32": BERT_PRODUCTS}
    assert "float32" not in found["after"]
    assert sum(found["after"].values()) == BERT_PRODUCTS


def test_compiled_is_one_executable_that_keeps_its_memory(run: ForkServer) -> None:
    (found,) = run("""
import jax
compilations = []
adapter = built(tiny_bert(dropout=0.1), compiler="jit")
adapter.step()
adapter.synchronize()
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **rest: compilations.append(event) if "compile" in event else None)
before = adapter._shared.parameters
for _ in range(3):
    adapter.step()
adapter.synchronize()
answer(**adapter.compiled(), compilations=compilations,
       donated=all(array.is_deleted() for array in before.values()))
""")
    assert found["executables"] == 1
    assert found["fusions"] > 0
    assert found["compilations"] == [], "steps behind the first compiled something"
    assert found["donated"], "the state is copied in every step"


def test_compiled_raises_where_xla_compiled_nothing(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(tiny_bert())
adapter.case = adapter.case._replace(compiler="jit")
answer(reason=raised(Mismatch, adapter.compiled))
""")
    assert "operation by operation" in str(found["reason"])


def test_a_step_is_complete_when_synchronize_returns(run: ForkServer) -> None:
    """Fail if synchronize returns before a step is complete.
    JAX computes in the background: the loss of op-by-op steps is ready before the weights."""
    (found,) = run("""
adapter = built(tiny_bert())
adapter.step()
adapter.synchronize()
state = adapter._jax.tree.leaves((adapter._shared, adapter._own, adapter._latest))
answer(pending=sum(not array.is_ready() for array in state))
""")
    assert found["pending"] == 0


def test_dropout_differs_between_steps_and_ranks_and_repeats_with_the_seed(
    run: ForkServer,
) -> None:
    (found,) = run("""
# without learning, only dropout makes a difference
adapter = built(tiny_bert(dropout=0.5, learning_rate=0.0), compiler="jit")
def losses(rank):
    rank_context = RankContext(rank, rank, ["rank:0", "rank:1"], "cpu", 1, seed=7)
    key = adapter._steps.initial(adapter._definition, adapter.model_config, rank_context)[-1]
    adapter._own = adapter._own._replace(key=adapter._arrays.own(key))
    return [adapter.read(adapter.step()) for _ in range(3)]
start = [adapter.read(adapter.step()) for _ in range(3)]
answer(start=start, first=losses(0), other=losses(1))
""")
    assert len(set(found["first"])) == 3, "two steps drew the same masks"
    assert found["first"] == found["start"]
    assert not set(found["first"]) & set(found["other"]), "two ranks drew the same masks"


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    AdamW's gradients are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run("""
import numpy as np
import optax
adapter = started(small_bert())
random = np.random.RandomState(1)
start = random.standard_normal(20)
def run_optax(hyper, gradients):
    optimizer = adapter._optimizers.from_model_config({"hyperparameters": hyper})
    weight = np.float32(start)
    state = optimizer.init(weight)
    for gradient in gradients:
        updates, state = optimizer.update(np.float32(gradient), state, weight)
        weight = optax.apply_updates(weight, updates)
    return np.float64(weight)
def error(actual, expected):
    return float(np.abs(actual - expected).max() / np.abs(expected - start).max())

h = dict(facts_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1)
gradients = [random.standard_normal(20) for _ in range(3)]
weight, buffer = start.copy(), 0.0
for gradient in gradients:
    buffer = h["momentum"] * buffer + gradient + h["weight_decay"] * weight
    weight = weight - h["learning_rate"] * buffer
sgd = error(run_optax(h, gradients), weight)

h = dict(facts_of("bert_base")["hyperparameters"], learning_rate=0.1)
small = [random.standard_normal(20) * 1e-6 for _ in range(3)]
weight, m, v = start.copy(), 0.0, 0.0
for t, gradient in enumerate(small, 1):
    weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
    m = h["beta1"] * m + (1 - h["beta1"]) * gradient
    v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
    denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"]**t) + h["epsilon"]
    weight = weight - h["learning_rate"] / (1 - h["beta1"]**t) * m / denominator
answer(sgd=sgd, adamw=error(run_optax(h, small), weight))
""")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled"
    assert found["adamw"] < 1e-4, "AdamW's epsilon is not outside the bias correction"


# Each rank's batch statistics, the averaged gradients, and the weights after the clipped step.
RANKS = """
import numpy as np
adapter = small_resnet(compiler="jit")
adapter.model_config["hyperparameters"].update(
    clip_global_norm=0.01, learning_rate=1.0, momentum=0.0, weight_decay=0.0)
adapter.build(batch_of(adapter.model_config, rank=RANK))
statistics = lambda: float(np.asarray(
    adapter._data_parallel.local(adapter._own.statistics)["bn1.running_mean"])[0])
start = adapter.weights()
loss = adapter.read(adapter.step())
moved = [start[name] - array for name, array in adapter.weights().items()]
adapter.load_weights({**start, **{name: np.array(array) for name, array in
                                  adapter._data_parallel.local(adapter._own.statistics).items()}})
gradients = adapter.gradients()
def sample(arrays):
    return [x for name in sorted(arrays) for x in np.asarray(arrays[name]).ravel()[:50].tolist()]
# what op-by-op steps do with the gradients of a rank
single = adapter._jax.jit(adapter._observed)(*adapter._local_arguments())[2]
by_operation = adapter._ranks.average(single)
answer(moved=float(np.sqrt(sum((array.astype("d") ** 2).sum() for array in moved))),
       gradients=sample(gradients), single=sample(single), by_operation=sample(by_operation),
       statistics=statistics(), loss=loss,
       checksum=adapter.weights_checksum(), total=adapter.all_reduce(0.1 * (RANK + 1)),
       settings=adapter.settings())
adapter.stop()
"""


def test_ranks_average_gradients_and_keep_their_own_statistics(run: ForkServer) -> None:
    """Fail if ranks do not average gradients, or share their batch statistics.
    In one compiled program, JAX would by default use statistics of the global batch."""
    first, second = run(RANKS, ranks=2)
    assert first["settings"]["collectives"] == "gloo"
    assert first["total"] == second["total"] == pytest.approx(0.3, rel=1e-15), "not in float64"
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["statistics"] != second["statistics"], "statistics are those of both batches"
    assert first["gradients"] == second["gradients"]
    assert first["checksum"] == second["checksum"]
    length = norm(first["gradients"])
    for found in (first, second):
        assert distance(found["by_operation"], first["gradients"]) < 1e-5 * length
        assert distance(found["single"], first["gradients"]) > 1e-2 * length
    # the average of two clipped gradients would be shorter than the limit
    assert first["moved"] == pytest.approx(0.01, rel=1e-2)


def test_a_nan_in_the_input_reaches_the_loss(run: ForkServer) -> None:
    """Fail if a NaN in the input does not reach the loss.
    With ``jax.nn.relu``, XLA's default CPU kernels lose it in the last ReLU and average pooling."""
    (found,) = run("""
os.environ.pop("XLA_FLAGS")
adapter = small_resnet(compiler="jit")
batch = batch_of(adapter.model_config)
batch["images"][0, 0, 0, 0] = float("nan")
adapter.build(batch)
answer(poisoned=adapter.read(adapter.step()))
""")
    assert math.isnan(found["poisoned"])


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert())
import jax.numpy as jnp
def judge(action):
    try:
        action()
    except Exception as error:
        return adapter.out_of_memory(error)
answer(
    allocation=judge(lambda: jnp.zeros(1 << 46).block_until_ready()),
    host=adapter.out_of_memory(MemoryError()),
    device=adapter.out_of_memory(adapter._jax.errors.JaxRuntimeError(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 bytes")),
    shapes=judge(lambda: jnp.zeros([2, 3]) @ jnp.zeros([2, 3])),
)
""")
    assert found == {"allocation": True, "host": True, "device": True, "shapes": False}


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(99, 99, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)))
""")
    assert "cuda" in str(found["reason"])
