"""Compilers of a step, the matmuls that it runs, and its optimizer.

Compilers are TorchInductor with its modes (``inductor:MODE``, those of ``torch.compile``) and AMD's
backend zentorch. Dynamo and Inductor take seconds to import, so only a run that compiles does.

Optimizers update each parameter by a fused kernel where PyTorch has one. LAMB (You et al. 2019,
arXiv:1904.00962) is missing in ``torch.optim``."""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import shutil
import sys
from collections import Counter, defaultdict
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from harness.adapter import Mismatch, Unsupported
from harness.optimizers import UpdateRule, update_rules
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

TRITON_CAPABILITY = (7, 0)
AUTOTUNED, GRAPHS = "max-autotune", "reduce-overhead"
#: For inference, with the gradients off: README of amd/ZenDNN-pytorch-plugin.
ZENTORCH = "zentorch"
#: Largest number of compilations of which PyTorch keeps metrics, such as the reason.
_KEPT = 10_000
#: Largest number of graph breaks in a record, and of characters of a graph break.
_NAMED, _LONGEST = 20, 300
# operators of F.linear, conv2d and matmul after autocast has chosen the dtype
ONE_MATMUL = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"),
    *("convolution", "cudnn_convolution", "mkldnn_convolution", "mkldnn_linear"),
    "_scaled_mm",  # float8
    "_grouped_mm",  # rows times the matrix of their expert
}
# tensors that wrap others: their operations are dispatched again as operations of the wrapped
# tensors
WRAPPERS = {"DTensor", "Float8TrainingTensor"}
# fused attention in all its variants: queries by keys, probabilities by values; recurrent layers:
# inputs by their weights, the previous step's outputs by their weights
TWO_MATMULS = ("_scaled_dot_product_", "mkldnn_rnn_layer", "_cudnn_rnn")
#: Key of a parameter group with its factor of the learning rate.
FACTOR = "rate_factor"


def compiled_by_model() -> Dict[str, int]:
    """Return the number of graphs that were compiled since the process started; {} for none. Does
    not import TorchDynamo, which takes seconds."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    graphs = dynamo.counters["stats"]["unique_graphs"] if dynamo else 0
    return {"unique_graphs": graphs} if graphs else {}


def _mode(name: str) -> Optional[str]:
    """Return the mode in a compiler's name, such as ``max-autotune``."""
    return name.partition(":")[2] or None


def require_compiler(name: str, device: torch.device, train: bool, micro_steps: int) -> None:
    """Raise :class:`Unsupported` where TorchInductor lacks a code generator, where its mode has no
    effect, or where its CUDA graphs overwrite gradients that micro-steps add up."""
    if name == ZENTORCH:
        _require_zentorch(device, train)
    if device.type == "cpu":
        if _mode(name) == GRAPHS:
            raise Unsupported(
                f"TorchInductor's {GRAPHS} uses CUDA graphs, which a CPU does not have"
            )
        if _mode(name) == AUTOTUNED and train:
            raise Unsupported(
                f"TorchInductor's {AUTOTUNED} on a CPU has kernels for inference only"
            )
        import torch._inductor.config as inductor

        compilers = [name for name in inductor.cpp.cxx if name]
        if not any(shutil.which(name) for name in compilers):
            raise Unsupported(f"TorchInductor needs a C++ compiler, not found: {compilers}")
        return
    if importlib.util.find_spec("triton") is None:
        raise Unsupported("TorchInductor needs Triton on a GPU, and it is not installed")
    if torch.cuda.get_device_capability(device) < TRITON_CAPABILITY:
        raise Unsupported(f"Triton needs compute capability {TRITON_CAPABILITY} or newer")
    if train and micro_steps > 1 and _mode(name) in (AUTOTUNED, GRAPHS):
        # some versions raise an error (pytorch#169545), others give wrong gradients (pytorch#96693)
        raise Unsupported(
            "CUDA graphs keep their outputs until the next run: a micro-step overwrites gradients "
            "of the previous one"
        )


