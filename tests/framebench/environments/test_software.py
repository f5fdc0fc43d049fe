"""Software of a framework by ``--sdm`` and configuration; an environment is built once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from framebench.config.validation import ConfigError
from framebench.environments import venvs
from framebench.environments.venvs import MARKER
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from framebench.runs import commands
from framebench.runs.job_table import JobTable

from ..settings import CATALOG, ROOT, SUITE, assert_clear, plan, settings

APPTAINER, MODULES = ("apptainer",), ("env-modules",)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "pytorch.sif"
    path.write_bytes(b"one build")
    return path


def test_what_is_brought_is_another_case(tmp_path: Path, image: Path) -> None:
    def folder(methods: tuple[str, ...], **config: object) -> str:
        (actual,) = plan(tmp_path, methods=methods, **config).folders.values()
        return actual

    def of_image(**more: object) -> str:
        return folder(APPTAINER, images={"pytorch": {"image": str(image), **more}})

    first = [
        folder(()),
        of_image(),
        of_image(python="python3.12"),
        folder(APPTAINER, images={"pytorch": "docker://pytorch:2.7"}),
        folder(APPTAINER, images={"pytorch": "docker://pytorch:2.8"}),
        folder(MODULES, modules={"pytorch": ["gcc/12", "pytorch"]}),
        folder(MODULES, modules={"pytorch": ["pytorch", "gcc/12"]}),
        folder(MODULES, modules={"pytorch": {"load": ["pytorch", "gcc/12"], "python": "python"}}),
        folder((), interpreters={"pytorch": "/usr/bin/env"}),
        folder(("conda",)),
    ]
    assert len(set(first)) == len(first)
    assert of_image() == first[1]
    image.write_bytes(b"two build")
    assert of_image() not in first, "another build under the same name and of the same size"


def test_the_ends_of_an_image_tell_its_builds_apart(tmp_path: Path) -> None:
    path = tmp_path / "large.sif"

    def digest(first: bytes, last: bytes) -> str | None:
        path.write_bytes(first + bytes(4 * 2**20) + last)
        actual = plan(tmp_path, methods=APPTAINER, images={"pytorch": str(path)})
        image = actual.software["pytorch"].image
        return image and image.digest

    actual = [digest(b"a", b"b"), digest(b"c", b"b"), digest(b"a", b"c"), digest(b"a", b"bb")]
    assert len(set(actual)) == 4
    assert digest(b"a", b"b") == actual[0]


VARIANT = {**SUITE, "variants": {"b": {"environments": {"pytorch": str(ROOT / "envs/jax.yaml")}}}}
TWO = {**SUITE, "axes": {**SUITE["axes"], "framework": ["pytorch", "jax"]}}
BAD = {
    "two methods": (("conda", "apptainer"), SUITE, {}, ["--sdm: found apptainer conda", "one of"]),
    "no image": (
        APPTAINER,
        TWO,
        {"images": {"pytorch": "docker://x"}},
        ["images: found none for jax", "--sdm apptainer", "interpreters"],
    ),
    "no module": (MODULES, SUITE, {}, ["modules: found none for pytorch", "--sdm env-modules"]),
    "image missing": (
        APPTAINER,
        SUITE,
        {"images": {"pytorch": "/no/image.sif"}},
        ["images.pytorch: found '/no/image.sif'", "that exists", "docker://"],
    ),
    "environment of a variant": (
        MODULES,
        VARIANT,
        {"modules": {"pytorch": ["x"]}},
        ["variants.b.environments.pytorch", "jax.yaml", "--sdm env-modules", "interpreters"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_missing_is_said(name: str, tmp_path: Path) -> None:
    methods, suite, config, expected = BAD[name]
    with pytest.raises(ConfigError) as error:
        plan(tmp_path, suite, methods=methods, **config)
    assert_clear(error, expected)


def test_environments_elsewhere(tmp_path: Path) -> None:
    folder = str(tmp_path / "environments")
    usual = plan(tmp_path)
    shared = plan(tmp_path, environments=folder)
    assert shared.folders == usual.folders, "the same packages"
    name = usual.software["pytorch"].file.name
    assert usual.software["pytorch"].marker == Path(".venvs", name, MARKER)
    marker = f"{folder}/{name}/{MARKER}"
    (job,) = JobTable(shared, CATALOG).jobs_of_kind("environment")
    assert not job.status
    assert str(shared.software["pytorch"].marker) == marker
    assert shared.software["pytorch"].python == (f"{folder}/{name}/bin/python",)
    assert f"--prefix {folder}/{name} " in commands.origin(shared, CATALOG, "pytorch")


def test_every_framework_has_a_way_to_gpus(tmp_path: Path) -> None:
    """Fail if a framework lacks both a CUDA environment file and a shipped image, but for
    MegEngine, whose wheel knows no GPU after Turing."""
    shipped = CATALOG.root / "config" / "images-cuda.yaml"
    with_image = yaml.safe_load(shipped.read_text())
    with_file = {name for name in CATALOG.frameworks if CATALOG.environment_file(name, "cuda")[0]}
    assert with_file | set(with_image["images"]) == set(CATALOG.frameworks) - {
        "megengine",
        "mindspore",
    }
    machine = Machine(8, 4)
    for names, methods, more in (
        (sorted(with_file), (), {}),
        (with_image["frameworks"], APPTAINER, with_image),
    ):
        suite = {**SUITE, "axes": {**SUITE["axes"], "framework": names}}
        loaded = settings(tmp_path, suite, methods=methods, **{**more, "accelerator": "cuda"})
        made = make_plan(loaded, CATALOG, machine, None)
        assert {case.framework for case in made.folders} == set(names)
        for name in names:
            software = made.software[name]
            assert software.install_method == ("container" if methods else "venv"), name
            assert methods or software.file.pin(CATALOG.frameworks[name]["package"])


def test_a_folder_that_is_no_environment_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    file = ROOT / "envs" / "pytorch.yaml"
    with pytest.raises(ConfigError, match=f"--marker: found {tmp_path}, which is not empty"):
        venvs.build(file, tmp_path / "environment.json")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
