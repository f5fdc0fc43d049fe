"""Several ranks: one process with one device each, in one run of ``jax.distributed``.

A compiled step is one program over all devices (``jax.shard_map``), in which each rank computes on
its own batch with its own statistics, as DistributedDataParallel does, and XLA sees the all-reduce.
With plain ``jit`` and shardings, batch normalisation would use the global batch."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from harness.adapter import RankContext
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

Function = Callable[..., Any]

AXIS = "rank"
SHARED = PartitionSpec()  # arrays that are the same in every rank
OWN = PartitionSpec(AXIS)  # arrays of all ranks, concatenated along the first axis


def join(rank_context: RankContext) -> None:
    """Join the ranks of ``rank_context``; nothing is read from a scheduler's environment."""
    if rank_context.accelerator == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=rank_context.addresses[0],
        coordinator_bind_address=rank_context.addresses[0],  # by default every interface
        num_processes=rank_context.world_size,
        process_id=rank_context.rank,
        local_device_ids=None if rank_context.accelerator == "cpu" else [rank_context.local_rank],
        cluster_detection_method="deactivate",
    )


def local(tree: Any) -> Any:
    """Return this rank's part of every array."""
    return jax.tree.map(lambda array: array.addressable_data(0), tree)


def like(leaf: jax.Array, array: np.ndarray) -> jax.Array:
    """Return ``leaf`` with a copy of ``array`` as this rank's part."""
    own = local(leaf)
    if array.dtype.kind == "V":  # numpy writes bfloat16 as bytes
        array = array.view(own.dtype)
    # a copy, because the memory is donated with the state
    part = jax.device_put(jnp.array(array), own.sharding)
    return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, [part])


class Ranks:
    """Collectives over all ranks; each rank has its own array."""

    def __init__(self) -> None:
        devices = sorted(jax.devices(), key=lambda device: device.process_index)
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self._mean = self._over_ranks(lambda part: jax.lax.pmean(part, AXIS))
        self._sum = self._over_ranks(lambda part: jax.lax.psum(part, AXIS))

    def _over_ranks(self, reduce: Callable[[jax.Array], jax.Array]) -> Callable[[Any], Any]:
        def each(tree: Any) -> Any:
            return jax.tree.map(lambda stacked: reduce(stacked[0]), tree)

        return jax.jit(jax.shard_map(each, mesh=self.mesh, in_specs=OWN, out_specs=SHARED))

    def program(self, compute: Function) -> Function:
        """Return ``compute`` in every rank, on its own part of stacked arrays, as one compiled
        program."""
        each = jax.shard_map(compute, mesh=self.mesh, in_specs=OWN, out_specs=OWN)
        return jax.jit(each, keep_unused=True)

    def stacked(self, array: jax.Array) -> jax.Array:
        """Return an array (ranks, ..) over all ranks, in which ``array`` is this rank's part."""
        shape = (self.mesh.size, *array.shape)
        sharding = NamedSharding(self.mesh, OWN)
        return jax.make_array_from_single_device_arrays(shape, sharding, [array[None]])

    def average(self, tree: Any) -> Any:
        """Return the mean of every array over the ranks. JAX has no collective outside a compiled
        program: this one is compiled with or without ``jit``."""
        return local(self._mean(jax.tree.map(self.stacked, tree)))

    def averaging(self, tree: Any) -> jax.stages.Compiled:
        """Return the program of :meth:`average` for trees like ``tree``."""
        return jax.jit(self._mean).lower(jax.tree.map(self.stacked, tree)).compile()

    def summing(self, tree: Any) -> Callable[[], Any]:
        """Return a function that sums each array of ``tree`` over the ranks, in one program."""
        stacked = jax.tree.map(self.stacked, tree)
        return lambda: self._sum(stacked)

    def total(self, value: float) -> float:
        """Return the sum of ``value`` over the ranks, in float64."""
        with jax.enable_x64(True):
            return float(local(self._sum(self.stacked(jnp.float64(value)))))


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
    """Placement of arrays and transformation of functions for a single rank, which may average over
    ``ranks`` outside of its programs."""

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
    """Arrangement of all ranks: common arrays and programs ``function(shared, own, batch)``."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.options = options_of(mesh.devices.flat[0])

    def _place(self, tree: Any, sharding: Sharding) -> Any:
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


def collectives(device: jax.Device) -> str:
    """Return the name of the library that carries the all-reduce."""
    if device.platform != "cpu":
        return "nccl"
    return str(jax.config.jax_cpu_collectives_implementation)
