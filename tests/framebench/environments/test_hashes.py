"""Environments are built only from files whose hashes are next to the environment file."""

from __future__ import annotations

import json
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from framebench import cli
from framebench.config.validation import ConfigError
from framebench.environments import building, locking, uv
from framebench.environments.building import MARKER
from framebench.environments.venvs import EnvironmentFile, read_environment_file
from framebench.plan import plan_text
from framebench.runs.job_table import JobTable

from ...packages import write_source, write_wheel
from ...processes import write_program
from ..settings import CATALOG, ROOT, SUITE, plan

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Place:
    """A package index with the toy and its dependency, which ``envs/toy.yaml`` requires."""

    envs: Path
    wheels: Path

    @property
    def file(self) -> Path:
        return self.envs / "toy.yaml"

    @property
    def hashes(self) -> Path:
        return self.envs / "toy.hashes.txt"

    def write(self, *entries: str) -> None:
        section = ", ".join(entries)
        self.file.write_text(f"dependencies: [python={PYTHON}, pip=25.3, {{pip: [{section}]}}]\n")

    def build(self, hashed: bool = True) -> dict[str, object]:
        marker = self.envs.parent / "venvs" / "toy" / MARKER
        marker.unlink(missing_ok=True)
        try:
            building.ensure(self.file, marker, hashed)
        except ConfigError:
            assert not marker.exists()
            assert not list(marker.parent.glob("lib/python*/site-packages/toy*"))
            raise
        return dict(json.loads(marker.read_text()))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path / "envs", tmp_path / "wheels")
    made.envs.mkdir()
    made.write("toy==1.0")
    write_wheel(made.wheels, "toy", "1.0", ["other"])
    write_wheel(made.wheels, "other", "2.0")
    actual = {"no-index": "1", "find-links": str(made.wheels)}
    monkeypatch.setattr(uv, "pip_settings", lambda: actual)
    return made


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable uv's cache: it has files of the right hash, whatever the index has now."""
    monkeypatch.setenv("UV_NO_CACHE", "1")


def test_what_was_locked_is_installed(place: Place) -> None:
    assert cli.main(["hashes", str(place.file)]) == 0
    assert re.findall(r"^\w+==\S+", place.hashes.read_text(), re.MULTILINE) == [
        "other==2.0",
        "toy==1.0",
    ]
    # An unpinned package gets the locked version, not the newest.
    write_wheel(place.wheels, "other", "3.0")
    facts = place.build()
    assert facts["installed"] == ["other-2.0.dist-info", "toy-1.0.dist-info"]
    assert facts["hashes"] == "toy.hashes.txt"


