"""Device of a rank, its precision, the settings of MXNet for both, and the process group."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from harness.adapter import RankContext, Unsupported, mixed_dtype, takes_gpu
from mxnet.contrib import amp

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # MXNet's stand-in for bfloat16, which numpy lacks
DTYPES = {"bfloat16": BFLOAT16, "float16": np.dtype(np.float16)}
#: Shape of both operands with which a matmul operator is tried, and its options.
TRIALS: Dict[str, Tuple[Tuple[int, ...], Dict[str, Any]]] = {
    "Convolution": ((1, 8, 3, 3), {"num_filter": 1, "kernel": (3, 3), "no_bias": True}),
    "FullyConnected": ((8, 8), {"num_hidden": 8, "no_bias": True}),
    "batch_dot": ((1, 8, 8), {}),
}
LEAVE_SECONDS = 5.0  # seconds until processes that do not end by themselves are killed

# Program of a child process. It first checks its parent, which may have died before the kernel was
# asked for a signal.
CHILD = """
import os, signal, sys
sys.path[0] = sys.argv[1]
from harness.processes.descendants import signal_when_parent_dies
signal_when_parent_dies(signal.SIGKILL)
if os.getppid() == int(sys.argv[2]):
    import mxnet
"""


def put_messages_first() -> None:
    """Make the text of MXNet's errors begin with the message instead of the C++ trace, because a
    record keeps the first line."""

    def text(error: mx.MXNetError) -> str:
        whole = RuntimeError.__str__(error).strip()
        trace, *lines = whole.splitlines() or [""]
        message = next((line for line in lines if not line.startswith("  ")), None)
        if not trace.startswith("Traceback") or message is None:
            return whole
        return message.replace("MXNetError: ", "", 1) + f"\n{whole}"

    mx.MXNetError.__str__ = text


def take(rank_context: RankContext) -> mx.Context:
    """Return the device of ``rank_context``. Raises :class:`Unsupported` where it does not
    exist."""
    name, has_cuda = f"MXNet {mx.__version__}", mx.runtime.Features().is_enabled("CUDA")
    is_gpu = takes_gpu(rank_context, name, has_cuda, mx.context.num_gpus)
    return mx.gpu(rank_context.local_rank) if is_gpu else mx.cpu()


def staged(values: Any, device: mx.Context) -> Any:
    """Return ``values`` for an array of the device that a step may still be reading. Numpy arrays
    are copied to a GPU at once, from page-locked memory, so that MXNet's engine copies while the
    step runs."""
    if device.device_type == "cpu" or isinstance(values, mx.nd.NDArray):
        return values
    pinned = mx.nd.array(values, ctx=mx.cpu_pinned(device.device_id), dtype=values.dtype)
    return pinned.as_in_context(device)


def name_of(dtype: Any) -> str:
    """Return ``float32``, ``float16``, ``bfloat16``, ..: numpy prints MXNet's bfloat16 as
    ``void16``."""
    resolved = np.dtype(dtype)
    return "bfloat16" if resolved == BFLOAT16 else resolved.name


def set_precision(
    precision: str, device: mx.Context, matmuls: Sequence[str]
) -> Tuple[str, Dict[str, str]]:
    """Switch mixed precision on, if requested, for the whole process. Return the dtype of matmuls
    and, for each operator, why it does not run in this dtype, "" if it does.

    ``matmuls``: names of the operators in the model; those that MXNet lacks in that dtype on
    ``device`` stay in float32.

    Raises :class:`Unsupported` where all of them would stay in float32."""
    if precision == "fp32":
        return "float32", dict.fromkeys(matmuls, "")
    # MXNet's AMP supports one dtype on each device, and refuses or ignores the other
    available = ("bfloat16",) if device.device_type == "cpu" else ("float16",)
    dtype = mixed_dtype(precision, available, f"MXNet on a {device.device_type}")
    reasons = {name: refusal(name, dtype, device) for name in matmuls}
    refused = {name for name, reason in reasons.items() if reason}
    if refused == set(matmuls):
        raise Unsupported(f"MXNet's matmuls on {device.device_type} in {dtype}: {reasons}")
    # MXNet's list lets batch_dot run in the widest dtype of its operands, and softmax returns
    # float32
    half = {*amp.list_lp16_ops(DTYPES[dtype]), *matmuls} - refused
    single = {*amp.list_fp32_ops(DTYPES[dtype]), *refused}
    amp.init(dtype, target_precision_ops=sorted(half), fp32_ops=sorted(single))
    return dtype, {name: reason and f"{name}: {reason}" for name, reason in reasons.items()}


# cached, because AMP, once on, would cast the operands of a second trial
@functools.lru_cache(maxsize=None)
def refusal(operator: str, dtype: str, device: mx.Context) -> str:
    """Return why MXNet cannot compute the matmul ``operator`` in ``dtype`` on ``device``, in its
    own words, by trying; "" where it can."""
    shape, options = TRIALS[operator]
    operand = mx.nd.amp_cast(mx.nd.ones(shape, ctx=device), dtype=DTYPES[dtype])
    try:
        getattr(mx.nd, operator)(operand, operand, **options).wait_to_read()
    except mx.MXNetError as error:
        # The last line of MXNet's traceback, after the failed check.
        return str(error).splitlines()[-1].rpartition(": ")[2]
    return ""


def hybridize(mode: str, device: mx.Context, dtype: str) -> Dict[str, Any]:
    """Return the arguments of ``HybridBlock.hybridize``. MXNet's documentation and performance
    guide recommend static allocation for constant shapes. The guide to oneDNN recommends its fusion
    of operators, which has no gradients."""
    options: Dict[str, Any] = {"static_alloc": True, "static_shape": True}
    # under AMP the fused graph is slower, and its outputs differ by a seventh
    if mode == "inference" and device.device_type == "cpu" and dtype == "float32":
        options["backend"] = "MKLDNN"
    return options


def settings() -> Dict[str, Any]:
    """Return flags and features that affect speed: JSON values, as MXNet reports them."""
    features = mx.runtime.Features()
    return {
        "threads": int(os.environ["OMP_NUM_THREADS"]),
        "engine": os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
        "engine_threads": int(os.environ.get("MXNET_CPU_WORKER_NTHREADS", "1")),
        "onednn": features.is_enabled("MKLDNN"),
        "cudnn": features.is_enabled("CUDNN"),
    }


def variables(rank_context: RankContext, role: str) -> Dict[str, str]:
    """Return the environment variables of a process of MXNet's parameter server: its role and
    the scheduler's address."""
    hosts = [address.rpartition(":")[0] for address in rank_context.addresses]
    return {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": hosts[0],
        "DMLC_PS_ROOT_PORT": rank_context.addresses[0].rpartition(":")[2],
        "DMLC_NODE_HOST": hosts[rank_context.rank],
        "DMLC_NUM_WORKER": str(rank_context.world_size),
        "DMLC_NUM_SERVER": str(len(set(hosts))),
    }


