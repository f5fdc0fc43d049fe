"""Images built by recipe; the base image is made of this machine's Python."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from framebench import cli
from framebench.environments import hashes, recipe
from framebench.environments.venvs import read_environment_file

from ...conftest import ROOT
from ...debian import install_debian_packages
from ...packages import write_wheel
from . import builder
from .builder import Builder

VERSION = "{}.{}".format(*sys.version_info)
ENVIRONMENT = f"dependencies:\n  - python={VERSION}\n  - pip:\n      - toy==1.0\n"


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    why = "" if shutil.which("buildah") else install_debian_packages("buildah")
    if why := why or ("" if os.geteuid() == 0 else "buildah has to be run as root"):
        pytest.skip(f"nothing here builds images: {why}")
    made = Builder(tmp_path_factory.mktemp("buildah"))
    yield made
    shutil.rmtree(made.folder)  # half a GB


def base_of(recipe_file: Path) -> str:
    lines = recipe_file.read_text().splitlines()
    return next(line.partition(" ")[2] for line in lines if line.startswith("FROM "))


def words_of(recipe_file: Path) -> list[str]:
    """Return the arguments after ``docker build`` of the command in a recipe's head."""
    command = next(line for line in recipe_file.read_text().splitlines() if "docker build" in line)
    return shlex.split(command.partition("docker build ")[2])


@pytest.fixture(scope="module")
def made_up(buildah: Builder) -> Path:
    """Write the recipe of an environment with one package, and return its folder.
    The index that pip uses is a folder in the base image."""
    root, envs = buildah.folder / "python", buildah.folder / "envs"
    builder.put_shell(root)
    builder.put_python(root)
    wheel = write_wheel(root / "wheels", "toy", "1.0")
    envs.mkdir()
    (envs / "toy.yaml").write_text(ENVIRONMENT)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pins = hashes.digest_of(envs / "toy.yaml")
    text = f"# For toy.yaml sha256:{pins}\ntoy==1.0 --hash=sha256:{digest}\n"
    (envs / f"toy{hashes.SUFFIX}").write_text(text)
    (written,) = recipe.write(envs, ["toy"], buildah.folder)
    buildah.base(root, base_of(written), PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels")
    return written


def test_an_image_of_a_recipe_measures(
    buildah: Builder, made_up: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(buildah.folder)
    built = buildah.build(*words_of(made_up))
    assert built.returncode == 0, built.stderr[-2000:]
    given = {
        "framework": ROOT / "tests/frameworks/toy",
        "model": ROOT / "tests/models/toy.json",
        "batch-per-device": 1,
        "accelerator": "cpu",
        "pin": "toy==1.0",
        "output": "/out/record.json",
    }
    options = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    harness = ["python3", str(ROOT / "scripts/harness"), "--kind", "train", *options]
    buildah.run("framebench-toy", harness, f"{ROOT}:{ROOT}:ro", f"{tmp_path}:/out")
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["status"] == "ok", record["reason"]
    assert record["environment"]["python"].startswith(VERSION)
    assert record["environment"]["packages"]["toy"] == "1.0"
    root = buildah.root("framebench-toy")
    assert "install --yes --no-install-recommends g++" in (root / "apt-get.words").read_text()
    assert not [*(root / "tmp").iterdir()], "what it was made of stays in it"


def test_no_image_is_made_of_a_file_with_another_hash(
    buildah: Builder, made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(buildah.folder)
    file = buildah.folder / "envs" / f"toy{hashes.SUFFIX}"
    whole = file.read_text()
    file.write_text(f"{whole.partition('--hash')[0]}--hash=sha256:{64 * '0'}\n")
    built = buildah.build(*words_of(made_up))
    file.write_text(whole)
    assert built.returncode != 0
    assert "DO NOT MATCH THE HASHES" in built.stdout + built.stderr


def test_every_recipe_that_ships_is_carried_out_to_its_end(
    buildah: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a shipped recipe stops early or names a missing file.
    A stand-in for Python notes its calls and checks the files in them."""
    root, folder = buildah.folder / "noting", buildah.folder / "recipes"
    builder.put_shell(root)
    named = 'for word; do case "$word" in /tmp/*) [ -s "$word" ] || exit 1;; esac; done'
    builder.put_script(root, "python3", named, 'echo "$@" >> /words')
    assert cli.main(["recipe", "--to", str(folder)]) == 0
    files = sorted(folder.iterdir())
    buildah.base(root, *{f"{base_of(file)}" for file in files})
    monkeypatch.chdir(ROOT)
    for file in files:
        name = file.name.removesuffix(recipe.SUFFIX)
        built = buildah.build(*words_of(file))
        assert built.returncode == 0, f"{name}: {built.stderr[-2000:]}"
        said = (buildah.root(f"framebench-{name}") / "words").read_text()
        environment = read_environment_file(ROOT / "envs" / f"{name}.yaml")
        last = said.splitlines()[-1]
        if environment.is_hashed:
            assert last.endswith(f"--requirement /tmp/{name}{hashes.SUFFIX}"), name
        else:
            assert set(environment.packages) <= set(last.split()), name
