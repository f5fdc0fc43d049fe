"""Device of a rank, its precision, and the settings that PyTorch reports."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

import torch
from harness.adapter import (
    RankContext,
    is_mixed,
    matmul_dtype,
    no_device,
    require_tf32,
    takes_gpu,
)
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

#: Precisions in which the whole model is stored.
WHOLE = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def take(rank_context: RankContext) -> torch.device:
    """Make the device of this rank current and return it. Raises :class:`Unsupported` if absent."""
    name, has_cuda = f"PyTorch {torch.__version__}", torch.version.cuda is not None
    if not takes_gpu(rank_context, name, has_cuda, torch.cuda.device_count):
        return torch.device("cpu")
    try:
        torch.cuda.init()
    except RuntimeError as error:  # for example because the driver is too old
        raise no_device(f"{name}: {error}") from error
    device = torch.device("cuda", rank_context.local_rank)
    torch.cuda.set_device(device)
    torch.backends.cudnn.benchmark = True  # shapes never change: the search pays off
    return device


def set_precision(precision: str, device: torch.device) -> torch.dtype:
    """Switch TF32 off, or on where it is the ``precision``, and return the dtype of matmul
    operands. Raises :class:`Unsupported` where the device has no TF32, or no bfloat16."""
    tf32, gpu = precision == "tf32", device.type == "cuda"
    if tf32 and gpu:
        capability = torch.cuda.get_device_capability(device)
        require_tf32(capability, torch.cuda.get_device_name(device))
    elif tf32:
        require_tf32()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    if precision in ("fp32", "tf32"):
        return torch.float32
    # Where no fused kernel supports dropout (CPU), attention consists of plain matmuls, which would
    # run in float32 without this.
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    if precision in WHOLE:
        return WHOLE[precision]
    has_bfloat16 = not gpu or torch.cuda.is_bf16_supported(including_emulation=False)
    mixed = precision if is_mixed(precision) else "amp"  # float8 is combined with amp
    dtype: torch.dtype = getattr(torch, matmul_dtype(mixed, has_bfloat16, "PyTorch on this GPU"))
    return dtype


class Copies:
    """Copy arrays to the device, except tensors, which are there already. A GPU has a stream for
    copies, so that one takes place while the previous step runs."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: Mapping[str, Any]) -> Dict[str, torch.Tensor]:
        there = {name: array for name, array in batch.items() if isinstance(array, torch.Tensor)}
        arrays = {name: array for name, array in batch.items() if name not in there}
        if self._stream is None:
            # copied, because the tensor would share memory with an array that is overwritten
            return {name: torch.from_numpy(array).clone() for name, array in arrays.items()}
        with torch.cuda.stream(self._stream):
            tensors = {
                # from page-locked memory, which a GPU reads directly
                name: torch.from_numpy(array).pin_memory().to(self._device, non_blocking=True)
                for name, array in arrays.items()
            }
        steps = torch.cuda.current_stream(self._device)
        steps.wait_stream(self._stream)
        for tensor in tensors.values():
            # otherwise its memory would be freed for the next copy too early
            tensor.record_stream(steps)
        return {**tensors, **there}


def dtype_of(tensor: torch.Tensor, precision: torch.dtype) -> torch.dtype:
    """Return the dtype of ``tensor`` in a floating-point ``precision``. Complex tensors stay
    complex (``nn.Module.to`` would drop their imaginary parts); integers keep their dtype."""
    if tensor.is_complex():
        return precision.to_complex()
    return precision if tensor.is_floating_point() else tensor.dtype


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor; for a complex one, real and imaginary parts along a last axis."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def narrow(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Convert the parameters of ``model`` to ``dtype``, in place, and return it. In a half
    precision, normalisations with running statistics stay in float32, because the statistics are
    sums over many batches, which kernels take in float32."""
    model._apply(lambda tensor: tensor.to(dtype_of(tensor, dtype)))
    for module in model.modules():
        if dtype.itemsize < 4 and isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.float()
    return model


def narrow_inputs(inputs: Any, dtype: torch.dtype) -> Any:
    """Return ``inputs`` with all floating-point tensors among them in ``dtype``."""
    from torch.utils._pytree import tree_map_only

    return tree_map_only(
        torch.Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, inputs
    )


class Widening(TorchDispatchMode):
    """Mode in which a model's conversions to a narrower floating-point dtype return float64."""

    def __enter__(self) -> Widening:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        mode: Widening = super().__enter__()
        return mode

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.set_default_dtype(self._before)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        options = dict(kwargs or {})
        dtype = options.get("dtype")
        if dtype is not None and (dtype.is_floating_point or dtype.is_complex):
            options["dtype"] = torch.complex128 if dtype.is_complex else torch.float64
        return func(*args, **options)


def settings(device: torch.device) -> Dict[str, Any]:
    """Return flags and library versions that affect ``device``: JSON values, as PyTorch reports
    them."""
    common = {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "attention_math_16_bit": torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }
    if device.type == "cuda":
        return {
            **common,
            "cuda_matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn": torch.backends.cudnn.version(),
            "cuda": torch.version.cuda,
        }
    return {**common, "cpu_capability": torch.backends.cpu.get_cpu_capability()}
