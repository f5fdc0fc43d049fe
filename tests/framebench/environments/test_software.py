"""Software of a framework by ``--sdm`` and configuration; an environment is built once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from framebench.config.validation import ConfigError
from framebench.environments.building import MARKER
from framebench.machine.local import Machine
from framebench.plan.planning import make_plan
from framebench.runs import commands
from framebench.runs.job_table import JobTable

from ..settings import CATALOG, SUITE, assert_clear, plan, settings

APPTAINER = ("apptainer",)


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
        folder((), interpreters={"pytorch": "/usr/bin/env"}),
        folder(("conda",)),
    ]
    assert len(set(first)) == len(first)
    assert of_image() == first[1]
    image.write_bytes(b"two build")
    assert of_image() not in first, "another build under the same name and of the same size"


TWO = {**SUITE, "axes": {**SUITE["axes"], "framework": ["pytorch", "jax"]}}
BAD = {
    "two methods": (
        ("conda", "apptainer"),
        SUITE,
        {},
        ["--sdm: found apptainer conda", "allowed: apptainer, or conda"],
    ),
    "no image": (
        APPTAINER,
        TWO,
        {"images": {"pytorch": "docker://x"}},
        ["images: found none for jax", "--sdm apptainer", "interpreters"],
    ),
    "image missing": (
        APPTAINER,
        SUITE,
        {"images": {"pytorch": "/no/image.sif"}},
        ["images.pytorch: found '/no/image.sif'", "that exists", "docker://"],
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
    """But for MegEngine, whose wheel knows no GPU after Turing."""
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
