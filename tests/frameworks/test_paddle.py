"""PaddlePaddle adapter in Paddle's own environment: features special to Paddle."""

import math

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served
from .processors import onednn_has_bfloat16

run = served("paddle")


def test_resnet50_is_version_1_5(run: ForkServer) -> None:
    (found,) = run("""
import paddle
adapter = started(facts_of("resnet50_v1.5"))
model = adapter._definition.build(adapter.model_config)
layers = dict(model.named_sublayers())
convolutions = {n: m for n, m in layers.items() if isinstance(m, paddle.nn.Conv2D)}
norms = [m for m in layers.values() if isinstance(m, paddle.nn.BatchNorm2D)]
trainable = [p for p in model.parameters() if not p.stop_gradient]
answer(
    parameters=sum(int(p.size) for p in trainable),
    all=sum(int(p.size) for p in model.parameters()),
    layers=len(convolutions),
    biases=sum(m.bias is not None for m in convolutions.values()),
    strided=sorted(m._kernel_size[0] for m in convolutions.values() if m._stride == [2, 2]),
    norms=sorted({(m._epsilon, round(m._momentum, 6)) for m in norms}),
    deviation=float(layers["layer4.2.conv2"].weight.std()),
)
""")
    assert found["parameters"] == 25_557_032
    assert found["all"] > found["parameters"], "Paddle counts running statistics as parameters"
    assert found["layers"] == 53
    assert found["biases"] == 0, "a convolution before a batch normalisation has a bias"
    assert found["strided"] == [1, 1, 1, 3, 3, 3, 7], "v1.5 strides in the 3x3 convolution"
    assert found["norms"] == [[1e-05, 0.9]], "Paddle's momentum is 1 - PyTorch's"
    assert found["deviation"] == pytest.approx(math.sqrt(2 / (512 * 9)), rel=0.01)


UPDATES = """
import numpy as np
facts = FACTS
adapter = built(facts)
hyper = facts["hyperparameters"]
before = adapter.weights()
moments = {name: [np.zeros(value.shape)] * 2 for name, value in before.items()}
expected = {name: value.astype("float64") for name, value in before.items()}
worst = 0.0
for number in (1, 2):
    gradients = {n: g.astype("float64") for n, g in adapter.gradients().items()}
    length = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    adapter.step()
    after = adapter.weights()
    for name, g in gradients.items():
        w, (m, v) = before[name].astype("float64"), moments[name]
        RULE
        moments[name] = [m, v]
        worst = max(worst, float(np.linalg.norm(after[name] - w - change)
                                 / max(np.linalg.norm(change), 1e-3 * np.linalg.norm(w))))
    before = after
answer(worst=worst, length=float(length))
"""
SGD = """
        m = hyper["momentum"] * m + g + hyper["weight_decay"] * w
        change = -hyper["learning_rate"] * m
"""
ADAMW = """
        g = g * min(1.0, hyper["clip_global_norm"] / length)
        m = hyper["beta1"] * m + (1 - hyper["beta1"]) * g
        v = hyper["beta2"] * v + (1 - hyper["beta2"]) * g**2
        scale = hyper["learning_rate"] / (1 - hyper["beta1"] ** number)
        change = -hyper["learning_rate"] * hyper["weight_decay"] * w - scale * m / (
            np.sqrt(v / (1 - hyper["beta2"] ** number)) + hyper["epsilon"])
"""


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ("small_images()", SGD),
        ("small_bert(epsilon=1e-3, clip_global_norm=0.1, weight_decay=0.3)", ADAMW),
    ],
    ids=["sgd", "adamw"],
)
def test_optimizers_follow_pytorchs_rules(run: ForkServer, facts: str, rule: str) -> None:
    (found,) = run(UPDATES.replace("FACTS", facts).replace("\n        RULE", rule))
    assert found["length"] > 0.1, "nothing was clipped"
    assert found["worst"] < 2e-3


GRADIENTS = """
import numpy as np
facts = small_bert(layers=0)
adapter = started(facts, compiler="COMPILER")
halves = [batch_of(facts, rank=rank) for rank in range(2)]
if WORLD == 1:
    adapter.build({name: np.concatenate([h[name] for h in halves]) for name in halves[0]})
else:
    adapter.build(halves[RANK])
gradients = adapter.gradients()
loss = adapter.read(adapter.step())
adapter.step()
flat = np.concatenate([gradients[name].ravel() for name in sorted(gradients)])
answer(gradients=flat.astype(float).tolist(), loss=loss, checksum=adapter.weights_checksum(),
       total=adapter.all_reduce(RANK + 1.0), group=adapter.settings()["process_group"],
       compiled=adapter.compiled() if "COMPILER" != "none" else {})
adapter.stop()
"""


