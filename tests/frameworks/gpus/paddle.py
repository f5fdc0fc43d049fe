"""Double of a GPU for PaddlePaddle: a CUDA build whose tensors lie on the processor.

Linear layers and attention are those of CUDA builds: Paddle's own rules choose the attention, and
the kernels here refuse what the kernels for GPUs refuse."""

import os
from types import SimpleNamespace

import paddle
import paddle.amp.grad_scaler
import paddle.incubate.nn.memory_efficient_attention as efficient
from paddle.nn.attention.sdpa import SDPBackend, _backend_enabled
from paddle.nn.functional import sdpa

from .running import QUEUE

CAPABILITY, NAME = (8, 0), "NVIDIA A100"
cuda = paddle.device.cuda
waits, attentions = [], []
PLACE = SimpleNamespace(is_gpu_place=lambda: True)


class Event:
    """Event of a stream, complete when all earlier work is complete."""

    def __init__(self):
        QUEUE.note(self)

    def synchronize(self):
        waits.append("event")
        QUEUE.wait([self])


class Stream:
    def record_event(self):
        return Event()


def _attended(name, mask, query, key, value, dropout, training, causal=False):
    attentions.append(name)
    return sdpa._math_attention(query, key, value, mask, dropout, causal, False, training, None)[0]


def _efficient(query, key, value, attn_bias=None, p=0.0, scale=None, training=True):
    batch, rows, heads = query.shape[:3]
    if isinstance(attn_bias, efficient.LowerTriangularMask):
        return _attended("mem_efficient", None, query, key, value, p, training, causal=True)
    if attn_bias is not None and list(attn_bias.shape[-2:]) != [rows, key.shape[1]]:
        raise ValueError(
            "(InvalidArgument) The 2nd last dim of attn_bias should be equal to the sequence "
            "length of query."
        )
    assert attn_bias is None or list(attn_bias.shape[:2]) in ([1, 1], [batch, heads])
    return _attended("mem_efficient", attn_bias, query, key, value, p, training)


def _flash(query, key, value, offset, mask, dropout, causal, softmax, test, name):
    assert mask is None or mask.shape[-1] == key.shape[1]
    return _attended("flash_attn", mask, query, key, value, dropout, not test), None, None, None


def _synchronize(device=None):
    waits.append("device")
    QUEUE.wait()


def _join():
    """Use Gloo for the process group that would use NCCL."""
    assert os.environ["PADDLE_DISTRI_BACKEND"] == "nccl"
    assert os.environ["FLAGS_selected_gpus"] == os.environ["LOCAL_RANK"]  # noqa: SIM112
    os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
    _JOINED()


def _set_device(name):
    assert name == f"gpu:{os.environ['LOCAL_RANK']}"
    _SET("cpu")
    paddle.get_device = paddle.device.get_device = lambda: name


_JOINED, _SET = paddle.distributed.init_parallel_env, paddle.set_device
paddle.distributed.init_parallel_env = _join
paddle.distributed.get_backend = lambda group=None: "NCCL"
paddle.is_compiled_with_cuda = lambda: True
paddle.set_device = _set_device
paddle.device.synchronize = _synchronize
paddle.device.current_stream = lambda device=None: Stream()
paddle.amp.grad_scaler._dygraph_tracer = lambda: SimpleNamespace(_expected_place=PLACE)
paddle.amp.is_bfloat16_supported = paddle.device.is_bf16_supported = (
    lambda device=None, including_emulation=True: CAPABILITY >= (8, 0)
)
# Random generators and memory statistics of each GPU, which a CPU build lacks.
paddle.base.core.get_cuda_device_count = lambda: 0
cuda.device_count = lambda: 2
cuda.is_available = paddle.cuda.is_available = lambda: True
cuda.get_device_capability = lambda device=None: CAPABILITY
cuda.get_device_name = lambda device=None: NAME
cuda.reset_max_memory_allocated = lambda device=None: None
cuda.max_memory_allocated = lambda device=None: 2**21
# Flags of the build.
kernels = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)
_backend_enabled.update(dict.fromkeys(kernels, True))
sdpa.check_all_tensors_on_device = lambda params: True
sdpa.get_device_capability = lambda number: CAPABILITY
efficient.memory_efficient_attention = _efficient
paddle._C_ops.flash_attn = _flash


def observed():
    tf32 = [paddle.base.core.get_cublas_switch(), paddle.base.core.get_cudnn_switch()]
    return {"waits": len(waits), "tf32": tf32, "attention": sorted(set(attentions))}
