"""Adapter of Autograd, which differentiates numpy code.
It has only what training and verification need, and requires no framework but this one. It has no
multi-device support, and is not asked for its peak."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import Any

import autograd.numpy as np
from autograd import value_and_grad
from harness.adapter import MatmulTrace, Numerics, Variable
from reference import operations, weights


class AutogradAdapter(MatmulTrace, Numerics):
    def start(self) -> None:
        self._definition = self.definition()
        matmul = np.matmul
        np.matmul = lambda x, y: matmul(x.astype("float32"), y.astype("float32"))

    def build(self, batch: dict[str, Any]) -> None:
        operations.Moments.seen.clear()  # statistics of an earlier model in this process
        self._batch, self._hyper = batch, self.model_config["hyperparameters"]
        drawn = self._definition.parameters(self.model_config)
        self._weights = weights.draw(drawn, self.rank_context.seed)
        self._trained = [name for name, entry in drawn.items() if entry.trained]
        self._optimizer = weights.OPTIMIZERS[self._hyper["optimizer"]](self._hyper)
        self._differentiate = value_and_grad(self._loss)

    def _forward(self, weights: dict[str, Any]) -> list[Any]:
        train = self.case.mode == "train"
        return self._definition.forward(weights, self._batch, self._hyper, train)

    def _loss(self, trained: dict[str, Any]) -> Any:
        outputs = self._forward({**self._weights, **trained})
        return self._definition.loss(outputs, self._batch, self._hyper)

    def _evaluate(self) -> tuple[Any, dict[str, Any]]:
        return self._differentiate({name: self._weights[name] for name in self._trained})

    def step(self) -> list[Any]:
        if self.case.mode == "inference":
            return self.logits()
        loss, gradients = self._evaluate()
        if "clip_global_norm" in self._hyper:
            limit = self._hyper["clip_global_norm"]
            gradients = weights.clip_by_global_norm(gradients, limit)
        self._optimizer.step(self._weights, gradients)
        share = self._hyper.get("batch_norm_momentum", 0.0)
        self._weights.update(operations.running_statistics(self._weights, share))
        return [loss]

    def synchronize(self) -> None:
        pass  # nothing to wait for

    def blocking(self) -> bool:
        return True  # numpy is synchronous

    def version(self) -> str:
        return version("autograd")

    def settings(self) -> dict[str, Any]:
        return {"numpy": version("numpy")}

    def state(self) -> dict[str, Variable]:
        return {n: Variable(a, trainable=n in self._trained) for n, a in self._weights.items()}

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def assign(self, arrays: dict[str, Any]) -> None:
        self._weights.update(arrays)

    def raw_gradients(self) -> dict[str, Any]:
        return self._evaluate()[1]

    def logits(self) -> list[Any]:
        return self._forward(self._weights)

    def matmul_dtypes(self) -> dict[str, int]:
        matmul, products = np.matmul, []

        def watched(x: Any, y: Any) -> Any:
            result = matmul(x, y)
            products.append(str(result.dtype))
            return result

        np.matmul = watched
        self.logits()
        np.matmul = matmul
        return dict(Counter(products))
