"""A matmul under auto_cast in a program on the CPU: forward, and with the argument ``train``
backward.

compiler.py runs it in a process of its own, which it may crash. It is a file because to_static
reads its functions' source."""

from __future__ import annotations

import sys

import paddle
from paddle import Tensor


class Matmul(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense = paddle.nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        with paddle.amp.auto_cast(dtype="bfloat16", level="O1"):
            return self.dense(x)


if __name__ == "__main__":
    paddle.set_device("cpu")
    model = paddle.jit.to_static(Matmul(), full_graph=True, backend=None)
    total = model(paddle.ones([2, 8])).astype("float32").sum()
    if sys.argv[1] == "train":
        total.backward()
