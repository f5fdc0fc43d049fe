"""ResNet-50 of MindCV, in the functional loop of MindSpore's guides."""

from __future__ import annotations

from typing import Any

import mindcv
import mindspore
from mindspore.graph.api import _pynative_executor

from . import Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    model = mindcv.create_model("resnet50", num_classes=work.hyper["classes"])
    model.set_train(work.trains)
    images = mindspore.Tensor(work.images)
    labels = mindspore.Tensor(work.batch["labels"].astype("int32"))
    criterion = mindspore.nn.CrossEntropyLoss()
    rate, momentum, decay = work.sgd
    optimizer = mindcv.optim.create_optimizer(
        model.trainable_params(), opt="momentum", lr=rate, weight_decay=decay, momentum=momentum
    )

    def losses(images: Any, labels: Any) -> Any:
        return criterion(model(images), labels)

    differentiate = mindspore.value_and_grad(losses, None, optimizer.parameters)

    def train(images: Any, labels: Any) -> Any:
        loss, gradients = differentiate(images, labels)
        optimizer(gradients)
        return loss

    def infer(images: Any, labels: Any) -> Any:
        return model(images)

    step = train if work.trains else infer
    if work.compiler == "jit":
        step = mindspore.jit(step)

    def synchronous() -> None:
        step(images, labels)
        _pynative_executor.sync()

    return loop(synchronous)
