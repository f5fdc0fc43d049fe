"""Compute capabilities are read from fat binaries, and documented."""

from __future__ import annotations

import shutil
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from framebench import cli
from framebench.commands import upkeep
from framebench.config.validation import ConfigError
from framebench.environments import fat_binaries

from ..settings import ROOT

PTX, ELF = 1, 2
HEADER = "environment,framework,version,cuda,minimum_driver,machine_code,ptx\n"
PINS = "dependencies: [python=3.11, pip=25.3, {pip: [torch==2.13.0, numpy==2.4.6]}]\n"


def fat_binary(entries: Sequence[tuple[int, int]]) -> bytes:
    """Return a fat binary with a made-up kernel for each kind and capability, as nvcc writes it."""
    body = b""
    for kind, capability in entries:
        code = b"\x7fELF or PTX text, or either compressed"
        header = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(code), 0, 0, 0, 1, capability)
        body += header.ljust(64, b"\0") + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def library() -> bytes:
    """Return a library with kernels for 8.0 and 9.0, one for 10.0a alone, and PTX in most."""
    usual = fat_binary([(ELF, 80), (ELF, 90), (PTX, 90)])
    return b"\x7fELF" + usual + b"\0" * 24 + usual + b"text" + fat_binary([(ELF, 80), (ELF, 100)])


def test_capabilities_of_most_kernels_are_read_from_wheels_and_folders(
    library: bytes, tmp_path: Path
) -> None:
    wheel = tmp_path / "torch-2.13.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("torch/lib/libtorch_cuda.so", library)
        file.writestr("torch/lib/libempty.so.1", b"")
        file.writestr("torch/notes.txt", library)
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "_C.cpython-311.so").write_bytes(library[:-7])  # cut within the last kernel
    for place in (wheel, folder):
        assert fat_binaries.read([place]) == (("8.0", "9.0"), ("9.0",), 3)
    assert fat_binaries.read([wheel, folder], "_C*").binaries == 3
    for name in ("_C.cpython-311.so", "_C.so"):
        (folder / name).write_bytes(b"no GPU code")
    with pytest.raises(ConfigError, match=r"found no GPU code in .*installed"):
        fat_binaries.read([folder])
    for place, reason in ((tmp_path / "none.whl", "No such file"), (folder / "_C.so", "not a zip")):
        with pytest.raises(ConfigError, match=rf"PATH: {place}: cannot be read: .*{reason}"):
            fat_binaries.read([place])


def test_the_command_writes_the_row_of_an_environment(
    library: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "PROJECT", tmp_path)
    envs = tmp_path / "envs"
    envs.mkdir()
    (envs / "pytorch-cuda.yaml").write_text(PINS)
    framework_folder = tmp_path / "scripts" / "frameworks" / "pytorch"
    framework_folder.mkdir(parents=True)
    for name in ("framework.json", "adapter.py"):
        shutil.copy(ROOT / "scripts" / "frameworks" / "pytorch" / name, framework_folder)
    other = "oneflow-cuda,oneflow,0.9.0,11.7,450,6.0,\n"
    table = envs / "capabilities.csv"
    table.write_text(f"{HEADER}pytorch-cuda,pytorch,,13.0,,,\n{other}")
    (tmp_path / "lib.so").write_bytes(library)
    arguments = ["capabilities", "pytorch-cuda", str(tmp_path)]
    assert cli.main(arguments) == 0
    assert table.read_text() == f"{HEADER}pytorch-cuda,pytorch,2.13.0,13.0,580,8.0 9.0,9.0\n{other}"
    newer = tmp_path / "cudnn"
    newer.mkdir()
    (newer / "libcudnn_ops.so.9").write_bytes(fat_binary([(ELF, 86), (ELF, 90)]))
    assert cli.main([*arguments, "--library", "lib.so", "--cudnn", str(newer)]) == 0
    assert ",8.6 9.0,9.0\n" in table.read_text()
    assert cli.main(["capabilities", "jax-cuda", str(tmp_path)]) == 1
    assert "found 'jax-cuda', which has no row in" in capsys.readouterr().err
