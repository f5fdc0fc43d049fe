"""Device of a rank, its precision, the settings that PyTorch reports, and its connection to other
ranks: one process each, the gradients averaged by DistributedDataParallel.

Under ``fp8``, torchao scales the operands of each linear layer's matmul to float8's range and
rounds them; ``torch._scaled_mm`` adds the products in a wider dtype. Weights, gradients and
optimizer keep their dtypes, and the rest of a model runs as under ``amp``."""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import torch
import torch.distributed
from harness.adapter import (
    RankContext,
    Unsupported,
    is_mixed,
    matmul_dtype,
    no_device,
    require_tf32,
    takes_gpu,
)
from harness.capabilities import SEND
from harness.hardware import interface_with
from harness.operations import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from torch import nn
from torch.distributed.constants import default_pg_timeout
from torch.utils._python_dispatch import TorchDispatchMode

#: Precisions in which the whole model is stored.
WHOLE = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
#: torchao's recipe of each precision. ``tensorwise``: a scale for each tensor, E4M3 in the forward
#: pass and E5M2 for gradients, also called hybrid. ``rowwise``: a scale for each row, E4M3 in both.
RECIPES = {"fp8": "tensorwise", "fp8_e4m3": "rowwise"}
#: Sides of matrices must be multiples of this number for the kernels.
MULTIPLE = 16
#: The first compute capability whose matrix units take float8.
FLOAT8_CAPABILITY = (8, 9)
DATA_PARALLEL = {
    "gradient_as_bucket_view": True,  # saves the copy between gradients and buckets
    # each rank keeps its own running statistics: a training step does not read them, and other
    # frameworks do not send them either (`forward_sync_buffers` in newer versions, which warn)
    "broadcast_buffers": False,
}
#: Names that PyTorch's profiler gives collectives of a process group.
COLLECTIVES = {
    "c10d::_allgather_base_": ALL_GATHER,
    "c10d::allgather_into_tensor_coalesced_": ALL_GATHER,
    "c10d::_reduce_scatter_base_": REDUCE_SCATTER,
    "c10d::reduce_scatter_tensor_coalesced_": REDUCE_SCATTER,
    "c10d::allreduce_": ALL_REDUCE,
    "c10d::send": SEND,
}


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
    """Copy arrays to the device; tensors are there already. On a GPU, copies have their own stream,
    so that they run during the previous step."""

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
    """Return ``tensor``, or the real and imaginary parts of a complex one along a new last axis."""
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


def require_float8(precision: str, device: torch.device) -> None:
    """Raise :class:`Unsupported` where the ``device`` has no matmuls of float8."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < FLOAT8_CAPABILITY:
        needed = ".".join(map(str, FLOAT8_CAPABILITY))
        raise Unsupported(
            f"{precision} needs NVIDIA's GPUs of compute capability {needed} and later; the device "
            f"is {torch.cuda.get_device_name(device)}"
        )


def convert_to_float8(model: nn.Module, precision: str, dtype: torch.dtype) -> None:
    """Make the linear layers of ``model`` multiply in float8 where both extents of their weights
    are multiples of 16. ``dtype``: dtype of their inputs. Raises :class:`Unsupported` where no
    layer can, or where most of the model cannot."""
    if any(isinstance(module, nn.modules.conv._ConvNd) for module in model.modules()):
        raise Unsupported("PyTorch has no convolutions in float8")
    # hides warnings about CUDA extensions that a build for CPUs cannot load
    logging.disable(logging.WARNING)
    try:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        from torchao.float8.float8_linear import Float8Linear
    finally:
        logging.disable(logging.NOTSET)

    def fits(module: nn.Module, name: str) -> bool:
        linear = isinstance(module, nn.Linear)
        return linear and all(side % MULTIPLE == 0 for side in module.weight.shape)

    recipe = Float8LinearConfig.from_recipe_name(RECIPES[precision])
    # weight gradients are matmuls over a batch's rows, whose number need not be a MULTIPLE
    config = replace(recipe, pad_inner_dim=True)
    convert_to_float8_training(model, config=config, module_filter_fn=fits)
    converted = [module for module in model.modules() if isinstance(module, Float8Linear)]
    if not converted:
        raise Unsupported(
            f"the model has no linear layer whose sides are multiples of {MULTIPLE}, which float8 "
            "takes"
        )
    for layer in converted:  # torchao reads the dtype of autocast on GPUs only
        layer.register_forward_pre_hook(
            lambda _, inputs: tuple(tensor.to(dtype) for tensor in inputs)
        )


def join(device: torch.device, rank_context: RankContext) -> str:
    """Join the process group of all ranks; returns its back-end.

    By default, PyTorch listens on every interface: rank 0 for the others, and Gloo at the address
    of the host's name. Here each rank listens at its own address."""
    host, _, port = rank_context.addresses[0].rpartition(":")
    listening = None
    if rank_context.rank == 0:
        server = socket.create_server((host, int(port)), backlog=rank_context.world_size)
        listening = server.detach()
    store = torch.distributed.TCPStore(
        host,
        int(port),
        rank_context.world_size,
        is_master=rank_context.rank == 0,
        timeout=default_pg_timeout,
        master_listen_fd=listening,
    )
    address = rank_context.addresses[rank_context.rank].rpartition(":")[0]
    own = interface_with(address)
    if own and device.type != "cuda":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", own)
    backend, device_id = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    torch.distributed.init_process_group(
        backend,
        store=store,
        rank=rank_context.rank,
        world_size=rank_context.world_size,
        device_id=device_id,
    )
    return torch.distributed.get_backend()


def wrap(model: nn.Module, device: torch.device, options: Dict[str, Any]) -> Any:
    """Return ``model`` with its gradients averaged over all ranks during the backward pass."""
    device_ids = [device] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=device_ids, **options)


def bucket_bytes(wrapped: Any) -> List[int]:
    """Return the bytes of each bucket of :func:`wrap`, in the order of reduction.

    DistributedDataParallel has made its buckets by the first backward pass."""
    buckets = wrapped.reducer._get_zeros_like_grad_buckets()
    return [bucket.buffer().nbytes for bucket in buckets]


def all_reduce_together(tensors: Sequence[torch.Tensor], group: Any = None) -> None:
    """All-reduce each tensor over the ranks of ``group``, by default all of them, as
    DistributedDataParallel does with its buckets: all are started one after the other, and then
    waited for."""
    all_reduce = torch.distributed.all_reduce
    works = [all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
    for work in works:
        work.wait()


def count_collectives(run: Callable[[], Any]) -> Dict[str, int]:
    """Count the collectives of ``run()`` by kind, with PyTorch's profiler."""
    with torch.autograd.profiler.profile() as profiled:
        run()
    names = (COLLECTIVES.get(event.name) for event in profiled.function_events)
    return dict(Counter(filter(None, names)))
