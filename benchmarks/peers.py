"""Our models against the official code of each framework, in turn in one process.

    .venv/bin/python benchmarks/peers.py [--framework paddle ..] [--results results/peers]

Same inputs, batch, optimizer, learning rate, fp32, and one thread on each physical core. Goal: ours
at least GOAL of theirs, by the interval over the rounds; per multiply-add where the architectures
differ. Writes ``FRAMEWORK.csv`` and ``FRAMEWORK.md`` after each measurement. A verdict is "unsure"
where the interval includes the goal.

What official code needs beyond ``envs/FRAMEWORK.yaml`` goes into an environment below ``.peers``;
code that is in no package is fetched from its repository. What needs no packages runs in the
environment of the workflow. :func:`measure` runs in these environments: Python 3.7 to 3.13.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]
GOAL = 0.97
FEWEST_ROUNDS = 6
MODES = ("train", "inference")
RESNET, BERT = "resnet50_v1.5", "bert_base"
#: Samples of a step, unless ``--batch`` says otherwise.
BATCHES = {RESNET: 8, BERT: 2}
SEQUENCE = 128
#: Multiply-adds of an image with the stride in the first convolution of a block, as in ResNet v1.
V1 = 3857973248


class Peer(NamedTuple):
    """Code of others. ``function``: in ``peer_models/FRAMEWORK.py``; ``multiply_adds``:
    multiply-adds of a sample, 0 for as many as ours."""

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
#: Compilers other than "none" and the framework's own: nobody trains with JAX op by op, and XLA in
#: TensorFlow 1 takes many minutes for a whole ResNet-50.
COMPILERS = {"jax": ("jit",), "tensorflow1": ("none",)}
COLUMNS = (
    *("framework", "model", "peer", "mode", "compiler", "batch", "cores", "rounds", "ours_ms"),
    *("theirs_ms", "theirs_multiply_adds", "ratio", "ratio_low", "ratio_high", "verdict"),
)


def read_config(model: str) -> dict[str, Any]:
    from harness.declaration import read_model

    return read_model(str(ROOT / "scripts" / "models" / (model + ".json")))


# ---- in the framework's environment --------------------------------------------------------------


def ours(config: dict[str, Any], batch: dict[str, Any], options: argparse.Namespace) -> Any:
    from harness.adapter import Case, RankContext
    from harness.adapter.base import load_adapter
    from peer_models import loop

    length = SEQUENCE if config["sequence_lengths"] else None
    counts = 1, 1, len(next(iter(batch.values())))
    axes = options.model, options.mode, *counts, "fp32", options.compiler, length
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", len(os.sched_getaffinity(0)), 0)
    folder = str(ROOT / "scripts" / "frameworks" / options.inside)
    adapter = load_adapter(folder, Case(options.inside, *axes), config, rank_context)
    adapter.start()
    adapter.build(batch)
    return loop(adapter.step, adapter.synchronize)


def measure(options: argparse.Namespace) -> None:
    """Print the step seconds of our and the official model in each round, by name, as JSON."""
    import in_turn
    from harness.measuring.model import make_batch
    from peer_models import Assignment

    config = read_config(options.model)
    for entry in config["inputs"]:
        if entry["name"] == "images":
            entry["shape"][1:3] = [options.image_size] * 2
    length = SEQUENCE if config["sequence_lengths"] else None
    batch = make_batch(config["inputs"], options.batch or BATCHES[options.model], length, 0, 0)
    runs = {"ours": ours(config, batch, options)}
    work = Assignment(batch, config["hyperparameters"], options.mode == "train", options.compiler)
    module = import_module("peer_models." + options.inside)
    for peer in PEERS:
        if (peer.framework, peer.model) == (options.inside, options.model):
            runs[peer.name] = getattr(module, peer.function)(work)
    print(json.dumps(in_turn.measure(runs, options.rounds, options.steps)))


# ---- in the environment of the workflow ----------------------------------------------------------


def environment(name: str, framework: str = "") -> str:
    """Return the interpreter of an environment with the official code, building it on first use.
    ``name``: name of its packages; ``framework``: whose environment file they are added to."""
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
        settings, tool = uv.pip_settings(), uv.executable()
        variables = uv.variables(settings, file.indexes)
        venvs.make_venv(file.python, folder)
        # FlowVision's setup imports pkg_resources, which setuptools 81 dropped.
        constraints = folder / "build.txt"
        constraints.write_text("setuptools==80.9.0\n")
        install = [tool, "pip", "install", "--quiet", "--python", str(python), "--no-deps"]
        install += ["--build-constraints", str(constraints), *uv.arguments(settings)]
        subprocess.run([*install, *wanted], check=True, env=variables)
        installed.write_text("\n".join(wanted))
    return str(python)


def use_physical_cores() -> None:
    """Run this process and its children on one thread of each physical core."""
    from harness import cores, hardware

    usable = cores.allowed()
    os.sched_setaffinity(0, cores.deal(usable, 1, len(hardware.physical_cores(usable)))[0])
    os.environ["OMP_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))


def compilers(framework: str) -> tuple[str, ...]:
    path = ROOT / "scripts" / "frameworks" / framework / "framework.json"
    native = json.loads(path.read_text())["native_compiler"]
    return COMPILERS.get(framework, ("none", native) if native else ("none",))


def rows_of(
    framework: str, options: argparse.Namespace, seconds: dict[str, list[float]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the row of each peer from the seconds of a step by name."""
    import in_turn
    from framebench.statistics import descriptive

    own_multiply_adds = read_config(options.model)["forward_multiply_adds"].get("per_sample")
    mine = seconds["ours"]
    for peer in PEERS:
        if (peer.framework, peer.model) != (framework, options.model):
            continue
        share = peer.multiply_adds / own_multiply_adds if peer.multiply_adds else 1.0
        theirs = seconds[peer.name]
        ratio, low, high = in_turn.ratio(mine, [second / share for second in theirs])
        yield (
            *(framework, options.model, peer.name, options.mode, options.compiler),
            *(options.batch or BATCHES[options.model], len(os.sched_getaffinity(0)), len(mine)),
            *(round(1000 * descriptive.median(values), 2) for values in (mine, theirs)),
            *(round(value, 3) for value in (share, ratio, low, high)),
            "met" if low >= GOAL else "missed" if high < GOAL else "unsure",
        )


