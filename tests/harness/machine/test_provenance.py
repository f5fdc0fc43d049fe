"""Requested interpreters, prefixes and pins are used, and recorded; the code is identified."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from core import precisions
from harness import provenance
from harness.hardware import processor

from ...bench import ROOT, Bench
from ...commands import git
from ...frameworks.models import BERT, model_config_of
from ...interpreters import find_interpreter

PYTEST = importlib.metadata.version("pytest")


@pytest.mark.parametrize("version", ["3.7", "3.13"])
def test_the_harness_runs_on(toy: Bench, version: str) -> None:
    python = find_interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here: `uv python install {version}` brings one")
    toy.python = python
    done = toy.run("grandchild")  # several ranks need numpy
    assert done.status == 0, done.stderr
    assert done.record["status"] == "ok", done.record["reason"]
    assert done.record["environment"]["python"].startswith(version)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--prefix", "/nowhere"], ["/nowhere", sys.prefix]),
        (["--pin", "pytest==0.1"], ["pytest==0.1", PYTEST]),
        (["--pin", f"pytest=={PYTEST}", "--pin", "absent==1"], ["absent==1", "not installed"]),
    ],
)
def test_another_environment_is_not_ok(
    toy: Bench, arguments: list[str], expected: list[str]
) -> None:
    record = toy.run("", *arguments).record
    assert record["status"] == "failed"
    assert record["ranks"] == [], "ranks were started in the wrong environment"
    for word in expected:
        assert word in record["reason"], "the reason must name what was asked and what is there"


@pytest.mark.parametrize(
    ("asked", "found", "same"),
    [
        ("2.13.0", "2.13.0+cpu", True),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.13.0+cu128", "2.13.0+cpu", False),
        ("2.13.0", "2.13.1", False),
    ],
)
def test_local_versions_count_only_if_asked_for(asked: str, found: str, same: bool) -> None:
    wrong = provenance.wrong_environment(None, [("x", asked)], {"x": found})
    assert (wrong is None) is same


def test_the_environment_asked_for_is_recorded_with_the_machine(toy: Bench, tmp_path: Path) -> None:
    """The user's modules stay out of an environment made for us."""
    fake = tmp_path / "leak" / "leaked-1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Name: leaked\nVersion: 1\n")
    (fake.parent / "random.py").write_text("raise SystemExit('leaked')\n")
    variables = {"NCCL_DEBUG": "WARN", "PYTHONPATH": str(fake.parent)}
    words = ("--prefix", sys.prefix, "--pin", f"PyTest=={PYTEST}")
    record = toy.run("", *words, install_method="venv", variables=variables).record
    assert record["status"] == "ok", record["reason"]
    where = record["environment"]
    assert where["install_method"] == "venv"
    assert where["packages"]["pytest"] == PYTEST
    assert "leaked" not in where["packages"]
    assert "PYTHONPATH" not in where["variables"]
    assert where["variables"]["NCCL_DEBUG"] == "WARN", "a variable that matters is missing"
    assert where["hardware"]["cpu"], "the processor is not named"
    assert where["hardware"]["memory_bytes"] > 2**20
    assert where["hardware"]["cores"] >= 1
    numbers = where["hardware"]["processor"]
    assert numbers["logical_cores"] >= where["hardware"]["cores"]
    assert set(where["system"]) >= {"host", "os", "kernel", "machine", "governor"}


X86 = """processor\t: {core}
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC 9B14
stepping\t: 1
microcode\t: 0xa0011d1
physical id\t: {socket}
core id\t\t: {physical}
flags\t\t: fpu smep avx avx2 fma avx512f avx512_bf16 amx_tile rdrand
"""
ARM = """processor\t: {core}
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40
CPU revision\t: 1
Features\t: fp asimd sve bf16 atomics
"""


