"""Device and precision of a rank, and the settings that JAX reports."""

from __future__ import annotations

import functools
import os
from importlib.metadata import entry_points
from typing import Any, Dict, Sequence

import jax
import jax.numpy as jnp
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

from .matmuls import TF32, executed_dtypes

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
MEMORY_FRACTION = "XLA_CLIENT_MEM_FRACTION"


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
    :func:`no_device` where it is not there."""
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
    """Return the forms of matmul in :func:`probe` that a case may have: all for a user's model."""
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

    They are read from the compiled programs. The set is empty where a program does not show
    them. XLA for CPUs chooses by the order of axes: with AVX512-BF16 it multiplies two matrices
    in bfloat16, but heads of attention and gradients of weights in float32; with AMX it also
    multiplies heads in bfloat16."""
    dtypes = {}
    for name, (function, *shapes) in FORMS.items():
        operands = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        executed = executed_dtypes(jax.jit(function).lower(*operands).compile())
        if executed:
            dtypes[name] = sorted(executed)
    return dtypes


def settings(device: jax.Device) -> Dict[str, Any]:
    """Return flags and versions that affect ``device``: JSON values, as JAX reports them."""
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
    else:
        settings["preallocate"] = os.environ.get(PREALLOCATE, "default")
        settings["memory_fraction"] = os.environ.get(MEMORY_FRACTION)
    return settings