def write(columns: Sequence[str], rows: list[tuple[Any, ...]], path: Path) -> None:
    """Write the rows as ``path.csv`` and, as a Markdown table, ``path.md``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    lines = [columns, ["---"] * len(columns), *rows]
    text = "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
    path.with_suffix(".md").write_text(text, encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--framework", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    parser.add_argument("--model", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--compiler", nargs="+", help="default: none and the framework's own")
    parser.add_argument("--rounds", type=int, default=10, help=f"at least {FEWEST_ROUNDS}")
    parser.add_argument("--steps", type=int, default=4, help="of a loop in a round")
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
        measure(argparse.Namespace(**options.inside))
        sys.stdout.flush()
        os._exit(0)  # MindSpore raises thousands of errors when Python ends
    use_physical_cores()
    failed = False
    common = {key: getattr(options, key) for key in ("rounds", "steps", "batch", "image_size")}
    for framework in options.framework:
        python, rows = environment(framework), []
        models = {peer.model for peer in PEERS if peer.framework == framework}
        for model, compiler, mode in product(
            [model for model in options.model if model in models],
            options.compiler or compilers(framework),
            options.mode,
        ):
            case = argparse.Namespace(
                **common, inside=framework, model=model, compiler=compiler, mode=mode
            )
            ran = subprocess.run(
                [python, __file__, "--inside", json.dumps(vars(case))],
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if ran.returncode:
                print(f"{framework} {model} {compiler} {mode} failed: see above", file=sys.stderr)
                failed = True
                continue
            for row in rows_of(framework, case, json.loads(ran.stdout.splitlines()[-1])):
                print(*row, flush=True)
                rows.append(row)
            write(COLUMNS, rows, options.results / framework)
        failed |= any(row[-1] == "missed" for row in rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
