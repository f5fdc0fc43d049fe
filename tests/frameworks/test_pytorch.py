"""PyTorch adapter in PyTorch's own environment: features special to PyTorch."""

import math
import re

import pytest

from .fork_server import BERT_PRODUCTS, RESNET_PRODUCTS, ForkServer, distance, norm, served

run = served("pytorch")


def test_resnet50_is_version_1_5(run: ForkServer) -> None:
    (found,) = run("""
import torch
adapter = started(facts_of("resnet50_v1.5"))
model = adapter._definition.build(adapter.model_config)
convolutions = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Conv2d)}
norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
answer(
    layers=len(convolutions),
    biases=sum(m.bias is not None for m in convolutions.values()),
    strided={n: m.kernel_size[0] for n, m in convolutions.items() if m.stride == (2, 2)},
    norms=sorted({(m.eps, m.momentum) for m in norms}),
    channels_last=all(m.weight.is_contiguous(memory_format=torch.channels_last)
                      for m in convolutions.values()),
)
""")
    assert found["layers"] == 53
    assert found["biases"] == 0, "a convolution before a batch normalisation has a bias"
    strided = found["strided"]
    shortcuts = [kernel for name, kernel in strided.items() if "downsample" in name]
    others = sorted(kernel for name, kernel in strided.items() if "downsample" not in name)
    assert shortcuts == [1, 1, 1]
    assert others == [3, 3, 3, 7], "v1.5 strides in the 3x3 convolution, v1 in the first 1x1"
    assert found["norms"] == [[1e-05, 0.1]]
    assert found["channels_last"]


def test_bert_has_a_tied_decoder(run: ForkServer) -> None:
    (found,) = run("""
import torch
small = built(small_bert(), mode="inference")
model = small._model
shapes = [tuple(p.shape) for p in model.parameters()]
before = small.read(small.step()[:1])
with torch.no_grad():  # only the decoder can see a token that no sequence holds
    used = set(small._micro_batches[0].inputs[0].flatten().tolist())
    unused = next(token for token in range(50) if token not in used)
    small._model.embeddings.token.weight[unused] += 1.0
answer(
    embeddings=shapes.count((50, 32)),
    decoder_biases=shapes.count((50,)),
    epsilons=sorted({m.eps for m in model.modules() if isinstance(m, torch.nn.LayerNorm)}),
    tied=small.read(small.step()[:1]) != before,
)
""")
    assert found["embeddings"] == 1, "the decoder has a weight of its own"
    assert found["decoder_biases"] == 1
    assert found["epsilons"] == [1e-12]
    assert found["tied"], "the decoder does not use the token embedding"


def test_bert_layer_equals_pytorchs_own_and_honours_the_mask(run: ForkServer) -> None:
    (found,) = run("""
import torch
adapter = built(small_bert(), mode="inference")
layer = adapter._model.layers[0]
own = torch.nn.TransformerEncoderLayer(
    32, 4, 64, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
attention = layer.attention
projections = (attention.query, attention.key, attention.value)
state = {
    "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
    "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
}
for name, module in {"self_attn.out_proj": attention.output, "linear1": layer.intermediate,
                     "linear2": layer.output, "norm1": layer.attention_norm,
                     "norm2": layer.output_norm}.items():
    state |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
own.load_state_dict(state)
x = torch.randn(2, SEQUENCE, 32)
mask = torch.ones(2, SEQUENCE, dtype=torch.bool)
mask[:, -3:] = False
own.train()  # not its fused inference path
with torch.no_grad():
    difference = (layer(x, mask[:, None, None, :]) - own(x, src_key_padding_mask=~mask)).abs().max()

inputs = adapter._micro_batches[0].inputs
token_ids, segment_ids, attention_mask, positions = (t.clone() for t in inputs)
positions[:] = torch.arange(positions.shape[1])
attention_mask[:, -1] = 0
def outputs():
    with torch.no_grad():
        logits = adapter._model(token_ids, segment_ids, attention_mask, positions)
        return torch.cat([t.flatten() for t in logits])
before = outputs()
token_ids[:, -1] = (token_ids[:, -1] + 1) % 50
hidden = (outputs() - before).abs().max()
token_ids[:, -2] = (token_ids[:, -2] + 1) % 50
answer(difference=difference.item(), hidden=hidden.item(),
       seen=(outputs() - before).abs().max().item())
""")
    assert found["difference"] < 1e-5, "a layer computes something else than BERT's encoder layer"
    assert found["hidden"] == 0.0, "a token outside the attention mask changes the outputs"
    assert found["seen"] > 0.0, "no token is attended to"


