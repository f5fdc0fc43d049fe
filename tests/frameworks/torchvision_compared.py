"""Compare our networks with torchvision's, with the same weights and images, in float64.

``python torchvision_compared.py NAME.. --weights NAME..`` in PyTorch's environment prints JSON. Of
the networks after --weights only the weights and rates of dropout are compared. Also printed are
mean and deviation of images, ours and torchvision's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from harness.adapter.base import load_environment  # noqa: E402
from harness.declaration import read_model  # noqa: E402
from harness.loader import DEVIATION, MEAN  # noqa: E402

load_environment(str(ROOT / "scripts/frameworks/pytorch"))
from framework_under_test.models import (  # type: ignore[import-not-found] # noqa: E402
    cnn,
    own_model,
)

BATCH = 2
#: Edges of images, as small as networks allow, in inference and in training with auxiliary heads.
SIZE, SIZES = (64, 64), {"inception_v3": (75, 299)}
#: Number of drawn values that fill a weight again and again.
PERIOD = 1_000_003


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
    # torchvision returns the last head first
    return [logits, *(heads if is_ours else reversed(heads))]


def compared(name: str, device: str) -> dict[str, Any]:
    """Compare one network; ``device``: "cpu", or "meta", where nothing is computed."""
    model_config = read_model(str(ROOT / f"scripts/models/{name}.json"))
    size, in_training = SIZES.get(name, SIZE)
    with torch.device("meta"):
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        theirs = own_model.torchvision_models().get_model(name, weights=None, **options)
        model_config["inputs"][0]["shape"] = ["batch", in_training, in_training, 3]
        own = cnn.Definition(None, model_config, None).build()
    own, theirs = own.double(), theirs.double()
    if device == "cpu":
        theirs = filled(theirs)
    # both models share weights; each has its own copy of running statistics
    state = {
        key: entry if entry.dim() > 1 else entry.clone()
        for key, entry in theirs.state_dict().items()
    }
    own.load_state_dict(state, assign=True)
    actual: dict[str, Any] = {"rates": rates(own), "their_rates": rates(theirs)}
    if device == "meta":
        return actual
    both = (without_dropout(own), without_dropout(theirs))
    images = torch.randn(BATCH, 3, size, size, dtype=torch.float64)
    with torch.no_grad():
        actual["inference"] = distance(*(computed(model, images, False) for model in both))
    images = torch.randn(BATCH, 3, in_training, in_training, dtype=torch.float64)
    with torch.no_grad():
        outputs = [computed(model, images, True) for model in both]
    actual["train"], actual["heads"] = distance(*outputs), len(outputs[0])
    statistics = [dict(model.named_buffers()) for model in both]
    actual["statistics"] = distance(
        *(
            [statistic[key].double() for key in sorted(statistics[1])] or [torch.ones(1)]
            for statistic in statistics
        )
    )
    return actual


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    computed_ones, others = (part.split() for part in " ".join(sys.argv[1:]).split("--weights"))
    devices = {**dict.fromkeys(others, "meta"), **dict.fromkeys(computed_ones, "cpu")}
    actual = {name: compared(name, device) for name, device in devices.items()}
    theirs = own_model.torchvision_models().ResNet50_Weights.DEFAULT.transforms()
    actual["images"] = {"ours": [MEAN, DEVIATION], "theirs": [theirs.mean, theirs.std]}
    print(json.dumps(actual))
