"""Programs of PyTorch's tests."""

import contextlib
import importlib

import numpy as np
import torch
import torch._inductor.config
from harness.adapter import Mismatch, Unsupported
from harness.measuring.loading import PACKAGE
from torch.utils._python_dispatch import TorchDispatchMode

from .common import batch_of_halves
from .prelude import RANK, SEQUENCE, built, judged, module_of, raised, started
from .small import model_config_of, small_bert


def describe_resnet():
    adapter = started(model_config_of("resnet50_v1.5"))
    model = adapter._definition.build(adapter.model_config)
    convolutions = {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Conv2d)}
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    return {
        "layers": len(convolutions),
        "biases": sum(m.bias is not None for m in convolutions.values()),
        "strided": {n: m.kernel_size[0] for n, m in convolutions.items() if m.stride == (2, 2)},
        "norms": sorted({(m.eps, m.momentum) for m in norms}),
        "channels_last": all(
            m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions.values()
        ),
    }


def tie_decoder():
    small = built(small_bert(), mode="inference")
    model = small._model
    shapes = [tuple(p.shape) for p in model.parameters()]
    before = small.read(small.step()[:1])
    with torch.no_grad():  # only the decoder can see a token that no sequence holds
        used = set(small._micro_batches[0].inputs[0].flatten().tolist())
        unused = next(token for token in range(50) if token not in used)
        small._model.embeddings.token.weight[unused] += 1.0
    return {
        "embeddings": shapes.count((50, 32)),
        "decoder_biases": shapes.count((50,)),
        "epsilons": sorted({m.eps for m in model.modules() if isinstance(m, torch.nn.LayerNorm)}),
        "tied": small.read(small.step()[:1]) != before,
    }


def compare_layer():
    adapter = built(small_bert(), mode="inference")
    layer = adapter._model.layers[0]
    own = torch.nn.TransformerEncoderLayer(
        32, 4, 64, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
    )
    attention = layer.attention
    projections = (attention.query, attention.key, attention.value)
    state = {
        "self_attn.in_proj_weight": torch.cat([p.weight for p in projections]),
        "self_attn.in_proj_bias": torch.cat([p.bias for p in projections]),
    }
    for name, module in {
        "self_attn.out_proj": attention.output,
        "linear1": layer.intermediate,
        "linear2": layer.output,
        "norm1": layer.attention_norm,
        "norm2": layer.output_norm,
    }.items():
        state |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    own.load_state_dict(state)
    x = torch.randn(2, SEQUENCE, 32)
    mask = torch.ones(2, SEQUENCE, dtype=torch.bool)
    mask[:, -3:] = False
    own.train()  # not its fused inference path
    with torch.no_grad():
        actual = layer(x, mask[:, None, None, :])
        difference = (actual - own(x, src_key_padding_mask=~mask)).abs().max()

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
    return {
        "difference": difference.item(),
        "hidden": hidden.item(),
        "seen": (outputs() - before).abs().max().item(),
    }


def average(clip, halves=(RANK,)):
    """Gradients in the optimizer's first step, the weights after it, and the loss."""
    model_config = small_bert(clip_global_norm=clip)
    adapter = started(model_config)
    adapter.build(batch_of_halves(model_config, halves))
    loss = adapter.read(adapter.step())
    gradients = torch.cat([p.grad.flatten() for p in adapter._model.parameters()])
    answers = {
        "gradients": gradients.tolist(),
        "loss": loss,
        "checksum": adapter.weights_checksum(),
        "total": adapter.all_reduce(RANK + 1.0),
        "group": adapter.settings()["process_group"],
    }
    adapter.stop()
    return answers


def trace_amp(model_config):
    adapter = built(model_config, precision="amp")
    buffers = [b.clone() for b in adapter._model.buffers()]
    state = torch.get_rng_state()
    products = adapter.matmul_dtypes()
    return {
        "matmul_dtypes": products,
        "kept": all(map(torch.equal, buffers, adapter._model.buffers())),
        "random": torch.equal(state, torch.get_rng_state()),
        "gradients": sum(p.grad is not None for p in adapter._model.parameters()),
        "first": adapter.read(adapter.step()),
        "settings": adapter.settings(),
    }


def disable_autocast():
    adapter = built(small_bert(), precision="amp")
    torch.autocast = lambda *arguments, **options: contextlib.nullcontext()
    return {"reason": raised(Mismatch, adapter.step)}


