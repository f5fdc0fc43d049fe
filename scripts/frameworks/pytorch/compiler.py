"""TorchInductor and its modes (``inductor:MODE``, those of ``torch.compile``), and AMD's backend
zentorch: whether they can run here, and proof that they did.

Dynamo and Inductor take seconds to import, so only a run that compiles does."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import Any, Callable, Dict, List, Optional

import torch
from harness.adapter import Mismatch, Unsupported
from torch import nn

TRITON_CAPABILITY = (7, 0)
AUTOTUNED, GRAPHS = "max-autotune", "reduce-overhead"
#: For inference, with the gradients off: README of amd/ZenDNN-pytorch-plugin.
ZENTORCH = "zentorch"
#: Most compilations whose reasons PyTorch keeps.
_KEPT = 10_000
#: Largest number of distinct graph breaks that are named, and of characters of each.
_NAMED, _LONGEST = 20, 300


def compiled_by_model() -> Dict[str, int]:
    """Return the number of graphs that were compiled since the process started; {} for none. Does
    not import TorchDynamo, which takes seconds."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    graphs = dynamo.counters["stats"]["unique_graphs"] if dynamo else 0
    return {"unique_graphs": graphs} if graphs else {}


def _mode(name: str) -> Optional[str]:
    """Return the mode in a compiler's name, such as ``max-autotune``."""
    return name.partition(":")[2] or None


def require(name: str, device: torch.device, train: bool, micro_steps: int) -> None:
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
    where the mode had no effect; :class:`Unsupported` where it had no kernels to choose from."""
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
