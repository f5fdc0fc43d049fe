"""Threads of a rank, and its connection to the other ranks: one process each, gradients averaged by
all-reduces of MindSpore's own runtime."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Optional, Sequence

import mindspore
from harness.adapter import RankContext
from mindspore import Tensor, communication, ops

DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def set_once(threads: int) -> None:
    """Make the settings that MindSpore accepts only once per process: the numbers of threads, and
    that operations run when called.

    By default, operations are queued. The threads of the queues wait in busy loops and take the
    cores from the operations: a step of a small BERT takes ten times as long on one core."""
    try:
        mindspore.runtime.launch_blocking()
        mindspore.runtime.dispatch_threads_num(threads)
        mindspore.device_context.cpu.op_tuning.threads_num(threads)
    except RuntimeError as error:
        if "repeatedly" not in str(error):
            raise


class Group:
    """Process group of all ranks; with a single rank, its operations do nothing."""

    def __init__(self, rank_context: RankContext) -> None:
        self._ranks = rank_context.world_size
        self.backend: Optional[str] = None
        self._scheduler = 0
        if self._ranks == 1:
            return
        hosts, ports = zip(*(address.rsplit(":", 1) for address in rank_context.addresses))
        os.environ.update(
            MS_WORKER_NUM=str(self._ranks),
            MS_SCHED_HOST=hosts[0],
            MS_SCHED_PORT=ports[0],
            MS_NODE_ID=str(rank_context.rank),
            # seconds between a rank's checks whether all ranks have joined; by default 3 to 5
            MS_RETRY_INTERVAL_LOWER="1",
            MS_RETRY_INTERVAL_UPPER="1",
        )
        if rank_context.rank == 0:
            self._scheduler = _start_scheduler()
        os.environ["MS_ROLE"] = "MS_WORKER"
        self.backend = "mccl"
        communication.init(self.backend)
        self._all_reduce = ops.AllReduce()

    def sum(self, tensor: Tensor) -> Tensor:
        return self._all_reduce(tensor)

    def average(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        if self._ranks == 1:
            return gradients
        return tuple(self._all_reduce(gradient) * (1.0 / self._ranks) for gradient in gradients)

    def leave(self) -> None:
        """Leave the group once all ranks do. Otherwise a rank that is still busy would end itself
        by SIGTERM after 20 attempts to reach the scheduler, which ends with rank 0."""
        if self.backend:
            self.sum(Tensor(1.0)).asnumpy()
            communication.release()
        if self._scheduler:
            os.kill(self._scheduler, signal.SIGKILL)
            os.waitpid(self._scheduler, 0)


def _start_scheduler() -> int:
    """Fork the process through which MindSpore's ranks find each other; return its process id."""
    child = os.fork()
    if child:
        return child
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    os.environ["MS_ROLE"] = "MS_SCHED"
    try:
        mindspore.communication.init("mccl")
    finally:
        os._exit(0)
