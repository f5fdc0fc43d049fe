"""Device of a rank, the precision of its matmuls, and its connection to the other ranks."""

from __future__ import annotations

import os
import warnings
from typing import Any, Dict, Tuple

import paddle
import paddle.distributed
from harness.adapter import RankContext, Unsupported, require_tf32, takes_gpu
from harness.hardware import interface_with
from paddle import Tensor, nn
from paddle.amp.amp_lists import WHITE_LIST


def take(rank_context: RankContext) -> bool:
    """Make the device of ``rank_context`` Paddle's current one; return whether it is a GPU. Raises
    :class:`Unsupported` if the device is missing."""
    # with the environment's OMP_NUM_THREADS and FLAGS_paddle_num_threads alone, MKL has one thread
    paddle.base.core.set_num_threads(rank_context.threads)
    name, has_cuda = f"PaddlePaddle {paddle.__version__}", paddle.is_compiled_with_cuda()
    if not takes_gpu(rank_context, name, has_cuda, paddle.device.cuda.device_count):
        paddle.set_device("cpu")
        return False
    # read by the process group
    os.environ.update(FLAGS_selected_gpus=str(rank_context.local_rank))
    paddle.set_device(f"gpu:{rank_context.local_rank}")
    return True


def data_format() -> str:
    """Return the layout of images: on GPUs channels last, which Tensor Cores take without
    conversions; on the CPU channels first, Paddle's default."""
    return "NHWC" if paddle.get_device().startswith("gpu") else "NCHW"


def allow_tf32(gpu: bool) -> None:
    """Allow TF32 for matmuls and convolutions. Raise :class:`Unsupported` where the device has
    none."""
    cuda = paddle.device.cuda
    require_tf32(*((cuda.get_device_capability(), cuda.get_device_name()) if gpu else ()))
    paddle.base.core.set_cublas_switch(True)
    paddle.base.core.set_cudnn_switch(True)


def require_amp(dtype: str) -> None:
    """Raise :class:`Unsupported`, with Paddle's words, where the dynamic graph's ``auto_cast``
    does not change the dtype of a matmul."""
    operand = paddle.ones([2, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with paddle.amp.auto_cast(dtype=dtype, level="O1"):
            matmul = paddle.matmul(operand, operand)
    if matmul.dtype != getattr(paddle, dtype):
        warned = "; ".join(str(warning.message) for warning in caught)
        raise Unsupported(f"a matmul under auto_cast has the dtype {matmul.dtype}: {warned}")


def require_amp_of(model: nn.Layer) -> None:
    """Raise :class:`Unsupported` where ``model`` has layers whose matmuls ``auto_cast`` leaves in
    float32."""
    recurrent = any(isinstance(layer, nn.layer.rnn.RNNBase) for layer in model.sublayers())
    if recurrent and "rnn" not in WHITE_LIST:
        raise Unsupported("auto_cast leaves recurrent layers in float32: 'rnn' is not in its list")


class Network(nn.Layer):
    """``model`` in Paddle's mixed precision O1 (matmuls in ``dtype``, parameters in float32), or
    unchanged where ``dtype`` is float32. It takes the model's inputs as one tuple, because
    to_static does not support ``*inputs``."""

    def __init__(self, model: nn.Layer, dtype: str) -> None:
        super().__init__()
        self.model = model
        self.dtype = dtype

    def forward(self, inputs: Tuple[Tensor, ...]) -> Tuple[Tensor, ...]:
        if self.dtype == "float32":
            return self.model(*inputs)
        # inside the forward pass, because to_static ignores an auto_cast around its program
        with paddle.amp.auto_cast(dtype=self.dtype, level="O1"):
            return self.model(*inputs)


def settings(rank_context: RankContext, gpu: bool) -> Dict[str, Any]:
    """Return the settings that act on the device, as JSON values."""
    settings: Dict[str, Any] = {"threads": rank_context.threads, "data_format": data_format()}
    if gpu:
        settings["tf32_override"] = os.environ.get("NVIDIA_TF32_OVERRIDE")
        settings["cuda"] = paddle.version.cuda()
        settings["cudnn"] = paddle.version.cudnn()
    return settings


def join(rank_context: RankContext) -> str:
    """Join the process group of all ranks; returns its back-end.

    Paddle reads the variables that its launcher would set."""
    backend = "gloo" if rank_context.accelerator == "cpu" else "nccl"
    address = rank_context.addresses[rank_context.rank].rpartition(":")[0]
    own = interface_with(address)
    if own and backend == "gloo":
        # by default Gloo listens at the address of the host's name
        os.environ.setdefault("GLOO_SOCKET_IFNAME", own)
    host, _, port = rank_context.addresses[0].rpartition(":")
    os.environ.update(
        {
            "PADDLE_DISTRI_BACKEND": backend,
            "PADDLE_TRAINER_ID": str(rank_context.rank),
            "PADDLE_TRAINERS_NUM": str(rank_context.world_size),
            "PADDLE_TRAINER_ENDPOINTS": ",".join(rank_context.addresses),
            "PADDLE_CURRENT_ENDPOINT": rank_context.addresses[rank_context.rank],
            "MASTER_ADDR": host,
            "MASTER_PORT": port,
        }
    )
    paddle.distributed.init_parallel_env()
    return str(paddle.distributed.get_backend()).lower()
