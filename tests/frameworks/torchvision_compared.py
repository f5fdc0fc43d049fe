"""Compare our networks with torchvision's, with the same weights and images, in float64.

``python torchvision_compared.py NAME.. --weights NAME..`` in PyTorch's environment prints JSON. Of
the networks after --weights only the weights, initial values and rates of dropout are compared."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import networks  # noqa: E402
from harness.measuring.loading import load_environment  # noqa: E402
from harness.request.declaration import read_model  # noqa: E402

load_environment(str(ROOT / "scripts/frameworks/pytorch"))
from framework_under_test.models import (  # type: ignore[import-not-found] # noqa: E402
    cnn,
    own_libraries,
)

BATCH = 2
#: Edges of images, as small as networks allow, in inference and in training with auxiliary heads.
SIZE, SIZES = (64, 64), {"inception_v3": (75, 299)}
#: Number of drawn values that fill a weight again and again.
PERIOD = 1_000_003
#: Networks whose gradients take long, by the beginnings of their names.
WITHOUT_GRADIENTS = ("alexnet", "inception", "vgg")


def filled(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model on a CPU, with weights that keep activations bounded."""
    model = model.to_empty(device="cpu")
    for name, tensor in model.state_dict().items():
        if tensor.dim() > 1:
            drawn = torch.empty(PERIOD, dtype=tensor.dtype).uniform_(-1, 1)
            drawn *= (6 / tensor[0].numel()) ** 0.5
            repeats = -(-tensor.numel() // PERIOD)
            tensor.copy_(drawn.repeat(repeats)[: tensor.numel()].view_as(tensor))
        elif tensor.dim() == 1:
            tensor.uniform_(-0.3, 0.3)
            if name.endswith("running_var"):
                tensor.add_(1)
        else:
            tensor.zero_()
    return model


def rates(model: torch.nn.Module) -> list[float]:
    return [module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)]


def without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def distance(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """Return the largest difference of an array, relative to its norm or a hundredth of all's."""
    norms = torch.stack([tensor.detach().norm() for tensor in expected])
    differences = torch.stack(
        [(a - b).detach().norm() for a, b in zip(found, expected, strict=True)]
    )
    return float((differences / norms.clamp(min=0.01 * norms.norm())).max())


def computed(model: torch.nn.Module, images: torch.Tensor, training: bool) -> list[torch.Tensor]:
    outputs = model.train(training)(images)
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    logits, *heads = outputs
    is_ours = isinstance(model, cnn.ConvolutionalNetwork)
    return [logits, *(heads if is_ours else reversed(heads))]  # theirs: the last one first


#: Distribution by the arguments of the methods that fill a tensor, see
#: :data:`networks.initials.Initial`: symmetric bounds, or a deviation around zero.
FILLING: dict[str, Callable[..., tuple[str, float]]] = {
    "uniform_": lambda low, high: ("uniform", high),
    "normal_": lambda mean, deviation: ("normal", deviation),
    "fill_": lambda value: ("constant", value),
    "zero_": lambda: ("constant", 0.0),
}


@contextlib.contextmanager
def noted() -> Iterator[dict[int, tuple[str, float]]]:
    """Note how each tensor would have been filled last, by its identity, and fill none."""
    actual: dict[int, tuple[str, float]] = {}

    def noting(name: str) -> Callable[..., torch.Tensor]:
        def fill(tensor: torch.Tensor, *given: float, generator: Any = None) -> torch.Tensor:
            actual[id(tensor)] = FILLING[name](*given)
            return tensor

        return fill

    def cut(tensor: torch.Tensor, mean: float, std: float, a: float, b: float) -> torch.Tensor:
        assert min(-a, b) > 10 * std, "it is cut where there are values"
        actual[id(tensor)] = FILLING["normal_"](mean, std)
        return tensor

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(torch.nn.init, "trunc_normal_", cut))
        for name in FILLING:
            stack.enter_context(patch.object(torch.Tensor, name, noting(name)))
        yield actual


def other_initials(
    model_config: dict[str, Any], model: torch.nn.Module, drawn: dict[int, tuple[str, float]]
) -> list[str]:
    """Return the weights that torchvision's model and our description initialise differently."""
    own = {
        key: weight.initial
        for key, weight in networks.weights(networks.describe(model_config)).items()
    }
    theirs = {key: drawn.get(id(entry)) for key, entry in model.named_parameters()}
    return [
        f"{key}: {own.get(key)}, not {initial}"
        for key, initial in theirs.items()
        if initial is None
        or own[key][0] != initial[0]
        or abs(own[key][1] - initial[1]) > 1e-6 * abs(initial[1])
    ]


def compared(name: str, device: str) -> dict[str, Any]:
    """Compare one network; ``device``: "cpu", or "meta", where nothing is computed."""
    model_config = read_model(str(ROOT / f"scripts/models/{name}.json"))
    size, in_training = SIZES.get(name, SIZE)
    with torch.device("meta"), noted() as drawn:
        options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        theirs = own_libraries.torchvision_models().get_model(name, weights=None, **options)
        initials = other_initials(model_config, theirs, drawn)
        model_config["inputs"][0]["shape"] = ["batch", in_training, in_training, 3]
        own = cnn.Definition(None, model_config, None).build()
    own, theirs = own.double(), theirs.double()
    if device == "cpu":
        theirs = filled(theirs)
    # the same weights; running statistics are copied for each
    state = {
        key: entry if entry.dim() > 1 else entry.clone()
        for key, entry in theirs.state_dict().items()
    }
    own.load_state_dict(state, assign=True)
    actual: dict[str, Any] = {"rates": rates(own), "their_rates": rates(theirs)}
    actual["initials"] = initials
    if device == "meta":
        return actual
    both = (without_dropout(own), without_dropout(theirs))
    images = torch.randn(BATCH, 3, size, size, dtype=torch.float64)
    with torch.no_grad():
        actual["inference"] = distance(*(computed(model, images, False) for model in both))
    images = torch.randn(BATCH, 3, in_training, in_training, dtype=torch.float64)
    outputs = [computed(model, images, True) for model in both]
    actual["train"], actual["heads"] = distance(*outputs), len(outputs[0])
    statistics = [dict(model.named_buffers()) for model in both]
    actual["statistics"] = distance(
        *(
            [statistic[key].double() for key in sorted(statistics[1])] or [torch.ones(1)]
            for statistic in statistics
        )
    )
    if name.startswith(WITHOUT_GRADIENTS):
        return actual
    shares = [torch.randn_like(output) for output in outputs[1]]
    for logits in outputs:
        torch.autograd.backward(logits, shares)
    gradients = [dict(model.named_parameters()) for model in both]
    actual["gradients"] = distance(
        *([gradient[key].grad for key in sorted(gradients[1])] for gradient in gradients)
    )
    return actual


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    computed_ones, others = (part.split() for part in " ".join(sys.argv[1:]).split("--weights"))
    devices = {**dict.fromkeys(others, "meta"), **dict.fromkeys(computed_ones, "cpu")}
    print(json.dumps({name: compared(name, device) for name, device in devices.items()}))