# Gradients in the optimizer's first step, the weights after it, and the loss.
GRADIENTS = """
import torch
facts = small_bert(clip_global_norm=CLIP)
adapter = started(facts)
halves = [batch_of(facts, rank=rank) for rank in range(2)]
if WORLD == 1:
    import numpy as np
    adapter.build({name: np.concatenate([h[name] for h in halves]) for name in halves[0]})
else:
    adapter.build(halves[RANK])
loss = adapter.read(adapter.step())
gradients = torch.cat([p.grad.flatten() for p in adapter._model.parameters()])
answer(gradients=gradients.tolist(), loss=loss, checksum=adapter.weights_checksum(),
       total=adapter.all_reduce(RANK + 1.0), group=adapter.settings()["process_group"])
adapter.stop()
"""


def test_two_ranks_average_their_gradients(run: ForkServer) -> None:
    (alone,) = run(GRADIENTS.replace("CLIP", "1e9"))
    first, second = run(GRADIENTS.replace("CLIP", "1e9"), ranks=2)
    assert first["group"] == "gloo"
    assert first["total"] == second["total"] == 3.0
    assert first["loss"] != second["loss"], "both ranks saw the same batch"
    assert first["gradients"] == second["gradients"], "the ranks' gradients differ"
    assert distance(first["gradients"], alone["gradients"]) < 1e-5 * norm(alone["gradients"]), (
        "the gradients of two ranks are not those of one process with both batches"
    )
    assert first["checksum"] == second["checksum"]
    assert first["checksum"] == pytest.approx(alone["checksum"], rel=1e-5)


def test_gradients_are_clipped_after_the_all_reduce(run: ForkServer) -> None:
    first, second = run(GRADIENTS.replace("CLIP", "0.01"), ranks=2)
    # the average of two clipped gradients would be shorter than the limit
    assert norm(first["gradients"]) == pytest.approx(0.01, rel=1e-3)
    assert first["gradients"] == second["gradients"]


PRODUCTS = """
import torch
adapter = built(FACTS, precision="amp")
buffers = [b.clone() for b in adapter._model.buffers()]
state = torch.get_rng_state()
products = adapter.matmul_dtypes()
answer(
    matmul_dtypes=products,
    kept=all(map(torch.equal, buffers, adapter._model.buffers())),
    random=torch.equal(state, torch.get_rng_state()),
    gradients=sum(p.grad is not None for p in adapter._model.parameters()),
    first=adapter.read(adapter.step()),
    settings=adapter.settings(),
)
"""


@pytest.mark.parametrize(
    ("facts", "products"),
    [("small_bert(dropout=0.1)", BERT_PRODUCTS), ("small_images()", RESNET_PRODUCTS)],
)
def test_all_products_of_amp_are_seen_and_run_in_bfloat16(
    run: ForkServer, facts: str, products: int
) -> None:
    (found,) = run(PRODUCTS.replace("FACTS", facts))
    assert found["matmul_dtypes"] == {"bfloat16": products}
    assert found["kept"], "looking at the products changed the running statistics"
    assert found["random"], "looking at the products drew random numbers"
    assert found["gradients"] == 0
    assert math.isfinite(found["first"])
    settings = found["settings"]
    assert settings["float32_matmul_precision"] == "highest"
    assert settings["amp_dtype"] == "bfloat16"
    assert settings["threads"] == 1
    assert settings["fused_optimizer"] is True


