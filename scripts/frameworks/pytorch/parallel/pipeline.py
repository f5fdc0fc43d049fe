"""Pipeline parallelism: each rank has some layers of a model, a stage, which
``torch.distributed.pipelining`` runs in the order 1F1B, interleaved or not. A stage may also be
sharded by FSDP2 or by tensors: see ``sharded.py``.

A definition that can be cut into stages has a model with ``embeddings`` and ``layers``, which
``begin``s, gives its layers something ``beside`` their activations and ``finish``es, and says which
of its parameters are ``tied``: those of the embeddings that the last stage multiplies by."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from core.parallelism import Layout
from harness.adapter import MicroBatch, Unsupported
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from . import sharded
from .data_parallel import all_reduce_together
from .sharded import DATA, FSDP, TENSOR
from .sharded import count_collectives as count_collectives
from .stages import part_of, register, require_schedule, spans_of

PIPELINE = "pipeline"
#: Stages of each rank where they are interleaved: Megatron's virtual pipeline size.
INTERLEAVED = 2

Loss = Callable[[Tuple[Tensor, ...], MicroBatch], Tensor]


class Whole:
    """A parameter, or its gradient, of which ranks hold parts. ``part``: this rank's, None if it
    has none; ``like``: a tensor of its shape; ``owner``: the rank of ``group`` that sends it to
    all."""

    def __init__(
        self,
        part: Optional[sharded.Whole],
        like: Tensor,
        owner: int,
        group: Any,
        device: torch.device,
    ) -> None:
        self._part, self._like = part, like
        self._owner, self._group, self._device = owner, group, device

    @property
    def shape(self) -> torch.Size:
        return self._like.shape

    def gather(self) -> Tensor:
        """Gather a tensor in every rank; all ranks call this."""
        if distributed.get_rank() == self._owner:
            assert self._part is not None
            whole = self._part.gather().contiguous()
        else:
            whole = torch.empty(self._like.shape, dtype=self._like.dtype, device=self._device)
        distributed.broadcast(whole, src=self._owner, group=self._group)
        return whole

    def assign(self, whole: Tensor) -> None:
        """Assign values to this rank's part, if it has any."""
        if self._part is not None:
            self._part.assign(whole)


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

    def _compute(self, x: Optional[Tensor], *inputs: Tensor) -> Any:
        """Return activations (batch, sequence, hidden) from those of the stage before; logits from
        the last. ``inputs``: of the model."""
        if self._is_first:
            x = self.part.begin(*inputs)
        beside = self.part.beside(*inputs)
        for number in self._layers:
            x = self.part.layers[str(number)](x, beside)
        return self.part.finish(x, *inputs) if self._is_last else x

    def evaluate(self, x: Optional[Tensor], *inputs: Tensor) -> Any:
        """Evaluate the stage outside of a schedule."""
        return self._compute(x, *inputs)

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        """Return the outputs of micro-batch ``number``."""
        batch = self._batches[int(number)]
        with self._autocast():
            computed = self._compute(*(received or (None,)), *batch.inputs)
        return self._loss(computed, batch) / len(self._batches) if self._is_last else computed


