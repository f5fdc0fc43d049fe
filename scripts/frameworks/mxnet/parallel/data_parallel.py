"""Several ranks: MXNet's parameter server sums the gradients (kvstore ``dist_sync``).

Besides the ranks, which are its workers, it needs one scheduler, and one server on each host, as
MXNet's guide to distributed training says. The first rank of each host starts them, as Python
processes that import MXNet and never return from it. They run on the cores of the rank that started
them, whose gradients they wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Callable, Dict, List, Tuple

from harness.adapter import RankContext

LEAVE_SECONDS = 5.0  # until what has not ended by itself is killed

# Beginning with a check: the parent may have died before the kernel was asked to tell.
CHILD = """
import os, signal, sys
sys.path[0] = sys.argv[1]
from harness.processes.descendants import signal_when_parent_dies
signal_when_parent_dies(signal.SIGKILL)
if os.getppid() == int(sys.argv[2]):
    import mxnet
"""


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
    """Return the scheduler and the server that belong to this rank, if any; they end with it."""
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
    """The process group of all ranks. Joining it waits for the others."""

    SUM_KEY = 0  # gradients have the keys behind it
    ALL_REDUCE_KEY = 10**6  # and this is behind them

    def __init__(
        self, rank_context: RankContext, children: List["subprocess.Popen[bytes]"]
    ) -> None:
        import mxnet as mx

        self._mx: Any = mx
        self._children = children
        self._variables = variables(rank_context, "worker")
        os.environ.update(self._variables)
        # the other kind sums on the GPU first, as the guide says
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
        """Replace each array by its sum over all ranks, without waiting. Each is sent as soon as
        the backward pass has written it, those of the first layers with priority."""
        keys = range(self.SUM_KEY + 1, self.SUM_KEY + 1 + len(gradients))
        if not self._initialised:
            # With gradients: weights are in oneDNN's own layout behind a forward pass in
            # inference mode, which ends the server.
            self._kvstore.init(list(keys), gradients)
            self._initialised = True
        for key, gradient in zip(keys, gradients):
            self._kvstore.pushpull(key, gradient, priority=-key)

    def total(self, value: float) -> float:
        """Sum of ``value`` over all ranks."""
        array = self._mx.nd.array([value], dtype="float64")
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
