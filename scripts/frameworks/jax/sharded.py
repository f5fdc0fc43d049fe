"""Arrays and programs in one rank, in all ranks alike, or sharded over the ranks.

Models are sharded by JAX's shardings alone: one program over all devices. The arrays say which rank
has which part of them, and XLA inserts the collectives.

A definition that can be sharded says which projections of its layers are cut by columns and which
by rows (``COLUMNS``, ``ROWS``), which of them concatenate several kinds of heads (``heads_of``),
and where activations are cut and joined (:func:`layers.cut`, :func:`layers.joined`)."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from core.parallelism import DATA, FSDP, TENSOR
from harness.adapter import Case, Unsupported
from harness.capabilities import heads_by_rank
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from .devices import AXIS, OWN, SHARED, Function, Ranks
from .models.layers import Arrays
from .steps import Differentiate, Forward, Own

#: Mesh axes along which ranks have different samples; along `fsdp`, parameters are sharded, too.
#: The mesh also has a tensor axis. An axis may have a single device.
REPLICAS = (DATA, FSDP)


def options_of(device: jax.Device) -> Dict[str, Any]:
    """Return compiler options for programs over several devices like this one."""
    if device.platform == "cpu":
        return {}
    # JAX's GPU performance tips: overlaps the collectives with the backward pass
    return {"xla_gpu_enable_latency_hiding_scheduler": True}


def stack_parts(parts: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """Stack the batches of micro-steps, in numpy or on the device, along a new first axis."""
    return {
        name: (jnp if isinstance(array, jax.Array) else np).stack([part[name] for part in parts])
        for name, array in parts[0].items()
    }


class Arrangement:
    """Placement of arrays and transformation of functions for a single rank. Gradients are averaged
    over ``ranks``, if any, outside of its programs."""

    def __init__(self, device: jax.Device, ranks: Optional[Ranks]) -> None:
        self.options: Dict[str, Any] = {}  # options of the compiler
        self._sharding, self._ranks = SingleDeviceSharding(device), ranks

    def share(self, tree: Any) -> Any:
        """Place arrays that all ranks have in common."""
        return jax.device_put(tree, self._sharding)

    def own(self, tree: Any) -> Any:
        """Place arrays that differ between ranks."""
        return jax.device_put(tree, self._sharding)

    def moments(
        self, init: Function, parameters: Dict[str, np.ndarray], shared: Dict[str, jax.Array]
    ) -> Any:
        """Return the optimizer's state for ``parameters``, made by ``init`` and placed by
        :meth:`share`."""
        return self.share(init(parameters))

    def batch(self, arrays: Dict[str, Any], is_stacked: bool = False) -> Any:
        """Place this rank's batch; ``is_stacked``: whether the batches of all micro-steps are
        stacked along a first axis."""
        return self.own(arrays)

    def gathering(self, forward: Function) -> Function:
        """Return ``forward`` as a function of the stored parameters."""
        return forward

    def sharing(self, differentiate: Function) -> Function:
        """Return ``differentiate`` with gradients placed like the parameters."""
        return differentiate

    def results(self, function: Function, arguments: Any) -> Any:
        """Return the shardings of the results of ``function``; None where XLA chooses them."""
        return None

    def heads(self, name: str) -> Tuple[int, ...]:
        """Return :attr:`harness.adapter.Variable.heads` of a parameter."""
        return ()

    def vary(self, tree: Any) -> Any:
        return tree

    def average(self, tree: Any) -> Any:
        """Average the gradients of a rank over all ranks."""
        return self._ranks.average(tree) if self._ranks else tree

    def whole(self, function: Function, results: Any) -> Function:
        return function


class Together(Arrangement):
    """Arrangement of all ranks: common arrays and programs ``function(shared, own, batch)``.

    A program spans all devices (``jax.shard_map``). Each rank computes on its own batch with its
    own statistics, as DistributedDataParallel does, and XLA sees the all-reduce. With plain ``jit``
    and shardings, batch normalisation would use the global batch."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.options = options_of(mesh.devices.flat[0])

    def _place(self, tree: Any, sharding: NamedSharding) -> Any:
        return jax.tree.map(
            lambda array: jax.make_array_from_process_local_data(sharding, array), tree
        )

    def share(self, tree: Any) -> Any:
        return self._place(tree, NamedSharding(self._mesh, SHARED))

    def own(self, tree: Any) -> Any:
        return self._place(tree, NamedSharding(self._mesh, OWN))

    def vary(self, tree: Any) -> Any:
        """Mark parameters as varying over the ranks before they are differentiated.

        Otherwise JAX sums the gradients over the ranks at every use of a parameter, before its
        dtype, such as bfloat16, is known."""
        return jax.lax.pcast(tree, AXIS, to="varying")

    def average(self, tree: Any) -> Any:
        # one all-reduce per array; XLA combines them
        return jax.tree.map(lambda array: jax.lax.pmean(array, AXIS), tree)

    def whole(self, function: Function, results: Any) -> Function:
        """Return the program over all ranks whose part in one rank is ``function``. JAX refuses a
        program whose SHARED results are not provably the same in every rank."""
        return jax.shard_map(
            function, mesh=self._mesh, in_specs=(SHARED, OWN, OWN), out_specs=results
        )


