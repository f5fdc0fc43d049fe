"""Recipes state exactly what the environment file and its hashes state."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from framebench import cli
from framebench.config.validation import ConfigError
from framebench.environments import hashes, recipe
from framebench.environments.venvs import read_environment_file

from ...conftest import ROOT

ENVS = ROOT / "envs"
NAMES = sorted(path.stem for path in ENVS.glob("*.yaml"))
INSTRUCTIONS = ("FROM", "ARG", "RUN", "COPY", "CMD")


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return a recipe's instructions as a builder reads them, with comments dropped and lines
    joined."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    pairs = (line.partition(" ") for line in joined)
    return [(name, words.strip()) for name, _, words in pairs]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recipes")
    assert cli.main(["recipe", "--to", str(folder)]) == 0
    return {path.name.removesuffix(recipe.SUFFIX): path for path in folder.iterdir()}


def test_every_environment_has_one_that_a_builder_can_read(recipes: dict[str, Path]) -> None:
    assert sorted(recipes) == NAMES
    for path in recipes.values():
        read = instructions(path)
        assert [name for name, _ in read if name not in INSTRUCTIONS] == []
        assert read[0][0] == "FROM", "nothing can come before it"
        for name, words in read:
            assert name == "CMD" or shlex.split(words), f"{path.name}: {words}"


@pytest.mark.parametrize("name", NAMES)
def test_an_image_has_what_the_environment_has(name: str, recipes: dict[str, Path]) -> None:
    file = read_environment_file(ENVS / f"{name}.yaml")
    read = instructions(recipes[name])
    assert read[0][1] == f"docker.io/library/python:{file.python}-slim"
    installs = [text for kind, text in read if kind == "RUN" and " pip install " in text]
    for index in file.indexes:
        assert shlex.quote(index) in installs[-1], "its vendor's index is not asked"
    copied = [text.split() for kind, text in read if kind == "COPY"]
    if not file.is_hashed:
        assert not copied
        assert set(file.packages) <= set(shlex.split(installs[-1]))
        return
    ((source, target),) = copied
    assert "--require-hashes" in installs[-1]
    assert f"--requirement {target}" in installs[-1]
    locked = (ENVS / source).read_text()
    assert hashes.digest_of(file.path) in locked, "the hashes are of other pins"
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s+]+)", locked, re.MULTILINE))
    missing = [pin for pin in file.packages if pin not in _spelt(pinned)]
    assert not missing, f"{source} does not have {missing}"


def _spelt(pinned: dict[str, str]) -> set[str]:
    return {f"{name}=={version}" for name, version in pinned.items()}


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean pytorch"):
        recipe.write(ENVS, ["pytorc"], tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_recipe_of_changed_pins_is_refused(tmp_path: Path) -> None:
    """Fail if a recipe of an environment file changed after its hashes were written is made."""
    envs = tmp_path / "envs"
    envs.mkdir()
    for suffix in (".yaml", hashes.SUFFIX):
        text = (ENVS / f"mxnet{suffix}").read_text()
        text = text.replace("numpy==1.23.5", "numpy==1.23.4") if suffix == ".yaml" else text
        (envs / f"mxnet{suffix}").write_text(text)
    with pytest.raises(ConfigError, match="out of date"):
        recipe.write(envs, ["mxnet"], tmp_path)
