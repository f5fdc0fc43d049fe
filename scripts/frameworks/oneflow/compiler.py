"""nn.Graph, OneFlow's static graphs: forward pass, backward pass, all-reduce and optimizer are one
job, which OneFlow compiles and then runs without Python."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import oneflow
from harness.adapter import Mismatch
from oneflow import Tensor, nn, optim

from . import matmuls

Batch = Dict[str, Tensor]

#: Settings that improve performance by OneFlow's documentation of GraphConfig.
OPTIONS = {
    "allow_fuse_model_update_ops": True,
    "allow_fuse_add_to_output": True,
    "allow_fuse_cast_scale": True,
}


class Source(NamedTuple):
    """Parts of a graph. ``amp``: dtype of mixed precision, None without it."""

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
    """Return counts of compiled operations. Raises :class:`Mismatch` where nothing was."""
    job = graph._compiled_graph_proto if graph.is_compiled else None
    operators = len(job.net.op) if job is not None else 0
    if not operators:
        raise Mismatch("nn.Graph did not compile the step")
    return {"operators": operators, "matmuls": sum(matmuls.compiled(graph).values())}
