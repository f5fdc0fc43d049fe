"""Mistakes planted in a copy of an adapter, compared with the reference.
The process is forked where the framework is already imported."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from ..conftest import ROOT
from .comparing import BEFORE, Errors
from .fork_server import ForkServer

FRAMEWORKS = ROOT / "scripts/frameworks"
PYTORCH = FRAMEWORKS / "pytorch"

COMPARE = """
import json
from harness.kinds.parity import Comparison, compare
load = load_adapter
load_adapter = lambda folder: load(ADAPTER)
with open(f"{FOLDER}/{FACTS}.json") as file:
    facts = json.load(file)
reference = Comparison(FOLDER)
adapter = started(facts, precision=PRECISION)
adapter.build(reference.batch(adapter.case.layout.replica(RANK), adapter.case))
answer(errors=compare(adapter, reference, print))
adapter.all_reduce(0.0)  # nobody leaves before all have answered
"""


def plant(
    folder: Path, mistakes: Iterable[tuple[str, str, str]], framework: str = "pytorch"
) -> Path:
    """Copy the adapter to ``folder`` with ``mistakes``: (file, text, replacement)."""
    adapter = folder / framework
    shutil.copytree(FRAMEWORKS / framework, adapter)
    for file, right, wrong in mistakes:
        text = (adapter / file).read_text()
        assert right in text, f"the mistake cannot be planted: {file} has no {right!r}"
        (adapter / file).write_text(text.replace(right, wrong))
    return adapter


def training_errors(
    run: ForkServer,
    reference: Path,
    adapter: Path,
    precision: str = "fp32",
    facts: str = "facts",
    ranks: int = 1,
) -> Errors:
    """Return the errors of training with the ``adapter`` and the ``facts`` of the ``reference``,
    by rank."""
    names = {"FOLDER": str(reference), "ADAPTER": str(adapter), "PRECISION": precision}
    given = "\n".join(f"{name} = {value!r}" for name, value in {**names, "FACTS": facts}.items())
    answers = run(f"{given}\n{BEFORE.get(run.framework, '')}\n{COMPARE}", ranks)
    return {
        f"{reference.name} {rank}": (precision, answer["errors"])
        for rank, answer in enumerate(answers)
    }
