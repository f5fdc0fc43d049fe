"""Pipeline parallelism: each rank has some layers of a model, a stage, which
``torch.distributed.pipelining`` runs in the order 1F1B. A pipeline may have replicas.

A definition that can be cut into stages has a model with ``embeddings`` and ``layers``, with the
methods ``begin``, ``beside`` (further inputs of layers) and ``finish``, and names its ``tied``
parameters: those of the embeddings by which the last stage multiplies."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from itertools import accumulate
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from core.parallelism import DATA, PIPELINE, Layout
from harness.adapter import MicroBatch, Unsupported, Variable
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from .devices import all_reduce_together
from .sharded import average

Batches = Sequence[MicroBatch]
Loss = Callable[[Tuple[Tensor, ...], MicroBatch], Tensor]
Autocast = Callable[[], AbstractContextManager[Any]]


class Whole(NamedTuple):
    """A parameter of the whole model, or its gradient. ``tensor``: this rank's tensor, on the
    device ``meta`` where only other ranks have it; ``owner``: the rank that sends it to all."""

    tensor: Tensor
    owner: int

    @property
    def shape(self) -> torch.Size:
        return self.tensor.shape

    @property
    def grad(self) -> Optional[Whole]:
        gradient = self.tensor if self.tensor.is_meta else self.tensor.grad
        return None if gradient is None else Whole(gradient, self.owner)


class Stage(nn.Module):
    """Stage of a pipeline: some ``layers`` of a model, with the embeddings in the first stage, and
    the head and the loss in the last."""

    def __init__(
        self, model: nn.Module, layers: range, batches: Batches, loss: Loss, autocast: Autocast
    ) -> None:
        super().__init__()
        self.model: Any = model
        self._layers, self._is_last = layers, layers.stop == len(self.model.layers)
        self._batches, self._loss, self._autocast = batches, loss, autocast

    def evaluate(self, x: Optional[Tensor], *inputs: Tensor) -> Any:
        """Return activations (batch, sequence, hidden), or logits in the last stage. ``x``:
        activations of the previous stage, None in the first; ``inputs``: inputs of the model."""
        if x is None:
            x = self.model.begin(*inputs)
        beside = self.model.beside(*inputs)
        for number in self._layers:
            x = self.model.layers[number](x, beside)
        return self.model.finish(x, *inputs) if self._is_last else x

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        """Return activations of micro-batch ``number``, or its share of the loss in the last
        stage."""
        batch = self._batches[int(number)]
        with self._autocast():
            computed = self.evaluate(*(received or (None,)), *batch.inputs)
        return self._loss(computed, batch) / len(self._batches) if self._is_last else computed


class Pipeline:
    """A model cut into stages, of which each rank of a group has one."""

    def __init__(self, layout: Layout, device: torch.device, micro_steps: int) -> None:
        """Raise :class:`Unsupported` where the schedule does not support this number of
        micro-steps."""
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
        # every rank must create all groups, in the same order
        ends = [[int(rank) for rank in column[[0, -1]]] for column in mesh.mesh.T]
        groups = {tuple(pair): distributed.new_group(pair) for pair in ends}
        self._ends = groups[self._ranks[0], self._ranks[-1]]

    def apply(self, model: nn.Module, definition: Any, sequence_length: int) -> None:
        """Cut ``model`` in place: this rank's part goes to its device, and other parts keep only
        their shapes. Raises :class:`Unsupported` where the model has too few layers."""
        if not hasattr(definition, "tied"):
            raise Unsupported(
                "the model is not a single chain of layers that could be cut into stages"
            )
        self._model: Any = model
        self._spans = spans_of(len(self._model.layers), self._size)
        place_of = {n: place for place, span in enumerate(self._spans) for n in span}

        def owner(name: str) -> int:
            """Return the index of the rank that owns a parameter."""
            first, _, rest = name.partition(".")
            if first == "layers":
                return place_of[int(rest.partition(".")[0])]
            return 0 if first == "embeddings" else self._size - 1

        self._owners = {name: owner(name) for name, _ in model.named_parameters()}
        kept = {name for name, place in self._owners.items() if place == self._place}
        tied = set(definition.tied(model))
        kept |= tied if self._is_last else set()
        self._tied = sorted(tied & kept)
        for name, parameter in list(model.named_parameters()):
            device = self._device if name in kept else torch.device("meta")
            module, _, leaf = name.rpartition(".")
            placed = nn.Parameter(parameter.detach().to(device))
            model.get_submodule(module).register_parameter(leaf, placed)

    @property
    def settings(self) -> Dict[str, Any]:
        """Return settings as JSON values for the record."""
        return {
            "pipeline": self._size,
            "schedule": "1F1B",
            "layers_of_stages": [len(span) for span in self._spans],
            **({DATA: self._replicas} if self._replicas > 1 else {}),
        }

    def prepare(self, batches: Batches, loss: Loss, autocast: Autocast) -> None:
        """Prepare :meth:`differentiate` for these micro-batches."""
        span = self._spans[self._place]
        self._stage = Stage(self._model, span, batches, loss, autocast)
        samples, tokens = batches[0].inputs[0].shape[:2]
        weight = self._model.embeddings.token.weight
        shape = (samples, tokens, weight.shape[1])
        # the shape that a stage sends to the next
        sent = torch.empty(shape, dtype=weight.dtype, device="meta", requires_grad=True)
        self._numbers = torch.arange(len(batches))
        stage = PipelineStage(
            self._stage,
            self._place,
            self._size,
            self._device,
            input_args=() if self._place == 0 else (sent,),
            output_args=(sent,),  # the last stage sends nothing
            group=self._group,
        )
        # 1F1B needs as many micro-batches as stages; with one micro-batch both schedules are equal
        schedule: Any = ScheduleGPipe if len(batches) == 1 else Schedule1F1B
        self._schedule = schedule(
            stage,
            n_microbatches=len(batches),
            loss_fn=lambda result, _: result,  # the last stage's result is the loss
            scale_grads=False,
        )

    def differentiate(self) -> Tensor:
        """Run the passes of all micro-batches; return the mean loss, which the last stage sends to
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
        """Return the logits in every rank: stages run one by one, and send their results to all."""
        results: Tuple[Tensor, ...] = ()
        for place, rank in enumerate(self._ranks):
            if place == self._place:
                with torch.no_grad():
                    computed = self._stage.evaluate(results[0] if results else None, *inputs)
                own = computed if self._is_last else (computed,)
                results = tuple(tensor.contiguous() for tensor in own)
            layouts = [[(tensor.shape, tensor.dtype) for tensor in results]]
            options = {"src": rank, "group": self._group}
            distributed.broadcast_object_list(layouts, device=self._device, **options)
            if place != self._place:
                empty = partial(torch.empty, device=self._device)
                results = tuple(empty(shape, dtype=dtype) for shape, dtype in layouts[0])
            for tensor in results:
                distributed.broadcast(tensor, **options)
        return results

    def add_up(self) -> None:
        """Add up the gradients of tied parameters over the first and the last stage, and average
        all gradients over the replicas."""
        named = dict(self._model.named_parameters())
        tied = [named[name].grad for name in self._tied]
        if tied:
            all_reduce_together(tied, self._ends)
        if self._replicas > 1:
            average(self._model.parameters(), self._mesh.get_group(DATA), self._replicas)

    def clip(self, largest: float) -> None:
        """Scale the gradients down to the global norm ``largest``, if their norm is larger."""
        named = self._model.named_parameters()
        counted = [p.grad for name, p in named if self._owners[name] == self._place]
        total = nn.utils.get_total_norm([gradient for gradient in counted if gradient is not None])
        squared = total.square()
        distributed.all_reduce(squared, group=self._group)
        nn.utils.clip_grads_with_norm_(self._model.parameters(), largest, squared.sqrt())

    def shared_state(self, state: Dict[str, Variable]) -> Dict[str, Variable]:
        """Return the ``state`` of the model with the rank that owns each parameter."""
        return {
            name: entry._replace(tensor=Whole(entry.tensor, self._ranks[self._owners[name]]))
            for name, entry in state.items()
        }

    def gather(self, tensor: Any) -> Tensor:
        """Return a whole parameter or gradient in every rank; all ranks must call this."""
        if not isinstance(tensor, Whole):
            return tensor
        own, owner = tensor
        if distributed.get_rank() == owner:
            whole = own.detach().contiguous()
        else:
            whole = torch.empty(own.shape, dtype=own.dtype, device=self._device)
        distributed.broadcast(whole, src=owner, group=self._group)
        return whole

    def assign(self, tensor: Whole, whole: Tensor) -> None:
        """Overwrite a parameter of the model, if this rank has it."""
        if not tensor.tensor.is_meta:
            tensor.tensor.copy_(whole)


def spans_of(layers: int, stages: int) -> List[range]:
    """Return the layers of each stage, as even as possible. Remaining layers go to the stages
    between the first and the last, which have embeddings and head, then to the first. Raises
    :class:`Unsupported` where a stage would have no layer."""
    each, over = divmod(layers, stages)
    if not each:
        raise Unsupported(f"{layers} layers cannot be divided into {stages} stages")
    larger = [*range(1, stages - 1), 0, stages - 1][:over]
    sizes = [each + (number in larger) for number in range(stages)]
    return [range(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]
