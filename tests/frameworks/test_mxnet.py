"""MXNet adapter in MXNet's own environment: features special to MXNet."""

import math
from pathlib import Path

import pytest

from ..processes import wait_for
from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served
from .processors import NO_BFLOAT16, onednn_has_bfloat16

PRODUCTS = {"small_bert()": BERT_PRODUCTS, "small_images()": RESNET_PRODUCTS}

run = served("mxnet", prelude="import numpy as np\n")


@pytest.fixture
def bfloat16(run: ForkServer) -> None:
    """Let a test run where MXNet has bfloat16; elsewhere it must refuse mixed precision."""
    if onednn_has_bfloat16():
        return
    (found,) = run("""
answer(reason=raised(Unsupported, lambda: started(small_images(), precision="amp")))
""")
    assert NO_BFLOAT16 in found["reason"]
    pytest.skip("MXNet has bfloat16 on processors with AVX-512 alone, and refuses it here")


def test_optimizers_follow_torch(run: ForkServer) -> None:
    """Fail if three optimizer steps differ from torch.optim's rules in numpy.
    Covers a weight and a bias, which MXNet's optimizers do not decay by default. AdamW's gradients
    are as small as epsilon, which shows an epsilon inside the bias correction."""
    (found,) = run("""
adapter = started(small_bert())
mx, optimizers = adapter._mx, adapter._optimizers
random = np.random.RandomState(1)
starts = [random.standard_normal(20), random.standard_normal(20)]
def by_mxnet(hyper, steps):
    block = mx.gluon.nn.Dense(20, in_units=1)
    block.initialize()
    parameters = [block.weight, block.bias]
    block.weight.set_data(mx.nd.array(starts[0].reshape(20, 1)))
    block.bias.set_data(mx.nd.array(starts[1]))
    trainer = mx.gluon.Trainer(
        block.collect_params(),
        optimizers.from_model_config({"hyperparameters": hyper}), kvstore=None)
    for gradients in steps:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad()[:] = mx.nd.array(gradient.reshape(parameter.shape))
            parameter.data()._fresh_grad = True  # as behind a backward pass
        if hyper["optimizer"] == "adamw":
            trainer.optimizer.clip([p.grad() for p in parameters], 1.0)
        trainer.update(1)
    return [parameter.data().asnumpy().ravel() for parameter in parameters]
def error(actual, expected):
    return max(float(np.abs(a - e).max() / np.abs(e - s).max())
               for a, e, s in zip(actual, expected, starts))
def draw(scale):
    return [[random.standard_normal(20) * scale for _ in starts] for _ in range(3)]

h = dict(facts_of("resnet50_v1.5")["hyperparameters"], weight_decay=0.1, learning_rate=0.1)
steps = draw(1.0)
expected = []
for index, start in enumerate(starts):
    weight, buffer = start.copy(), 0.0
    for gradients in steps:
        buffer = h["momentum"] * buffer + gradients[index] + h["weight_decay"] * weight
        weight = weight - h["learning_rate"] * buffer
    expected.append(weight)
sgd = error(by_mxnet(h, steps), expected)

h = dict(facts_of("bert_base")["hyperparameters"], learning_rate=0.1, clip_global_norm=4e-6)
steps = draw(1e-6)
expected = []
for index, start in enumerate(starts):
    weight, m, v = start.copy(), 0.0, 0.0
    for t, gradients in enumerate(steps, 1):
        length = np.sqrt(sum((g**2).sum() for g in gradients))
        gradient = gradients[index] * min(1.0, h["clip_global_norm"] / (length + 1e-6))
        weight = weight * (1 - h["learning_rate"] * h["weight_decay"])
        m = h["beta1"] * m + (1 - h["beta1"]) * gradient
        v = h["beta2"] * v + (1 - h["beta2"]) * gradient**2
        denominator = np.sqrt(v) / np.sqrt(1 - h["beta2"]**t) + h["epsilon"]
        weight = weight - h["learning_rate"] / (1 - h["beta1"]**t) * m / denominator
    expected.append(weight)
adamw = error(by_mxnet(h, steps), expected)

# MXNet's own sums of squares lose 5% in an array of this size
many = mx.nd.random.normal(shape=(1 << 23,))
optimizer = optimizers.from_model_config({"hyperparameters": h})
optimizer.clip([many], 1.0)
length = np.sqrt((many.asnumpy().astype("float64") ** 2).sum())
answer(sgd=sgd, adamw=adamw,
       clip=abs(float(optimizer.factor.asscalar()) * length / h["clip_global_norm"] - 1))
""")
    assert found["sgd"] < 1e-5, "SGD's weight decay is not coupled, or spares the bias"
    assert found["adamw"] < 1e-4, "AdamW's epsilon, decay or clipping is another"
    assert found["clip"] < 1e-4, "the global norm of many gradients is inaccurate"


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
@pytest.mark.parametrize("facts", ["small_bert()", "small_images()"])
@pytest.mark.parametrize("mode", ["train", "inference"])
def test_products_are_observed(run: ForkServer, facts: str, mode: str, compiler: str) -> None:
    (found,) = run(f"""
adapter = built({facts}, mode="{mode}", compiler="{compiler}")
state = lambda: [p.data().asnumpy() for p in adapter._model.collect_params().values()]
before = state()
products = adapter.matmul_dtypes()
kept = all(map(np.array_equal, before, state()))
adapter.step()
answer(matmul_dtypes=products, again=adapter.matmul_dtypes(), kept=kept,
       compiled="{compiler}" != "none" and adapter.compiled(),
       fused=adapter._hybridize.get("backend"))
""")
    assert found["matmul_dtypes"] == found["again"] == {"float32": PRODUCTS[facts]}
    assert found["kept"], "looking at the products changed the model"
    assert bool(found["compiled"]) == (compiler == "hybridize")
    assert (found["fused"] == "MKLDNN") == (mode == "inference")


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_bfloat16_on_the_cpu(run: ForkServer, bfloat16: None, compiler: str) -> None:
    (found,) = run(f"""
adapter = built(small_images(), precision="amp", compiler="{compiler}")
answer(matmul_dtypes=adapter.matmul_dtypes(), loss=adapter.read(adapter.step()),
       logits=str(adapter._forward()[0].dtype), amp=adapter.settings()["amp_dtype"])
""")
    assert found["matmul_dtypes"] == {"bfloat16": RESNET_PRODUCTS}
    assert math.isfinite(found["loss"])
    assert "bfloat16" in found["logits"]
    assert found["amp"] == "bfloat16"


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_amp_without_effect_is_seen(run: ForkServer, bfloat16: None, compiler: str) -> None:
    (found,) = run(f"""
from mxnet.contrib import amp
amp.init = lambda *arguments, **options: None
answer(matmul_dtypes=built(small_images(), precision="amp", compiler="{compiler}").matmul_dtypes())
""")
    assert found["matmul_dtypes"] == {"float32": RESNET_PRODUCTS}


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_a_product_that_mxnet_lacks_in_bfloat16_stays_in_float32(
    run: ForkServer, bfloat16: None, compiler: str
) -> None:
    (found,) = run(f"""
adapter = built(small_bert(), precision="amp", compiler="{compiler}")
losses = [adapter.read(adapter.step()) for _ in range(8)]
answer(matmul_dtypes=adapter.matmul_dtypes(), losses=losses)
""")
    assert found["matmul_dtypes"] == {"bfloat16": BERT_PRODUCTS - 4, "float32": 4}  # attention's
    assert math.isfinite(found["losses"][-1])


