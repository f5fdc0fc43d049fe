"""ResNet-50 of MegEngine's official models."""

from __future__ import annotations

import sys

import megengine

from . import SOURCES, Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    sys.path.append(SOURCES)
    import official_megengine as models

    model = models.ResNet(models.Bottleneck, [3, 4, 6, 3])  # as resnet50 without pretrained weights
    model.train(work.trains)
    images = megengine.tensor(work.images)
    labels = megengine.tensor(work.batch["labels"].astype("int32"))
    manager = megengine.autodiff.GradManager().attach(model.parameters())
    rate, momentum, decay = work.sgd
    optimizer = megengine.optimizer.SGD(model.parameters(), rate, momentum, weight_decay=decay)

    def train() -> None:
        with manager:
            loss = megengine.functional.nn.cross_entropy(model(images), labels)
            manager.backward(loss)
        optimizer.step().clear_grad()

    return loop(train if work.trains else lambda: model(images), megengine._full_sync)
