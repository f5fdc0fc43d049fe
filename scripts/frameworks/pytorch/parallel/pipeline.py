"""Pipeline parallelism: each rank has some layers of a model, a stage, which
``torch.distributed.pipelining`` runs in the order 1F1B, interleaved or not. A pipeline may have
replicas.

A definition that can be cut into stages has a model with ``embeddings`` and ``layers``, which
``begin``s, gives its layers something ``beside`` their activations and ``finish``es, and says which
of its parameters are ``tied``: those of the embeddings that the last stage multiplies by."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from core.parallelism import Layout
from harness.adapter import MicroBatch, Unsupported
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from .data_parallel import all_reduce_together
from .sharded import DATA, average

PIPELINE = "pipeline"
#: Stages of each rank where they are interleaved: Megatron's virtual pipeline size.
INTERLEAVED = 2

Loss = Callable[[Tuple[Tensor, ...], MicroBatch], Tensor]


class Whole:
    """A parameter of the whole model, or its gradient. ``own``: this rank's tensor, None where only
    others have it; ``like``: a tensor of its shape; ``owner``: the rank of ``group`` that sends it
    to all."""

    def __init__(
        self, own: Optional[Tensor], like: Tensor, owner: int, group: Any, device: torch.device
    ) -> None:
        self._own, self._like = own, like
        self._owner, self._group, self._device = owner, group, device

    @property
    def shape(self) -> torch.Size:
        return self._like.shape

    def gather(self) -> Tensor:
        """Return the tensor in every rank; all ranks call this."""
        if distributed.get_rank() == self._owner:
            assert self._own is not None
            whole = self._own.detach().contiguous()
        else:
            whole = torch.empty(self._like.shape, dtype=self._like.dtype, device=self._device)
        distributed.broadcast(whole, src=self._owner, group=self._group)
        return whole

    def assign(self, whole: Tensor) -> None:
        """Overwrite this rank's tensor, if it has one."""
        if self._own is not None:
            self._own.copy_(whole)


