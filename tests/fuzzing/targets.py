"""Readers of each kind of input, with a valid sample and the allowed errors."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from framebench.config import catalog
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.config.yaml_files import read_mapping
from framebench.environments.venvs import read_environment_file
from framebench.files import children
from framebench.records import device_peaks, record_sets, searches, verifications
from framebench.records.run import RecordsError
from framebench.records.sidecars import assumptions, calls, interruptions
from harness.request import declaration, own_model

from ..conftest import ROOT
from ..framebench.saved_records import ROW, record, save

CATALOG = catalog.load_catalog(ROOT)
CONFIG = ROOT / "config" / "config.yaml"
SUITE = """
steps: {warmup: 1, timed: 2}
repeats: 2
axes:
  framework: [pytorch, jax]
  model: [resnet50_v1.5, bert_base]
  mode: [train, inference]
  devices_per_node: [1, 2]
  batch_per_device: {resnet50_v1.5: [2, 4], bert_base: max}
  precision: [fp32, amp]
include:
  - {framework: [jax], compiler: [native], batch_per_device: [8]}
exclude:
  - {framework: jax, precision: amp}
variants:
  a: {variables: {X: "1"}}
  b: {}
"""
MODEL = b'FRAMEWORK = "pytorch"\n\n\ndef make(batch_size):\n    return 1, (2, 3), lambda a, b: 0\n'
#: No suite: its benchmarks would be queried in a separate process.
Said = Sequence[str]


@dataclass(frozen=True)
class Target:
    """A kind of input.
    ``file``: path below an input's folder; ``sample``: its valid content; ``read``: reads it, given
    the folder, and returns the parts left out by name; ``errors``: allowed exceptions;
    ``structured``: see :func:`mutations.mutated`; ``around``: makes related files; ``words``: any
    of these in a message names the input."""

    name: str
    file: str
    sample: bytes
    read: Callable[[Path], Said]
    errors: tuple[type[Exception], ...] = (ConfigError,)
    structured: str = ""
    around: Callable[[Path], None] = lambda folder: None
    words: tuple[str, ...] = ()
    weight: int = 1
    special: bool = True
    written: tuple[str, ...] = field(default=())


def _config(folder: Path) -> Said:
    suite = folder / "suite.yaml"
    given = {**read_mapping(folder / "config.yaml")}
    load_settings({**given, "suite": str(suite), "results": str(folder / "results")}, CATALOG)
    return ()


def _suite(folder: Path) -> Said:
    given = yaml.safe_load(CONFIG.read_text())
    settings = {**given, "suite": str(folder / "suite.yaml"), "results": str(folder / "results")}
    load_settings(settings, CATALOG)
    return ()


def _kind(folder: Path) -> Said:
    given = yaml.safe_load(CONFIG.read_text())
    children.LONGEST_ANSWER = 10.0
    kinds = {"suite": str(folder / "suite.yaml"), "kinds": str(folder / "kinds")}
    load_settings({**given, **kinds, "results": str(folder / "results")}, CATALOG)
    return ()


def _environment(folder: Path) -> Said:
    file = read_environment_file(folder / "toy.yaml")
    file.name, file.digest  # noqa: B018
    return ()


def _own_model(folder: Path) -> Said:
    own_model.model_config(str(folder / "my_model.py"))
    return ()


def _model(folder: Path) -> Said:
    catalog.read_model_config(folder / "m.json")
    declaration.read_model(str(folder / "m.json"))
    return ()


def _framework(folder: Path) -> Said:
    catalog.load_catalog(folder)
    declaration.read_framework(str(folder / "scripts" / "frameworks" / "toy"))
    return ()


def _records(folder: Path) -> Said:
    actual = record_sets.load_results(folder, writes=False)
    assert actual, "the folder of the records is there"
    names = {run.origin for run in actual.runs}
    assert {"case/r1.json", "case/r2.json"} <= names, f"good records are lost: {names}"
    record_sets.fingerprint(actual)
    return [f"{problem.origin}: {problem.message}" for problem in actual.problems]


def _table(folder: Path) -> Said:
    actual = record_sets.load(folder / "runs.csv")
    return [f"{problem.origin}: {problem.message}" for problem in actual.problems]


def _beside(folder: Path) -> Said:
    problems = [
        *calls.load(folder)[1],
        *interruptions.load(folder)[1],
        *assumptions.load(folder)[1],
        *verifications.load(folder / "verification")[1],
        *device_peaks.load(folder / "peak_flops")[1],
        *searches.load(folder / searches.FOLDER)[1],
    ]
    return [f"{problem.origin}: {problem.message}" for problem in problems]


def _with_suite(folder: Path) -> None:
    (folder / "suite.yaml").write_text(SUITE)


def _with_good_records(folder: Path) -> None:
    save(folder / "runs", "case/r1.json", record())
    save(folder / "runs", "case/r2.json", record(repeat=2))


def _with_kinds_suite(folder: Path) -> None:
    (folder / "kinds").mkdir()
    (folder / "suite.yaml").write_text("measurements: {odd: {size: 100}}\n")


def _with_adapter(folder: Path) -> None:
    home = folder / "scripts" / "frameworks" / "toy"
    home.mkdir(parents=True)
    (home / "adapter.py").touch()


def _with_environment(folder: Path) -> None:
    (folder / "toy.yaml").write_bytes(ENVIRONMENT)


def _with_hashes(folder: Path) -> None:
    (folder / "toy.hashes.txt").write_text("# exempt: it is a sample\n")


def _rows() -> bytes:
    return f"{','.join(ROW)}\n{','.join(ROW.values())}\n".encode()


def _copied(name: str) -> bytes:
    return (ROOT / name).read_bytes()


ENVIRONMENT = _copied("envs/pytorch.yaml")
FRAMEWORK = json.dumps(
    {**json.loads(_copied("scripts/frameworks/pytorch/framework.json")), "name": "toy"}
).encode()
SAVED = "tests/data/records"
RECORD = json.dumps(record(repeat=3)).encode()
NOTED = b"noticed,run,job,status\n2030-01-01T00:00:00Z,a/b,7,FAILED\n"
CALLS = b"started,suite,command\n2030-01-01T00:00:00Z,quick,snakemake --cores all\n"
COSTS = b'{"price_per_hour": 1.5, "currency": "EUR", "grid_intensity": null, "pue": null}'

TARGETS: tuple[Target, ...] = (
    Target("configuration", "config.yaml", CONFIG.read_bytes(), _config, structured="yaml",
           around=_with_suite, words=("config",), weight=3),
    Target("suite", "suite.yaml", SUITE.encode(), _suite, structured="yaml", weight=4,
           words=("suite",)),
    Target("environment", "toy.yaml", ENVIRONMENT, _environment, structured="yaml", weight=2,
           around=_with_hashes),
    Target("hashes", "toy.hashes.txt", _copied("envs/paddle-cuda.hashes.txt")[:3000], _environment,
           around=_with_environment),
    Target("own model", "my_model.py", MODEL, _own_model, (own_model.NotAModel,), weight=2),
    Target("kind", "kinds/odd.py", _copied("tests/kinds/memory_copy.py"), _kind,
           around=_with_kinds_suite, words=("odd",), weight=0, written=("__pycache__",)),
    Target("model", "m.json", _copied("scripts/models/superbench_lstm.json"), _model,
           (ConfigError, declaration.DeclarationError), "json"),
    Target("framework", "scripts/frameworks/toy/framework.json", FRAMEWORK, _framework,
           (ConfigError, declaration.DeclarationError), "json", _with_adapter),
    Target("record", "runs/case/r3.json", RECORD, _records, (), "json", _with_good_records,
           weight=6),
    *(
        Target(f"saved record ({name})", "runs/old/r1.json", _copied(f"{SAVED}/{name}.json"),
               _records, (), "json", _with_good_records)
        for name in ("train", "peak", "failed", "largest_batch")
    ),
    Target("index", ".index", b"version 0\n{}", _records, (), "", _with_good_records),
    Target("table of runs", "runs.csv", _rows(), _table, (RecordsError,), weight=3),
    Target("calls", "calls.csv", CALLS, _beside, ()),
    Target("interruptions", "interruptions.csv", NOTED,
           _beside, ()),
    Target("assumptions", assumptions.FILE, COSTS, _beside, (), "json"),
    Target("verification", "verification/a/c.json", _copied(f"{SAVED}/mxnet-verification.json"),
           _beside, (), "json"),
    Target("peak", "peak_flops/a/peak.json", _copied(f"{SAVED}/peak.json"), _beside, (), "json"),
    Target("search", f"{searches.FOLDER}/a/s.json", _copied(f"{SAVED}/largest_batch.json"), _beside,
           (), "json"),
)  # fmt: skip


def make_input(rng: random.Random, target: Target, folder: Path, mutate: Any) -> str:
    """Make the input and related files in ``folder``. Returns the change of the sample."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target.around(folder)
    path = folder / target.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    if target.special and rng.random() < 0.08:
        return str(mutate.make_special(rng, path))
    path.write_bytes(mutate.mutated(rng, target.sample, target.structured))
    return "changed"
