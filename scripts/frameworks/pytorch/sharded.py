"""Sharded models: each rank holds a part. FSDP2 (``fully_shard``), tensor parallelism with
sequence parallelism (``parallelize_module``), both, and either of them with replicas.

A definition that can be sharded declares its layers (``LAYER``), which of their projections
are cut by columns and which by rows (``COLUMNS``, ``ROWS``), which normalisations are between them
(``NORMS``), and has ``share_heads``."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import torch
from core.parallelism import DATA, FSDP, TENSOR, Layout
from harness.adapter import Unsupported, Variable
from harness.capabilities import heads_by_rank
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from .devices import all_reduce_together

SEQUENCE = 1  # the axis of activations (batch, sequence, hidden) that is sharded


def draw_apart(layers: Iterable[nn.Module], device: torch.device) -> None:
    """Give this rank random numbers of its own within ``layers``, whose heads and positions are
    split over a tensor group. Outside these layers, the ranks of the group compute the same, with
    the same dropout."""
    seed = torch.initial_seed() + 1 + 2 * torch.distributed.get_world_size()
    seed += torch.distributed.get_rank()
    other = torch.Generator(device).manual_seed(seed).get_state()
    generators: Any = torch if device.type == "cpu" else torch.cuda

    def exchange(layer: nn.Module, *_: Any) -> None:
        nonlocal other
        if layer.training:
            state = generators.get_rng_state()
            generators.set_rng_state(other)
            other = state

    for layer in layers:
        layer.register_forward_pre_hook(exchange)
        layer.register_forward_hook(exchange)


def add_up_parts(parameters: Iterable[nn.Parameter], group: Any) -> None:
    """All-reduce the gradients of normalisations, of which each rank of ``group`` has the sum over
    its part of the sequence."""
    of_parts = [
        p
        for p in parameters
        if isinstance(p.grad, DTensor) and any(entry.is_partial() for entry in p.grad.placements)
    ]
    if not of_parts:
        return
    local = [local_part(p.grad) for p in of_parts]
    flat = torch.cat([part.flatten() for part in local])
    torch.distributed.all_reduce(flat, group=group)
    sums = flat.split([part.numel() for part in local])
    for p, part in zip(of_parts, sums, strict=True):
        whole = part.view(local_part(p).shape)
        p.grad = DTensor.from_local(whole, p.device_mesh, p.placements, run_check=False)


def average(parameters: Iterable[nn.Parameter], group: Any, replicas: int) -> None:
    """Average the gradients over the ``replicas`` in ``group``, after the backward pass."""
    gradients = [local_part(p.grad) for p in parameters if p.grad is not None]
    all_reduce_together(gradients, group)
    torch._foreach_div_(gradients, replicas)


def local_part(tensor: Tensor) -> Tensor:
    """Return this rank's part of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def held_parameters(model: nn.Module) -> int:
    """Return the number of elements of parameters in this rank's memory."""
    return sum(local_part(p).numel() for p in model.parameters() if not p.is_meta)


class Sharding:
    """A model sharded among the ranks of ``layout``."""

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self._device = device
        sizes = {DATA: layout.data, FSDP: layout.fsdp, TENSOR: layout.tensor}
        self._sizes = {name: size for name, size in sizes.items() if size > 1}
        self._mesh = init_device_mesh(
            device.type, tuple(self._sizes.values()), mesh_dim_names=tuple(self._sizes)
        )
        self._heads: Dict[str, Tuple[int, ...]] = {}

    def apply(self, model: nn.Module, definition: Any, sequence_length: int) -> None:
        """Shard ``model`` in place, first by tensors, then by FSDP, and move this rank's part to
        its device. Raises :class:`Unsupported` where an extent is not a multiple of the ranks."""
        self._model = model
        if TENSOR in self._sizes:
            by = self._mesh[TENSOR]
            self._heads = share_layers(model, definition, by, sequence_length, self._device)
        if FSDP in self._sizes:
            over = self._mesh[DATA, FSDP] if DATA in self._sizes else self._mesh[FSDP]
            for module in model.modules():
                if isinstance(module, definition.LAYER):
                    fully_shard(module, mesh=over)
            fully_shard(model, mesh=over)
        model.to(self._device)

    def forward(self, *inputs: Tensor) -> Any:
        """Return the outputs of the model, which gathers its parameters during the call."""
        return self._model(*inputs)

    @property
    def settings(self) -> Dict[str, Any]:
        """JSON values, for the record."""
        return {**self._sizes, "sequence_parallel": TENSOR in self._sizes}

    def add_up(self) -> None:
        """Add up gradients of which each rank has a part; without FSDP, average all over the
        replicas."""
        if TENSOR in self._sizes:
            add_up_parts(self._model.parameters(), self._mesh.get_group(TENSOR))
        if FSDP not in self._sizes and DATA in self._sizes:
            average(self._model.parameters(), self._mesh.get_group(DATA), self._sizes[DATA])

    def clip(self, largest: float) -> None:
        """Scale the gradients down to the global norm ``largest`` if their norm is larger."""
        groups: Dict[Any, List[nn.Parameter]] = defaultdict(list)  # one mesh per operation
        for p in self._model.parameters():
            groups[getattr(p, "device_mesh", None)].append(p)
        norms = [
            nn.utils.get_total_norm([p.grad for p in group if p.grad is not None])
            for group in groups.values()
        ]
        whole = [norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]
        total = torch.stack(whole).square().sum().sqrt()
        for group in groups.values():
            nn.utils.clip_grads_with_norm_(group, largest, total)

    @contextlib.contextmanager
    def unsynchronized(self) -> Iterator[None]:
        """Return a context in which gradients stay each rank's own and are kept unsharded."""
        model = self._model
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(False)
        yield
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(True)

    def shared_state(self, state: Dict[str, Variable]) -> Dict[str, Variable]:
        """Return the model's ``state`` with heads in the order in which ranks hold them."""
        return {n: entry._replace(heads=self._heads.get(n, ())) for n, entry in state.items()}

    def gather(self, tensor: Tensor) -> Tensor:
        """Return a whole parameter or gradient in every rank; all ranks must call this."""
        return tensor.detach().full_tensor() if isinstance(tensor, DTensor) else tensor

    def assign(self, tensor: Tensor, whole: Tensor) -> None:
        """Overwrite this rank's part of a parameter with its part of ``whole``."""
        if isinstance(tensor, DTensor):
            mesh, placements = tensor.device_mesh, tensor.placements
            whole = distribute_tensor(whole.to(tensor.dtype), mesh, placements, src_data_rank=None)
        tensor.copy_(whole)


