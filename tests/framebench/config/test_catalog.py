"""Catalog: frameworks by their folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from core.case import Case
from framebench.cases import matrix
from framebench.config.catalog import load_catalog
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError

from ...conftest import ROOT

DECLARATION = {
    "name": "new",
    "title": "New",
    "package": "new",
    "compilers": ["none", "fast"],
    "native_compiler": "fast",
    "precisions": ["fp32"],
    "none_is": "eager",
    "none_means": "slow",
}
SUITE = {"axes": {"framework": ["new"], "model": ["bert_base"], "batch_per_device": [2]}}


def project(root: Path, declaration: Any = DECLARATION) -> Path:
    folder = root / "scripts" / "frameworks" / "new"
    folder.mkdir(parents=True)
    (root / "scripts" / "models").symlink_to(ROOT / "scripts" / "models")
    text = declaration if isinstance(declaration, str) else json.dumps(declaration)
    (folder / "framework.json").write_text(text)
    return root


def cases(root: Path, **axes: Any) -> list[Case]:
    catalog = load_catalog(root)
    suite = root / "suite.yaml"
    suite.write_text(yaml.safe_dump({"axes": {**SUITE["axes"], **axes}}))
    settings = load_settings({"suite": str(suite)}, catalog)
    return [*matrix.cases(settings.suite, catalog)]


def test_what_is_no_declaration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="key compilers is missing; it needs name"):
        load_catalog(project(tmp_path, {"name": "new", "title": "New", "package": "new"}))


@pytest.mark.parametrize(
    ("word", "declaration", "compiler"),
    [
        ("default", DECLARATION, "none"),
        ("default", {**DECLARATION, "trained_with": "fast"}, "fast"),
        ("native", DECLARATION, "fast"),
        ("native", {**DECLARATION, "native_compiler": None}, "native"),
    ],
)
def test_words_for_compilers(tmp_path: Path, word: str, declaration: Any, compiler: str) -> None:
    (case,) = cases(project(tmp_path, declaration), compiler=word)
    assert case.compiler == compiler