def compile_once():
    torch._inductor.config.compile_threads = 1  # no pool of processes that all import PyTorch
    adapter = built(small_bert(layers=0), mode="inference", compiler="inductor")
    adapter.matmul_dtypes()
    first, second = adapter.read(adapter.step()), adapter.read(adapter.step())
    adapter._model._compiled_call_impl = None
    return {
        **adapter.compiled(),
        "same": first == second,
        "difference": abs(first - adapter.read(adapter.step())),
    }


def compile_nothing():
    adapter = built(small_bert(), mode="inference", compiler="inductor")
    early = raised(Mismatch, adapter.compiled)
    torch._dynamo.config.disable = True  # what TORCHDYNAMO_DISABLE sets

    def run_it():
        adapter.step()  # newer versions of PyTorch raise by themselves
        adapter.compiled()

    return {"early": early, "disabled": raised((Mismatch, RuntimeError), run_it)}


def tune():
    torch._inductor.config.compile_threads = 1
    model_config = model_config_of("digits_resnet")
    model_config["hyperparameters"]["layers"] = [
        {"op": "flatten", "name": "flat"},
        {"op": "linear", "name": "fc", "features": 16},
    ]
    adapter = built(model_config, mode="inference", compiler="inductor:max-autotune")
    outputs = adapter.outputs()
    weights = {name: 2 * array for name, array in adapter.weights().items()}
    adapter.load_weights(weights)
    changed = any((a != b).any() for a, b in zip(outputs, adapter.outputs()))
    from torch._dynamo.utils import counters

    tuned = adapter.compiled()["autotuned"]
    counters["inductor"].clear()
    return {"tuned": tuned, "changed": changed, "untuned": raised(Mismatch, adapter.compiled)}


def use_zentorch():
    @torch.library.custom_op("zentorch::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    backend = started(small_bert(), mode="inference")._compiler.zentorch_backend
    x = torch.ones(3)
    return {
        "ran": backend.executed(lambda: [double(x), double(x), x + x]),
        "none": raised(Mismatch, lambda: backend.executed(lambda: x + x)),
    }


def freeze():
    inductor = torch._inductor.config
    model, frozen = torch.nn.Linear(1, 1).eval(), {}
    started(small_bert(), mode="inference")
    for device in ("cuda", "cpu"):
        module_of("compiler").compile_module(
            model, "inductor:max-autotune", torch.device(device), True
        )
        frozen[device] = inductor.freezing
    return frozen


def add_residuals():
    class Sums(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            is_sum = operation._schema.name in ("aten::add", "aten::add_")
            if is_sum and getattr(args[1], "ndim", 0) == 4:
                self.names.append(operation._schema.name)
            return operation(*args, **(kwargs or {}))

    small = built(model_config_of("digits_resnet"), mode="inference")
    with Sums() as sums, torch.inference_mode():
        small.step()
    return {"names": sums.names}


def infer():
    adapter = built(small_bert(dropout=0.5), mode="inference")
    outputs = adapter.step()
    mean = torch.cat([o.flatten() for o in outputs]).double().mean().item()
    return {
        "shapes": [list(o.shape) for o in outputs],
        "mean": mean,
        "read": adapter.read(outputs),
        "gradient": any(o.requires_grad for o in outputs),
    }


def run_out_of_memory():
    adapter = started(small_bert())
    return {
        "shape": judged(adapter, lambda: torch.ones(2, 3) @ torch.ones(2, 3)),
        "device": adapter.out_of_memory(torch.cuda.OutOfMemoryError("full")),
    }


def copy_between():
    adapter = started(small_bert())
    array = np.arange(5, dtype=np.float32)
    host = torch.device("cpu")
    micro = importlib.import_module(PACKAGE + ".micro")
    made = micro.transfer_between(host, host, array, host)
    before = made.result().tolist()
    made.run()
    after = made.result().tolist()
    asked = raised(Exception, lambda: adapter.transfer_between(0, 1, array))
    return {"before": before, "after": after, "dtype": made.dtype, "asked": str(asked)}


def lack_compiler():
    torch._inductor.config.cpp.cxx = (None, "no-such-compiler")  # what CXX sets
    return {"reason": raised(Unsupported, lambda: started(small_bert(), compiler="inductor"))}