@pytest.mark.parametrize("compiler", ["none", "to_static"])
def test_two_ranks_average_their_gradients_without_a_launcher(
    run: ForkServer, compiler: str
) -> None:
    (alone,) = run(GRADIENTS.replace("COMPILER", compiler))
    first, second = run(GRADIENTS.replace("COMPILER", compiler), ranks=2)
    assert first["group"] == "gloo"
    assert first["total"] == second["total"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    assert distance(first["gradients"], alone["gradients"]) < 1e-5 * norm(alone["gradients"])
    assert first["checksum"] == second["checksum"]
    assert first["checksum"] == pytest.approx(alone["checksum"], rel=1e-5)
    assert ("backward_operations" in first["compiled"]) == (compiler == "to_static")


@pytest.mark.parametrize("compiler", ["none", "to_static"])
@pytest.mark.parametrize(
    ("facts", "products"),
    [("small_bert(dropout=0.1)", BERT_PRODUCTS), ("small_images()", RESNET_PRODUCTS)],
    ids=["bert", "resnet"],
)
def test_counting_products_changes_nothing(
    run: ForkServer, facts: str, products: int, compiler: str
) -> None:
    (found,) = run(f"""
import paddle
built({facts}, compiler="{compiler}")
expected = paddle.rand([4]).tolist()
adapter = built({facts}, compiler="{compiler}")
fixed = [p.numpy() for p in adapter._model.parameters()]
counted = adapter.matmul_dtypes()
answer(
    matmul_dtypes=counted,
    multiply_adds=sum(one.multiply_adds for one in adapter.matmuls(True)),
    kept=all((a == p.numpy()).all() for a, p in zip(fixed, adapter._model.parameters())),
    random=paddle.rand([4]).tolist() == expected,
    gradients=sum(p.grad is not None for p in adapter._model.parameters()),
    first=adapter.read(adapter.step()),
)
""")
    assert found["matmul_dtypes"] == {"float32": products}
    assert found["kept"], "looking at the products changed the running statistics"
    assert found["random"], "looking at the products drew random numbers"
    assert found["gradients"] == 0
    assert math.isfinite(found["first"])
    if products == BERT_PRODUCTS:  # batch 2, sequence 16, 2 predictions; attention included
        layer = 16 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 16 * 16 * 32
        heads = 2 * (32 * 32 + 32 * 50) + 32 * 32 + 32 * 2
        assert found["multiply_adds"] == 2 * (2 * layer + heads)


def test_amp_without_effect_is_unsupported_in_paddles_words(run: ForkServer) -> None:
    (found,) = run("""
answer(reason=raised(Unsupported, lambda: built(small_bert(), precision="amp")))
""")
    assert "float32" in found["reason"]
    assert "it makes no effect" in found["reason"]


@pytest.mark.skipif(onednn_has_bfloat16(), reason="oneDNN has bfloat16 on this processor")
def test_amp_in_a_program_is_refused_where_the_processor_has_no_bfloat16(run: ForkServer) -> None:
    (found,) = run("""
def reason(mode):
    return raised(Unsupported, lambda: built(small_bert(), mode=mode, precision="amp",
                                             compiler="to_static"))
answer(inference=reason("inference"), train=reason("train"))
""")
    assert "a bfloat16 matmul in a program: " in found["inference"]
    assert "bfloat16 matmul in a program: " in found["train"]


@pytest.mark.skipif(
    not onednn_has_bfloat16(), reason="oneDNN has no bfloat16 on this processor: refused"
)
def test_amp_runs_in_a_program_where_paddle_can(run: ForkServer) -> None:
    """Fail if amp does not run in a program where Paddle can.
    oneDNN has bfloat16 matmuls for programs; their gradient crashes, and batch normalisation
    refuses bfloat16."""
    (found,) = run("""
def reason(facts, mode):
    return raised(Unsupported, lambda: built(facts, mode=mode, precision="amp",
                                             compiler="to_static"))
exact = built(small_bert(), mode="inference").outputs()
adapter = built(small_bert(), mode="inference", precision="amp", compiler="to_static")
adapter.step()
answer(
    matmul_dtypes=adapter.matmul_dtypes(),
    compiled=adapter.compiled(),
    weights=sorted({str(p.dtype) for p in adapter._model.parameters()}),
    difference=max(float(abs(a - b).max()) for a, b in zip(exact, adapter.outputs())),
    scale=float(abs(exact[0]).max()),
    training=reason(small_bert(), "train"),
    normalization=reason(small_images(), "inference"),
)
""")
    assert found["matmul_dtypes"] == {"bfloat16": BERT_PRODUCTS}
    assert found["weights"] == ["paddle.float32"]
    assert 0 < found["difference"] < 0.05 * found["scale"]
    assert found["compiled"]["programs"] == 1
    assert "Segmentation fault" in found["training"]
    assert "batch_norm_" in found["normalization"]
    assert "bfloat16" in found["normalization"]


def test_programs_are_proved_to_have_run(run: ForkServer) -> None:
    (found,) = run("""
import paddle
adapter = built(small_bert(), mode="inference", compiler="to_static")
early = raised(Mismatch, adapter.compiled)
paddle.jit.enable_to_static(False)
adapter.step()
disabled = raised(Mismatch, adapter.compiled)
dynamic = adapter.outputs()
paddle.jit.enable_to_static(True)
adapter.step()
answer(early=early, disabled=disabled, **adapter.compiled(),
       same=max(float(abs(a - b).max()) for a, b in zip(dynamic, adapter.outputs())))
""")
    assert found["early"], "a program that did not run yet counts as compiled"
    assert found["disabled"], "a model in the dynamic graph counts as compiled"
    assert found["programs"] == 1, "the model was traced more than once"
    assert found["forward_operations"] > 0
    assert found["same"] < 1e-6


def test_a_build_without_cinn_or_cuda_says_so(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(0, 0, ["rank:0"], "cuda", 1, 0)
answer(
    cinn=raised(Unsupported, lambda: started(small_bert(), compiler="cinn")),
    cuda=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)),
)
""")
    assert "without CINN" in found["cinn"]
    assert "without CUDA" in found["cuda"]


def test_weights_that_do_not_fit_are_refused(run: ForkServer) -> None:
    (found,) = run("""