def test_a_build_without_progress_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = write_program(tmp_path / "uv", "#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(uv, "executable", lambda: str(silent))
    monkeypatch.setattr(uv, "PATIENCE", 0.2)
    with pytest.raises(TimeoutError, match=r"uv pip: found no progress in 0.2 s"):
        uv.run(["pip", "install"])


def test_an_unknown_environment_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hashes", "pytorhc"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("framebench: NAME: found 'pytorhc' (did you mean pytorch?); allowed: ")


def test_added_packages_are_locked_installed_and_imported(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    """Fail if a package is added without its needs, moves a pin, or is never imported; only what
    lacks the driver of a GPU may fail then."""
    write_wheel(place.wheels, "toy", "2.0")
    write_wheel(place.wheels, "extra", "1.0", ["toy", "more"], module="import more\n")
    write_wheel(place.wheels, "more", "1.0", ["gpu"], module="1 / 0\n")
    write_wheel(place.wheels, "gpu", "1.0", module="raise ImportError('libcuda.so.1: no file')\n")
    environment_file, venvs_of = (
        read_environment_file(place.file, hashed=False),
        place.envs.parent / "venvs",
    )
    arguments = ["--with", "extra==1.0", "--environments", str(venvs_of)]
    assert cli.main(["hashes", str(place.file), *arguments]) == 0
    file = locking.file_with(environment_file, ["extra==1.0"], venvs_of)
    pins = ("extra==1.0", "gpu==1.0", "more==1.0", "other==2.0", "toy==1.0")
    assert read_environment_file(file).packages == pins
    match = r"cannot be imported: .*extra.*division by zero"
    with pytest.raises(ConfigError, match=match) as refused:
        building.ensure(file, venvs_of / "toy" / MARKER)
    assert "libcuda" not in str(refused.value)
    assert cli.main(["hashes", str(place.file), "--with", "toy==2.0", *arguments[2:]]) != 0
    assert "toy==1.0 and toy==2.0" in capfd.readouterr().err
    assert cli.main(["hashes", str(place.file), "--with", "extra", *arguments[2:]]) == 1
    assert "--with: found 'extra'; allowed: NAME==VERSION" in capfd.readouterr().err


def test_added_packages_must_be_locked_for_the_environment(tmp_path: Path) -> None:
    def software(**config: object) -> EnvironmentFile | None:
        pins = {"pytorch": ["timm==1.0.28"]}
        suite = {"axes": {**SUITE["axes"], "framework": ["pytorch"]}}
        return plan(tmp_path, suite, packages=pins, **config).software["pytorch"].file

    folder = tmp_path / "venvs"
    command = rf"framebench hashes pytorch --with timm==1.0.28 --environments {folder}"
    with pytest.raises(ConfigError, match=f"packages.pytorch: found .*timm.*`.*{command}`"):
        software(environments=str(folder))
    environment_file = read_environment_file(ROOT / "envs" / "pytorch.yaml")
    file = locking.file_with(environment_file, ["timm==1.0.28"], folder)
    folder.mkdir()
    file.write_text(environment_file.path.read_text() + "      - timm==1.0.28\n")
    actual = software(environments=str(folder), require_hashes=False)
    assert actual
    assert actual.packages == (*environment_file.packages, "timm==1.0.28")
    with pytest.raises(ConfigError, match=r"packages.pytorch: found .*; allowed without"):
        software(interpreters={"pytorch": sys.executable})


def test_a_framework_has_an_environment_for_each_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = {**SUITE, "axes": {**SUITE["axes"], "framework": ["tensorflow"]}}
    for machine, package in (("x86_64", "tensorflow-cpu=="), ("aarch64", "tensorflow==")):
        monkeypatch.setattr(platform, "machine", lambda name=machine: name)
        file = plan(tmp_path, suite).software["tensorflow"].file
        assert file
        assert file.pin("tensorflow").startswith(package)


@pytest.mark.usefixtures("fresh")
def test_another_file_of_the_same_version_is_refused(place: Place) -> None:
    locking.lock(place.file)
    write_wheel(place.wheels, "toy", "1.0", ["other"], module="evil = True")
    with pytest.raises(ConfigError) as error:
        place.build()
    for text in (f"{place.hashes}: refused: ", "toy==1.0", "Hash mismatch", "hashes toy`"):
        assert text in str(error.value)
    assert "require_hashes: false" in str(error.value)

    hashed = read_environment_file(place.file).name
    assert place.build(hashed=False)["hashes"] == ""
    assert read_environment_file(place.file, hashed=False).name != hashed
    locking.lock(place.file)
    assert place.build()["hashes"] == "toy.hashes.txt"
    assert read_environment_file(place.file).name != hashed, "what was built before would be used"


@pytest.mark.parametrize("fault", ["there is no such file", "is out of date"])
def test_hashes_that_are_missing_or_of_other_pins_are_refused(place: Place, fault: str) -> None:
    if "out of date" in fault:
        locking.lock(place.file)
        place.write("toy==1.0", "other==2.0")
    with pytest.raises(ConfigError) as error:
        place.build()
    assert str(error.value).startswith(f"{place.hashes}: {fault}")
    assert "`.venv/bin/python workflow/framebench hashes toy`" in str(error.value)


def test_an_exempt_environment_is_built_without_hashes_and_says_so(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    place.hashes.write_text("# exempt: its vendor cannot be reached\n")
    wanted = read_environment_file(place.file)
    assert wanted.name == read_environment_file(place.file, hashed=False).name
    assert place.build()["hashes"] == ""
    assert "toy.yaml is installed without hashes: its vendor cannot be" in capfd.readouterr().err


@pytest.mark.usefixtures("fresh")
def test_a_build_with_a_local_version_has_hashes_of_its_own(place: Place) -> None:
    locking.lock(place.file)
    plain = read_environment_file(place.file)
    wheel = write_wheel(place.wheels, "toy", "1.0+cpu")
    local = place.envs / "toy+cpu.hashes.txt"
    assert locking.lock(place.file) == local
    both = read_environment_file(place.file)
    assert both.name != plain.name
    assert both.digest == plain.digest
    assert place.build()["hashes"] == local.name
    wheel.unlink()
    assert place.build()["hashes"] == place.hashes.name
    write_wheel(place.wheels, "toy", "1.0+cpu", module="evil = True")
    with pytest.raises(ConfigError, match=re.escape(f"{local}: refused: ") + r".*toy==1\.0\+cpu"):
        place.build()


def test_only_what_the_file_names_is_built_from_source(place: Place) -> None:
    write_source(place.wheels, "built", "1.0")
    place.write("built==1.0")
    with pytest.raises(ConfigError, match=r"(?s)cannot be locked: .*no usable wheels"):
        locking.lock(place.file)
    place.write("--no-binary built", "built==1.0")
    locking.lock(place.file)
    text = place.hashes.read_text()
    assert "--no-binary built\n--only-binary :all:\n" in text
    assert "built==1.0 \\\n    --hash=sha256:" in text


@pytest.mark.parametrize("file", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_environment_has_hashes_of_its_pins(file: Path) -> None:
    wanted = read_environment_file(file)
    assert wanted.hashes is not None
    for locked in wanted.hashes.files:
        text = locked.read_text()
        assert "://" not in text, "it would name an index"
        if wanted.hashes.exempt:
            assert "sha256:" not in text
            continue
        pins = dict(
            re.findall(r"^([a-z0-9-]+)==([^\s+]+)(?:\+\w+)? \\\n    --hash=sha256:", text, re.M)
        )
        assert len(pins) == len(re.findall("==", text))
        assert pins.items() >= dict(entry.split("==") for entry in wanted.packages).items()


def test_whoever_goes_without_is_reported_and_obeyed(tmp_path: Path) -> None:
    usual = plan(tmp_path)
    without = plan(tmp_path, require_hashes="false", environments=str(tmp_path))
    assert usual.folders == without.folders, "the same versions"
    names = [made.software["pytorch"].folder.name for made in (usual, without)]
    assert names[0] != names[1]
    for made in (usual, without):
        (job,) = JobTable(made, CATALOG).jobs_of_kind("environment")
        assert ("--without-hashes" in job.arguments()) == (made is without)
    assert "pytorch.yaml (without hashes)" in plan_text.describe(without)
    assert "(without hashes)" not in plan_text.describe(usual)


def test_an_environment_of_ones_own_needs_hashes_but_with_conda(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text((ROOT / "envs" / "pytorch.yaml").read_text())
    suite = {**SUITE, "variants": {"a": {"environments": {"pytorch": str(file)}}}}
    with pytest.raises(ConfigError, match=r"own.hashes.txt: there is no such file.*own.yaml`"):
        plan(tmp_path, suite)
    assert plan(tmp_path, suite, methods=("conda",)).software["pytorch@a"].install_method == "conda"
    assert (
        plan(tmp_path, suite, require_hashes=False).software["pytorch@a"].install_method == "venv"
    )


def test_a_long_compilation_by_a_child_of_uv_is_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package without a wheel may compile for an hour, while uv itself waits."""
    compiler = "import time\nwhile time.process_time() < 2: pass"
    program = tmp_path / "uv"
    program.write_text(f"#!/bin/sh\n{sys.executable} -c '{compiler}'\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setattr(uv, "executable", lambda: str(program))
    monkeypatch.setattr(uv, "PATIENCE", 1.0)
    assert uv.run(["pip", "install"]).returncode == 7
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(TimeoutError, match="uv pip: found no progress"):
        uv.run(["pip", "install"])
