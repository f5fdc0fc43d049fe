"""Our models against the official code of each framework, in turn in one process.

    .venv/bin/python benchmarks/peers.py [--framework paddle ..] [--results results/peers]

Same inputs, batch, optimizer, learning rate, fp32, and one thread on each physical core. Goal: our
model has at least GOAL of the official code's speed, per multiply-add where the architectures
differ. The verdict is "unsure" where the interval over the rounds includes the goal. Writes
``FRAMEWORK.csv`` after each measurement.

What official code needs beyond ``envs/FRAMEWORK.yaml`` goes into an environment below ``.peers``;
code that is in no package is fetched from its repository. :func:`measure` and :func:`build_ours`
run in these environments: Python 3.7 to 3.13.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Sequence
from urllib.request import urlopen

import in_turn
from in_turn import ROOT

GOAL = 0.97
FEWEST_ROUNDS = 6
MODES = ("train", "inference")
RESNET, BERT = "resnet50_v1.5", "bert_base"
#: Samples of a step, unless ``--batch`` says otherwise.
BATCHES = {RESNET: 8, BERT: 2}
SEQUENCE = 128
#: Multiply-adds per image of ResNet v1, whose blocks have the stride in their first convolution.
V1 = 3857973248


class Peer(NamedTuple):
    """Model in official code. ``function``: in ``peer_models/FRAMEWORK.py``; ``multiply_adds``: per
    sample, 0 if the same as in our model."""

    framework: str
    model: str
    name: str
    function: str
    multiply_adds: int = 0


PEERS = (
    Peer("jax", RESNET, "flax examples/imagenet", "resnet50"),
    Peer("jax", BERT, "transformers", "bert"),
    Peer("megengine", RESNET, "MegEngine/Models", "resnet50"),
    Peer("mindspore", RESNET, "mindcv", "resnet50"),
    Peer("mxnet", RESNET, "gluon.model_zoo", "resnet50", V1),
    Peer("mxnet", BERT, "gluonnlp", "bert"),
    Peer("oneflow", RESNET, "flowvision", "resnet50"),
    Peer("paddle", RESNET, "paddle.vision", "resnet50"),
    Peer("pytorch", RESNET, "torchvision", "torchvision_resnet50"),
    Peer("pytorch", RESNET, "timm", "timm_resnet50"),
    Peer("pytorch", BERT, "transformers", "bert"),
    Peer("tensorflow", RESNET, "keras.applications", "resnet50", V1),
    Peer("tensorflow", BERT, "keras_hub", "bert"),
    Peer("tensorflow1", RESNET, "tf.keras.applications", "resnet50", V1),
    Peer("tensorflow1", BERT, "google bert", "bert"),
)
FRAMEWORKS = tuple(dict.fromkeys(peer.framework for peer in PEERS))
#: Address of a module that is in no package, by framework. It becomes ``official_FRAMEWORK``.
SOURCES = {
    "jax": "google/flax/18f8f311c275d57f46d95e41b15aa97b454754c0/examples/imagenet/models.py",
    "megengine": "MegEngine/Models/78882f9cbaa037ad701f47d47bb80b66ad95ce87/official/vision/"
    "classification/resnet/model.py",
}
#: Exceptions to the default compilers, "none" and the framework's own: nobody trains with JAX op by
#: op, and XLA in TensorFlow 1 takes many minutes for a whole ResNet-50.
COMPILERS = {"jax": ("jit",), "tensorflow1": ("none",)}
COLUMNS = (
    *("framework", "model", "peer", "mode", "compiler", "batch", "cores", "rounds", "ours_ms"),
    *("theirs_ms", "theirs_multiply_adds", "ratio", "ratio_low", "ratio_high", "verdict"),
)


def read_config(model: str) -> dict[str, Any]:
    from harness.declaration import read_model

    return read_model(str(ROOT / "scripts" / "models" / (model + ".json")))


def peers_of(framework: str, model: str) -> list[Peer]:
    return [peer for peer in PEERS if (peer.framework, peer.model) == (framework, model)]


def build_ours(
    framework: str, model: str, mode: str, compiler: str, batch: int, image_size: int = 224
) -> tuple[Any, dict[str, Any]]:
    """Return our adapter with the model built, in fp32 on all cores, and its arrays by name."""
    from harness.adapter import Case, RankContext
    from harness.adapter.base import load_adapter
    from harness.measuring.model import make_batch

    config = read_config(model)
    for entry in config["inputs"]:
        if entry["name"] == "images":
            entry["shape"][1:3] = [image_size] * 2
    length = SEQUENCE if config["sequence_lengths"] else None
    case = Case(framework, model, mode, 1, 1, batch, "fp32", compiler, length)
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", len(os.sched_getaffinity(0)), 0)
    folder = str(ROOT / "scripts" / "frameworks" / framework)
    adapter = load_adapter(folder, case, config, rank_context)
    arrays = make_batch(config["inputs"], batch, length, 0, 0)
    adapter.start()
    adapter.build(arrays)
    return adapter, arrays


def measure(case: argparse.Namespace) -> dict[str, Any]:
    """Return the step seconds of our and the official model in each round, by name."""
    from peer_models import Assignment, loop

    adapter, arrays = build_ours(
        case.framework, case.model, case.mode, case.compiler, case.batch, case.image_size
    )
    runs = {"ours": loop(adapter.step, adapter.synchronize)}
    hyper = adapter.model_config["hyperparameters"]
    work = Assignment(arrays, hyper, case.mode == "train", case.compiler)
    module = import_module("peer_models." + case.framework)
    for peer in peers_of(case.framework, case.model):
        runs[peer.name] = getattr(module, peer.function)(work)
    return in_turn.measure(runs, case.rounds, case.steps)


def environment(name: str, framework: str = "") -> str:
    """Return the interpreter of an environment with the official code, building it on first use.
    ``name``: stem of its package list; ``framework``: framework to install, by default ``name``."""
    from framebench.environments import uv, venvs

    source = ROOT / ".peers" / "sources" / f"official_{name}.py"
    if name in SOURCES and not source.is_file():
        source.parent.mkdir(parents=True, exist_ok=True)
        with urlopen(f"https://raw.githubusercontent.com/{SOURCES[name]}") as answer:
            source.write_bytes(answer.read())
    file = venvs.read_environment_file(ROOT / "envs" / f"{framework or name}.yaml")
    packages = Path(__file__).parent / "peer_models" / f"{name}.txt"
    if not packages.is_file():
        return str(ROOT / ".venvs" / file.name / "bin" / "python")
    folder = ROOT / ".peers" / name
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    wanted = [*file.packages, *packages.read_text().split()]
    if not installed.is_file() or installed.read_text().split() != wanted:
        settings = uv.pip_settings()
        venvs.make_venv(file.python, folder)
        # FlowVision's setup imports pkg_resources, which setuptools 81 dropped.
        constraints = folder / "build.txt"
        constraints.write_text("setuptools==80.9.0\n")
        install = ["pip", "install", "--quiet", "--python", str(python), "--no-deps"]
        install += ["--build-constraints", str(constraints), *uv.arguments(settings), *wanted]
        uv.run(install, uv.variables(settings, file.indexes)).check_returncode()
        installed.write_text("\n".join(wanted))
    return str(python)


def use_physical_cores() -> None:
    """Run this process and its children on one thread of each physical core."""
    from harness import cores, hardware

    cores.restrict(len(hardware.physical_cores(cores.allowed())))
    os.environ["OMP_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))


def compilers(framework: str) -> tuple[str, ...]:
    path = ROOT / "scripts" / "frameworks" / framework / "framework.json"
    native = json.loads(path.read_text())["native_compiler"]
    return COMPILERS.get(framework, ("none", native) if native else ("none",))


def rows_of(case: argparse.Namespace, seconds: dict[str, list[float]]) -> Iterator[tuple[Any, ...]]:
    """Yield the row of each peer from the seconds of a step by name."""
    from framebench.statistics import descriptive

    own_multiply_adds = read_config(case.model)["forward_multiply_adds"].get("per_sample")
    mine = seconds["ours"]
    for peer in peers_of(case.framework, case.model):
        share = peer.multiply_adds / own_multiply_adds if peer.multiply_adds else 1.0
        theirs = seconds[peer.name]
        ratio, low, high = in_turn.ratio(mine, [second / share for second in theirs])
        yield (
            *(case.framework, case.model, peer.name, case.mode, case.compiler),
            *(case.batch, len(os.sched_getaffinity(0)), len(mine)),
            *(round(1000 * descriptive.median(values), 2) for values in (mine, theirs)),
            *(round(value, 3) for value in (share, ratio, low, high)),
            "met" if low >= GOAL else "missed" if high < GOAL else "unsure",
        )


def write(columns: Sequence[str], rows: list[tuple[Any, ...]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--framework", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    parser.add_argument("--model", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--compiler", nargs="+", help="default: none and the framework's own")
    parser.add_argument("--rounds", type=int, default=10, help=f"at least {FEWEST_ROUNDS}")
    parser.add_argument("--steps", type=int, default=4, help="steps of a loop in a round")
    parser.add_argument("--batch", type=int, help=f"default: {BATCHES}")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "peers")
    parser.add_argument("--inside", metavar="JSON", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds: found {options.rounds}; allowed: at least {FEWEST_ROUNDS}")
    return options


def main() -> int:
    options = parse()
    if options.inside:
        print(json.dumps(measure(argparse.Namespace(**options.inside))), flush=True)
        os._exit(0)  # MindSpore raises thousands of errors when Python ends
    use_physical_cores()
    failed = False
    common = {key: getattr(options, key) for key in ("rounds", "steps", "image_size")}
    for framework in options.framework:
        python, rows = environment(framework), []
        models = [model for model in options.model if peers_of(framework, model)]
        tried = product(models, options.compiler or compilers(framework), options.mode)
        for model, compiler, mode in tried:
            case = argparse.Namespace(
                **common, framework=framework, model=model, compiler=compiler, mode=mode
            )
            case.batch = options.batch or BATCHES[model]
            try:
                seconds = in_turn.run_inside(python, __file__, vars(case))
            except subprocess.CalledProcessError:
                print(f"{framework} {model} {compiler} {mode} failed: see above", file=sys.stderr)
                failed = True
                continue
            for row in rows_of(case, seconds):
                print(*row, flush=True)
                rows.append(row)
            write(COLUMNS, rows, options.results / f"{framework}.csv")
        failed |= any(row[-1] == "missed" for row in rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
