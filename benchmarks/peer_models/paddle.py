"""PaddlePaddle's own ResNet-50, in the loop of its guides."""

from __future__ import annotations

import paddle

from . import Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    model = paddle.vision.models.resnet50()
    images = paddle.to_tensor(work.images)
    labels = paddle.to_tensor(work.batch["labels"])
    model.train() if work.trains else model.eval()
    network = model if work.compiler == "none" else paddle.jit.to_static(model)
    criterion = paddle.nn.CrossEntropyLoss()
    rate, momentum, decay = work.sgd
    optimizer = paddle.optimizer.Momentum(rate, momentum, model.parameters(), weight_decay=decay)

    def infer() -> None:
        with paddle.no_grad():
            network(images)

    def train() -> None:
        loss = criterion(network(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    return loop(train if work.trains else infer)
