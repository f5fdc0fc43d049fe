"""Gain of each setting of ``config/tuned.yaml`` on this machine, of allocators, and of huge pages.

    .venv/bin/python benchmarks/tuned_settings.py [--frameworks pytorch ..] [--mode inference]
     [--model resnet50_v1.5] [--only jemalloc ..] [--pairs 6] [--steps 8]

Measures pairs of fresh runs, with and without the setting, in turn. Prints the throughput with a
setting over that without: the median of the pairs, with its interval from six pairs on. There is no
goal. One core; the environments that the workflow built.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "workflow")]

from framebench.config import allocators  # noqa: E402
from framebench.config.catalog import load_catalog  # noqa: E402
from framebench.config.tuned import TunedSetting, load_tuned, variables  # noqa: E402
from framebench.environments.venvs import MARKER, read_environment_file  # noqa: E402
from framebench.statistics import descriptive, intervals  # noqa: E402

ACCELERATOR = "cpu"
BATCH, SEQUENCE = {False: 2, True: 1}, 128  # batch of images and of sequences, and their length


def variants(settings: list[TunedSetting]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, required compiler and harness arguments of each setting that acts here."""
    for setting in settings:
        if ACCELERATOR in setting.accelerators:
            compiler = setting.compiler or ""
            given = variables([setting], ACCELERATOR, compiler)
            arguments = [f"--variable={name}={value}" for name, value in given.items()]
            yield " ".join(given), compiler, arguments
    for name in allocators.known():
        if not allocators.missing(name):
            yield name, "", ["--preload", name]
    yield "huge pages", "", ["--huge-pages"]


def throughput(framework: str, words: list[str]) -> float | str:
    """Return the throughput of one run, or the reason why there is none."""
    file = read_environment_file(ROOT / "envs" / f"{framework}.yaml")
    python = ROOT / ".venvs" / file.name / "bin" / "python"
    if not (python.parent.parent / MARKER).is_file():
        return "its environment is not built"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "record.json")
        command = [str(python), str(ROOT / "scripts" / "harness"), *words, "--output", str(output)]
        command += ["--framework", str(ROOT / "scripts" / "frameworks" / framework)]
        subprocess.run(command, check=True, capture_output=True)
        record = json.loads(output.read_text())
    value: float | None = record["metrics"]["throughput"]["value"]
    return record["reason"] if value is None else value


def compare(framework: str, base: list[str], own: list[str], pairs: int) -> str:
    ratios: list[float] = []
    for number in range(pairs):
        found: dict[bool, float | str] = {}
        for tuned in (False, True) if number % 2 else (True, False):
            found[tuned] = throughput(framework, base + own if tuned else base)
        plain, tuned_one = found[False], found[True]
        if isinstance(plain, str) or isinstance(tuned_one, str):
            return plain if isinstance(plain, str) else str(tuned_one)
        ratios.append(tuned_one / plain)
    interval = intervals.median_interval(ratios)
    shown = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
    return f"{descriptive.median(ratios):.3f}{shown} over {pairs} pairs"


def main() -> int:
    catalog = load_catalog(ROOT)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", nargs="+", choices=catalog.frameworks, default=None)
    parser.add_argument("--model", choices=sorted(catalog.models), default="resnet50_v1.5")
    parser.add_argument("--mode", choices=("train", "inference"), default="inference")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names of settings")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    sequences = bool(catalog.models[options.model]["sequence_lengths"])
    base = ["--kind", options.mode, "--model", str(ROOT / f"scripts/models/{options.model}.json")]
    base += ["--batch-per-device", str(BATCH[sequences]), "--accelerator", ACCELERATOR]
    base += ["--sequence-length", str(SEQUENCE)] if sequences else []
    base += ["--warmup-steps", "2", "--timed-steps", str(options.steps)]
    tuned = load_tuned(catalog)
    for framework in catalog.frameworks:
        if options.frameworks and framework not in options.frameworks:
            continue
        usual = catalog.frameworks[framework].get("trained_with", "none")
        for name, compiler, own in variants(tuned.settings(framework)):
            if not any(part in name for part in options.only):
                continue
            compiled = ["--compiler", compiler or usual]
            ratio = compare(framework, base + compiled, own, options.pairs)
            under = f" under {compiler}" if compiler else ""
            print(f"{framework:12} {name}{under}: {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
