"""Models that others wrote, in the loop that their documentation shows, fp32 on all cores.

``FRAMEWORK.py`` has a function for each. ``FRAMEWORK.txt`` lists the packages that it needs beyond
``envs/FRAMEWORK.yaml``. Python 3.7 to 3.13.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, NamedTuple

#: Folder of modules that are in no package.
SOURCES = str(Path(__file__).resolve().parents[2] / ".peers" / "sources")

#: Runs a number of steps and waits for the last.
Run = Callable[[int], Any]


def loop(step: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> Run:
    """Return a loop of ``step`` that ends with ``wait``, which waits for enqueued work."""

    def run(steps: int) -> None:
        for _ in range(steps):
            step()
        wait()

    return run


def keras_loop(model: Any, batches: Any, trains: bool) -> Run:
    """Return a loop of ``fit``, or of ``predict``, over a repeated data set."""

    def run(steps: int) -> None:
        if trains:
            model.fit(batches, steps_per_epoch=steps, verbose=0)
        else:
            model.predict(batches, steps=steps, verbose=0)

    return run


class Assignment(NamedTuple):
    """Task of a peer. ``batch``: arrays by the model config's names; ``hyper``: hyperparameters."""

    batch: dict[str, Any]
    hyper: dict[str, Any]
    trains: bool
    compiler: str

    @property
    def images(self) -> Any:
        """The images as (batch, channels, height, width)."""
        return self.batch["images"].transpose(0, 3, 1, 2).copy()

    @property
    def sgd(self) -> Any:
        """Learning rate, momentum, weight decay."""
        return [self.hyper[key] for key in ("learning_rate", "momentum", "weight_decay")]

    @property
    def adamw(self) -> Any:
        """Learning rate, weight decay, first and second beta, epsilon."""
        names = ("learning_rate", "weight_decay", "beta1", "beta2", "epsilon")
        return [self.hyper[key] for key in names]
