"""How far our networks are from torchvision's of the same names, with the same weights and images,
in float64: ``python torchvision_compared.py NAME..`` in PyTorch's environment prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from harness.measuring.loading import load_adapter  # noqa: E402
from harness.request.declaration import read_model  # noqa: E402

load_adapter(str(ROOT / "scripts/frameworks/pytorch"))
from framework_under_test import cnn  # type: ignore[import-not-found] # noqa: E402
from framework_under_test.sources.torchvision import (  # type: ignore[import-not-found] # noqa: E402
    cnn as torchvision_cnn,
)

BATCH = 2
#: Images as small as the deepest networks can do with.
SIZE, SIZES = 64, {"inception_v3": 299}


def filled(model: torch.nn.Module) -> torch.nn.Module:
    """In float64, with arrays that keep what goes through within bounds."""
    model = model.double().to_empty(device="cpu")
    for name, tensor in model.state_dict().items():
        if tensor.dim() > 1:
            tensor.uniform_(-1, 1).mul_((6 / tensor[0].numel()) ** 0.5)
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
    """The largest difference of an array, relative to its norm or a hundredth of all's."""
    norms = torch.stack([one.detach().norm() for one in expected])
    differences = torch.stack(
        [(a - b).detach().norm() for a, b in zip(found, expected, strict=True)]
    )
    return float((differences / norms.clamp(min=0.01 * norms.norm())).max())


def computed(model: torch.nn.Module, images: torch.Tensor, training: bool) -> list[torch.Tensor]:
    outputs = model.train(training)(images)
    is_ours = isinstance(model, cnn.ConvolutionalNetwork)
    return list(outputs if is_ours else torchvision_cnn.logits_of(outputs))


class Allocated(TorchDispatchMode):
    """``bytes`` that operations put out in memory of their own, beside that of their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        results = operation(*args, **(kwargs or {}))
        held = {one.untyped_storage().data_ptr() for one in _tensors((args, kwargs))}
        for one in _tensors(results):
            if one.untyped_storage().data_ptr() not in held:
                self.bytes += one.untyped_storage().nbytes()
        return results


def _tensors(values: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]


def allocated(model: torch.nn.Module, images: torch.Tensor) -> int:
    """Bytes of a forward pass of inference."""
    with Allocated() as counted:
        computed(model, images, False)
    return counted.bytes


def compared(name: str) -> dict[str, Any]:
    facts = read_model(str(ROOT / f"scripts/models/{name}.json"))
    size = SIZES.get(name, SIZE)
    facts["inputs"][0]["shape"] = ["batch", size, size, 3]
    with torch.device("meta"):
        theirs = torchvision_cnn.network(name, 1000)
        own = cnn.build(facts)
    theirs = filled(theirs)
    # the same weights; running statistics are among what each has a copy of
    state = {key: one if one.dim() > 1 else one.clone() for key, one in theirs.state_dict().items()}
    own.load_state_dict(state, assign=True)
    found: dict[str, Any] = {"rates": rates(own), "their_rates": rates(theirs)}
    images = torch.randn(BATCH, 3, size, size, dtype=torch.float64)
    both = (without_dropout(own), without_dropout(theirs))
    with torch.no_grad():
        found["inference"] = distance(*(computed(model, images, False) for model in both))
        found["bytes"], found["their_bytes"] = (allocated(model, images) for model in both)
    outputs = [computed(model, images, True) for model in both]
    found["train"], found["heads"] = distance(*outputs), len(outputs[0])
    shares = [torch.randn_like(one) for one in outputs[1]]
    for one in outputs:
        sum((share * logits).sum() for share, logits in zip(shares, one, strict=True)).backward()
    gradients = [dict(model.named_parameters()) for model in both]
    found["gradients"] = distance(
        *([one[key].grad for key in sorted(gradients[1])] for one in gradients)
    )
    statistics = [dict(model.named_buffers()) for model in both]
    found["statistics"] = distance(
        *(
            [one[key].double() for key in sorted(statistics[1])] or [torch.ones(1)]
            for one in statistics
        )
    )
    return found


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(json.dumps({name: compared(name) for name in sys.argv[1:]}))
