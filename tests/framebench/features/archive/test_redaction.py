"""Redacted files name nobody, and keep everything that figures need."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from framebench.features.archive import contents
from framebench.features.archive.redaction import Redaction
from framebench.records.sidecars import calls

from ...made_up_records import record_of
from ...planted import Planted, plant

CASE: dict[str, Any] = {
    "mode": "train",
    "framework": "pytorch",
    "model": "resnet50_v1.5",
    "nodes": 1,
    "devices_per_node": 2,
    "batch_per_device": 4,
    "precision": "fp32",
    "compiler": "none",
    "sequence_length": None,
}


def leaks(planted: Planted, text: str) -> list[str]:
    return [secret for secret in planted.secrets if secret.lower() in text.lower()]


@pytest.mark.parametrize("number", range(len(plant(random.Random(0)).texts)))
def test_no_notation_lets_a_name_through(number: int) -> None:
    planted = plant(random.Random(number))
    redaction = Redaction()
    for text in planted.texts:
        redaction.learn_text(text)
    actual = redaction.text(planted.texts[number])
    assert not leaks(planted, actual), actual
    assert redaction.text(actual) == actual, "a stand-in is no name"


def spread(record: dict[str, Any], planted: Planted, rng: random.Random) -> dict[str, Any]:
    """Return ``record`` with planted texts in every place that may have personal text."""
    texts = [*planted.texts]
    rng.shuffle(texts)
    whole = "\n".join(texts)
    record["reason"] = texts[0]
    record["command"] = [*texts, "--token", planted.secrets[4]]
    environment = record["environment"]
    environment["variables"] = {f"NAME_{number}": text for number, text in enumerate(texts)}
    environment["prefix"] = f"/home/{planted.secrets[0]}/a b/.venvs"
    environment["system"]["host"] = planted.secrets[2]
    environment["hardware"]["gpus"] = [
        {"name": "H200", "uuid": f"GPU-{planted.secrets[6]}", "serial": planted.secrets[4]}
    ]
    record["settings"]["variables"] = {"NOTE": whole}
    record["own_model"] = {"source": f"/srv/{planted.secrets[1]}/m.py", "sha256": "0" * 64}
    record["parameters"] = {"folder": f"/srv/{planted.secrets[1]}/a b", "n": 3, "operation": "sum"}
    for rank in record["ranks"]:
        rank.update(host=planted.secrets[2], traceback=whole, reason=texts[-1])
        rank["settings"][texts[1]] = texts[2]
    return record


@pytest.mark.parametrize("seed", range(12))
def test_no_planted_name_is_left_in_anything_handed_on(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"archive {seed}")
    planted = plant(rng)
    results, target = tmp_path / "results", tmp_path / "archive"
    record = record_of(rng, CASE, 1)
    before = json.dumps([record["metrics"], record["case"], record["environment"]["packages"]])
    path = results / "runs" / f"node-{planted.secrets[2]}" / "r1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(spread(record, planted, rng)))
    calls.note(results, "mine", f"snakemake --config {rng.choice(planted.texts)}")
    suite = tmp_path / "mine.yaml"
    suite.write_text("".join(f"# {text}\n" for text in planted.texts))
    source = contents.ArchiveSource(results, suite, [])
    assert contents.gather(source, target, contents.redaction_of(source)) == []
    for file in contents.files(target):
        name = str(file.relative_to(target))
        assert not leaks(planted, name + file.read_text()), name
    (left,) = (target / "runs").rglob("*.json")
    redacted = json.loads(left.read_text())
    after = [redacted["metrics"], redacted["case"], redacted["environment"]["packages"]]
    assert json.dumps(after) == before, "a figure, a version or the case was changed"
    assert redacted["parameters"]["n"] == 3
    assert redacted["parameters"]["operation"] == "sum"
    assert [rank["step_seconds"] for rank in redacted["ranks"]] == [
        rank["step_seconds"] for rank in record["ranks"]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "12.5 images/s, 3/4 of 1.2 GB/s at 10:20:30 and/or n/a; step 12, tokens=4096, tokens: 512",
        "torch.nn.functional in file.py:12, libc.so.6, np.int32, self.io.read(x), 2.12.0+cu126",
        "suite.yaml: key: found x; allowed: y (did you mean z?)",
        "commit 356a192b7913b04c54574d18c28d46e6395428ab of /usr/lib/x.so and /dev/null",
        "bearer certificates, basic operations, Basic Linear Algebra Subprograms, task-force-one",
        "torch==13.0.3.0 as pytorch@tuned by node 1 of nodes=2 devices=8",
        "nodes: [1, 2]\nversion 1.2.1",
    ],
)
def test_what_names_nobody_is_left(text: str) -> None:
    redaction = Redaction()
    redaction.learn_text(text)
    assert redaction.text(text) == text


def test_a_user_called_like_a_key_changes_no_key() -> None:
    record = {"status": "ok", "case": {"framework": "jax"}, "reason": "of /home/status/x: status"}
    redaction = Redaction()
    redaction.learn(record)
    actual = redaction.record(record)
    assert actual["status"] == "ok"
    assert actual["reason"] == "of path-1: person-1"


def test_a_version_that_looks_like_an_address_is_left_where_a_package_has_it() -> None:
    record = {"environment": {"packages": {"cudnn": "9.1.0.70"}}, "reason": "cudnn 9.1.0.70"}
    redaction = Redaction()
    redaction.learn(record)
    assert redaction.record(record) == record