def start_children(rank_context: RankContext) -> List["subprocess.Popen[bytes]"]:
    """Start the processes of the parameter server that belong to this rank, and return them; they
    end with the rank.

    It needs one scheduler, and one server on each host, as MXNet's guide to distributed training
    says. The first rank of each host starts them, as Python processes that import MXNet and never
    return from it. They run on that rank's cores while they wait for its gradients."""
    roles = ["scheduler"] if rank_context.rank == 0 else []
    if rank_context.local_rank == 0:
        roles.append("server")
    scripts = os.path.dirname(os.path.dirname(sys.modules["harness"].__file__ or ""))
    return [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, scripts, str(os.getpid())],
            env={**os.environ, **variables(rank_context, role)},
        )
        for role in roles
    ]


class Group:
    """The process group of all ranks, whose gradients MXNet's parameter server sums (kvstore
    ``dist_sync``). Joining it waits for the others."""

    SUM_KEY = 0  # gradients have the following keys
    ALL_REDUCE_KEY = 10**6  # larger than the key of any gradient

    def __init__(
        self, rank_context: RankContext, children: List["subprocess.Popen[bytes]"]
    ) -> None:
        self._children = children
        self._variables = variables(rank_context, "worker")
        os.environ.update(self._variables)
        # dist_device_sync sums on the GPU first, as the guide says
        kind = "dist_sync" if rank_context.accelerator == "cpu" else "dist_device_sync"
        self._kvstore = mx.kv.create(kind)
        self._kvstore.init(self.SUM_KEY, mx.nd.zeros((1,), dtype="float64"))
        self._initialised = False
        self._next_all_reduce = self.ALL_REDUCE_KEY

    def settings(self) -> Dict[str, Any]:
        """Return the settings of the group, JSON values for the record."""
        return {
            "kvstore": self._kvstore.type,
            "servers": int(self._variables["DMLC_NUM_SERVER"]),
            "servers_run_on": "the cores of the first rank of each host",
        }

    def sum_gradients(self, gradients: List[Any]) -> None:
        """Replace each array by its sum over all ranks, without waiting. Each array is sent as soon
        as the backward pass has written it; arrays of the first layers have priority."""
        keys = range(self.SUM_KEY + 1, self.SUM_KEY + 1 + len(gradients))
        if not self._initialised:
            # Initialized with gradients, because after a forward pass in inference mode weights are
            # in oneDNN's own layout, which crashes the server.
            self._kvstore.init(list(keys), gradients)
            self._initialised = True
        for key, gradient in zip(keys, gradients):
            self._kvstore.pushpull(key, gradient, priority=-key)

    def total(self, value: float) -> float:
        """Return the sum of ``value`` over all ranks."""
        array = mx.nd.array([value], dtype="float64")
        self._kvstore.pushpull(self.SUM_KEY, array)
        return float(array.asscalar())

    def all_reduce_of(self, held: Any) -> Tuple[Callable[[], Any], Callable[[], Any]]:
        """All-reduce an array on the device."""
        key, self._next_all_reduce = self._next_all_reduce, self._next_all_reduce + 1
        self._kvstore.init(key, held)
        return lambda: self._kvstore.pushpull(key, held), held.asnumpy

    def leave(self) -> None:
        """Wait for the other ranks and end the servers."""
        del self._kvstore
        for child in self._children:
            try:
                child.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
