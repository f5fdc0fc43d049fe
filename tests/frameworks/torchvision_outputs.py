"""What the 35 networks of torchvision put out with weights and images that follow from a formula,
so that nothing but these few numbers is kept of it: ``python torchvision_outputs.py ours NAME..``,
or ``torchvision`` in the place of ``ours``, which was run with torchvision 0.28.0 to write
``tests/data/torchvision_outputs.json``. In inference, in float64; prints JSON."""

from __future__ import annotations

import csv
import json
import sys
import types
import zlib
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from harness.measuring.loading import load_adapter  # noqa: E402
from harness.request.declaration import read_model  # noqa: E402

LOGITS, CHUNK = 8, 1 << 22
#: Images as small as the deepest networks can do with.
SIZE = {"inception_v3": 299}


def noise(name: str, count: int) -> torch.Tensor:
    """``count`` numbers between -1 and 1: a hash of the name and of their places."""
    values = torch.empty(count, dtype=torch.float64)
    for begin in range(0, count, CHUNK):
        x = torch.arange(begin, min(begin + CHUNK, count)) + zlib.crc32(name.encode())
        for factor, shift in ((0x9E3779B1, 16), (0x85EBCA77, 13), (0xC2B2AE3D, 16)):
            x.mul_(factor).bitwise_and_(0xFFFFFFFF)
            x.bitwise_xor_(x >> shift)
        values[begin : begin + CHUNK] = x.double().div_(1 << 31).sub_(1)
    return values


def fill(model: torch.nn.Module) -> None:
    state = model.state_dict()
    for name, tensor in state.items():
        if name.endswith("num_batches_tracked"):
            continue
        values = noise(name, tensor.numel()).view(tensor.shape)
        if tensor.dim() > 1:
            values *= (6 / tensor[0].numel()) ** 0.5
        elif name.endswith("running_var") or f"{name[:-6]}running_var" in state:
            values = values * 0.3 + (0 if name.endswith("bias") else 1)
        else:
            values *= 0.3
        tensor.copy_(values)


def network(source: str, name: str, size: int) -> torch.nn.Module:
    if source == "ours":
        load_adapter(str(ROOT / "scripts/frameworks/pytorch"))
        from framework_under_test import cnn

        facts = read_model(str(ROOT / f"scripts/models/{name}.json"))
        facts["inputs"][0]["shape"] = ["batch", size, size, 3]
        return cnn.build(facts)
    # of a torchvision whose compiled operators do not load, which no classifier needs
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("_meta_registrations")
    import torchvision

    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **options)


def outputs(source: str, name: str) -> list[float]:
    size = SIZE.get(name, 64)
    with torch.device("meta"):
        model = network(source, name, size)
    model = model.double().to_empty(device="cpu").eval()
    with torch.no_grad():
        fill(model)
        found = model(noise("images", 3 * size * size).view(1, 3, size, size))
    logits = found[0] if isinstance(found, tuple) else found
    return [float(value) for value in logits[0, :LOGITS]]


if __name__ == "__main__":
    source, *names = sys.argv[1:]
    torch.set_num_threads(1)
    if not names:
        with (ROOT / "tests/data/torchvision_models_counted.csv").open() as file:
            names = [row["name"] for row in csv.DictReader(file)]
    print(json.dumps({name: outputs(source, name) for name in names}))
