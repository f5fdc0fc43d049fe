"""Device and precision of a rank, and the settings that JAX reports."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from typing import Any, Dict, Sequence, Tuple

import jax
import jax.numpy as jnp
import optax
from harness.adapter import Case, RankContext, Unsupported, driver_reason, no_device, require_tf32

from .programs import TF32, executed_dtypes

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
        # ("GPU memory allocation" in its documentation). Its default share of 75 % would make a
        # batch fail that fits elsewhere; NVIDIA's performance guide for JAX says 90 %. The peak
        # is counted by what is allocated out of the reserve.
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
    """Return why JAX's plug-ins for accelerators do not work here: JAX itself logs that alone.
    Raises :class:`Unsupported` where it has none."""
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


#: Forms of matmul that models have.
FORMS = (MATMUL, ATTENTION, WEIGHT_GRADIENT, CONVOLUTION) = (
    "matmul",
    "attention",
    "weight gradient",
    "convolution",
)
#: In which matmuls are computed.
DTYPES = {
    "fp32": jnp.float32,
    "tf32": jnp.float32,
    "amp": jnp.bfloat16,
    "amp_bf16": jnp.bfloat16,
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
}


def forms_of(case: Case, own_model: bool) -> Tuple[str, ...]:
    """Return the forms of matmul in :func:`probe` that a case may have: all for a user's model."""
    if own_model:
        return FORMS
    transformer = (CONVOLUTION,) if case.sequence_length is None else (ATTENTION,)
    return (MATMUL, *transformer, *[WEIGHT_GRADIENT] * (case.mode == "train"))


def compute_dtype(precision: str, device: jax.Device, forms: Sequence[str] = FORMS) -> Any:
    """Return the dtype of matmul operands under ``precision``. Raises :class:`Unsupported` where
    the device has no TF32, and for a half precision where XLA replaces matmuls of these ``forms``
    by matmuls in float32, as it does for CPUs."""
    dtype = DTYPES[precision]
    if precision == "tf32":
        gpu = device.platform == "gpu"
        version = [int(part) for part in device.compute_capability.split(".")] if gpu else None
        require_tf32(version, device.device_kind if gpu else "a CPU")
    if dtype == jnp.float32:
        return dtype
    executed = probe(dtype)
    widened = [form for form in forms if "float32" in executed.get(form, ())]
    if widened:
        raise Unsupported(
            f"{precision} would have no effect in {', '.join(widened)}: there, XLA for "
            f"{device.device_kind} converts {dtype.__name__} to float32 and multiplies in it"
        )
    return dtype


def probe(dtype: Any) -> Dict[str, Any]:
    """Return the dtypes in which XLA executes each form of matmul that models have, for operands of
    ``dtype``.

    They are read from the compiled programs. The set is empty where a program does not show
    them. XLA for CPUs chooses by the order of axes: with AVX512-BF16 it multiplies two matrices
    in bfloat16, but heads of attention and gradients of weights in float32; with AMX it also
    multiplies heads in bfloat16."""

    def scores(queries: jax.Array, keys: jax.Array) -> jax.Array:
        return jnp.einsum("bqhd,bkhd->bhqk", queries, keys)

    def weight_gradient(values: jax.Array, gradient: jax.Array) -> jax.Array:
        return jnp.einsum("ni,no->io", values, gradient)

    def convolve(images: jax.Array, kernel: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            images, kernel, (1, 1), "SAME", dimension_numbers=layout
        )

    matrix, heads = (256, 256), (8, 128, 4, 64)
    forms: Dict[str, Any] = {
        MATMUL: (jnp.matmul, matrix, matrix),
        ATTENTION: (scores, heads, heads),
        WEIGHT_GRADIENT: (weight_gradient, matrix, matrix),
        CONVOLUTION: (convolve, (8, 16, 16, 64), (3, 3, 64, 64)),
    }
    dtypes = {}
    for name, (function, *shapes) in forms.items():
        operands = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        dtypes[name] = sorted(executed_dtypes(jax.jit(function).lower(*operands).compile()))
    return {name: executed for name, executed in dtypes.items() if executed}


def settings(device: jax.Device) -> Dict[str, Any]:
    """Return flags and versions that act on ``device``: JSON values, as JAX reports them."""
    settings: Dict[str, Any] = {
        "jaxlib": jax.lib.__version__,
        "optax": optax.__version__,
        "platform": device.client.platform_version,
        "default_matmul_precision": jax.config.jax_default_matmul_precision,
        "random_generator": jax.config.jax_default_prng_impl,
        "xla_flags": os.environ.get("XLA_FLAGS"),
    }
    if device.platform == "cpu":
        # the size of XLA's thread pools; there is no variable for it
        settings["threads"] = len(os.sched_getaffinity(0))
    else:
        settings["preallocate"] = os.environ.get(PREALLOCATE, "default")
        settings["memory_fraction"] = os.environ.get(MEMORY_FRACTION)
    return settings
