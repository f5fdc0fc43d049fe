"""Results with odd files: records and files beside them, of which some cannot be read."""

from __future__ import annotations

import copy
import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from framebench.records import verifications

from .made_up_records import record_of
from .saved_records import largest_batch_record, peak_flops_record
from .watched import GPU, watch

SEED = 20
GOOD, ODD = 10, 200
#: Batch of the good records only.
BATCH = 4
#: JSON texts that json.dumps does not write, by their placeholder.
UNWRITTEN = {
    "too large": "1e400",
    "too deep": "[" * 450 + '{"x":' * 450 + "1" + "}" * 450 + "]" * 450,
}
CASE = {
    "framework": "pytorch",
    "model": "resnet50_v1.5",
    "mode": "train",
    "nodes": 1,
    "devices_per_node": 2,
    "batch_per_device": BATCH,
    "precision": "fp32",
    "compiler": "none",
    "sequence_length": None,
}


VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2.5, 1e-300, 1e15, 1e308, -1e308, *UNWRITTEN, float("nan"),
    10**6, 10**9, 10**19, 2**63, -(2**63), 10**400, "9" * 18, "", "x", "\ud800", "a\udce9b",
    "\x1b[31mred", "\x00", "a\r\nb", "$\\frac{", "=1+1", "| ![](http://example.org/a.png)",
    "<script>", "x" * 100_000, "\u202egnp", [], {}, [0, 0], [[]], {"x": {}}, {"x": {"y": [1]}},
    {"": None}, [None], ["a", 1], [[[[[[[[[["deep"]]]]]]]]]],
]  # fmt: skip


def good(rng: random.Random, repeat: int, batch: int = BATCH) -> dict[str, Any]:
    record = record_of(rng, {**CASE, "batch_per_device": batch}, repeat)
    record["watch"] = watch(gpus=[GPU])
    record["ranks"][0]["step_breakdown"] = {
        "reason": "",
        "parts": [{"part": "forward", "seconds": [0.1, 0.2], "contains": []}],
    }
    return record


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of values, at any depth, that can be replaced."""
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value[:3]) if isinstance(value, list) else items
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def mutated(rng: random.Random, record: dict[str, Any]) -> str:
    """Return the record as JSON with one to three values replaced, removed or added."""
    record = copy.deepcopy(record)
    for _ in range(rng.choice((1, 1, 2, 3))):
        *keys, key = rng.choice(list(places(record)))
        holder: Any = record
        for step in keys:
            holder = holder[step]
        kind = rng.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.25 and isinstance(holder, dict):
            holder[rng.choice(["extra", "\ud801", "=x", "x" * 1000])] = rng.choice(VALUES)
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    text = json.dumps(record)
    for name, written in UNWRITTEN.items():
        text = text.replace(f'"{name}"', written)
    return text


CONTENTS: list[Callable[[random.Random, str], bytes]] = [
    lambda rng, text: text.encode()[: rng.randrange(len(text))],
    lambda rng, text: text.encode("utf-16"),
    lambda rng, text: b"\xef\xbb\xbf" + text.encode(),
    lambda rng, text: text.replace("node-1", "n\u00f6de").encode("latin-1"),
    lambda rng, text: bytes(rng.randrange(256) for _ in range(1000)),
    lambda rng, text: b"",
    lambda rng, text: b"[" * 100_000,
    lambda rng, text: b"7" * 5000,
]


def as_socket(path: Path) -> None:
    # The path of a socket has at most 108 bytes.
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(before)


KINDS: list[Callable[[Path], Any]] = [
    lambda path: os.mkfifo(path),
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("nowhere"),
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("."),
    as_socket,
]


def odd_file(rng: random.Random, path: Path, record: dict[str, Any]) -> None:
    """Write a file at ``path`` that may be invalid."""
    kind = rng.random()
    if kind < 0.1:
        rng.choice(KINDS)(path)
    elif kind < 0.2:
        path.write_bytes(rng.choice(CONTENTS)(rng, json.dumps(record)))
    else:
        path.write_text(mutated(rng, record))


def write_odd_results(folder: Path) -> Path:
    """Write ten good records, 200 possibly invalid ones, and as many sidecar files."""
    rng = random.Random(SEED)
    for repeat in range(1, GOOD + 1):
        path = folder / "runs" / "good" / "case" / f"r{repeat}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(good(rng, repeat)))
    for number in range(ODD):
        name = os.fsdecode(b"caf\xe9-%d" % number) if number % 50 == 0 else f"case {number}"
        path = folder / "runs" / "odd" / name / "r1.json"
        path.parent.mkdir(parents=True)
        record = good(rng, 1, batch=2)
        if number % 50:
            odd_file(rng, path, record)
        else:  # a normal record in an odd place
            path.write_text(json.dumps(record))
    actual = largest_batch_record(CASE)
    beside = {
        "verification": verification(),
        "peak_flops": peak_flops_record(),
        "largest_batch": actual,
    }
    for kind, record in beside.items():
        for number in range(40):
            path = folder / kind / "pytorch" / "resnet50_v1.5" / f"odd{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            odd_file(rng, path, record)
        (path.parent / "good.json").write_text(json.dumps(record))
        (path.parent / "folder.json").mkdir()
    (folder / "interruptions.csv").write_bytes(
        b"noticed,run,job,status\nnow,a/b/c/r1,6,CANCELLED\ncaf\xe9,a,,\nx\n" + b"y" * 200_000
    )
    return folder


def verification() -> dict[str, Any]:
    record = peak_flops_record(case={"batch_per_device": 4, "compiler": "none"}, metrics={})
    record |= {
        "kind": verifications.KIND,
        "parameters": {"mode": "train", "reference": "/reference"},
    }
    (rank,) = record["ranks"]
    del rank["matmuls"]
    rank["verification"] = [{"quantity": "loss", "error": 1e-9, "where": ""}]
    return record
