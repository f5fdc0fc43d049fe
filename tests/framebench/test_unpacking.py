"""Archives: damaged, oversized or tampered ones are refused by name; temporary folders vanish."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from framebench.files import archives, temporary

from ..processes import PATIENCE, heed_signals

WORKFLOW = Path(__file__).parents[2] / "workflow"

FILES = {"runs/a/r1.json": b"{}" * 300, "runs/a/r2.json": b"[]" * 400, "notes.txt": b"hello"}


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes], **more: tarfile.TarInfo) -> Path:
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz", ".bz2": "w:bz2"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in more.values():
            archive.addfile(member)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def linked(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("runs/a/r1.json")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    return path


def changed(path: Path, old: bytes, new: bytes, count: int = -1) -> Path:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, count))
    return path


def cut(path: Path, share: float) -> Path:
    os.truncate(path, int(path.stat().st_size * share))
    return path


def encrypted(path: Path) -> Path:
    """Return an encrypted archive: bit 0 of the flags, in the local header and the directory."""
    content = bytearray(zipped(path, {"a": b"x"}).read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    return path


def of_method(path: Path, method: int) -> Path:
    content = bytearray(zipped(path, {"a": b"x"}).read_bytes())
    content[8] = method
    content[content.index(b"PK\x01\x02") + 10] = method
    path.write_bytes(content)
    return path


def with_sums(files: dict[str, bytes], top: str = "") -> dict[str, bytes]:
    sums = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    named = {f"{top}{name}": content for name, content in files.items()}
    return {**named, f"{top}{archives.CHECKSUMS}": "".join(sums).encode()}


@pytest.mark.parametrize("name", [f"set{suffix}" for suffix in archives.SUFFIXES])
def test_what_was_packed_is_unpacked(tmp_path: Path, name: str) -> None:
    for top in ("", "results/"):
        path = (zipped if name.endswith(".zip") else tarred)(
            tmp_path / name.replace("set", f"set{len(top)}"), with_sums(FILES, top)
        )
        folder = tmp_path / f"out{len(top)}"
        archives.unpack(path, folder)
        assert {file: (folder / top / file).read_bytes() for file in FILES} == FILES


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "cut.zip": (lambda p: cut(zipped(p, FILES), 0.7), "cannot be unpacked"),
    "damaged.zip": (
        lambda p: changed(zipped(p, FILES, zipfile.ZIP_STORED), b"hello", b"jello", 1),
        "Bad CRC-32",
    ),
    "deflate64.zip": (lambda p: of_method(p, 9), "a is compressed by method 9; allowed: stored"),
    "encrypted.zip": (encrypted, "a is encrypted"),
    "link.zip": (linked, "runs/a/r1.json is a link"),
    "link.tar": (
        lambda p: tarred(p, {}, link=special("runs", tarfile.SYMTYPE, "/etc")),
        "runs is a link",
    ),
    "fifo.tar": (lambda p: tarred(p, {}, fifo=special("f", tarfile.FIFOTYPE)), "f is a link, a d"),
    "above.zip": (lambda p: zipped(p, {"a/../../b": b""}), "a/../../b lies outside"),
    "twice.tar": (lambda p: tarred(p, {"a": b"1", "./a": b"2"}), "a is there twice"),
    "escape.zip": (lambda p: zipped(p, {"../\33[2J": b""}), "../\\x1b[2J lies outside"),
    "bomb.zip": (lambda p: zipped(p, {"a": bytes(8 * 2**20)}), "unpacks to more than"),
    "changed.zip": (
        lambda p: zipped(p, {**with_sums(FILES), "notes.txt": b"HELLO"}),
        "notes.txt was changed or added, by the checksums in manifest-sha256.txt",
    ),
    "added.tar.gz": (
        lambda p: tarred(p, {**with_sums(FILES, "x/"), "x/runs/a/r3.json": b""}),
        "x/runs/a/r3.json was changed or added",
    ),
    "removed.zip": (
        lambda p: zipped(p, {n: c for n, c in with_sums(FILES).items() if "r1" not in n}),
        "runs/a/r1.json is missing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_unpacked_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(archives, "SMALL_CONTENT", 2**20)
    make, said = BAD[name]
    path = make(tmp_path / name)
    (tmp_path / "out").mkdir()
    with pytest.raises(archives.BadArchive) as refused:
        archives.unpack(path, tmp_path / "out")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()
    assert {path.name for path in tmp_path.iterdir()} == {name, "out"}


def test_a_file_that_says_less_of_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a file larger than its directory entry is unpacked: deflate has no length limit."""
    monkeypatch.setattr(archives, "SMALL_CONTENT", 2**16)
    content = bytes(2**20)
    path = zipped(tmp_path / "x.zip", {"a": content})
    size, checksum = len(content).to_bytes(4, "little"), zlib.crc32(content).to_bytes(4, "little")
    changed(path, checksum + path.read_bytes()[18:22] + size, checksum + path.read_bytes()[18:22]
            + (5).to_bytes(4, "little"))  # fmt: skip
    with pytest.raises(archives.BadArchive):
        archives.unpack(path, tmp_path / "out")


def test_as_many_entries_as_are_allowed_are_unpacked_and_one_more_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 3)
    archives.unpack(zipped(tmp_path / "x.zip", FILES), tmp_path / "out")
    path = tarred(tmp_path / "x.tar", {**FILES, "another": b""})
    with pytest.raises(archives.BadArchive, match="has more than 3 files"):
        archives.unpack(path, tmp_path / "again")


def held(folder: Path, ends: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKFLOW.parent / "tests/framebench/programs/hold_folder.py", ends],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(WORKFLOW)},
        stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, preexec_fn=heed_signals,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "ends", "status"),
    [
        (signal.SIGTERM, "pause", 143),
        (signal.SIGINT, "loop", 130),
        (signal.SIGHUP, "loop", 129),
        (0, "fail", 1),
        (0, "5", 5),
    ],
)
def test_a_temporary_folder_goes_with_its_process(
    tmp_path: Path, number: int, ends: str, status: int
) -> None:
    process = held(tmp_path, ends)
    assert process.stdout
    assert process.stdout.readline()
    if number:
        process.send_signal(number)
    assert process.wait(timeout=PATIENCE) == status
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_is_removed_by_the_next_call_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    processes = [held(tmp_path, "pause") for _ in range(2)]
    killed, running = (
        Path(process.stdout.readline().strip()) for process in processes if process.stdout
    )
    processes[0].kill()
    processes[0].wait()
    (tmp_path / "framebench-work-mine").write_text("a file")
    (tmp_path / "framebench-work-link").symlink_to(running)
    with temporary.folder() as own:
        assert own.is_dir()
        assert not killed.exists()
        assert (running / "x").read_text() == "content"
    assert not own.exists()
    assert (tmp_path / "framebench-work-mine").exists()
    processes[1].kill()
    processes[1].wait()
