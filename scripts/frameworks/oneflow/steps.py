"""nn.Graph, OneFlow's static graphs: forward pass, backward pass, all-reduce and optimizer are one
job, which OneFlow compiles and then runs without Python.

Dtypes of matmuls and convolutions are watched in their modules in eager mode; those of a graph are
read from its job. (``oneflow.profiler`` shows no dtype, and on a machine without a GPU it ends the
process.)

OneFlow's optimizers follow the rules of ``torch.optim``: SGD's weight decay is part of the
gradient, AdamW's is not; epsilon is added after the bias correction."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import oneflow
from harness.adapter import Mismatch, Unsupported
from harness.optimizers import groups_by_decay
from oneflow import Tensor, nn, optim
from oneflow.core.common import data_type_pb2

Batch = Dict[str, Tensor]

#: Settings that improve performance by OneFlow's documentation of GraphConfig.
OPTIONS = {
    "allow_fuse_model_update_ops": True,
    "allow_fuse_add_to_output": True,
    "allow_fuse_cast_scale": True,
}
DTYPES = {"kFloat": "float32", "kFloat16": "float16", "kBFloat16": "bfloat16"}
# operators of a compiled job; the second line has those of the backward pass only
OPERATORS = {
    *("conv2d", "matmul", "broadcast_matmul", "batch_matmul", "fused_matmul_bias"),
    *("conv_data_grad", "conv_filter_grad", "broadcast_matmul_grad_b"),
}


class Source(NamedTuple):
    """Model and settings of a graph. ``amp``: dtype of mixed precision, None without it."""

    definition: Any
    model: nn.Module
    amp: Optional[oneflow.dtype]


class _Graph(nn.Graph):
    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.model = source.model  # registers the model as a part of the graph
        for name, value in OPTIONS.items():
            getattr(self.config, name)(value)
        if source.amp is not None:
            self.config.enable_amp(True, dtype=source.amp)

    def run_model(self, batch: Batch) -> Any:
        return self.model(*self.source.definition.inputs(batch))

    def find_losses(self, batch: Batch) -> List[Tensor]:
        losses = self.source.definition.losses(self.run_model(batch), batch)
        sum(vector.mean() for vector in losses).backward()
        return list(losses)


class Training(_Graph):
    """Graph from a batch to the losses, which updates the model."""

    def __init__(self, source: Source, optimizer: optim.Optimizer) -> None:
        super().__init__(source)
        self.add_optimizer(optimizer)
        if source.amp == oneflow.float16:  # bfloat16 has float32's range: no loss scale
            self.set_grad_scaler(oneflow.amp.GradScaler())

    def build(self, batch: Batch) -> List[Tensor]:
        return self.find_losses(batch)


class Gradients(_Graph):
    """Graph from a batch to the gradients, as :class:`Training` computes them.

    OneFlow has a backward pass only in a graph with an optimizer; the optimizer of this graph
    changes nothing."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.parameters = list(source.model.parameters())
        self.add_optimizer(optim.SGD(self.parameters, lr=0.0))

    def build(self, batch: Batch) -> List[Tensor]:
        self.find_losses(batch)
        gradients = [parameter.grad for parameter in self.parameters]
        if not gradients[0].is_global:
            return gradients
        return [gradient.to_global(sbp=oneflow.sbp.broadcast) for gradient in gradients]


class Forward(_Graph):
    """Graph from a batch to the logits."""

    def build(self, batch: Batch) -> List[Tensor]:
        return list(self.run_model(batch))


def compile_graph(graph: _Graph, batch: Batch) -> None:
    """Compile ``graph`` for tensors like those of ``batch``, without running it."""
    graph._compile(batch)
    # Tracing leaves symbolic gradients in the parameters, which would break the next graph.
    for parameter in graph.model.parameters():
        parameter.to(Tensor).grad = None