class Sharding(Arrangement):
    """Arrangement of all ranks, each of which has its part of the parameters.

    Arrays and programs ``function(shared, own, batch)`` span all ranks."""

    def __init__(self, case: Case, definition: Any) -> None:
        """Raise :class:`Unsupported` without a compiler, or where heads or the sequence are not
        multiples of the ranks."""
        if case.compiler != "jit":
            raise Unsupported(f"{case.parallelism} needs the compiler jit")
        layout = self._layout = case.layout
        require_multiples(definition, definition.hyper, case.sequence_length, layout.tensor)
        devices = sorted(jax.devices(), key=lambda device: device.process_index)
        extents = (layout.data, layout.fsdp, layout.tensor)
        self.mesh = Mesh(np.array(devices).reshape(extents), (*REPLICAS, TENSOR))
        self.options = options_of(devices[0])
        self._ranks = None  # loss and gradients are already means over the samples of all ranks
        #: Gathers an array, a parameter or its gradient, in every rank. All ranks must call this.
        self.gather = jax.jit(lambda array: array, out_shardings=NamedSharding(self.mesh, SHARED))
        self._definition = definition
        self._heads: Dict[str, Sequence[int]] = definition.heads_of(definition.hyper)
        self._specs: Dict[str, PartitionSpec] = {}

    @property
    def settings(self) -> Dict[str, Any]:
        """Return the sizes of mesh axes above 1, and whether sequence parallelism applies, as JSON
        values for the record."""
        sizes = {name: size for name, size in self.mesh.shape.items() if size > 1}
        return {**sizes, "sequence_parallel": TENSOR in sizes}

    @property
    def ranks(self) -> int:
        """Return the ranks of a tensor-parallel group."""
        return self._layout.tensor

    def cut(self, x: Array) -> Array:
        """Return (batch, sequence, hidden) with the sequence sharded over a tensor group."""
        return self._constrained(x, PartitionSpec(REPLICAS, TENSOR)) if self.ranks > 1 else x

    def joined(self, x: Array) -> Array:
        """Gather the whole sequence of (batch, sequence, hidden) in each rank."""
        return self._constrained(x, PartitionSpec(REPLICAS)) if self.ranks > 1 else x

    def _constrained(self, x: Array, spec: PartitionSpec) -> Array:
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def share(self, parameters: Dict[str, np.ndarray]) -> Arrays:
        """Return this rank's part of each array of ``parameters``. Raises
        :class:`Unsupported` where an extent is not a multiple of the ranks."""
        self._specs = {name: self._spec(name, array) for name, array in parameters.items()}
        return {name: self._placed(array, self._specs[name]) for name, array in parameters.items()}

    def _placed(self, array: np.ndarray, spec: PartitionSpec) -> Array:
        sharding = NamedSharding(self.mesh, spec)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    def _spec(self, name: str, array: np.ndarray) -> PartitionSpec:
        """Return the sharding of a parameter. A projection's columns or rows are sharded over the
        tensor group, the first other divisible axis over the remaining ranks; an array without such
        an axis is whole in each rank."""
        axes: List[Optional[str]] = [None] * array.ndim
        projection, ranks = _projection(name), self.ranks
        if ranks > 1 and projection in self._definition.COLUMNS:
            axes[-1] = TENSOR
        elif ranks > 1 and projection in self._definition.ROWS and array.ndim > 1:
            axes[0] = TENSOR
            if array.shape[0] % ranks:
                inputs = f"{array.shape[0]} inputs of {projection}"
                raise Unsupported(f"{inputs} cannot be divided among {ranks} ranks")
        if self._layout.fsdp > 1:
            free = (n for n, extent in enumerate(array.shape) if not extent % self._layout.fsdp)
            axis = next((n for n in free if axes[n] is None), None)
            if axis is not None:
                axes[axis] = FSDP
        return PartitionSpec(*axes)

    def heads(self, name: str) -> Tuple[int, ...]:
        """Return the order of heads in a projection that has several kinds of heads: a rank's heads
        of all kinds are adjacent."""
        kinds = self._heads.get(_projection(name), ())
        if self.ranks == 1 or len(kinds) < 2:
            return ()
        return tuple(np.argsort(heads_by_rank(kinds, self.ranks)).tolist())

    def own(self, tree: Any) -> Any:
        """Place arrays that are replicated in every rank."""
        return jax.tree.map(lambda array: self._placed(np.asarray(array), SHARED), tree)

    def batch(self, arrays: Dict[str, np.ndarray], is_stacked: bool = False) -> Arrays:
        """Concatenate the batches of all ranks."""
        axis = int(is_stacked)
        sharding = NamedSharding(self.mesh, PartitionSpec(*[None] * axis, REPLICAS))

        def place(array: np.ndarray) -> Array:
            shape = list(array.shape)
            shape[axis] *= self._layout.replicas
            return jax.make_array_from_callback(tuple(shape), sharding, lambda _: array)

        return {name: place(array) for name, array in arrays.items()}

    def moments(self, init: Function, parameters: Dict[str, np.ndarray], shared: Arrays) -> Any:
        """Return the optimizer's state, sharded like the parameters."""
        return jax.jit(init, out_shardings=self.results(init, (shared,)))(shared)

    def results(self, function: Function, arguments: Tuple[Any, ...]) -> Any:
        """Return the sharding of each result of ``function``: a result with the name of a parameter
        is sharded like it, all others are replicated."""

        def placed(path: Tuple[Any, ...], leaf: Any) -> NamedSharding:
            keys = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
            spec = self._specs.get(keys[-1], SHARED) if keys else SHARED
            return NamedSharding(self.mesh, spec)

        return jax.tree_util.tree_map_with_path(placed, jax.eval_shape(function, *arguments))

    @property
    def output_sharding(self) -> NamedSharding:
        """Return the sharding of outputs: each replica has the outputs of its samples."""
        return NamedSharding(self.mesh, PartitionSpec(REPLICAS))

    def vary(self, tree: Arrays) -> Arrays:
        """Return arrays sharded like the parameters of the same names."""
        return {name: self._constrained(array, self._specs[name]) for name, array in tree.items()}

    def gathering(self, forward: Forward) -> Forward:
        """Return ``forward`` with parameters that are gathered before it, and gathered again for
        the backward pass instead of being kept."""
        if self._layout.fsdp == 1:
            return forward

        def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Tuple[Array, ...], Own]:
            gathered = {}
            for name, array in parameters.items():
                axes = (None if axis == FSDP else axis for axis in self._specs[name])
                gathered[name] = self._constrained(array, PartitionSpec(*axes))
            return forward(gathered, own, batch)

        return jax.checkpoint(run, policy=_is_kept)

    def sharing(self, differentiate: Differentiate) -> Differentiate:
        """Return ``differentiate`` with gradients that are sharded over the ranks right after each
        micro-step."""

        def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
            value, own, gradients = differentiate(parameters, own, batch)
            return value, own, self.vary(gradients)

        return run


