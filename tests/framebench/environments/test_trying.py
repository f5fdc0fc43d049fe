"""Imports of an environment are tried before anything is measured in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from framebench.config.validation import ConfigError
from framebench.environments import trying, venvs

HEAD = 'FRAMEWORK = "pytorch"\n'
MAKE = "def make(n): ...\n"
PINS = "dependencies: [python=3.11, pip=25.3, {pip: [good-one==1.0, Bad_one==2.0]}]\n"
#: A torchvision whose operators are not loaded, and a module that needs them.
WITHOUT_OPERATORS = {
    "__init__": "from . import extension, _meta_registrations, models",
    "extension": "def _has_ops(): return False",
    "_meta_registrations": "raise RuntimeError('operator torchvision::nms does not exist')",
    "models": "def list_models(): return ['resnet18', 'resnet50']",
}


def install(folder: Path) -> None:
    """Install two packages into a venv, one of which cannot be imported."""
    (site,) = folder.glob("lib/python*/site-packages")
    for name, module, text in (
        ("good_one-1.0", "good", "print('hello')"),
        ("bad_one-2.0", "bad", "import nosuchthing"),
        ("unasked-3.0", "unasked", "raise ValueError"),
        ("driver-1.0", "driver", "raise ImportError('libcuda.so.1: cannot open')"),
    ):
        (site / f"{module}.py").write_text(text + "\n")
        (site / f"{name}.dist-info").mkdir()
        (site / f"{name}.dist-info" / "top_level.txt").write_text(f"{module}\n_private\ntests\n")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    install(folder)
    return folder


def test_the_modules_are_those_that_the_packages_name(venv: Path) -> None:
    assert trying.modules(venv, ["Good.One", "bad-one"]) == ["bad", "good"]


def test_what_cannot_be_imported_is_named_with_its_reason(venv: Path) -> None:
    assert trying.import_fault(venv, ["good-one", "driver"]) == ""
    fault = trying.import_fault(venv, ["good-one", "bad-one"])
    assert fault == "import bad: ModuleNotFoundError: No module named 'nosuchthing'"


def test_such_an_environment_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(wanted: object, python: str, keep: object) -> str:
        install(Path(python).parents[1])
        return ""

    monkeypatch.setattr(venvs, "install_packages", installed)
    file, marker = tmp_path / "mine.yaml", tmp_path / "mine" / venvs.MARKER
    file.write_text(PINS)
    with pytest.raises(ConfigError, match=r"mine.yaml: dependencies: found .*import bad: .*; all"):
        venvs.build(file, marker, hashed=False)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import json, os.path\nfrom math import pi\n", []),
        ("import nosuchthing\n", ["line 2", "No module named 'nosuchthing'"]),
        ("from math import tau, nosuch\n", ["line 2", "cannot import name 'nosuch'"]),
        ("def load(n):\n    import nosuchthing\n", ["line 3", "nosuchthing"]),
        ("from . import sibling\n", ["line 2", "cannot import name 'sibling'"]),
        ("import a_first\nimport b_second\n", ["line 2", "a_first", "line 3", "b_second"]),
        ("try:\n    import nosuchthing\nexcept ImportError:\n    nosuchthing = None\n", []),
        ("if False:\n    import nosuchthing\n", []),
    ],
)
def test_imports_of_a_model_are_tried(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(HEAD + text + MAKE)
    fault = trying.model_fault([sys.executable], str(path))
    assert bool(fault) == bool(expected), fault
    assert not [
        word for word in [*expected, *(["allowed"] if expected else [])] if word not in fault
    ]
    assert "Traceback" not in fault


def test_a_name_is_looked_up_in_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a name is not found in a torchvision built for another PyTorch."""
    folder = tmp_path / "torchvision"
    folder.mkdir()
    for name, text in WITHOUT_OPERATORS.items():
        (folder / f"{name}.py").write_text(text + "\n")
    (tmp_path / "timm.py").write_text("def list_models(): return ['vit_tiny']\n")
    auto = tmp_path / "transformers" / "models" / "auto" / "modeling_auto.py"
    auto.parent.mkdir(parents=True)
    (tmp_path / "transformers" / "__init__.py").touch()
    auto.write_text("MODEL_FOR_X_MAPPING_NAMES = {'bert': ('BertForX', 'BertForY'), 't5': 'T5'}\n")
    (tmp_path / "config.json").write_text('{"architectures": ["BertForZ"]}')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def fault(name: str) -> str:
        return trying.model_fault([sys.executable], name)

    assert fault("torchvision:resnet18") == fault("timm:vit_tiny.augreg") == ""
    assert "found 'torchvision:resnet19' (did you mean resnet18" in fault("torchvision:resnet19")
    assert "allowed: one of the 1 names of timm" in fault("timm:nosuch")
    assert fault("transformers:BertForY") == fault("transformers:T5") == ""
    assert "(did you mean BertFor" in fault("transformers:BertForX2")
    assert ": BertForZ' (did you mean BertFor" in fault(str(tmp_path))
