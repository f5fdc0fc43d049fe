"""What there is to choose from: the frameworks and models found under ``scripts/``.

Only their fact files (JSON) are read; no framework and no adapter is ever imported here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Catalog:
    """Facts by name: each framework's framework.json, each model's JSON file."""

    root: Path
    frameworks: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]

    @cached_property
    def compilers(self) -> list[str]:
        named = {name for facts in self.frameworks.values() for name in facts["compilers"]}
        return ["none", "native", *sorted(named - {"none"})]

    def native_compiler(self, framework: str) -> str:
        """The framework's own compiler; ``native`` itself where it has none, so that the run
        says so."""
        return self.frameworks[framework]["native_compiler"] or "native"

    def environment_file(self, framework: str, accelerator: str) -> Path:
        """``envs/FRAMEWORK.yaml`` for CPUs, ``envs/FRAMEWORK-cuda.yaml`` for CUDA. Where that is
        missing, the one for CPUs: its runs are ``unsupported``, in the framework's own words."""
        plain = self.root / "envs" / f"{framework}.yaml"
        special = self.root / "envs" / f"{framework}-{accelerator}.yaml"
        return special if special.exists() else plain


def load_catalog(root: Path) -> Catalog:
    """Read every ``scripts/frameworks/*/framework.json`` and ``scripts/models/*.json`` of a
    project."""
    frameworks = [
        json.loads(path.read_text())
        for path in sorted(root.glob("scripts/frameworks/*/framework.json"))
    ]
    models = [json.loads(path.read_text()) for path in sorted(root.glob("scripts/models/*.json"))]
    return Catalog(
        root,
        {facts["name"]: facts for facts in frameworks},
        {facts["name"]: facts for facts in models},
    )


def forward_multiply_adds(facts: dict[str, Any], sequence_length: int | None) -> float:
    """Multiply-adds of one sample's forward pass, from the polynomial in the model's facts."""
    terms = facts["forward_multiply_adds"]
    tokens = sequence_length or 0
    return float(
        terms.get("per_sample", 0)
        + terms.get("per_token", 0) * tokens
        + terms.get("per_token_pair", 0) * tokens**2
        + terms.get("per_prediction", 0) * max(1, round(20 * tokens / 128)) * bool(tokens)
    )