def require_multiples(
    definition: Any, hyper: Dict[str, Any], length: Optional[int], ranks: int
) -> None:
    """Raise :class:`Unsupported` where heads or sequence cannot be sharded over ``ranks``."""
    if not hasattr(definition, "heads_of"):
        raise Unsupported("the model's definition does not say how to shard it over ranks")
    for heads in (count for counts in definition.heads_of(hyper).values() for count in counts):
        if heads % ranks:
            raise Unsupported(f"{heads} attention heads cannot be sharded over {ranks} ranks")
    if length is not None and length % ranks:
        raise Unsupported(f"sequences of {length} tokens cannot be divided among {ranks} ranks")


def _projection(parameter: str) -> str:
    """Return the name of a layer's projection; "" for another parameter."""
    match = re.search(r"(?:^|\.)layers\.\d+\.(.+)\.(?:weight|bias)$", parameter)
    return match.group(1) if match else ""


def _is_kept(primitive: Any, *_: Any, **parameters: Any) -> bool:
    """Return whether the forward pass keeps the result of an operation for the backward pass.

    Gathered parameters are not kept. Unlike activations, they are not sharded over
    :data:`REPLICAS`, by which this function tells them apart."""
    if primitive.name != "sharding_constraint":
        return True
    return REPLICAS in parameters["sharding"].spec