class Stage(nn.Module):
    """Stage of a pipeline: some layers of a model, with the embeddings in the first stage, and the
    head and the loss in the last. ``part``: the model with the modules of this stage alone."""

    def __init__(self, part: nn.Module, layers: range, is_first: bool, is_last: bool) -> None:
        super().__init__()
        self.part: Any = part
        self._layers, self._is_first, self._is_last = layers, is_first, is_last

    def prepare(
        self,
        batches: Sequence[MicroBatch],
        loss: Loss,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        """Set the micro-batches, loss and autocast of :meth:`forward`."""
        self._batches, self._loss, self._autocast = batches, loss, autocast

    def evaluate(self, x: Optional[Tensor], *inputs: Tensor) -> Any:
        """Return activations (batch, sequence, hidden) from those of the stage before; logits from
        the last. ``inputs``: of the model."""
        if self._is_first:
            x = self.part.begin(*inputs)
        beside = self.part.beside(*inputs)
        for number in self._layers:
            x = self.part.layers[str(number)](x, beside)
        return self.part.finish(x, *inputs) if self._is_last else x

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        """Return the outputs of micro-batch ``number``."""
        batch = self._batches[int(number)]
        with self._autocast():
            computed = self.evaluate(*(received or (None,)), *batch.inputs)
        return self._loss(computed, batch) / len(self._batches) if self._is_last else computed


class Pipeline:
    """A model cut into stages, of which each rank of a group has one or, interleaved, several:
    rank r of n the stages r, n + r, and so on."""

    WHOLE = Whole

    def __init__(self, layout: Layout, device: torch.device, micro_steps: int) -> None:
        """Raise :class:`Unsupported` where the schedule does not take so many micro-steps."""
        self._size, self._device = layout.stages, device
        self._interleaved = layout.interleaved > 1
        self._count = self._size * (INTERLEAVED if self._interleaved else 1)
        require_schedule(self._size, self._interleaved, micro_steps)
        self._replicas = layout.data
        mesh = self._mesh = init_device_mesh(
            device.type, (self._size, self._replicas), mesh_dim_names=(PIPELINE, DATA)
        )
        self._group = mesh.get_group(PIPELINE)
        self._ranks = distributed.get_process_group_ranks(self._group)
        self._place = mesh.get_local_rank(PIPELINE)
        # every rank makes all groups, in the same order
        ends = [[int(rank) for rank in column[[0, -1]]] for column in mesh.mesh.T]
        groups = {tuple(pair): distributed.new_group(pair) for pair in ends}
        self._ends = groups[self._ranks[0], self._ranks[-1]]

    def apply(self, model: nn.Module, definition: Any, sequence_length: int) -> None:
        """Cut ``model`` in place: this rank's part goes to its device, and only shapes remain of
        the others'. Raises :class:`Unsupported` where the model has too few layers."""
        if not hasattr(definition, "tied"):
            raise Unsupported("the model is no single chain of layers that stages could be cut of")
        self._model: Any = model
        spans = spans_of(len(self._model.layers), self._count, self._size)
        self._spans, last = spans, self._count - 1
        stage_of = {n: stage for stage, span in enumerate(spans) for n in span}

        def stage_with(name: str) -> int:
            """Return the stage that has the parameter."""
            first, _, rest = name.partition(".")
            layer = stage_of[int(rest.partition(".")[0])] if first == "layers" else last
            return 0 if first == "embeddings" else layer

        stages = {name: stage_with(name) for name, _ in model.named_parameters()}
        tied = set(definition.tied(model))
        self._owners = {name: stage % self._size for name, stage in stages.items()}
        self._kept = {name for name, rank in self._owners.items() if rank == self._place}
        if self._place == last % self._size:
            self._kept |= tied
        self._tied = sorted(tied & self._kept)
        for name, parameter in list(model.named_parameters()):
            device = self._device if name in self._kept else torch.device("meta")
            register(model, name, nn.Parameter(parameter.detach().to(device)))
        self._stages: Dict[int, Stage] = {}
        for n in range(self._place, self._count, self._size):
            has = {name for name, stage in stages.items() if stage == n}
            part = part_of(model, has | tied if n == last else has, spans[n])
            self._stages[n] = Stage(part, spans[n], n == 0, n == last)

    @property
    def settings(self) -> Dict[str, Any]:
        """JSON values, for the record."""
        return {
            "pipeline": self._size,
            "schedule": "interleaved 1F1B" if self._interleaved else "1F1B",
            "layers_of_stages": [len(span) for span in self._spans],
            **({DATA: self._replicas} if self._replicas > 1 else {}),
        }

    def prepare(
        self,
        batches: Sequence[MicroBatch],
        loss: Loss,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        """Prepare :meth:`differentiate` for these micro-batches."""
        for stage in self._stages.values():
            stage.prepare(batches, loss, autocast)
        samples, tokens = batches[0].inputs[0].shape[:2]
        weight = self._model.embeddings.token.weight
        # shape and dtype of what a stage sends to the next
        self._sent = torch.empty(
            (samples, tokens, weight.shape[1]),
            dtype=weight.dtype,
            device="meta",
            requires_grad=True,
        )
        self._numbers = torch.arange(len(batches))
        self._schedule = self._schedule_of(len(batches))

    def differentiate(self) -> Tensor:
        """Run the passes of all micro-batches; return the mean loss, which the last stage tells
        all ranks."""
        losses: List[Tensor] = []
        numbers = self._numbers
        self._schedule.step(number=numbers, target=numbers, losses=losses, return_outputs=False)
        value = torch.zeros((), device=self._device)
        if self._place == self._size - 1:
            value = torch.stack([loss.detach() for loss in losses]).sum()
        distributed.broadcast(value, src=self._ranks[-1], group=self._group)
        return value

    def _schedule_of(self, micro_steps: int) -> Any:
        stages = [self._stage(n) for n in self._stages]
        # the last stage's result is the loss
        arguments = {
            "n_microbatches": micro_steps,
            "loss_fn": lambda result, _: result,
            "scale_grads": False,
        }
        if self._interleaved:
            return ScheduleInterleaved1F1B(stages, **arguments)
        # of a single micro-batch both are the same, and the latter wants as many as stages
        return (ScheduleGPipe if micro_steps == 1 else Schedule1F1B)(stages[0], **arguments)

    def _stage(self, number: int) -> PipelineStage:
        return PipelineStage(
            self._stages[number],
            number,
            self._count,
            self._device,
            input_args=() if number == 0 else (self._sent,),
            output_args=(self._sent,),  # the last one sends nothing
            group=self._group,
        )

    def forward(self, *inputs: Tensor) -> Tuple[Tensor, ...]:
        """Return the logits in every rank, after running the stages one by one."""
        x: Any = None
        outputs: Tuple[Tensor, ...] = ()
        last = self._count - 1
        with torch.no_grad():
            for number in range(self._count):
                if number in self._stages:
                    computed = self._stages[number].evaluate(x, *inputs)
                    if number == last:
                        outputs = tuple(output.contiguous() for output in computed)
                    else:
                        x = computed.contiguous()
                elif number < last:
                    x = torch.empty(self._sent.shape, dtype=self._sent.dtype, device=self._device)
                if number < last:
                    source = self._ranks[number % self._size]
                    distributed.broadcast(x, src=source, group=self._group)
            return self._outputs_of_last(outputs)

    def _outputs_of_last(self, outputs: Tuple[Tensor, ...]) -> Tuple[Tensor, ...]:
        layouts = [[(output.shape, output.dtype) for output in outputs]]
        last, group = self._ranks[-1], self._group
        distributed.broadcast_object_list(layouts, src=last, group=group, device=self._device)
        if not outputs:
            outputs = tuple(
                torch.empty(shape, dtype=dtype, device=self._device) for shape, dtype in layouts[0]
            )
        for output in outputs:
            distributed.broadcast(output, src=last, group=group)
        return outputs

    def groups(self) -> List[List[nn.Parameter]]:
        """Return this rank's parameters, as an optimizer takes them."""
        return [self._own(self._kept)]

    def _own(self, names: Set[str]) -> List[nn.Parameter]:
        return [parameter for name, parameter in self._model.named_parameters() if name in names]

    def add_up(self) -> None:
        """Add up gradients over ranks: those of tied parameters over the first and the last stage,
        and means over the replicas."""
        named = dict(self._model.named_parameters())
        tied = [named[name].grad for name in self._tied]
        if tied:
            all_reduce_together(tied, self._ends)
        if self._replicas > 1:
            average(self._own(self._kept), self._mesh.get_group(DATA), self._replicas)

    def clip(self, largest: float) -> None:
        """Scale the gradients down to the global norm ``largest``, if theirs is larger."""
        counted = {name for name, rank in self._owners.items() if rank == self._place}
        gradients = [p.grad for p in self._own(counted) if p.grad is not None]
        total = nn.utils.get_total_norm(gradients).square()
        distributed.all_reduce(total, group=self._group)
        nn.utils.clip_grads_with_norm_(self._own(self._kept), largest, total.sqrt())

    def whole(self, name: str, tensor: Tensor) -> Whole:
        """Return the parameter ``name``."""
        return self._whole(name, tensor, tensor)

    def gradients(self) -> Dict[str, Whole]:
        """Return the gradients of all parameters by name."""
        return {name: self._whole(name, p.grad, p) for name, p in self._model.named_parameters()}

    def _whole(self, name: str, tensor: Optional[Tensor], like: Tensor) -> Whole:
        own = tensor if name in self._kept else None
        owner = self._ranks[self._owners[name]]
        return Whole(own, like, owner, self._group, self._device)

    def held(self) -> int:
        """Return the number of elements of parameters in this rank's memory."""
        return sum(parameter.numel() for parameter in self._own(self._kept))


def part_of(model: nn.Module, kept: Set[str], layers: range) -> nn.Module:
    """Return ``model`` with some of its layers, by their numbers, and of its other parameters those
    ``kept``, by name. What it has it shares with the model."""
    part = _pruned(model, {name for name in kept if not name.startswith("layers.")})
    chain: Any = model.layers
    part.layers = nn.ModuleDict({str(number): chain[number] for number in layers})
    return part


def _pruned(module: nn.Module, kept: Set[str], prefix: str = "") -> nn.Module:
    names = {f"{prefix}{name}" for name, _ in module.named_parameters()}
    if names <= kept:
        return module
    part = copy.copy(module)
    part._parameters = {
        name: parameter
        for name, parameter in module._parameters.items()
        if parameter is None or f"{prefix}{name}" in kept
    }
    part._modules = {
        name: None if child is None else _pruned(child, kept, f"{prefix}{name}.")
        for name, child in module._modules.items()
    }
    return part


def register(model: nn.Module, name: str, parameter: nn.Parameter) -> None:
    """Replace the parameter of this ``name`` in the model by ``parameter``."""
    module, _, leaf = name.rpartition(".")
    model.get_submodule(module).register_parameter(leaf, parameter)


def require_schedule(ranks: int, interleaved: bool, micro_steps: int) -> None:
    """Raise :class:`Unsupported` where PyTorch has no schedule of so many micro-steps."""
    if interleaved:
        rounds = max(1, micro_steps // ranks)
        if micro_steps % rounds:
            raise Unsupported(
                f"interleaved 1F1B of {ranks} ranks takes a multiple of {rounds} micro-steps here, "
                f"not {micro_steps}"
            )
    elif 1 < micro_steps < ranks:
        raise Unsupported(
            f"1F1B takes at least as many micro-steps as there are stages, {ranks}, or a single "
            f"one, not {micro_steps}"
        )


def spans_of(layers: int, stages: int, ranks: int) -> List[range]:
    """Return the layers of each stage, as even as can be. What is left over goes to the stages
    between the first and the last, which have embeddings and head, then to the first. Raises
    :class:`Unsupported` where one between them would have none, or a rank."""
    each, over = divmod(layers, stages)
    if layers < max(ranks, stages - 2):
        raise Unsupported(f"{layers} layers cannot be divided into {stages} stages")
    sizes = [each] * stages
    for number in [*range(1, stages - 1), 0, stages - 1][:over]:
        sizes[number] += 1
    ends = [sum(sizes[: number + 1]) for number in range(stages)]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
