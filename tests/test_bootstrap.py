"""./bootstrap makes the driver's environment, here of local wheels without any network."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from framebench.environments import uv

from .interpreters import find_interpreter

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "programs"
UV = f"#!/bin/sh\nexec '{sys.executable}' '{PROGRAMS / 'uv.py'}' \"$@\"\n"


def write_wheel(folder: Path) -> str:
    """Write a wheel of a uv 1.0 with only the script; return its SHA-256."""
    folder.mkdir()
    info = "uv-1.0.dist-info"
    files = {
        "uv-1.0.data/scripts/uv": UV,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: uv\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "uv-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)
    return hashlib.sha256((folder / "uv-1.0-py3-none-any.whl").read_bytes()).hexdigest()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    needed = ("workflow/framebench/environments/uv.py", "scripts/core/programs.py")
    for name in ("bootstrap", *needed):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    digest = write_wheel(tmp_path / "wheels")
    (folder / "requirements.txt").write_text(
        f"other==1.0 \\\n    --hash=sha256:{digest[::-1]}\n"
        f"uv==1.0 \\\n    --hash=sha256:{digest[::-1]} \\\n    --hash=sha256:{digest}\n"
        "    # via -r requirements.in\n"
    )
    return folder


def start(project: Path, *python: str, **more: str) -> subprocess.Popen[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    wheels = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": (project.parent / "wheels").as_uri()}
    return subprocess.Popen(
        [*python, str(project / "bootstrap")],
        env={**kept, **wheels, "PIP_CONFIG_FILE": os.devnull, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=600)
    return process.returncode, output


def calls(project: Path) -> list[str]:
    return (project / "calls").read_text().splitlines()


def test_two_at_once_then_nothing_then_after_a_move(project: Path) -> None:
    both = [start(project), start(project)]
    ended = [finish(process) for process in both]
    assert [status for status, _ in ended] == [0, 0], ended
    assert len(calls(project)) == 1, "both have installed"
    assert sum("another one is at work" in output for _, output in ended) == 1, ended

    assert "--require-hashes" in calls(project)[0]
    assert f"--build-constraints {project}/requirements.txt" in calls(project)[0]

    assert finish(start(project)) == (0, "")
    assert len(calls(project)) == 1, "what is done was done again"

    # A site's modules on PYTHONPATH are not for our Python.
    (packages,) = (project / ".venv").glob("lib/python3*/site-packages")
    (packages / "snakemake").mkdir()
    shutil.copy(PROGRAMS / "snakemake_cli.py", packages / "snakemake" / "cli.py")
    # This user is unknown, as in a container that runs under an id of the host.
    (packages / "sitecustomize.py").write_text("import pwd\npwd.getpwuid = {}.__getitem__\n")
    (packages / "other.py").touch()
    (project.parent / "other.py").write_text("raise ImportError('of another Python')")
    (project.parent / "libresolv.so.2").touch()
    home, libraries = {"PYTHONHOME": "/nowhere"}, {"LD_LIBRARY_PATH": str(project.parent)}
    site = {"PYTHONPATH": str(project.parent), "PYTHONINSPECT": "1", **home, **libraries}
    users = ("LOGNAME", "USER", "LNAME", "USERNAME")
    ran = subprocess.run(
        [project / ".venv" / "bin" / "snakemake", "a b"],
        env={**{k: v for k, v in os.environ.items() if k not in users}, **site},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == f"{packages / 'other.py'} a b\n{os.getuid()}\n[]\n", ran.stderr

    moved = project.rename(project.parent / "elsewhere")
    assert finish(start(moved)) == (0, "")
    assert len(calls(moved)) == 2, "an environment that names another folder was kept"
    assert str(moved) in (moved / ".venv" / "bin" / "snakemake").read_text()


STEERING = {
    **{"PIP_USER": "1", "PIP_TARGET": "/t", "PIP_CONSTRAINT": "/nowhere", "PIP_DRY_RUN": "1"},
    **{"UV_TARGET": "/t", "UV_CONSTRAINT": "/nowhere", "UV_PYTHON": "3.8"},
    **{"PYTHONHOME": "/nowhere", "PYTHONSAFEPATH": "1", "LD_PRELOAD": "/nowhere.so"},
}


def test_settings_of_the_caller_do_not_steer_what_is_installed_where(project: Path) -> None:
    config = project.parent / "pip.conf"
    config.write_text("[global]\ntarget = /t\nprefix = /p\ntimeout = 7\n[install]\nuser = yes\n")
    mirror = {"UV_DEFAULT_INDEX": "https://mirror.example", "UV_HTTP_TIMEOUT": "9"}
    status, output = finish(start(project, **STEERING, **mirror, PIP_CONFIG_FILE=str(config)))
    assert status == 0, output
    (called,) = calls(project)
    seen = {word.partition("=")[0] for word in called.split()}
    assert not seen & {*STEERING}
    assert seen > {*mirror, "UV_FIND_LINKS"}


def test_a_uv_that_is_not_the_locked_one_is_not_run(project: Path) -> None:
    wheel = project.parent / "wheels" / "uv-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "a") as other:
        other.writestr("uv-1.0.data/scripts/more", "#!/bin/sh")
    status, output = finish(start(project))
    assert status == 1
    assert "DO NOT MATCH THE HASHES" in output, output
    assert output.splitlines()[-1].endswith("-m pip install .. failed, see above"), output
    assert "python3-venv" not in output
    assert not (project / "calls").exists()


def test_where_packages_are_stands_on_no_command_line() -> None:
    secret = "https://user:password@packages.example/simple"
    settings = {
        "index-url": secret,
        "extra-index-url": f"{secret}/more file:///more",
        "find-links": f"{secret}/wheels /wheels",
        "cert": "/etc/ssl/own.pem",
        "trusted-host": "packages.example",
    }
    assert not any("password" in word for word in uv.arguments(settings))
    actual = uv.variables(settings)
    assert (
        actual.items()
        >= {
            "UV_DEFAULT_INDEX": secret,
            "UV_INDEX": f"{secret}/more file:///more",
            "UV_FIND_LINKS": f"{secret}/wheels,/wheels",
            "SSL_CERT_FILE": "/etc/ssl/own.pem",
        }.items()
    )


def test_an_old_python_is_reported_so(project: Path) -> None:
    python = find_interpreter("3.7") or find_interpreter("3.10")
    if python is None:
        pytest.skip("there is no Python below 3.11 here")
    status, output = finish(start(project, python))
    assert status == 1, output
    assert re.fullmatch(
        r"bootstrap: Python 3.11 or newer is needed, this is 3\.\d+: run it as python3.X bootstrap",
        output.strip(),
    ), output