def proof(graph: _Graph) -> Dict[str, Any]:
    """Return counts of compiled operations. Raises :class:`Mismatch` if there are none."""
    job = graph._compiled_graph_proto if graph.is_compiled else None
    operators = len(job.net.op) if job is not None else 0
    if not operators:
        raise Mismatch("nn.Graph did not compile the step")
    return {"operators": operators, "matmuls": sum(matmuls_of(graph).values())}


class Multiplication(nn.Module):
    """A matmul of two tensors as a module, so that it can be watched like the others."""

    def __init__(self, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_b = transpose_b

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return oneflow._C.matmul(a, b, transpose_b=self.transpose_b)


def count_matmuls(model: nn.Module, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` in eager mode by the dtype of their modules' outputs.
    Buffers of ``model`` (running statistics) and the random state are left as they were."""
    counts: Dict[str, int] = Counter()

    def note(original: Callable[..., Any], *inputs: Tensor) -> Any:
        result = original(*inputs)
        output = result[0] if isinstance(result, tuple) else result  # LSTM: with states
        counts[str(output.dtype).replace("oneflow.", "")] += 1
        return result

    kinds = (nn.Conv2d, nn.Linear, nn.LSTM, Multiplication)
    noted = [module for module in model.modules() if isinstance(module, kinds)]
    kept = [buffer.clone() for buffer in model.buffers()]
    state = oneflow.get_rng_state()
    for module in noted:  # wraps forward, because OneFlow 0.9.0 cannot remove hooks
        module.forward = functools.partial(note, module.forward)  # type: ignore[method-assign]
    try:
        with oneflow.no_grad():
            forward()
            for buffer, before in zip(model.buffers(), kept):
                buffer.copy_(before)
    finally:
        for module in noted:
            del module.forward
    oneflow.set_rng_state(state)
    return dict(counts)


def matmuls_of(graph: nn.Graph) -> Dict[str, int]:
    """Count the matmuls in the job that OneFlow compiled from ``graph``, by dtype."""
    job = graph._compiled_graph_proto
    counts: Dict[str, int] = Counter()
    for operator in (entry.user_conf for entry in job.net.op):
        if operator.op_type_name in OPERATORS:
            (names,) = operator.output.values()
            out = job.helper.lbn2logical_blob_desc[names.s[0]]
            dtype = data_type_pb2.DataType.Name(out.data_type)
            counts[DTYPES.get(dtype, dtype)] += 1
    return dict(counts)


def optimizer_of(
    model: nn.Module, model_config: Dict[str, Any], fused: bool, clips: bool
) -> optim.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all parameters of ``model``.

    ``fused``: one kernel for many parameters, which OneFlow recommends, and has for GPUs only;
    ``clips``: whether the optimizer clips the gradients itself, as in a graph. Raises
    :class:`Unsupported` where it would not clip by the norm of all gradients."""
    hyper = model_config["hyperparameters"]
    groups = groups_by_decay(dict(model.named_parameters()), hyper)
    limit = hyper.get("clip_global_norm")
    if clips and limit is not None:
        if len(groups) > 1:
            raise Unsupported("nn.Graph clips parameters with and without weight decay separately")
        groups[0].update(clip_grad_max_norm=limit, clip_grad_norm_type=2.0)
    common = {"lr": hyper["learning_rate"], "fused": fused}
    if hyper["optimizer"] == "sgd":
        return optim.SGD(groups, momentum=hyper["momentum"], **common)
    betas = (hyper["beta1"], hyper["beta2"])
    return optim.AdamW(groups, betas=betas, eps=hyper["epsilon"], **common)


def clip_global_norm(gradients: List[Tensor], limit: float) -> None:
    """Scale ``gradients``, in place, so that their global norm is at most ``limit``.

    OneFlow's ``clip_grad`` is not used: on a CPU it adds up squares one by one in float32 and loses
    small ones, 2.6 % of the norm of BERT's 23 million word embeddings."""
    norm = oneflow.stack([(gradient * gradient).sum() for gradient in gradients]).sum().sqrt()
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)  # 1e-6: as in clip_grad
    for gradient in gradients:
        gradient.mul_(factor)
