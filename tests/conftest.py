"""Shared paths and frameworks' environments of the tests, built as the workflow builds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "scripts")]

# Tests keep compiled bytecode, whatever the caller's environment says: hundreds of processes import
# the same modules, and compiling dominates a short call.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


#: Groups and folders with the longest tests: they start first, so that all workers end together.
LONG_GROUPS = (
    "slurm",
    *(f"test_contract.py {name}" for name in ("pytorch", "jax", "tensorflow")),
    *("test_cnn.py", "test_decoder.py"),
    "test_runs.py",  # the harness's runs
    "pages",
)
LONG_FOLDERS = ("slurm", "frameworks", "workflow")
#: Slow session fixtures, and the group of the tests that need them.
SHARED = {"browser": "pages", "page": "pages", "quick": "pages", "finished": "finished"}


def folder_of(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


def group_of(item: pytest.Item) -> str:
    """Return the group of a test, which runs in one process.
    Tests of a group thus build shared objects once: a cluster, a fixture, an environment of a
    framework, or the fixtures of a file."""
    if folder_of(item) == "slurm":
        return "slurm"
    for fixture, group in SHARED.items():
        if fixture in getattr(item, "fixturenames", ()):
            return group
    framework = item.callspec.params.get("framework") if hasattr(item, "callspec") else None
    return f"{item.path.name} {Path(framework).name}" if framework else item.path.name


#: Compilation caches of frameworks, shared by all processes of a test session.
CACHES = ("JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
COMPILING = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # otherwise a pool of processes would all import PyTorch
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten the test id of a long text parameter: some parameters are whole files."""
    return f"{val[:40]}.." if isinstance(val, str) and len(val) > 80 else None


def pytest_configure(config: pytest.Config) -> None:
    # A separate folder, so that this process and others on this machine do not wait for each other.
    locks = os.environ["FRAMEBENCH_LOCKS"] = tempfile.mkdtemp(prefix="framebench-locks-")
    config.add_cleanup(lambda: shutil.rmtree(locks, ignore_errors=True))
    if hasattr(config, "workerinput"):  # the parent of a worker has already done this
        return
    folder = Path(tempfile.mkdtemp(prefix="framebench-compiled-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ.update(COMPILING, **{name: str(folder / name) for name in CACHES})


@pytest.hookimpl(tryfirst=True)  # must run before xdist reads the mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark groups and quick tests, and put the longest groups and folders first."""

    def order(item: pytest.Item) -> list[bool]:
        return [group_of(item) != name for name in LONG_GROUPS] + [
            folder_of(item) != name for name in LONG_FOLDERS
        ]

    items.sort(key=order)
    for item in items:
        group = group_of(item)
        item.add_marker(pytest.mark.xdist_group(group))
        if folder_of(item) == "framebench" and group not in SHARED.values():
            item.add_marker(pytest.mark.quick)


def build_environment(framework: str) -> str:
    """Return the interpreter of a framework's environment for CPUs, building it if needed.
    It is where the workflow looks for it, so that it is built once for tests and ``snakemake``.
    ``FRAMEBENCH_TEST_ENVIRONMENTS``: names of files in ``envs`` to take instead, separated by
    commas, such as ``pytorch-cuda``, whose packages run on CPUs, too.
    """
    from framebench.config.catalog import load_catalog
    from framebench.environments.building import MARKER
    from framebench.environments.venvs import read_environment_file

    path, _ = load_catalog(ROOT).environment_file(framework, "cpu")
    for name in filter(None, os.environ.get("FRAMEBENCH_TEST_ENVIRONMENTS", "").split(",")):
        if name.startswith(f"{framework}-"):
            path = ROOT / "envs" / f"{name}.yaml"
    assert path
    file = read_environment_file(path)
    marker = ROOT / ".venvs" / file.name / MARKER
    command = [sys.executable, str(ROOT / "workflow" / "framebench"), "environment"]
    # The command takes a lock, so that concurrent test processes build an environment once.
    subprocess.run([*command, "--file", str(file.path)], check=True)
    return str(marker.parent / "bin" / "python")


@pytest.fixture(scope="session")
def pytorch_python() -> str:
    return build_environment("pytorch")
