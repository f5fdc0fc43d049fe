"""FlowVision's ResNet-50."""

from __future__ import annotations

from typing import Any

import oneflow
from flowvision import models

from . import Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    model = models.resnet50().train(work.trains)
    images = oneflow.tensor(work.images)
    labels = oneflow.tensor(work.batch["labels"])
    criterion = oneflow.nn.CrossEntropyLoss()
    rate, momentum, decay = work.sgd
    optimizer = oneflow.optim.SGD(model.parameters(), rate, momentum, weight_decay=decay)

    class TheirGraph(oneflow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            if work.trains:
                self.criterion = criterion
                self.add_optimizer(optimizer)

        def build(self, images: Any, labels: Any) -> Any:
            if not work.trains:
                return self.model(images)
            loss = self.criterion(self.model(images), labels)
            loss.backward()
            return loss

    def eager_step(images: Any, labels: Any) -> Any:
        if not work.trains:
            with oneflow.no_grad():
                return model(images)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    step = TheirGraph() if work.compiler == "graph" else eager_step
    return loop(lambda: step(images, labels), oneflow._oneflow_internal.eager.Sync)