adapter = built(small_images())
weights = adapter.weights()
answer(
    shape=weights["layer1.0.conv2.weight"].shape,
    missing=raised(KeyError, lambda: adapter.load_weights(weights)),
)
""")
    assert found["shape"] == [3, 3, 64, 64]
    assert "running_mean" in found["missing"]


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
import paddle
adapter = started(small_bert())
def judge(action):
    try:
        action()
    except Exception as error:
        return adapter.out_of_memory(error)
answer(
    memory=judge(lambda: paddle.empty([2**50])),
    shape=judge(lambda: paddle.ones([2, 3]) @ paddle.ones([2, 3])),
    program=adapter.out_of_memory(OSError("(ResourceExhausted) Fail to alloc memory")),
)
""")
    assert found == {"memory": True, "shape": False, "program": True}


@pytest.mark.parametrize("frozen", [False, True], ids=["default", "in a timed window"])
def test_no_worker_of_a_loader_ends_inherited_garbage(run: ForkServer, frozen: bool) -> None:
    """Fail if a loader's worker finalises an inherited reader: it waits forever for parent
    threads."""
    (found,) = run(
        f"FROZEN = {frozen}\n"
        + """
import gc
import os
import numpy as np
started(small_bert())
from framework_under_test import loader

class Circle:
    ended = []
    def __init__(self):
        self.itself = self
    def __del__(self):
        Circle.ended.append(os.getpid())

class Samples:
    def __len__(self):
        return 2
    def __getitem__(self, number):
        gc.collect()
        return (np.float32([os.getpid() in Circle.ended, os.getpid() == PARENT]),)

PARENT = os.getpid()
gc.disable()
if FROZEN:
    gc.freeze()
Circle()
given = [one[0].tolist() for one in loader.batches(Samples(), 1, 1, "cpu")]
kept = bool(gc.get_freeze_count()) == FROZEN
gc.collect()
answer(given=given, ended=Circle.ended == [PARENT], kept=kept)
"""
    )
    assert found == {"given": [[[0.0, 0.0]], [[0.0, 0.0]]], "ended": True, "kept": True}
