"""Device and precision of a rank, the settings that JAX reports, and the connection to the other
ranks: one process with one device each, in one run of ``jax.distributed``."""

from __future__ import annotations

import functools
import os
from importlib.metadata import entry_points
from typing import Any, Callable, Dict, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from harness.adapter import (
    Case,
    RankContext,
    Unsupported,
    driver_reason,
    matmul_dtype,
    no_device,
    require_tf32,
)
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .steps import TF32, executed_dtypes

MEMORY_FRACTION = "XLA_CLIENT_MEM_FRACTION"
Function = Callable[..., Any]
AXIS = "rank"
SHARED = PartitionSpec()  # arrays that are the same in every rank
OWN = PartitionSpec(AXIS)  # arrays of all ranks, concatenated along the first axis


def configure(rank_context: RankContext, precision: str) -> None:
    """Set the flags that JAX reads before it looks for devices."""
    jax.config.update("jax_enable_x64", False)
    # Ampere and newer take TF32 for float32 unless it is "highest"; nothing changes for bfloat16
    allowed = TF32 if precision == "tf32" else "highest"
    jax.config.update("jax_default_matmul_precision", allowed)
    if rank_context.accelerator == "cpu":
        jax.config.update("jax_platforms", "cpu")
    else:
        jax.config.update("jax_cuda_visible_devices", str(rank_context.local_rank))
        # Reserving memory ahead is JAX's default because it spares allocations and fragments
        # ("GPU memory allocation" in its documentation). With its default share of 75 %, a batch
        # would fail that fits in other frameworks; NVIDIA's performance guide for JAX says 90 %.
        # The peak counts only what is allocated from the reserve.
        if MEMORY_FRACTION not in os.environ and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ:
            os.environ[MEMORY_FRACTION] = ".90"


def take(rank_context: RankContext) -> jax.Device:
    """Return the rank's device, the only one that JAX sees in this process. Raises the error of
    :func:`no_device` if it is missing."""
    try:
        return jax.local_devices(backend=rank_context.accelerator)[0]
    except RuntimeError as error:
        raise no_device(f"JAX {jax.__version__}: {error}{_plugin_errors(rank_context)}") from error


def _plugin_errors(rank_context: RankContext) -> str:
    """Return why JAX's plug-ins for accelerators do not work here; JAX itself only logs it. Raises
    :class:`Unsupported` without a plug-in."""
    if rank_context.accelerator == "cpu":
        return ""
    plugins = entry_points(group="jax_plugins")
    if not plugins:
        raise Unsupported(f"JAX {jax.__version__} has no plug-in for GPUs: Unknown backend cuda")
    reasons = []
    for plugin in plugins:
        try:
            plugin.load().initialize()
        except Exception as error:
            reasons.append(f"; {plugin.name}: {error}")
    return "".join(reasons) or f"; {driver_reason()}"


def _convolve(images: jax.Array, kernel: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout)


_MATRIX, _HEADS = (256, 256), (8, 128, 4, 64)
#: Forms of matmul that models have: a function with the shapes of its operands.
FORMS: Dict[str, Any] = {
    "matmul": (jnp.matmul, _MATRIX, _MATRIX),
    "attention": (functools.partial(jnp.einsum, "bqhd,bkhd->bhqk"), _HEADS, _HEADS),
    "weight gradient": (functools.partial(jnp.einsum, "ni,no->io"), _MATRIX, _MATRIX),
    "convolution": (_convolve, (8, 16, 16, 64), (3, 3, 64, 64)),
}


def forms_of(case: Case, own_model: bool) -> Sequence[str]:
    """Return the names of the FORMS of matmul that a case may have; all for a user's model."""
    if own_model:
        return tuple(FORMS)
    forms = ["matmul", "convolution" if case.sequence_length is None else "attention"]
    return [*forms, *["weight gradient"] * (case.mode == "train")]


def compute_dtype(precision: str, device: jax.Device, forms: Sequence[str] = tuple(FORMS)) -> Any:
    """Return the dtype of matmul operands under ``precision``. Raises :class:`Unsupported` where
    the device has no TF32, and for a half precision where XLA runs matmuls of these ``forms`` in
    float32, as on many CPUs."""
    dtype = getattr(jnp, matmul_dtype(precision, True, "JAX"))
    if precision == "tf32" and device.platform == "gpu":
        capability = [int(part) for part in device.compute_capability.split(".")]
        require_tf32(capability, device.device_kind)
    elif precision == "tf32":
        require_tf32()
    if dtype == jnp.float32:
        return dtype
    executed = probe(dtype)
    widened = [form for form in forms if "float32" in executed.get(form, ())]
    if widened:
        raise Unsupported(
            f"{precision} would have no effect in {', '.join(widened)}: there, XLA for "
            f"{device.device_kind} converts {dtype.__name__} to float32 before multiplying"
        )
    return dtype


def probe(dtype: Any) -> Dict[str, Any]:
    """Return the dtypes in which XLA executes each form of matmul that models have, for operands of
    ``dtype``.

    They are read from the compiled programs; a form whose program does not show them is left out.
    XLA for CPUs chooses by the order of axes: with AVX512-BF16 it multiplies two matrices in
    bfloat16, but heads of attention and gradients of weights in float32; with AMX it also
    multiplies heads in bfloat16."""
    dtypes = {}
    for name, (function, *shapes) in FORMS.items():
        operands = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        executed = executed_dtypes(jax.jit(function).lower(*operands).compile())
        if executed:
            dtypes[name] = sorted(executed)
    return dtypes


def settings(device: jax.Device, several: bool) -> Dict[str, Any]:
    """Return flags and versions that affect ``device``: JSON values, as JAX reports them.
    ``several``: whether there are several ranks; only then is ``collectives`` set."""
    settings: Dict[str, Any] = {
        "jaxlib": jax.lib.__version__,
        "optax": optax.__version__,
        "platform": device.client.platform_version,
        "default_matmul_precision": jax.config.jax_default_matmul_precision,
        "random_generator": jax.config.jax_default_prng_impl,
        "xla_flags": os.environ.get("XLA_FLAGS"),
    }
    if device.platform == "cpu":
        # the size of XLA's thread pools, which no variable sets
        settings["threads"] = len(os.sched_getaffinity(0))
        library = str(jax.config.jax_cpu_collectives_implementation)
    else:
        settings["preallocate"] = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "default")
        settings["memory_fraction"] = os.environ.get(MEMORY_FRACTION)
        library = "nccl"
    return {**settings, "collectives": library if several else None}


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