def _require_zentorch(device: torch.device, train: bool) -> None:
    if device.type != "cpu":
        raise Unsupported("zentorch is for CPUs only")
    if train:
        raise Unsupported("zentorch optimizes inference only")
    if importlib.util.find_spec(ZENTORCH) is None:
        raise Unsupported("zentorch is not installed; envs/pytorch-zentorch.yaml has it")
    import zentorch._C

    if not zentorch._C.is_avx512_supported():
        raise Unsupported("zentorch needs a processor with AVX-512")


def compile_module(model: nn.Module, name: str, device: torch.device, whole: bool) -> None:
    """Compile ``model`` in place, before DistributedDataParallel wraps it. ``whole``: refuse graph
    breaks, after which parts of the model run in eager mode.

    PyTorch's "Where to apply torch.compile" (programming model) recommends ``Module.compile`` and,
    with DistributedDataParallel, the module inside the wrapper; Dynamo still splits the graph at
    the wrapper's buckets, so that all-reduce and backward pass overlap.

    Raises :class:`Unsupported` for a model with recurrent layers.
    """
    import torch._dynamo

    if any(isinstance(layer, nn.RNNBase) for layer in model.modules()):
        # torch._dynamo.config.allow_rnn is experimental
        raise Unsupported("TorchDynamo does not trace recurrent layers (nn.LSTM)")
    autotuned = _mode(name) == AUTOTUNED and device.type == "cpu" and not model.training
    if autotuned or name == ZENTORCH:
        # Kernels for constant weights: torch.compile's page on CPUs, and AMD's README.
        import torch._inductor.config as inductor

        inductor.freezing = True
    torch._dynamo.config.suppress_errors = False  # an environment variable may have set this option
    torch._dynamo.utils.set_compilation_metrics_limit(_KEPT)
    if name == ZENTORCH:
        import zentorch  # noqa: F401  (registers the backend)

        model.compile(backend=ZENTORCH, fullgraph=whole, dynamic=False)
        return
    model.compile(backend="inductor", fullgraph=whole, mode=_mode(name))


def recompilations() -> List[str]:
    """Return the reason of each recompilation, in order."""
    from torch._dynamo.utils import get_compilation_metrics

    reasons = [entry.recompile_reason for entry in get_compilation_metrics()]
    return [_short(reason.partition("(HINT")[0]) for reason in reasons if reason]


def _graph_breaks() -> List[str]:
    """Return place and reason of each distinct graph break since the process started.
    Recompilations break at the same places."""
    from torch._dynamo.utils import graph_break_reasons

    found = []
    for entry in graph_break_reasons:
        last = entry.user_stack[-1] if entry.user_stack else None
        location = f"{os.path.basename(last.filename)}:{last.lineno}: " if last else ""
        found.append(_short(location + entry.reason.partition("\n")[0]))
    return list(dict.fromkeys(found))


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def proof(name: str, whole: bool, step: Callable[[], Any]) -> Dict[str, Any]:
    """Return counts of compilations since the process started. ``whole``: as for
    :func:`compile_module`; ``step``: runs a further step, whose zentorch operators are counted.

    Raises :class:`Mismatch` where nothing was compiled, e.g. under ``TORCHDYNAMO_DISABLE``, or
    where the mode had no effect; :class:`Unsupported` where ``max-autotune`` chose no kernel."""
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    counts: Dict[str, Any] = {
        "frames": counters["frames"]["total"],
        "frames_compiled": counters["frames"]["ok"],
        "unique_graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "kernels": metrics.generated_kernel_count,
    }
    breaks = _graph_breaks()
    all_of_it = counts["frames_compiled"] == counts["frames"] and not counts["graph_breaks"]
    if whole and not (counts["unique_graphs"] and counts["kernels"] and all_of_it):
        raise Mismatch(f"torch.compile did not compile the whole model: {counts}; {breaks}")
    if not counts["unique_graphs"]:
        raise Mismatch(f"torch.compile compiled nothing of the model: {breaks}")
    if counts["graph_breaks"]:
        counts.update(graph_breaks=len(breaks), breaks=breaks[:_NAMED])
    if name == ZENTORCH:
        counts["operators"] = operators_of_zentorch(step)
    mode = _mode(name)
    if mode == AUTOTUNED:
        counts["autotuned"] = counters["inductor"]["select_algorithm_autotune"]
        if not counts["autotuned"]:
            raise Unsupported(f"{AUTOTUNED} has chosen no kernel for any matmul here: {counts}")
    if mode == GRAPHS:
        counts["cuda_graphs_skipped"] = counters["inductor"]["cudagraph_skips"]
        if counts["cuda_graphs_skipped"]:
            raise Mismatch(f"parts of the model are in no CUDA graph: {counts}")
    return counts


