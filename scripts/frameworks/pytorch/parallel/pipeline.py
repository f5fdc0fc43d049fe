"""Pipeline parallelism: each rank has some layers of a model, a stage, which
``torch.distributed.pipelining`` runs in the order 1F1B. A pipeline may have replicas.

A definition that can be cut into stages has a model with ``embeddings`` and ``layers``, which
``begin``s, gives its layers something ``beside`` their activations and ``finish``es, and says which
of its parameters are ``tied``: those of the embeddings that the last stage multiplies by."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from core.parallelism import Layout
from harness.adapter import MicroBatch, Unsupported
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from .data_parallel import all_reduce_together
from .sharded import DATA, average

PIPELINE = "pipeline"

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
    head and the loss in the last."""

    def __init__(self, model: nn.Module, layers: range, is_first: bool, is_last: bool) -> None:
        super().__init__()
        self.model: Any = model
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
            x = self.model.begin(*inputs)
        beside = self.model.beside(*inputs)
        for number in self._layers:
            x = self.model.layers[number](x, beside)
        return self.model.finish(x, *inputs) if self._is_last else x

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        """Return the outputs of micro-batch ``number``."""
        batch = self._batches[int(number)]
        with self._autocast():
            computed = self.evaluate(*(received or (None,)), *batch.inputs)
        return self._loss(computed, batch) / len(self._batches) if self._is_last else computed


class Pipeline:
    """A model cut into stages, of which each rank of a group has one."""

    WHOLE = Whole

    def __init__(self, layout: Layout, device: torch.device, micro_steps: int) -> None:
        """Raise :class:`Unsupported` where the schedule does not take so many micro-steps."""
        self._size, self._replicas, self._device = layout.pipeline, layout.data, device
        if 1 < micro_steps < self._size:
            raise Unsupported(
                f"1F1B takes at least as many micro-steps as there are stages, {self._size}, or a "
                f"single one, not {micro_steps}"
            )
        mesh = self._mesh = init_device_mesh(
            device.type, (self._size, self._replicas), mesh_dim_names=(PIPELINE, DATA)
        )
        self._group = mesh.get_group(PIPELINE)
        self._ranks = distributed.get_process_group_ranks(self._group)
        self._place = mesh.get_local_rank(PIPELINE)
        self._is_last = self._place == self._size - 1
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
        self._spans = spans_of(len(self._model.layers), self._size)
        place_of = {n: place for place, span in enumerate(self._spans) for n in span}

        def owner(name: str) -> int:
            """Return the place of the rank that owns a parameter."""
            first, _, rest = name.partition(".")
            if first == "layers":
                return place_of[int(rest.partition(".")[0])]
            return 0 if first == "embeddings" else self._size - 1

        self._owners = {name: owner(name) for name, _ in model.named_parameters()}
        self._kept = {name for name, place in self._owners.items() if place == self._place}
        tied = set(definition.tied(model))
        self._kept |= tied if self._is_last else set()
        self._tied = sorted(tied & self._kept)
        for name, parameter in list(model.named_parameters()):
            device = self._device if name in self._kept else torch.device("meta")
            module, _, leaf = name.rpartition(".")
            kept = nn.Parameter(parameter.detach().to(device))
            model.get_submodule(module).register_parameter(leaf, kept)
        self._stage = Stage(model, self._spans[self._place], self._place == 0, self._is_last)

    @property
    def settings(self) -> Dict[str, Any]:
        """JSON values, for the record."""
        return {
            "pipeline": self._size,
            "schedule": "1F1B",
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
        self._stage.prepare(batches, loss, autocast)
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
        stage = PipelineStage(
            self._stage,
            self._place,
            self._size,
            self._device,
            input_args=() if self._place == 0 else (self._sent,),
            output_args=(self._sent,),  # the last one sends nothing
            group=self._group,
        )
        # of a single micro-batch both are the same, and 1F1B wants as many as stages
        schedule: Any = ScheduleGPipe if len(batches) == 1 else Schedule1F1B
        self._schedule = schedule(
            stage,
            n_microbatches=len(batches),
            loss_fn=lambda result, _: result,  # the last stage's result is the loss
            scale_grads=False,
        )

    def differentiate(self) -> Tensor:
        """Run the passes of all micro-batches; return the mean loss, which the last stage tells
        all ranks."""
        losses: List[Tensor] = []
        numbers = self._numbers
        self._schedule.step(number=numbers, target=numbers, losses=losses, return_outputs=False)
        value = torch.zeros((), device=self._device)
        if self._is_last:
            value = torch.stack([loss.detach() for loss in losses]).sum()
        distributed.broadcast(value, src=self._ranks[-1], group=self._group)
        return value

    def forward(self, *inputs: Tensor) -> Tuple[Tensor, ...]:
        """Return the logits in every rank, after running the stages one by one."""
        x: Any = None
        with torch.no_grad():
            if self._place > 0:
                x = torch.empty(self._sent.shape, dtype=self._sent.dtype, device=self._device)
                distributed.recv(x, self._ranks[self._place - 1], group=self._group)
            computed = self._stage.evaluate(x, *inputs)
            if self._is_last:
                return self._outputs_of_last(tuple(output.contiguous() for output in computed))
            distributed.send(computed.contiguous(), self._ranks[self._place + 1], group=self._group)
            return self._outputs_of_last(())

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


def spans_of(layers: int, stages: int) -> List[range]:
    """Return the layers of each stage, as even as can be. What is left over goes to the stages
    between the first and the last, which have embeddings and head, then to the first. Raises
    :class:`Unsupported` where one would have none."""
    each, over = divmod(layers, stages)
    if not each:
        raise Unsupported(f"{layers} layers cannot be divided into {stages} stages")
    larger = [*range(1, stages - 1), 0, stages - 1][:over]
    sizes = [each + (number in larger) for number in range(stages)]
    return [range(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]