def test_amp_without_effect_is_a_mismatch(run: ForkServer) -> None:
    (found,) = run("""
import contextlib, torch
adapter = built(small_bert(), precision="amp")
torch.autocast = lambda *arguments, **options: contextlib.nullcontext()
answer(reason=raised(Mismatch, adapter.step))
""")
    assert "float32" in str(found["reason"])


def test_compiled_counts_what_was_compiled(run: ForkServer) -> None:
    (found,) = run("""
import torch._inductor.config
torch._inductor.config.compile_threads = 1  # no pool of processes that all import PyTorch
adapter = built(small_bert(layers=0), mode="inference", compiler="inductor")
adapter.matmul_dtypes()
first, second = adapter.read(adapter.step()), adapter.read(adapter.step())
adapter._model._compiled_call_impl = None
answer(**adapter.compiled(), same=first == second,
       difference=abs(first - adapter.read(adapter.step())))
""")
    assert found["unique_graphs"] == 1, "the step was compiled more than once"
    assert found["graph_breaks"] == 0
    assert found["kernels"] > 0
    assert found["same"]
    assert found["difference"] < 1e-6, "compiled and eager outputs differ"


def test_compiled_raises_where_nothing_was_compiled(run: ForkServer) -> None:
    (found,) = run("""
import torch
adapter = built(small_bert(), mode="inference", compiler="inductor")
early = raised(Mismatch, adapter.compiled)
torch._dynamo.config.disable = True  # what TORCHDYNAMO_DISABLE sets
def run_it():
    adapter.step()  # newer versions of PyTorch raise by themselves
    adapter.compiled()
answer(early=early, disabled=raised((Mismatch, RuntimeError), run_it))
""")
    assert found["early"], "a model that did not run yet counts as compiled"
    assert found["disabled"], "a model that stayed eager counts as compiled"


def test_inductor_without_a_compiler_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
import torch._inductor.config
torch._inductor.config.cpp.cxx = (None, "no-such-compiler")  # what CXX sets
answer(reason=raised(Unsupported, lambda: started(small_bert(), compiler="inductor")))
""")
    assert "no-such-compiler" in str(found["reason"])


def test_a_mode_of_the_compiler_that_had_no_effect_is_a_mismatch(run: ForkServer) -> None:
    (found,) = run("""
import torch._inductor.config
torch._inductor.config.compile_threads = 1
facts = facts_of("digits_resnet")
facts["hyperparameters"]["layers"] = [
    {"op": "flatten", "name": "flat"}, {"op": "linear", "name": "fc", "features": 16}]
adapter = built(facts, mode="inference", compiler="inductor:max-autotune")
outputs = adapter.outputs()
weights = {name: 2 * array for name, array in adapter.weights().items()}
adapter.load_weights(weights)
changed = any((a != b).any() for a, b in zip(outputs, adapter.outputs()))
from torch._dynamo.utils import counters
tuned = adapter.compiled()["autotuned"]
counters["inductor"].clear()
answer(tuned=tuned, changed=changed, untuned=raised(Mismatch, adapter.compiled))
""")
    assert found["tuned"] > 0
    assert found["changed"], "weights that are loaded later are not those that were frozen"
    assert "no product to choose a kernel for" in str(found["untuned"])


@pytest.mark.parametrize(
    ("compiler", "mode", "reason"),
    [
        ("inductor:max-autotune", "train", "for inference only"),
        ("inductor:reduce-overhead", "inference", "CUDA graphs, which a CPU does not have"),
        ("zentorch", "train", "zentorch optimizes inference alone"),
        ("zentorch", "inference", "zentorch is not installed"),
    ],
)
def test_a_mode_of_the_compiler_that_has_nothing_to_do_is_unsupported(
    run: ForkServer, compiler: str, mode: str, reason: str
) -> None:
    (found,) = run(
        f"answer(reason=raised(Unsupported, "
        f"lambda: started(small_bert(), mode={mode!r}, compiler={compiler!r})))"
    )
    assert reason in str(found["reason"])


def test_zentorch_is_proved_by_its_operators_that_a_step_ran(run: ForkServer) -> None:
    (found,) = run("""
import torch

