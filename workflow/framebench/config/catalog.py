"""Catalog of the frameworks and models under ``scripts/``.

Only their JSON files are read; frameworks and adapters are never imported here.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from core import declarations
from core.gpus import Gpu

from .. import PROJECT
from . import gpu_environments
from .validation import ConfigError

#: Words that a suite may use for a compiler, with the key of framework.json that names it.
WORDS = {"native": "native_compiler", "default": "trained_with"}


@dataclass(frozen=True)
class Catalog:
    """Configs by name: each framework's framework.json, each model's JSON file."""

    root: Path
    frameworks: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]

    @cached_property
    def compilers(self) -> list[str]:
        named = {name for framework in self.frameworks.values() for name in framework["compilers"]}
        return ["none", *WORDS, *sorted(named - {"none"})]

    def compiler(self, framework: str, word: str) -> str:
        """Return the compiler that a name, or one of WORDS, stands for.

        ``native`` stays for a framework without one, so that the run reports it.
        """
        if word not in WORDS:
            return word
        declared = self.frameworks[framework].get(WORDS[word])
        return str(declared or {"native": "native", "default": "none"}[word])

    def environment_file(
        self, framework: str, accelerator: str, gpus: Sequence[Gpu] = ()
    ) -> tuple[Path | None, str]:
        """Return the environment file of a framework in ``envs``, or None and the reason.

        ``gpus``: GPUs of the machine; without any, the preferred file.
        """
        if accelerator != "cpu":
            return gpu_environments.choose(self.root, framework, gpus)
        envs = self.root / "envs"
        of_processor = envs / f"{framework}-{platform.machine()}.yaml"
        return of_processor if of_processor.is_file() else envs / f"{framework}.yaml", ""


def load_catalog(root: Path) -> Catalog:
    """Read every ``scripts/frameworks/*/framework.json`` and ``scripts/models/*.json``.

    Raises :class:`ConfigError` for an invalid framework.json.
    """
    declared = sorted(root.glob("scripts/frameworks/[!_.]*/framework.json"))
    configs = sorted(root.glob("scripts/models/*.json"))
    try:
        frameworks = {
            file.parent.name: declarations.read_framework(str(file.parent)) for file in declared
        }
    except ValueError as error:
        raise ConfigError(str(error)) from None
    models = [declarations.read_model_config(str(path)) for path in configs]
    return Catalog(root, frameworks, {model["name"]: model for model in models})


@cache
def project_catalog() -> Catalog:
    """Return the catalog of this project, read once."""
    return load_catalog(PROJECT)


def framework_declaration(framework: str) -> dict[str, Any]:
    """Return the framework.json of one of this project's frameworks; {} for another name."""
    return project_catalog().frameworks.get(framework, {})


def framework_title(framework: str) -> str:
    """Return the title of one of this project's frameworks, and the name of another."""
    return str(framework_declaration(framework).get("title", framework))


def model_title(model: str) -> str:
    """Return the title of one of this project's models, and the name of another."""
    title = project_catalog().models.get(model, {}).get("title", model)
    return str(title).removesuffix(" pre-training")


def forward_multiply_adds(
    model_config: dict[str, Any], sequence_length: int | None, training: bool = False
) -> float:
    """Return the multiply-adds of one sample's forward pass, by the model config's polynomial.

    ``training``: include auxiliary heads.
    """
    terms = model_config["forward_multiply_adds"]
    tokens = sequence_length or 0
    return float(
        terms.get("per_sample", 0)
        + terms.get("per_sample_in_training", 0) * training
        + terms.get("per_token", 0) * tokens
        + terms.get("per_token_pair", 0) * tokens**2
        + terms.get("per_prediction", 0) * max(1, round(20 * tokens / 128)) * bool(tokens)
    )
