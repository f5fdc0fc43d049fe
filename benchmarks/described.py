"""The handwritten ResNet-50 of each framework against the described one, which an interpreter of
``scripts/networks`` runs: the same weights and batch, steps in turn in one process a framework.

    .venv/bin/python benchmarks/described.py [--frameworks jax mxnet] [--rounds 12] [--steps 2]

Goal: the described one keeps 99 % of the handwritten one's speed in training and in inference
(ratio at least 0.99). What the interval leaves open is not missed. That both compute the same is
looked at first, in outputs and gradients. Frameworks run as everybody trains with them: JAX with
``jit``, the others without a compiler. One core; the environments are those that the workflow
built.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]
HANDWRITTEN, DESCRIBED = "resnet50_v1.5", "resnet50"
BATCH = 2
GOAL = 0.99
#: Of outputs and gradients: float32, sums in another order, fifty layers.
SAME = 1e-3
FRAMEWORKS = sorted(one.parent.name for one in ROOT.glob("scripts/frameworks/*/framework.json"))


# ---- in a framework's environment: Python 3.7 to 3.13 -------------------------------------------


def started(cls: Any, framework: str, model: str, mode: str, compiler: str) -> Any:
    from harness.adapter import Case, Place
    from harness.request.declaration import read_model

    facts = read_model(str(ROOT / f"scripts/models/{model}.json"))
    case = Case(framework, model, mode, 1, 1, BATCH, "fp32", compiler, None)
    adapter = cls(case, facts, Place(0, 0, ["127.0.0.1:0"], "cpu", 1, 0))
    adapter.start()
    if framework == "pytorch":
        import torch

        torch.set_num_interop_threads = lambda number: None  # it can be called but once
    return adapter


def distance(handwritten: Any, described: Any, names: dict[str, str]) -> float:
    """Of outputs and, in training, gradients, where the described network has the weights of the
    handwritten one. ``names``: by those of that one."""
    import numpy as np

    weights = handwritten.weights()
    weights.update(handwritten.statistics())
    described.load_weights({names[name]: array for name, array in weights.items()})
    pairs = [(handwritten.outputs()[0], described.outputs()[0])]
    if handwritten.case.mode == "train":
        wanted, found = handwritten.gradients(), described.gradients()
        whole = np.concatenate([array.ravel() for array in wanted.values()])
        pairs.append((whole, np.concatenate([found[names[name]].ravel() for name in wanted])))
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in pairs)


def measure(framework: str, mode: str, compiler: str, names: dict[str, str], given: Any) -> None:
    """Prints the distance of what both compute, and by name the seconds of a step in each round."""
    import in_turn
    from harness.measuring.loading import load_adapter
    from harness.measuring.synthetic import make_batch

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    cls = load_adapter(str(ROOT / "scripts/frameworks" / framework))
    adapters = {
        model: started(cls, framework, model, mode, compiler) for model in (HANDWRITTEN, DESCRIBED)
    }
    for adapter in adapters.values():
        adapter.build(make_batch(adapter.facts["inputs"], BATCH, None, 0, 0))

    far = distance(adapters[HANDWRITTEN], adapters[DESCRIBED], names)
    loops = {
        model: in_turn.repeated(adapter.step, given.steps, adapter.synchronize)
        for model, adapter in adapters.items()
    }
    seconds = in_turn.measure(loops, given.rounds, given.steps)
    print("\n" + json.dumps({"distance": far, "seconds": seconds}), flush=True)
    os._exit(0)  # no framework's threads hold it up


# ---- in the driver's environment ----------------------------------------------------------------


def same_arrays() -> dict[str, str]:
    """The name of each array of the described network, by that of the handwritten one. Raises
    ValueError where one is of another shape."""
    import networks
    from harness.request.declaration import read_model
    from reference import resnet50_v1_5

    facts = [read_model(str(ROOT / f"scripts/models/{m}.json")) for m in (HANDWRITTEN, DESCRIBED)]
    arrays = [resnet50_v1_5.parameters(facts[0]), networks.weights(networks.describe(facts[1]))]
    shapes = [[tuple(array.shape) for array in one.values()] for one in arrays]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{HANDWRITTEN} and {DESCRIBED} have other arrays")
    return dict(zip(*arrays, strict=True))


def report(framework: str, mode: str, found: dict[str, Any]) -> bool:
    """Prints a line; whether both compute the same and the goal is met."""
    import in_turn

    handwritten, described = (found["seconds"][model] for model in (HANDWRITTEN, DESCRIBED))
    ratio, low, high = in_turn.ratio(described, handwritten)
    same = found["distance"] < SAME
    print(
        f"{framework:12} {mode:9} handwritten {in_turn.milliseconds(handwritten)}, described "
        f"{in_turn.milliseconds(described)}: {ratio:.3f} [{low:.3f}, {high:.3f}] (goal: at least "
        f"{GOAL}); {'the same' if same else 'NOT the same'}: {found['distance']:.1e} apart",
        flush=True,
    )
    return same and high >= GOAL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        framework, mode, compiler, names = given.inside
        measure(framework, mode, compiler, json.loads(names), given)
        return 0
    from framebench.config.catalog import load_catalog
    from framebench.environments.venvs import read_environment_file
    from harness.processes.launch import common_environment

    names, met = json.dumps(same_arrays()), True
    for framework in given.frameworks:
        compiler = load_catalog(ROOT).frameworks[framework].get("trained_with", "none")
        for mode in ("train", "inference"):
            counts = [f"--rounds={given.rounds}", f"--steps={given.steps}"]
            folder = read_environment_file(ROOT / "envs" / f"{framework}.yaml").name
            python = ROOT / ".venvs" / folder / "bin" / "python"
            ran = subprocess.run(
                [python, __file__, *counts, "--inside", framework, mode, compiler, names],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=common_environment(dict(os.environ), "venv", "cpu", cores_per_device=1),
            )
            met &= report(framework, mode, json.loads(ran.stdout.splitlines()[-1]))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