def test_processors_of_one_name_are_distinguished_by_their_numbers(tmp_path: Path) -> None:
    cache = tmp_path / "cpu0" / "cache" / "index3"
    cache.mkdir(parents=True)
    for name, content in (("level", "3"), ("type", "Unified"), ("size", "32768K")):
        (cache / name).write_text(f"{content}\n")
    # Two sockets with two cores of two threads; each socket numbers its cores from 0.
    cores = [(n, n % 2, n // 2 % 2) for n in range(8)]
    text = "\n".join(X86.format(core=a, socket=b, physical=c) for a, b, c in cores)
    (tmp_path / "cpuinfo").write_text(text)
    assert processor(str(tmp_path / "cpuinfo"), str(tmp_path / "cpu0")) == {
        "vendor": "AuthenticAMD",
        "family": "25",
        "model": "17",
        "stepping": "1",
        "microcode": "0xa0011d1",
        "sockets": 2,
        "physical_cores": 4,
        "logical_cores": 8,
        "caches": {"L3 Unified": "32768K"},
        "instruction_sets": ["amx_tile", "avx", "avx2", "avx512_bf16", "avx512f", "fma"],
    }
    (tmp_path / "cpuinfo").write_text("\n".join(ARM.format(core=core) for core in range(4)))
    assert processor(str(tmp_path / "cpuinfo"), "/nowhere") == {
        "vendor": "0x41",
        "family": "8",
        "model": "0xd40",
        "stepping": "1",
        "logical_cores": 4,
        "caches": {},
        "instruction_sets": ["asimd", "bf16", "sve"],
    }
    assert processor("/nowhere") == {}


def commit_of(project: Path, **variables: str) -> tuple[str | None, bool | None]:
    """Return the commit, and whether the project was modified, as in a record."""
    ask = "import json; from harness import provenance; print(json.dumps(provenance.code()))"
    ran = subprocess.run(
        [sys.executable, "-B", "-c", ask],
        cwd=project / "scripts",
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    code = json.loads(ran.stdout)
    return code["commit"], code["modified"]


def test_a_commit_is_recorded_of_our_repository_and_of_no_other(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    (outer / "theirs").write_text("theirs")
    git(outer, "add", ".")
    git(outer, "commit", "--quiet", "--message", "theirs")
    inner = outer / "framebench"
    for name in ("core", "harness"):
        shutil.copytree(ROOT / "scripts" / name, inner / "scripts" / name)
    assert commit_of(inner) == (None, None), "another repository's commit is recorded"

    git(inner, "init", "--quiet")
    git(inner, "add", ".")
    git(inner, "commit", "--quiet", "--message", "ours")
    ours = git(inner, "rev-parse", "HEAD").strip()
    assert commit_of(inner) == (ours, False)
    assert commit_of(inner, GIT_DIR=str(outer / ".git")) == (ours, False), "another is set"
    (inner / "scripts/harness/new.py").write_text("")
    assert commit_of(inner) == (ours, True)

    without_git = {"PATH": str(tmp_path)}
    assert commit_of(inner, **without_git) == (None, None)


def test_an_image_is_recorded(toy: Bench) -> None:
    image = ["--image", "/images/toy.sif", "--image-digest", "0123456789ab"]
    inside = {"APPTAINER_CONTAINER": "/data/images/toy.sif"}
    where = toy.run("", *image, install_method="container", variables=inside).record["environment"]
    assert (where["install_method"], where["image"]) == ("container", "/images/toy.sif")
    assert where["image_digest"] == "0123456789ab"


@pytest.mark.parametrize(
    ("variables", "found"),
    [({}, "not in a container"), ({"SINGULARITY_CONTAINER": "/i/other.sif"}, "/i/other.sif")],
)
def test_an_image_that_was_not_used_is_not_ok(
    toy: Bench, variables: dict[str, str], found: str
) -> None:
    record = toy.run("", "--image", "/i/toy.sif", variables=variables).record
    assert record["status"] == "failed"
    assert record["ranks"] == [], "ranks were started in the wrong software"
    for word in ("image /i/toy.sif", found):
        assert word in record["reason"], "the reason must name what was asked and what is there"


def test_a_variable_that_changes_the_precision_fails_the_run(toy: Bench) -> None:
    record = toy.run("", variables={"NVIDIA_TF32_OVERRIDE": "1"}).record
    assert (record["status"], record["ranks"]) == ("failed", [])
    reported = "NVIDIA_TF32_OVERRIDE=1 changes what fp32 computes; allowed: unset or 0"
    assert record["reason"] == reported
    toy.output.unlink()
    assert toy.run("", variables={"NVIDIA_TF32_OVERRIDE": "0"}).record["status"] == "ok"


PYTORCH = ROOT / "scripts" / "frameworks" / "pytorch"


def test_another_adapter_or_module_or_fact_is_another_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PYTORCH, tmp_path / "pytorch")
    for name in ("core", "harness", "networks"):
        shutil.copytree(ROOT / "scripts" / name, tmp_path / name)
    monkeypatch.setattr(provenance, "SCRIPTS", str(tmp_path))
    model_config = model_config_of(BERT)
    actual = [provenance.computation_digest(str(tmp_path / "pytorch"), model_config)]
    for name in (
        *("pytorch/steps.py", "pytorch/inner/new.py"),
        *("harness/measuring/window.py", "networks/residual.py"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("a") as file:
            file.write("# another\n")
        actual.append(provenance.computation_digest(str(tmp_path / "pytorch"), model_config))
    model_config["hyperparameters"]["layers"] = 11
    actual.append(provenance.computation_digest(str(tmp_path / "pytorch"), model_config))
    assert len(set(actual)) == 6


def test_what_a_rank_knows_of_a_precision_is_part_of_the_computation_and_its_bounds_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_config, known = model_config_of(BERT), precisions.known()
    before = provenance.computation_digest(str(PYTORCH), model_config)
    changed = {"bounds": {}, "dtypes": ("float32",)}
    for field, value in changed.items():
        other = {**known, "amp": known["amp"]._replace(**{field: value})}
        monkeypatch.setattr(precisions, "known", lambda other=other: other)
        is_same = provenance.computation_digest(str(PYTORCH), model_config) == before
        assert is_same == (field == "bounds"), field


def test_verification_and_timing_use_the_same_model_config() -> None:
    """Except for intended hyper-parameters."""
    from reference.compute import reduced, verification_model_config

    model_config = model_config_of(BERT)
    timed = provenance.computation_digest(str(PYTORCH), model_config)
    for dropout in (False, True):
        for compared in (model_config, reduced(model_config)):
            actual = provenance.computation_digest(
                str(PYTORCH), verification_model_config(compared, dropout)
            )
            assert actual == timed
    other = reduced(
        {**model_config, "hyperparameters": {**model_config["hyperparameters"], "positions": 64}}
    )
    assert provenance.computation_digest(str(PYTORCH), other) != timed
