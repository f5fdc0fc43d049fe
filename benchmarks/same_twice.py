"""Does ``compare`` see differences where there are none, and none where there is one?

    .venv/bin/python benchmarks/same_twice.py [--keep DIR]

Measures the same suite three times on this machine: twice as it is, then with every step of one
framework made 5 % longer. Goals: between the first two, no difference is shown in any case; in the
third, that framework alone is slower. With nothing else running: what disturbs one of the three
for long is a difference, and is to be called one.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("pytorch", "mxnet", "tensorflow", "jax")
SLOWED = "pytorch"
CALLED = ("faster", "slower")
SLOWER = 0.05
SUITE = {
    "steps": {"warmup": {"at_least": 8, "at_most": 32}, "timed": 16},
    "repeats": 7,
    "axes": {
        "framework": list(FRAMEWORKS),
        "model": ["resnet50_v1.5"],
        "mode": ["inference"],
        "batch_per_device": [2],
        "compiler": ["none"],
    },
    "exclude": [{"framework": ["jax"], "compiler": ["none"]}],
    "include": [{"framework": ["jax"], "compiler": ["jit"]}],
}
PLANTED = f"""

def _slowed(step: Any) -> Any:
    import time

    def longer(self: Any) -> Any:
        start = time.perf_counter()
        handle = step(self)
        end = start + {1 + SLOWER} * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return handle

    return longer


PyTorchAdapter.step = _slowed(PyTorchAdapter.step)
"""


def snakemake(project: Path, cores: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", cores, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def compared(project: Path, base: Path, candidate: Path) -> pd.DataFrame:
    """The table of ``compare``."""
    config = [f"base={base}", f"candidate={candidate}", f"results={candidate}"]
    snakemake(project, "1", "compare", "--config", *config)
    return pd.read_csv(candidate / "tables" / "compare.csv")


def show(title: str, table: pd.DataFrame) -> None:
    print(title)
    columns = ["framework", "base_median", "candidate_median", "ratio", "ratio_ci_low",
               "ratio_ci_high", "p_adjusted", "verdict"]  # fmt: skip
    print(table[columns].to_string(index=False, float_format="{:.4g}".format), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the results go, and stay")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        project = Path(name, "project")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(project)], check=True)
        (project / ".venvs").symlink_to(ROOT / ".venvs")  # at its own path it stays as it was built
        folder = (given.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        suite = folder / "same_twice.yaml"
        suite.write_text(yaml.safe_dump(SUITE))
        passes = [folder / name for name in ("first", "second", "slowed")]
        for results in passes:
            if results.name == "slowed":
                adapter = project / "scripts" / "frameworks" / SLOWED / "adapter.py"
                adapter.write_text(adapter.read_text() + PLANTED)
            shutil.rmtree(results, ignore_errors=True)
            # A core for the rest of the system, where there are two.
            config = [f"suite={suite}", f"results={results}", "cores_per_device=1"]
            snakemake(project, "all", "all", "--config", *config)
        same = compared(project, passes[0], passes[1])
        planted = compared(project, passes[0], passes[2])
    show("The same twice", same)
    show(f"{SLOWED} made {SLOWER:.0%} slower", planted)
    called = same["verdict"].isin(CALLED).sum()
    slowed = planted["framework"] == SLOWED
    missed = (planted["verdict"][slowed] != "slower").sum()
    invented = planted["verdict"][~slowed].isin(CALLED).sum()
    print(
        f"The same twice: {called} called different. Planted: {missed} missed, {invented} invented"
    )
    return int(called + missed + invented > 0)


if __name__ == "__main__":
    sys.exit(main())
