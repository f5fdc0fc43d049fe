"""PyTorch models of Framebench against those of torchvision, timm and transformers.

    .venv/bin/python benchmarks/peers.py [--rounds 8] [--steps 2] [--models resnet50 gpt2_small]
     [--modes train inference] [--tuned]

All have the same weight shapes, batch, optimizer and cores, and take steps in turn in one process.
Goal: no peer takes less time for a step than ours (ratio at least 1.00). ``--tuned``: all with the
variables of ``config/tuned.yaml``, without a goal. A separate environment, ``.peers``, is made from
the indexes in pip's settings. One core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]
#: Packages besides the PyTorch of its environment file, which this torchvision fits.
PACKAGES = ("torchvision==0.28.0", "timm==1.0.28", "transformers==5.23.0")
BATCHES = {"resnet50": 4, "bert_base": 1, "gpt2_small": 1}
SEQUENCE = 128
GOAL = 1.0
MODES = ("train", "inference")

Step = Callable[[], Any]


def tuned() -> dict[str, str]:
    """Return the variables of the variant ``tuned``."""
    from framebench.config.catalog import load_catalog
    from framebench.config.tuned import load_tuned, variables

    return variables(load_tuned(load_catalog(ROOT)).settings("pytorch"), "cpu", "none")


def environment() -> str:
    """Return the interpreter with PyTorch and PACKAGES, installing them on first use."""
    from framebench.environments import uv
    from framebench.environments.venvs import read_environment_file

    pytorch = read_environment_file(ROOT / "envs" / "pytorch.yaml").pin("torch")
    packages = (pytorch, *PACKAGES)
    folder = ROOT / ".peers"
    python = folder / "bin" / "python"
    installed = folder / "installed.txt"
    if not installed.is_file() or installed.read_text() != "\n".join(packages):
        settings = uv.pip_settings()
        variables = {**os.environ, **uv.variables(settings)}
        tool = uv.executable()
        subprocess.run([tool, "venv", "-q", "--clear", str(folder)], check=True, env=variables)
        arguments = ["pip", "install", "-q", "--python", str(python), *uv.arguments(settings)]
        subprocess.run([tool, *arguments, *packages], check=True, env=variables)
        installed.write_text("\n".join(packages))
    return str(python)


# ---- in that environment ------------------------------------------------------------------


def ours(model: str, mode: str, batch: dict[str, Any]) -> Step:
    from harness.adapter import Case, RankContext
    from harness.measuring.loading import load_adapter
    from harness.request.declaration import read_model

    model_config = read_model(str(ROOT / f"scripts/models/{model}.json"))
    length = SEQUENCE if model_config["sequence_lengths"] else None
    size = len(next(iter(batch.values())))
    case = Case("pytorch", model, mode, 1, 1, size, "fp32", "none", length)
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", 1, 0)
    adapter = load_adapter(str(ROOT / "scripts/frameworks/pytorch"))(
        case, model_config, rank_context
    )
    adapter.start()
    import torch

    torch.set_num_interop_threads = lambda number: None  # can only be called once
    adapter.build(batch)
    return adapter.step


def theirs(peer: str, model: str, mode: str, batch: dict[str, Any], hyper: dict[str, Any]) -> Step:
    import torch

    # skip operators of torchvision's extension, which PyTorch for CPUs does not load
    sys.modules["torchvision._meta_registrations"] = ModuleType("_meta_registrations")
    tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
    built, forward, loss = PEERS[model, peer](tensors, hyper)
    built.train(mode == "train")
    if mode == "inference":

        def infer() -> Any:
            with torch.inference_mode():
                return forward()

        return infer
    adam = hyper["optimizer"] == "adamw"
    rates = {"lr": hyper["learning_rate"], "weight_decay": hyper["weight_decay"], "fused": True}
    if adam:
        rates |= {"betas": (hyper["beta1"], hyper["beta2"]), "eps": hyper["epsilon"]}
        optimizer: Any = torch.optim.AdamW(built.parameters(), **rates)
    else:
        optimizer = torch.optim.SGD(built.parameters(), momentum=hyper["momentum"], **rates)

    def train() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = loss(forward())
        value.backward()
        if "clip_global_norm" in hyper:
            torch.nn.utils.clip_grad_norm_(built.parameters(), hyper["clip_global_norm"])
        optimizer.step()
        return value.detach()

    return train


Peer = tuple[Any, Callable[[], Any], Callable[[Any], Any]]


def _images(built: Any, tensors: dict[str, Any]) -> Peer:
    import torch
    import torch.nn.functional as F

    built = built.to(memory_format=torch.channels_last)
    images = tensors["images"].permute(0, 3, 1, 2)  # channels last in memory
    return built, lambda: built(images), lambda logits: F.cross_entropy(logits, tensors["labels"])


def torchvision_resnet50(tensors: dict[str, Any], hyper: dict[str, Any]) -> Peer:
    from torchvision.models import resnet50

    return _images(resnet50(weights=None), tensors)


def timm_resnet50(tensors: dict[str, Any], hyper: dict[str, Any]) -> Peer:
    import timm

    return _images(timm.create_model("resnet50", pretrained=False), tensors)


def transformers_bert(tensors: dict[str, Any], hyper: dict[str, Any]) -> Peer:
    """Return BERT with the token head only on the masked positions, as in our model."""
    import torch.nn.functional as F
    from transformers import BertConfig, BertForPreTraining

    built = BertForPreTraining(BertConfig())
    names = ("token_ids", "segment_ids", "attention_mask", "masked_positions")
    tokens, segments, mask, masked = (tensors[name] for name in names)

    def forward() -> Any:
        x, pooled = built.bert(tokens, mask, segments, return_dict=False)
        chosen = x.gather(1, masked[:, :, None].expand(-1, -1, x.shape[2]))
        return built.cls(chosen, pooled)

    def loss(outputs: Any) -> Any:
        logits, following = outputs
        found = F.cross_entropy(logits.flatten(0, 1), tensors["masked_labels"].flatten())
        return found + F.cross_entropy(following, tensors["next_sentence_labels"])

    return built, forward, loss


def transformers_gpt2(tensors: dict[str, Any], hyper: dict[str, Any]) -> Peer:
    import torch.nn.functional as F
    from transformers import GPT2Config, GPT2LMHeadModel

    built = GPT2LMHeadModel(GPT2Config(use_cache=False))

    def loss(logits: Any) -> Any:
        return F.cross_entropy(logits.flatten(0, 1), tensors["labels"].flatten())

    return built, lambda: built(tensors["token_ids"]).logits, loss


PEERS: dict[tuple[str, str], Callable[[dict[str, Any], dict[str, Any]], Peer]] = {
    ("resnet50", "torchvision"): torchvision_resnet50,
    ("resnet50", "timm"): timm_resnet50,
    ("bert_base", "transformers"): transformers_bert,
    ("gpt2_small", "transformers"): transformers_gpt2,
}


def measure(model: str, mode: str, rounds: int, steps: int) -> None:
    """Run all models in turn, and print the seconds of a step in each round by name as JSON."""
    import in_turn
    from harness.measuring.synthetic import make_batch
    from harness.request.declaration import read_model

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    model_config = read_model(str(ROOT / f"scripts/models/{model}.json"))
    length = SEQUENCE if model_config["sequence_lengths"] else None
    batch = make_batch(model_config["inputs"], BATCHES[model], length, 0, 0)
    loops = {"ours": ours(model, mode, batch)}
    for of, peer in PEERS:
        if of == model:
            loops[peer] = theirs(peer, model, mode, batch, model_config["hyperparameters"])
    repeated = {name: in_turn.repeated(step, steps) for name, step in loops.items()}
    print(json.dumps(in_turn.measure(repeated, rounds, steps)))


def report(model: str, mode: str, found: dict[str, list[float]], goal: str) -> bool:
    """Print a line for each peer with the text of its ``goal``; return whether all meet it."""
    import in_turn

    mine, met = found.pop("ours"), True
    for name, seconds in found.items():
        ratio, low, high = in_turn.ratio(mine, seconds)
        # An interval that includes the goal does not miss it.
        met &= high >= GOAL
        print(
            f"{model:10} {mode:9} {name:13} {in_turn.milliseconds(seconds)}, ours "
            f"{in_turn.milliseconds(mine)}: {ratio:.3f} [{low:.3f}, {high:.3f}] "
            f"({goal})",
            flush=True,
        )
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--models", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--tuned", action="store_true", help="with the variables of that variant")
    parser.add_argument("--inside", nargs=2, metavar=("MODEL", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(*options.inside, options.rounds, options.steps)
        return 0
    python, met = environment(), True
    settings = tuned() if options.tuned else {}
    goal = "tuned, no goal" if options.tuned else f"goal: at least {GOAL}"
    for model in options.models:
        for mode in options.modes:
            counts = [f"--rounds={options.rounds}", f"--steps={options.steps}"]
            ran = subprocess.run(
                [python, __file__, *counts, "--inside", model, mode],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **settings},
            )
            met &= report(model, mode, json.loads(ran.stdout.splitlines()[-1]), goal)
    return 0 if met or options.tuned else 1


if __name__ == "__main__":
    sys.exit(main())
