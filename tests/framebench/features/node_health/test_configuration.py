"""Configuration keys of node health."""

from __future__ import annotations

from pathlib import Path

import pytest
from framebench.config.validation import ConfigError

from ....conftest import ROOT
from ...settings import settings


@pytest.mark.parametrize("key", ["node_rules", "node_baseline"])
def test_a_file_that_does_not_exist_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{key}: found 'nowhere'; allowed: the path"):
        settings(tmp_path, **{key: "nowhere"})


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("version: v0.12\n")
    with pytest.raises(ConfigError, match=r"other\.yaml"):
        settings(tmp_path, node_rules=str(other))
    rules = ROOT / "config" / "node_rules.yaml"
    assert settings(tmp_path, node_rules=str(rules)).of_features["node_rules"] == rules