class Pipeline:
    """A model cut into stages, of which each rank of a group has one or, interleaved, several:
    rank r of n the stages r, n + r, and so on."""

    def __init__(self, layout: Layout, device: torch.device, micro_steps: int) -> None:
        """Raise :class:`Unsupported` where the schedule does not take so many micro-steps."""
        self._size, self._device = layout.stages, device
        self._interleaved = layout.interleaved > 1
        self._count = self._size * (INTERLEAVED if self._interleaved else 1)
        require_schedule(self._size, self._interleaved, micro_steps)
        inner = {DATA: layout.data, FSDP: layout.fsdp, TENSOR: layout.tensor}
        self._inner = {name: size for name, size in inner.items() if size > 1}
        mesh = self._mesh = init_device_mesh(
            device.type,
            (self._size, *self._inner.values()),
            mesh_dim_names=(PIPELINE, *self._inner),
        )
        self._group = mesh.get_group(PIPELINE)
        self._ranks = distributed.get_process_group_ranks(self._group)
        self._place = mesh.get_local_rank(PIPELINE)
        # every rank makes all groups, in the same order
        columns = mesh.mesh.reshape(self._size, -1).T
        ends = [[int(rank) for rank in column[[0, -1]]] for column in columns]
        groups = {tuple(pair): distributed.new_group(pair) for pair in ends}
        self._ends = groups[self._ranks[0], self._ranks[-1]]
        self._orders: Dict[str, Tensor] = {}

    def apply(self, model: nn.Module, definition: Any, sequence_length: int) -> None:
        """Cut ``model`` in place: this rank's part goes to its device, and only shapes remain of
        the others'. Raises :class:`Unsupported` where the model has too few layers, or extents that
        are no multiples of the ranks of a tensor group."""
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
        if TENSOR in self._inner:
            self._orders = sharded.share_layers(
                model,
                definition,
                self._mesh[TENSOR],
                sequence_length,
                self._device,
                lambda n: stage_of[n] % self._size == self._place,
            )
        for name, parameter in list(model.named_parameters()):
            device = self._device if name in self._kept else torch.device("meta")
            register(model, name, nn.Parameter(parameter.detach().to(device)))
        self._stages: Dict[int, Stage] = {}
        for n in range(self._place, self._count, self._size):
            has = {name for name, stage in stages.items() if stage == n}
            part = part_of(model, has | tied if n == last else has, spans[n])
            self._stages[n] = Stage(part, spans[n], n == 0, n == last)
        if FSDP in self._inner:
            self._shard(definition)

    def _shard(self, definition: Any) -> None:
        """Shard each stage over its FSDP group: its layers one by one, and the rest of its
        parameters.

        Parameters stay gathered from the first micro-batch to the last: gathering them for each
        would multiply the time of collectives."""
        options = {"mesh": self._mesh[FSDP], "reshard_after_forward": False}
        for stage in self._stages.values():
            for module in stage.modules():
                if isinstance(module, definition.LAYER):
                    fully_shard(module, **options)
            fully_shard(stage, **options)
            register_fsdp_forward_method(stage, "evaluate")
            for name, parameter in list(stage.part.named_parameters()):
                register(self._model, name, parameter)

    @property
    def settings(self) -> Dict[str, Any]:
        """JSON values, for the record."""
        return {
            "pipeline": self._size,
            "schedule": "interleaved 1F1B" if self._interleaved else "1F1B",
            "layers_of_stages": [len(span) for span in self._spans],
            **self._inner,
            "sequence_parallel": TENSOR in self._inner,
        }

    def differentiation(
        self,
        batches: Sequence[MicroBatch],
        loss: Loss,
        autocast: Callable[[], AbstractContextManager[Any]],
        optimizer: torch.optim.Optimizer,
    ) -> Callable[[], Tensor]:
        """Return a step until its update, as :func:`steps.accumulated`. The last stage tells its
        loss to all."""
        for stage in self._stages.values():
            stage.prepare(batches, loss, autocast)
        self._sent = [self._sent_by(stage, batches[0]) for stage in range(self._count - 1)]
        schedule = self._schedule(len(batches))
        numbers = torch.arange(len(batches))
        is_last = self._place == self._size - 1

        def differentiate() -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            losses: List[Tensor] = []
            schedule.step(number=numbers, target=numbers, losses=losses, return_outputs=False)
            value = torch.zeros((), device=self._device)
            if is_last:
                value = torch.stack([loss.detach() for loss in losses]).sum()
            distributed.broadcast(value, src=self._ranks[-1], group=self._group)
            return value

        return differentiate

    def micro_step(self) -> None:
        """Run the forward and backward pass of the first micro-batch alone, through all stages."""
        number = torch.zeros(1, dtype=torch.int64)
        self._schedule(1).step(number=number, target=number, return_outputs=False)

    def _schedule(self, micro_steps: int) -> Any:
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
            input_args=() if number == 0 else (self._sent[number - 1],),
            output_args=(self._sent[min(number, self._count - 2)],),  # the last one sends nothing
            group=self._group,
        )

    def _sent_by(self, stage: int, batch: MicroBatch) -> Tensor:
        """Return shape and dtype of what a stage sends to the next. Between layers it is this
        rank's part of the sequence."""
        weight = self._model.embeddings.token.weight
        samples, tokens = batch.inputs[0].shape[:2]
        before = self._spans[stage].stop
        if 0 < before < self._spans[-1].stop:
            tokens //= self._inner.get(TENSOR, 1)
        shape = (samples, tokens, weight.shape[1])
        return torch.empty(shape, dtype=weight.dtype, device="meta", requires_grad=True)

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
                    sent = self._sent[number]
                    x = torch.empty(sent.shape, dtype=sent.dtype, device=self._device)
                if number < last:
                    source = self._ranks[number % self._size]
                    distributed.broadcast(x, src=source, group=self._group)
            self._reshard()
            return self._outputs_of_last(outputs)

    def _reshard(self) -> None:
        """Reshard the parameters after a forward pass that no backward pass follows."""
        for stage in self._stages.values():
            for module in stage.modules():
                if isinstance(module, FSDPModule):
                    module.reshard()

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
        return sharded.by_mesh(self._own(self._kept))

    def _own(self, names: Set[str]) -> List[nn.Parameter]:
        return [parameter for name, parameter in self._model.named_parameters() if name in names]

    def summed_up(self, differentiate: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """Return ``differentiate``, followed by the sums of gradients over ranks: those of tied
        parameters over the first and the last stage, those of parts of the sequence, and the means
        over the replicas."""

        def run() -> Tensor:
            value = differentiate()
            if TENSOR in self._inner:
                sharded.add_up_parts(self._own(self._kept), self._mesh.get_group(TENSOR))
            named = dict(self._model.named_parameters())
            tied = [sharded.local_part(named[name].grad) for name in self._tied]
            if tied:
                all_reduce_together(tied, self._ends)
            if DATA in self._inner:
                replicas = self._inner[DATA]
                sharded.average(self._own(self._kept), self._mesh.get_group(DATA), replicas)
            return value

        return run

    def clip(self, largest: float) -> None:
        """Scale the gradients down to the global norm ``largest``, if theirs is larger."""
        counted = {name for name, rank in self._owners.items() if rank == self._place}
        total = sharded.squared_norm(sharded.by_mesh(self._own(counted)))
        distributed.all_reduce(total, group=self._group)
        for group in self.groups():
            nn.utils.clip_grads_with_norm_(group, largest, total.sqrt())

    def whole(self, name: str, tensor: Tensor) -> Whole:
        """Return the parameter ``name``."""
        return self._whole(name, tensor, tensor)

    def gradients(self) -> Dict[str, Whole]:
        """Return the gradients of all parameters by name."""
        return {name: self._whole(name, p.grad, p) for name, p in self._model.named_parameters()}

    def _whole(self, name: str, tensor: Optional[Tensor], like: Tensor) -> Whole:
        own = None
        if name in self._kept and tensor is not None:
            own = sharded.Whole(tensor, self._orders.get(name))
        owner = self._ranks[self._owners[name]]
        return Whole(own, like, owner, self._group, self._device)

    def held(self) -> int:
        """Return the number of elements of parameters in this rank's memory."""
        return sharded.elements(self._own(self._kept))