def test_a_model_without_any_product_in_bfloat16_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
adapter = started(small_bert())
def ask():
    adapter._devices.set_precision("amp", adapter._context, ("batch_dot",))
answer(reason=raised(Unsupported, ask))
""")
    assert "on cpu in bfloat16" in str(found["reason"])
    assert "float32/float64 for CPU" in str(found["reason"]), "not MXNet's own words"


def test_float16_scales_its_loss_and_skips_what_overflows(run: ForkServer, bfloat16: None) -> None:
    """Fail if loss scaling or overflow handling is wrong; no CPU has float16 matmuls."""
    (found,) = run("""
def gradients(dtype):
    adapter._dtype = dtype
    adapter.build(batch_of(adapter.model_config))
    return adapter.gradients()
adapter = started(small_images(), precision="amp")
plain, scaled = gradients("bfloat16"), gradients("float16")
start = adapter.weights_checksum()
scaler = adapter._trainer._amp_loss_scaler
scaler._loss_scale = scaler._next_loss_scale = 3e38
adapter.step()
kept = adapter.weights_checksum() == start
scaler._loss_scale = scaler._next_loss_scale = 2.0**16
adapter.step()
answer(plain=[float(np.linalg.norm(g)) for g in plain.values()], kept=kept,
       scaled=[float(np.linalg.norm(g)) for g in scaled.values()],
       trained=adapter.weights_checksum() != start)
""")
    assert found["scaled"] == pytest.approx(found["plain"], rel=1e-2)
    assert found["kept"], "an overflow reached the weights"
    assert found["trained"]


def test_compiled_raises_where_the_model_is_not_one_graph(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(small_bert(), mode="inference", compiler="hybridize")
early = raised(Mismatch, adapter.compiled)
adapter._model.hybridize(active=False)
adapter._model.layers.hybridize()
adapter.step()
answer(early=early, parts=raised(Mismatch, adapter.compiled))
""")
    assert found["early"], "a model that did not run yet counts as compiled"
    assert found["parts"], "a model that was compiled in parts counts as compiled"


