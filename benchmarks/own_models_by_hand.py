"""Harness against a training loop written by hand around the same own model.

    .venv/bin/python benchmarks/own_models_by_hand.py [MODEL ..] [--batch 8] [--seconds 40]

Both take blocks of steps in turn in one process per model of ``benchmarks/own_models``, on one
core. Goal: a step takes at most 1.01 of one by hand, by the median over pairs of blocks. Runs in
environments that the workflow built, with the packages that the files import (docs/own-model.md).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]
FOLDER = ROOT / "benchmarks" / "own_models"
#: Framework of each model, and a package that its environment must have.
MODELS = {
    "encoder": ("pytorch", "transformers"),
    "decoder": ("pytorch", "transformers"),
    "vit": ("pytorch", "timm"),
    "unet": ("pytorch", "torch"),
    "mixer": ("jax", "flax"),
    "convnet": ("tensorflow", "keras"),
}
COMPILERS = {"pytorch": "none", "jax": "jit", "tensorflow": "none"}
GOAL = 1.01
#: Seconds of a block: short, so that the machine is the same for both of a pair.
BLOCK = 0.25

Step = Callable[[], Any]


def pytorch_step(module: ModuleType, batch: int) -> Step:
    import torch

    torch.manual_seed(0)
    model, (inputs, targets), loss = module.make(batch)
    optimizer = module.optimizer(model.parameters())
    model.train()

    def step() -> Any:
        optimizer.zero_grad()
        outputs = model(**inputs) if isinstance(inputs, dict) else model(inputs)
        value = loss(outputs, targets)
        value.backward()
        optimizer.step()

    return step


def jax_step(module: ModuleType, batch: int) -> Step:
    import jax
    import optax

    key = jax.random.PRNGKey(0)
    model, (inputs, targets), loss = module.make(batch, key)
    optimizer = module.optimizer()
    parameters = model.init(key, inputs)["params"]
    state = parameters, optimizer.init(parameters)

    def update(state: Any, inputs: Any, targets: Any) -> Any:
        def loss_of(parameters: Any) -> Any:
            return loss(model.apply({"params": parameters}, inputs), targets)

        parameters, moments = state
        value, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, moments = optimizer.update(gradients, moments, parameters)
        return (optax.apply_updates(parameters, updates), moments), value

    compiled = jax.jit(update, donate_argnums=0)

    def step() -> Any:
        nonlocal state
        state, value = compiled(state, inputs, targets)
        value.block_until_ready()

    return step


def tensorflow_step(module: ModuleType, batch: int) -> Step:
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model, (inputs, targets), loss = module.make(batch)
    optimizer = module.optimizer()
    model(inputs)
    optimizer.build(model.trainable_variables)

    @tf.function
    def update(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(targets, model(inputs, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    return lambda: update(inputs, targets)


BY_HAND = {"pytorch": pytorch_step, "jax": jax_step, "tensorflow": tensorflow_step}


def measure(name: str, batch: int, seconds: float) -> dict[str, list[float]]:
    """Return the seconds of a step in each block, by loop, after ``seconds`` of blocks."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    from harness.adapter import Case, RankContext, own_module
    from harness.measuring import window
    from harness.measuring.loading import load_adapter
    from harness.measuring.model import seed_of_batch
    from harness.request.own_model import model_config

    framework = MODELS[name][0]
    config = model_config(str(FOLDER / f"{name}.py"))
    case = Case(framework, name, "train", 1, 1, batch, "fp32", COMPILERS[framework], None)
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", 1, 0)
    folder = ROOT / "scripts" / "frameworks" / framework
    adapter = load_adapter(str(folder))(case, config, rank_context)
    adapter.start()
    adapter.build(seed_of_batch(0, 0))
    step = BY_HAND[framework](own_module(config), batch)
    ahead = window.run_ahead(adapter)

    def by_hand(count: int) -> float:
        gc.collect()
        start = time.perf_counter()
        for _ in range(count):
            step()
        return (time.perf_counter() - start) / count

    def in_harness(count: int) -> float:
        return window.measure(adapter, count, ahead).seconds / count

    loops = {"harness": in_harness, "by hand": by_hand}
    for loop in loops.values():
        loop(5)
    count = max(3, round(BLOCK / by_hand(5)))
    results: dict[str, list[float]] = {kind: [] for kind in loops}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(results["by hand"]) % 2:
        kinds = [*loops] if len(results["by hand"]) % 2 else [*loops][::-1]
        for kind in kinds:
            results[kind].append(loops[kind](count))
    return results


def interpreter(environments: Path, name: str) -> Path | None:
    """Return the Python of an environment with what the model imports; None without one."""
    framework, package = MODELS[name]
    generator = environments.glob(f"{framework}-*/lib/python3*/site-packages/{package}")
    return next((path.parents[3] / "bin" / "python" for path in sorted(generator)), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40, help="of blocks, for each model")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venvs")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure(options.models[0], options.batch, options.seconds)))
        return 0
    from in_turn import milliseconds, ratio

    missed = 0
    for name in options.models or MODELS:
        python = interpreter(options.environments, name)
        if python is None:
            print(f"{name}: no environment in {options.environments} has {MODELS[name][1]}")
            missed += 1
            continue
        arguments = [name, "--inside", f"--batch={options.batch}", f"--seconds={options.seconds}"]
        ran = subprocess.run(
            [str(python), __file__, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        if ran.returncode:
            print(f"{name}: {ran.stderr}")
            missed += 1
            continue
        content = json.loads(ran.stdout.splitlines()[-1])
        middle, low, high = ratio(content["by hand"], content["harness"])
        missed += middle > GOAL
        print(
            f"{name}: harness {milliseconds(content['harness'])}, by hand "
            f"{milliseconds(content['by hand'])}; ratio {middle:.4f} [{low:.4f}, {high:.4f}] of "
            f"{len(content['by hand'])} pairs of blocks, goal at most {GOAL}",
            flush=True,
        )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