@torch.library.custom_op("zentorch::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x

backend = started(small_bert(), mode="inference")._compiler.zentorch_backend
x = torch.ones(3)
answer(
    ran=backend.executed(lambda: [double(x), double(x), x + x]),
    none=raised(Mismatch, lambda: backend.executed(lambda: x + x)),
)
""")
    assert found["ran"] == {"double": 2}
    assert "no operator of its own" in str(found["none"])


def test_weights_are_frozen_for_the_kernels_of_cpus_alone(run: ForkServer) -> None:
    (found,) = run("""
import torch
import torch._inductor.config as inductor
model, frozen = torch.nn.Linear(1, 1).eval(), {}
adapter = started(small_bert(), mode="inference")
for device in ("cuda", "cpu"):
    adapter._compiler.compile_module(model, "inductor:max-autotune", torch.device(device), True)
    frozen[device] = inductor.freezing
answer(**frozen)
""")
    assert found == {"cuda": False, "cpu": True}


def test_a_residual_is_added_where_its_block_put_out(run: ForkServer) -> None:
    """Fail if a residual is not added in place, as in torchvision.
    A sum in new memory costs 6 % of ResNet-50's inference."""
    (found,) = run("""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

class Sums(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation._schema.name in ("aten::add", "aten::add_"):
            if isinstance(args[1], torch.Tensor) and args[1].dim() == 4:
                self.names.append(operation._schema.name)
        return operation(*args, **(kwargs or {}))

small = built(facts_of("digits_resnet"), mode="inference")
with Sums() as sums, torch.inference_mode():
    small.step()
answer(names=sums.names)
""")
    assert found["names"] == ["aten::add_"] * 3


def test_inference_gives_logits_without_gradient(run: ForkServer) -> None:
    (found,) = run("""
import torch
adapter = built(small_bert(dropout=0.5), mode="inference")
outputs = adapter.step()
mean = torch.cat([o.flatten() for o in outputs]).double().mean().item()
answer(shapes=[list(o.shape) for o in outputs], mean=mean, read=adapter.read(outputs),
       gradient=any(o.requires_grad for o in outputs))
""")
    assert found["shapes"] == [[2, 2, 50], [2, 2]]
    assert found["read"] == pytest.approx(found["mean"], rel=1e-9)
    assert not found["gradient"]


def test_memory_that_ran_out_is_distinguished_from_other_errors(run: ForkServer) -> None:
    (found,) = run("""
import torch
adapter = started(small_bert())
def judge(action):
    try:
        action()
    except Exception as error:
        return adapter.out_of_memory(error)
answer(
    shape=judge(lambda: torch.ones(2, 3) @ torch.ones(2, 3)),
    device=adapter.out_of_memory(torch.cuda.OutOfMemoryError("full")),
)
""")
    assert found == {"shape": False, "device": True}


def test_what_is_copied_to_another_device_arrives(run: ForkServer) -> None:
    """Fail if copies to another device do not arrive; here both devices are the host."""
    (found,) = run("""
import importlib
import numpy as np
import torch
from harness.measuring.loading import PACKAGE
adapter = started(small_bert())
array = np.arange(5, dtype=np.float32)
host = torch.device("cpu")
transfers = importlib.import_module(PACKAGE + ".micro.transfers")
made = transfers.between(host, host, array, host)
before = made.result().tolist()
made.run()
after = made.result().tolist()
asked = raised(Exception, lambda: adapter.transfer_between(0, 1, array))
answer(before=before, after=after, dtype=made.dtype, asked=str(asked))
""")
    assert (found["before"], found["after"]) == ([0] * 5, [*range(5)]), "it is the array itself"
    assert found["dtype"] == "float32"
    assert re.search("CUDA|NVIDIA driver", found["asked"]), "it was no copy between two GPUs"


def test_a_gpu_that_is_not_there_is_unsupported(run: ForkServer) -> None:
    (found,) = run("""
rank_context = RankContext(99, 99, ["rank:0"], "cuda", 1, 0)
answer(reason=raised(Unsupported, lambda: started(small_bert(), rank_context=rank_context)))
""")
    assert "CUDA" in str(found["reason"])
