"""Ways to spoil a valid file, drawn from one random generator."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

#: Extreme values in place of others.
EXTREMES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**64), 10**30, 0.5, -0.0),
    *(1e308, -1e-320, float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "-", "nan", "1", "1e999", "é", "\ud800", "\x00", "\x1b[2J\x1b]0;x\x07"),
    *("\u202e", "a\nb", "=1+1", "../../etc/passwd", "/dev/zero", "~nobody-at-all/x", "$(id)"),
    *("x" * 10_000, [], {}, [[]], {"": {}}, [None] * 500, {"a": 1, "b": [2]}),
    [{"x": [1, "2", None]}],
)
#: Pieces of text that break parsers.
PIECES = (
    *(b"\x00", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n\n"),
    *(b"\t", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"#"),
    *(b"=", b"%", b"NaN", b"Infinity", b"-", b"1e999", b"9" * 5000, b"0x", b"010", b"1:30"),
    *(b"2030-13-45", b"null", b"[" * 5000, b'{"a":' * 5000, b"(" * 5000, b"- " * 3000),
    *(b"&a [*a, *a]", b"<<: *a", b"? ", b"!!python/object/apply:os.system [id]", b"!!binary x"),
    *(b"!!timestamp x", b"--- \n--- \n", b"&a ['x','x','x','x']\n", b"\x1b[31m", b"x" * 70_000),
    *(b";", b"|", b">"),
)


def mutated(rng: random.Random, sample: bytes, structured: str = "") -> bytes:
    """Return the sample with one to three changes.
    ``structured``: json or yaml if values can be changed, too."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        if structured and rng.random() < 0.6:
            sample = _value_changed(rng, sample, structured)
        else:
            sample = rng.choice(_CHANGES)(rng, sample)
    return sample


def _value_changed(rng: random.Random, sample: bytes, structured: str) -> bytes:
    try:
        if structured == "lines":
            lines = sample.split(b"\n")
            at = rng.randrange(len(lines))
            lines[at] = _value_changed(rng, lines[at], "json")
            return b"\n".join(lines)
        value = yaml.safe_load(sample) if structured == "yaml" else json.loads(sample)
        changed = _spoiled(rng, value)
        if structured == "yaml":
            return yaml.safe_dump(changed, sort_keys=False, allow_unicode=True).encode(
                "utf-8", "surrogatepass"
            )
        return json.dumps(changed, indent=rng.choice((None, 1))).encode()
    except (ValueError, yaml.YAMLError, RecursionError):  # already spoiled
        return rng.choice(_CHANGES)(rng, sample)


def _spoiled(rng: random.Random, value: Any) -> Any:
    """Return a value with something in it renamed, removed, added or replaced."""
    inner = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else ()
    )
    if not inner or rng.random() < 0.1:
        return _replaced(rng, value)
    key: Any = rng.choice(list(inner))
    if isinstance(value, list):
        changed = list(value)
        how = rng.random()
        if how < 0.1:
            del changed[key]
        elif how < 0.2:
            changed += [changed[key]] * rng.choice((1, 300))
        else:
            changed[key] = _spoiled(rng, value[key])
        return changed
    how = rng.random()
    if how < 0.1:
        return {name: entry for name, entry in value.items() if name != key}
    if how < 0.2:
        new = rng.choice((f"{key}x", "", str(key).upper(), "\x1b[2J", "x" * 300, str(key)[:-1]))
        return {new if name == key else name: entry for name, entry in value.items()}
    if how < 0.3:
        return {**value, rng.choice(("extra", "name", "__proto__")): rng.choice(EXTREMES)}
    return {**value, key: _spoiled(rng, value[key])}


def _replaced(rng: random.Random, value: Any) -> Any:
    how = rng.random()
    if how < 0.1:
        for _ in range(rng.choice((5, 150, 300))):
            value = [value]
        return value
    if how < 0.25 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return rng.choice((str(value), -value, value * 10**9, value + 0.5, [value]))
    if how < 0.35 and isinstance(value, str):
        return rng.choice((value + "\x00", value * 200, value.upper(), f" {value} ", [value]))
    return rng.choice(EXTREMES)


def _flipped(rng: random.Random, sample: bytes) -> bytes:
    content = bytearray(sample)
    for _ in range(rng.choice((1, 1, 4, 30))):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def _cut(rng: random.Random, sample: bytes) -> bytes:
    return sample[: rng.randrange(len(sample) + 1)]


def _removed(rng: random.Random, sample: bytes) -> bytes:
    first = rng.randrange(len(sample) + 1)
    return sample[:first] + sample[first + rng.choice((1, 5, 50)) :]


def _repeated(rng: random.Random, sample: bytes) -> bytes:
    first = rng.randrange(len(sample) + 1)
    piece = sample[first : first + rng.choice((1, 20, 200))]
    return sample[:first] + piece * rng.choice((2, 3, 100)) + sample[first:]


def _inserted(rng: random.Random, sample: bytes) -> bytes:
    offset = rng.randrange(len(sample) + 1)
    return sample[:offset] + rng.choice(PIECES) + sample[offset:]


def _line_swapped(rng: random.Random, sample: bytes) -> bytes:
    lines = sample.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _other_ends(rng: random.Random, sample: bytes) -> bytes:
    return rng.choice((b"", b"\xef\xbb\xbf")) + sample.replace(b"\n", rng.choice((b"\r\n", b"\r")))


def _other_encoding(rng: random.Random, sample: bytes) -> bytes:
    text = sample.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-32-be", "utf-7")), "replace")


def _noise(rng: random.Random, sample: bytes) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 100, 5000)))


_CHANGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_flipped, _cut, _removed, _repeated, _inserted, _inserted, _line_swapped, _other_ends),
    *(_other_encoding, _noise),
)


def make_special(rng: random.Random, path: Path) -> str:
    """Make something other than a plain file at ``path``. Returns its kind."""
    name = rng.choice(sorted(_SPECIAL))
    _SPECIAL[name](path)
    return name


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(here)


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 * 2**30)  # takes no room on the disk


_SPECIAL: dict[str, Callable[[Path], None]] = {
    "fifo": lambda path: os.mkfifo(path),
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "3 GiB": _sparse,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "empty device": lambda path: path.symlink_to("/dev/null"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "loop of links": lambda path: path.symlink_to(path.name),
    "dangling link": lambda path: path.symlink_to("nothing-there"),
    "link to a FIFO": lambda path: (os.mkfifo(f"{path}.fifo"), path.symlink_to(f"{path}.fifo"))[1],
}
