"""Models of which each rank has some of the layers: the stages of a pipeline, which
``torch.distributed.pipelining`` runs in the order 1F1B, interleaved or not.

A definition that can be cut into stages has a model with ``embeddings`` and ``layers``, which
``begin``s, gives its layers something ``beside`` their activations and ``finish``es, and says which
of its parameters are ``tied``: those of the embeddings that the last stage multiplies by."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from harness.adapter import MicroBatch, Unsupported
from harness.parallelism import Layout
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from .parallel import all_reduce_together
from .sharded import count_collectives as count_collectives

PIPELINE, DATA = "pipeline", "data"
#: Stages of each rank where they are interleaved: Megatron's virtual pipeline size.
INTERLEAVED = 2

Loss = Callable[[Tuple[Tensor, ...], MicroBatch], Tensor]


class Whole:
    """A parameter, or the gradient of one. ``tensor``: None where another rank of ``group`` has it;
    ``like``: a tensor of its shape; ``owner``: the rank that gives it to all."""

    def __init__(
        self,
        tensor: Optional[Tensor],
        like: Tensor,
        owner: int,
        group: Any,
        device: torch.device,
    ) -> None:
        self._tensor, self._like = tensor, like
        self._owner, self._group, self._device = owner, group, device

    @property
    def shape(self) -> torch.Size:
        return self._like.shape

    def gather(self) -> Tensor:
        """In every rank; all of them call this."""
        if distributed.get_rank() == self._owner:
            assert self._tensor is not None
            whole = self._tensor.detach().contiguous()
        else:
            whole = torch.empty_like(self._like, device=self._device)
        distributed.broadcast(whole, src=self._owner, group=self._group)
        return whole

    def assign(self, whole: Tensor) -> None:
        """To what this rank has of it, if anything."""
        if self._tensor is not None:
            self._tensor.copy_(whole)


class Stage(nn.Module):
    """Some layers of ``model``, behind its embeddings in the first stage, before its head in the
    last, of which the result is the loss."""

    def __init__(self, model: nn.Module, layers: range, is_first: bool, is_last: bool) -> None:
        super().__init__()
        self._model: Any = (model,)  # no submodule: most of its parameters are other stages'
        self._layers, self._is_first, self._is_last = layers, is_first, is_last

    def prepare(
        self,
        batches: Sequence[MicroBatch],
        loss: Loss,
        autocast: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        """With what :meth:`forward` computes, and how."""
        self._batches, self._loss, self._autocast = batches, loss, autocast

    def compute(self, x: Optional[Tensor], *inputs: Tensor) -> Any:
        """Activations (batch, sequence, hidden) from those of the stage before; logits from the
        last. ``inputs``: of the model."""
        (model,) = self._model
        if self._is_first:
            x = model.begin(*inputs)
        beside = model.beside(*inputs)
        for number in self._layers:
            x = model.layers[number](x, beside)
        return model.finish(x, *inputs) if self._is_last else x

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        """Of the micro-batch ``number``."""
        batch = self._batches[int(number)]
        with self._autocast():
            found = self.compute(*(received or (None,)), *batch.inputs)
        return self._loss(found, batch) / len(self._batches) if self._is_last else found


class Pipeline:
    """A model cut into stages, of which each rank of a group has one or, interleaved, several:
    rank r of n the stages r, n + r, and so on."""

    def __init__(self, layout: Layout, device: torch.device, micro_steps: int) -> None:
        """Raises :class:`Unsupported` where the schedule does not take so many micro-steps."""
        self._size, self._device = layout.stages, device
        self._interleaved = layout.interleaved > 1
        self._count = self._size * (INTERLEAVED if self._interleaved else 1)
        require_schedule(self._size, self._interleaved, micro_steps)
        mesh = init_device_mesh(
            device.type, (self._size, layout.data), mesh_dim_names=(PIPELINE, DATA)
        )
        self._group = mesh.get_group(PIPELINE)
        self._ranks = distributed.get_process_group_ranks(self._group)
        self._place = mesh.get_local_rank(PIPELINE)
        self._replicas = layout.data
        self._data_group = mesh.get_group(DATA)
        # every rank makes all groups, in the same order
        ends = [[int(rank) for rank in column[[0, -1]]] for column in mesh.mesh.T]
        groups = {tuple(pair): distributed.new_group(pair) for pair in ends}
        self._ends = groups[self._ranks[0], self._ranks[-1]]

    def apply(self, model: nn.Module, definition: Any, sequence_length: int) -> None:
        """Cut ``model``, in place: of what other ranks have, shapes are left. What this rank has
        goes to its device. Raises :class:`Unsupported` where it has too few layers."""
        if not hasattr(definition, "tied"):
            raise Unsupported("the model is no single chain of layers that stages could be cut of")
        self._model: Any = model
        spans = spans_of(len(self._model.layers), self._count, self._size)
        self._spans, last = spans, self._count - 1
        stage_of = {n: stage for stage, span in enumerate(spans) for n in span}

        def owner(name: str) -> int:
            """The rank, within its group, whose stage has the parameter."""
            first, _, rest = name.partition(".")
            layer = stage_of[int(rest.partition(".")[0])] if first == "layers" else last
            return (0 if first == "embeddings" else layer) % self._size

        self._owners = {name: owner(name) for name, _ in model.named_parameters()}
        self._tied = set(definition.tied(model))
        self._kept = {
            name
            for name, rank in self._owners.items()
            if rank == self._place or (name in self._tied and self._place == last % self._size)
        }
        for name, parameter in list(model.named_parameters()):
            device = self._device if name in self._kept else torch.device("meta")
            module, _, leaf = name.rpartition(".")
            moved = nn.Parameter(parameter.detach().to(device))
            model.get_submodule(module).register_parameter(leaf, moved)
        mine = range(self._place, self._count, self._size)
        self._stages = {n: Stage(model, spans[n], n == 0, n == last) for n in mine}

    @property
    def settings(self) -> Dict[str, Any]:
        """JSON values, for the record."""
        return {
            "pipeline": self._size,
            "schedule": "interleaved 1F1B" if self._interleaved else "1F1B",
            "layers_of_stages": [len(span) for span in self._spans],
        }

    def differentiation(
        self,
        batches: Sequence[MicroBatch],
        loss: Loss,
        autocast: Callable[[], AbstractContextManager[Any]],
        optimizer: torch.optim.Optimizer,
    ) -> Callable[[], Tensor]:
        """A step until its update, as :func:`steps.accumulated`. The last stage tells its loss to
        all."""
        for stage in self._stages.values():
            stage.prepare(batches, loss, autocast)
        self._activations = self._activations_of(batches[0])
        schedule = self._schedule(len(batches))
        numbers = torch.arange(len(batches))
        is_last = self._place == self._size - 1

        def differentiate() -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            losses: List[Tensor] = []
            schedule.step(number=numbers, target=numbers, losses=losses, return_outputs=False)
            value = torch.zeros((), device=self._device)
            if is_last:
                value = torch.stack([one.detach() for one in losses]).sum()
            distributed.broadcast(value, src=self._ranks[-1], group=self._group)
            return value

        return differentiate

    def micro_step(self) -> None:
        """Forward and backward pass of the first micro-batch alone, through all stages."""
        number = torch.zeros(1, dtype=torch.int64)
        self._schedule(1).step(number=number, target=number, return_outputs=False)

    def _schedule(self, micro_steps: int) -> Any:
        stages = [self._stage(n) for n in self._stages]
        # the last stage's result is the loss
        given = {
            "n_microbatches": micro_steps,
            "loss_fn": lambda result, _: result,
            "scale_grads": False,
        }
        if self._interleaved:
            return ScheduleInterleaved1F1B(stages, **given)
        # of a single micro-batch both are the same, and the latter wants as many as stages
        return (ScheduleGPipe if micro_steps == 1 else Schedule1F1B)(stages[0], **given)

    def _stage(self, number: int) -> PipelineStage:
        between = self._activations
        return PipelineStage(
            self._stages[number],
            number,
            self._count,
            self._device,
            input_args=() if number == 0 else (between,),
            output_args=(between,),  # the last one's are not sent
            group=self._group,
        )

    def _activations_of(self, batch: MicroBatch) -> Tensor:
        """Shape and dtype of what goes from stage to stage."""
        weight = self._model.embeddings.token.weight
        shape = (*batch.inputs[0].shape[:2], weight.shape[1])
        return torch.empty(shape, dtype=weight.dtype, device="meta", requires_grad=True)

    def forward(self, *inputs: Tensor) -> Tuple[Tensor, ...]:
        """The logits, in every rank, of one stage after the other."""
        x = torch.empty(self._activations.shape, dtype=self._activations.dtype, device=self._device)
        outputs: Tuple[Tensor, ...] = ()
        with torch.no_grad():
            for number in range(self._count):
                if number in self._stages:
                    found = self._stages[number].compute(x, *inputs)
                    if number == self._count - 1:
                        outputs = tuple(one.contiguous() for one in found)
                    else:
                        x = found.contiguous()
                if number < self._count - 1:
                    source = self._ranks[number % self._size]
                    distributed.broadcast(x, src=source, group=self._group)
            return self._given_by_last(outputs)

    def _given_by_last(self, outputs: Tuple[Tensor, ...]) -> Tuple[Tensor, ...]:
        told = [[(one.shape, one.dtype) for one in outputs]]
        last, group = self._ranks[-1], self._group
        distributed.broadcast_object_list(told, src=last, group=group, device=self._device)
        if not outputs:
            outputs = tuple(
                torch.empty(shape, dtype=dtype, device=self._device) for shape, dtype in told[0]
            )
        for one in outputs:
            distributed.broadcast(one, src=last, group=group)
        return outputs

    def groups(self) -> List[List[nn.Parameter]]:
        """This rank's parameters, in one group."""
        return [[one for name, one in self._model.named_parameters() if name in self._kept]]

    def summed_up(self, differentiate: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """``differentiate``, and behind it the sums of gradients: of tied parameters those of the
        first and the last stage, of all those of the replicas, averaged."""

        def run() -> Tensor:
            value = differentiate()
            named = dict(self._model.named_parameters())
            tied = [named[name].grad for name in sorted(self._tied & self._kept)]
            if tied:
                all_reduce_together(tied, self._ends)
            if self._replicas > 1:
                gradients = [one.grad for one in self.groups()[0]]
                all_reduce_together(gradients, self._data_group)
                torch._foreach_div_(gradients, self._replicas)
            return value

        return run

    def clip(self, largest: float) -> None:
        """Scale the gradients down to the global norm ``largest``, if theirs is larger."""
        named = self._model.named_parameters()
        counted = [one.grad for name, one in named if self._owners[name] == self._place]
        total = nn.utils.get_total_norm(counted).square()
        distributed.all_reduce(total, group=self._group)
        nn.utils.clip_grads_with_norm_(self.groups()[0], largest, total.sqrt())

    def whole(self, name: str, tensor: Tensor) -> Whole:
        """The parameter ``name``."""
        return self._whole(name, tensor, tensor)

    def gradients(self) -> Dict[str, Whole]:
        """Of all parameters, by their names."""
        return {name: self._whole(name, p.grad, p) for name, p in self._model.named_parameters()}

    def _whole(self, name: str, tensor: Optional[Tensor], like: Tensor) -> Whole:
        own = tensor if name in self._kept else None
        owner = self._ranks[self._owners[name]]
        return Whole(own, like, owner, self._group, self._device)

    def held(self) -> int:
        """Elements of parameters in this rank's memory."""
        return sum(one.numel() for one in self.groups()[0])


def require_schedule(ranks: int, interleaved: bool, micro_steps: int) -> None:
    """Raises :class:`Unsupported` where PyTorch has no schedule of so many micro-steps."""
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
    """The layers of each stage, as even as can be. What is left over goes to the stages between the
    first and the last, which have embeddings and head, then to the first. Raises
    :class:`Unsupported` where one between them would have none, or a rank."""
    each, over = divmod(layers, stages)
    if layers < max(ranks, stages - 2):
        raise Unsupported(f"{layers} layers are not shared out among {stages} stages")
    sizes = [each] * stages
    for number in [*range(1, stages - 1), 0, stages - 1][:over]:
        sizes[number] += 1
    ends = [sum(sizes[: number + 1]) for number in range(stages)]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