def operators_of_zentorch(step: Callable[[], Any]) -> Dict[str, int]:
    """Return how often a step ran each operator of zentorch. Raises :class:`Mismatch` where it ran
    none."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu]) as profile:
        step()
    counts = {
        event.key.partition("::")[2]: int(event.count)
        for event in profile.key_averages()
        if event.key.startswith(f"{ZENTORCH}::")
    }
    if not counts:
        raise Mismatch("the compiled model has no operator of zentorch")
    return counts


def _attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


#: PyTorch's formulas for floating-point operations, two for each multiply-add, and missing ones.
FORMULAS: Dict[Any, Callable[..., int]] = {
    **flop_registry,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten._grouped_mm: lambda x, matrices, *_, **__: 2 * x.numel() * matrices.shape[-1],
}


class Watch(TorchDispatchMode):
    """Mode that counts the operations that reach kernels, after autograd and autocast.

    ``matmuls``: by the dtype of their operands; ``results``: operations that return floating-point
    numbers, by dtype; ``multiply_adds``: None where a matmul has no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.matmuls: Dict[str, int] = Counter()
        self.results: Dict[str, int] = Counter()
        self.multiply_adds: Optional[int] = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: the watched model is not compiled, and PyTorch would import Dynamo only to
        skip it, which takes longer than the forward pass."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Dict[str, Any] | None = None,
    ) -> Any:
        if any(kind.__name__ in WRAPPERS for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                self.results[_name(leaf.dtype)] += 1
        kernel = func.overloadpacket
        name = kernel.__name__
        count = 1 if name in ONE_MATMUL else 2 if name.startswith(TWO_MATMULS) else 0
        if count and not any(map(_has_shape_alone, args)):
            # the first tensor stands for all: these kernels refuse operands of different dtypes
            operand = next(argument for argument in args if isinstance(argument, Tensor))
            self.matmuls[_name(operand.dtype.to_real())] += count
            if kernel not in FORMULAS:
                self.multiply_adds = None
            elif self.multiply_adds is not None:
                flops = FORMULAS[kernel](*args, **(kwargs or {}), out_val=result)
                self.multiply_adds += flops // 2 * (4 if operand.is_complex() else 1)
        return result


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _has_shape_alone(argument: Any) -> bool:
    """Return whether an argument is a meta or fake tensor, which has no data.

    DTensor learns the shape of a result in this way, once."""
    return isinstance(argument, Tensor) and (
        argument.is_meta or type(argument).__name__ == "FakeTensor"
    )


def watch(model: nn.Module, forward: Callable[[], Any], device: torch.device) -> Watch:
    """Watch one ``forward()``, and restore the buffers of ``model`` (running statistics) and the
    random state.

    It runs in the mode ``model`` is in: with dropout, attention may take another kernel than
    without. It runs without gradients, but not in inference mode, where composite operators are
    dispatched instead of their parts."""
    kept = [buffer.clone() for buffer in model.buffers()]
    generators = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with generators, torch.no_grad(), Watch() as watching:
        forward()
    with torch.no_grad():
        for buffer, before in zip(model.buffers(), kept, strict=True):
            buffer.copy_(before)
    return watching


def optimizer_of(model: nn.Module, model_config: Dict[str, Any]) -> torch.optim.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all parameters of ``model``
    that this rank has. Parameters with one rule, on one device mesh, go into one kernel."""
    hyper = model_config["hyperparameters"]
    named = dict(model.named_parameters())
    rules = update_rules(named, hyper)
    own = {name: parameter for name, parameter in named.items() if not parameter.is_meta}
    alike: Dict[Tuple[UpdateRule, Any], List[nn.Parameter]] = defaultdict(list)
    for name, parameter in own.items():
        alike[rules[name], getattr(parameter, "device_mesh", None)].append(parameter)
    rate = hyper["learning_rate"]
    groups = [
        {"params": parameters, "lr": rate * rule.rate_factor, FACTOR: rule.rate_factor,
         "weight_decay": rule.weight_decay, "trust_ratio": rule.trust_ratio}
        for (rule, _), parameters in alike.items()
    ]  # fmt: skip
    if hyper["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=hyper["momentum"], fused=True)
    moments = {"betas": (hyper["beta1"], hyper["beta2"]), "eps": hyper["epsilon"]}
    if hyper["optimizer"] == "lamb":
        if len(own) < len(named) or any(mesh is not None for _, mesh in alike):
            raise Unsupported("LAMB's ratio of norms needs whole parameters, not parts")
        return Lamb(groups, lr=rate, **moments)
    return torch.optim.AdamW(groups, lr=rate, fused=True, **moments)


def clipping(
    model: nn.Module, sharding: Any, model_config: Dict[str, Any]
) -> Optional[Callable[[], Any]]:
    """Return a function that clips gradients by their global norm, or None where the model
    config has no limit."""
    largest = model_config["hyperparameters"].get("clip_global_norm")
    if largest is None:
        return None
    if sharding:
        return functools.partial(sharding.clip, largest)
    return functools.partial(nn.utils.clip_grad_norm_, list(model.parameters()), largest)


class Lamb(torch.optim.Optimizer):
    """LAMB whose operations cover all parameters of a group at once (``torch._foreach_*``), like
    PyTorch's own optimizers that are not fused.

    ``trust_ratio`` of a group: whether its updates are scaled by the parameter's norm over the
    update's norm. Parameters are whole."""

    def __init__(
        self, groups: Sequence[Dict[str, Any]], lr: float, betas: Tuple[float, float], eps: float
    ) -> None:
        options = {"weight_decay": 0.0, "trust_ratio": True, "steps": 0, "fused": False}
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, **options})

    def step(self, closure: Any = None) -> None:
        with torch.no_grad():
            for group in self.param_groups:
                parameters = [p for p in group["params"] if p.grad is not None]
                if parameters:
                    self._update(group, parameters)

    def _update(self, group: Dict[str, Any], parameters: Sequence[Tensor]) -> None:
        group["steps"] += 1
        beta1, beta2 = group["betas"]
        gradients = [parameter.grad for parameter in parameters]
        means, squares = self._moments("mean", parameters), self._moments("square", parameters)
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        changes = torch._foreach_sqrt(squares)
        torch._foreach_div_(changes, math.sqrt(1 - beta2 ** group["steps"]))
        torch._foreach_add_(changes, group["eps"])
        torch._foreach_reciprocal_(changes)
        torch._foreach_mul_(changes, means)
        torch._foreach_div_(changes, 1 - beta1 ** group["steps"])
        if group["weight_decay"]:
            torch._foreach_add_(changes, parameters, alpha=group["weight_decay"])
        if group["trust_ratio"]:
            torch._foreach_mul_(changes, list(_ratios(parameters, changes).unbind()))
        torch._foreach_add_(parameters, changes, alpha=-group["lr"])

    def _moments(self, name: str, parameters: Sequence[Tensor]) -> List[Tensor]:
        for parameter in parameters:
            if name not in self.state[parameter]:
                self.state[parameter][name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in parameters]


def _ratios(weights: Sequence[Tensor], changes: Sequence[Tensor]) -> Tensor:
    """Return the norms of ``weights`` over those of ``changes``; 1 where either is zero. The ratios
    stay on the device, and are float32 at least."""
    dtype = torch.promote_types(weights[0].dtype, torch.float32)
    of_weights, of_changes = (
        torch.stack(torch._foreach_norm(some, 2, dtype=dtype)) for some in (weights, changes)
    )
    scalable = (of_weights > 0) & (of_changes > 0)
    return torch.where(scalable, of_weights / of_changes, 1.0)