def test_a_fused_graph_takes_new_weights(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(small_bert(), mode="inference", compiler="hybridize")
first = adapter.read(adapter.step())
changed = {name: array * 2 for name, array in adapter.weights().items()}
adapter.load_weights(changed)
again = adapter.read(adapter.step())
other = built(small_bert(), mode="inference")
other.load_weights(changed)
answer(first=first, again=again, imperative=other.read(other.step()))
""")
    assert found["again"] == pytest.approx(found["imperative"], rel=1e-4)
    assert found["again"] != pytest.approx(found["first"], rel=1e-2)


GRADIENTS = """
facts = small_bert(layers=0, clip_global_norm=1e9)
adapter = started(facts, compiler="COMPILER")
reached = adapter.all_reduce(RANK + 1.0)
adapter.build(batch_of(facts, rank=int(os.environ.get("HALF", RANK))))
adapter.matmul_dtypes()
start = adapter.weights()
gradients = [g.ravel().tolist() for g in adapter.gradients().values()]
kept = all(np.array_equal(a, b) for a, b in zip(start.values(), adapter.weights().values()))
loss = adapter.read(adapter.step())
children = [c.pid for c in adapter._group._children] if WORLD > 1 else []
checksum, settings = adapter.weights_checksum(), adapter.settings()
adapter.stop()
answer(gradients=sum(gradients, []), loss=loss, kept=kept, reached=reached, checksum=checksum,
       settings=settings, left=[pid for pid in children if os.path.exists(f"/proc/{pid}")])
"""


@pytest.mark.parametrize("compiler", ["none", "hybridize"])
def test_two_ranks_average_their_gradients(run: ForkServer, compiler: str) -> None:
    script = GRADIENTS.replace("COMPILER", compiler)
    halves = [run(f"os.environ['HALF'] = '{half}'\n{script}")[0] for half in range(2)]
    mean = [sum(pair) / 2 for pair in zip(*(half["gradients"] for half in halves), strict=True)]
    first, second = run(script, ranks=2)
    assert first["settings"]["process_group"]["kvstore"] == "dist_sync"
    assert first["reached"] == second["reached"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    assert distance(first["gradients"], mean) < 1e-6 * norm(mean)
    assert first["kept"], "looking at the gradients changed the weights"
    assert first["checksum"] == second["checksum"]
    assert first["left"] == [], "the scheduler or the server outlives its run"


def test_ranks_that_are_killed_take_the_parameter_server_along(
    run: ForkServer, tmp_path: Path
) -> None:
    first, _ = run(
        f"FOLDER = {str(tmp_path)!r}\n"
        + """
import time

adapter = started(small_bert())
adapter.all_reduce(0.0)
answer(children=[child.pid for child in adapter._group._children])
os.mkdir(f"{FOLDER}/{os.getpid()}")
while len(os.listdir(FOLDER)) < 2:  # the other would wait for its sum without an end
    time.sleep(0.02)
os.kill(os.getpid(), 9)
""",
        ranks=2,
    )
    assert len(first["children"]) == 2
    wait_for(
        lambda: not any(map(_runs, first["children"])),
        "the scheduler and the server to end with their rank",
    )


def _runs(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
import resource
adapter = started(small_bert())
nd = adapter._mx.nd
def judge(action):
    try:
        action().wait_to_read()
    except Exception as error:
        return adapter.out_of_memory(error), str(error).splitlines()[0]
shape = judge(lambda: nd.ones((2, 3)).reshape((7, 7)))
resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
answer(memory=judge(lambda: nd.zeros((1 << 29, 3))), shape=shape,
       host=adapter.out_of_memory(MemoryError()))
""")
    # a record keeps the first line, which is not one of a C++ trace
    assert found["memory"] == [True, "Failed to allocate CPU Memory"]
    assert found["shape"][0] is False
    assert "Traceback" not in found["shape"][1]
    assert found["host"] is True


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(99, 99, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)))
""")
    assert "CUDA" in str(found["reason"])


@pytest.mark.parametrize("to_the_end", [True, False])
def test_workers_of_a_loader_end_by_themselves(run: ForkServer, to_the_end: bool) -> None:
    """Fail if a loader's workers do not end by themselves.
    One killed while handing a batch over would block the end of the pool forever."""
    (found,) = run(
        f"TO_THE_END = {to_the_end}\n"
        + """
import multiprocessing
import time
import numpy as np
started(small_bert())
from framework_under_test import loader

class Samples:
    def __len__(self):
        return 8
    def __getitem__(self, number):
        time.sleep(0.3 * (number > 1))
        return (np.float32([number]),)

given = loader.batches(Samples(), 2, 2, "cpu")
first = next(given)[0].tolist()
workers = multiprocessing.active_children()
rest = [one[0].tolist() for one in given] if TO_THE_END else given.close()
for worker in workers:
    worker.join(120)
answer(first=first, rest=rest, codes=[worker.exitcode for worker in workers])
"""
    )
    rest = [[[2.0], [3.0]], [[4.0], [5.0]], [[6.0], [7.0]]]
    expected = {"first": [[0.0], [1.0]], "rest": rest if to_the_end else None, "codes": [0, 0]}
    assert found == expected