def share_layers(
    model: nn.Module, definition: Any, mesh: DeviceMesh, sequence_length: int, device: torch.device
) -> Dict[str, Tuple[int, ...]]:
    """Cut the layers of ``model`` by columns and rows, and shard the sequence between them.
    Returns, by parameter, the positions of the model's heads among the concatenated heads of all
    ranks. ``device``: device of the layers."""
    ranks = mesh.size()
    positions: Dict[str, Tuple[int, ...]] = {}
    if sequence_length % ranks:
        raise Unsupported(
            f"sequences of {sequence_length} tokens cannot be divided among {ranks} ranks"
        )
    dropping = []
    for place, chain in model.named_modules():
        layers = list(chain.children()) if isinstance(chain, nn.ModuleList) else []
        if not layers or not isinstance(layers[0], definition.LAYER):
            continue
        for number, layer in enumerate(layers):
            _require_multiples(layer, definition, ranks)
            for name, heads in definition.share_heads(layer, ranks).items():
                order = torch.tensor(heads_by_rank(heads, ranks))
                for kind, parameter in layer.get_submodule(name).named_parameters():
                    by_head = parameter.detach().unflatten(0, (len(order), -1))
                    by_head.copy_(by_head[order])
                    positions[f"{place}.{number}.{name}.{kind}"] = tuple(order.argsort().tolist())
            parallelize_module(layer, mesh, _plan(layer, definition))
            if any(isinstance(module, nn.Dropout) and module.p for module in layer.modules()):
                dropping.append(layer)
        entering = PrepareModuleInput(
            input_layouts=(Replicate(), None),
            desired_input_layouts=(Shard(SEQUENCE), None),
            use_local_output=True,
        )
        leaving = PrepareModuleOutput(
            output_layouts=Shard(SEQUENCE), desired_output_layouts=Replicate()
        )
        parallelize_module(layers[0], mesh, entering)
        parallelize_module(layers[-1], mesh, leaving)
    draw_apart(dropping, device)
    return positions


def _require_multiples(layer: nn.Module, definition: Any, ranks: int) -> None:
    for name in definition.ROWS:
        features = layer.get_submodule(name).in_features
        if features % ranks:
            raise Unsupported(f"{features} inputs of {name} cannot be divided among {ranks} ranks")
    for heads in definition.heads_of(layer):
        if heads % ranks:
            raise Unsupported(f"{heads} attention heads cannot be sharded over {ranks} ranks")


def _plan(layer: nn.Module, definition: Any) -> Dict[str, ParallelStyle]:
    """Return the tensor-parallel plan of one layer, whose inputs and outputs are parts of the
    sequence.

    The input of several column-parallel matmuls is gathered once, before their module."""
    plan: Dict[str, ParallelStyle] = {
        name: SequenceParallel(sequence_dim=SEQUENCE, use_local_output=True)
        for name in definition.NORMS
    }
    known = dict(layer.named_modules())  # some feed-forward layers have no gate
    columns = [name for name in definition.COLUMNS if name in known]
    modules = Counter(name.rpartition(".")[0] for name in columns)
    for name in columns:
        module = name.rpartition(".")[0]
        plan[name] = ColwiseParallel(input_layouts=Replicate() if module else Shard(SEQUENCE))
    for module in filter(None, modules):
        plan[module] = PrepareModuleInput(
            input_layouts=Shard(SEQUENCE), desired_input_layouts=Replicate()
        )
    for name in definition.ROWS:
        plan[name] = RowwiseParallel(output_layouts=Shard(SEQUENCE))
    return plan
