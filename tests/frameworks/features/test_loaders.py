"""Samples of each framework's loader, from files, records and tokens.
They equal those of a loader of Pillow and numpy, in the same order."""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framebench.features.datasets import record_files, sequences
from harness.loader import content_of
from harness.loader.pillow import PillowImages
from harness.samples import folder, order, tokens

from ...bench import Bench
from ...conftest import ROOT, build_environment
from ...framebench.features.datasets import record_folder
from ...harness.loader import images as made
from ...harness.loader import token_folder
from ...harness.loader.by_pillow import BATCH, SEED, SIZE, apart, asked_of, expected, levels_of
from ...harness.loader.numpy_tokens import NumpyTokenLoader
from ..fork_server import ForkServer, served
from ..models import model_config_of, trained_parameters

run = served(
    *("pytorch", "paddle", "oneflow", "mxnet", "jax", "mindspore", "tensorflow", "tensorflow1"),
    imports=(),
)
#: Format that a framework reads besides folders of image files.
READS = {
    "mxnet": "recordio",
    "oneflow": "ofrecord_images",
    "tensorflow": "tfrecord",
    "tensorflow1": "tfrecord",
}
#: Name of the reader, where a different one reads records.
BY = {"oneflow": "oneflow.nn.OFRecordReader"}
CALLED = {"tfrecord": "TFRecord", "recordio": "RecordIO", "ofrecord_images": "OFRecord"}
READS_TFRECORD_ALONE = ("tensorflow", "tensorflow1")
#: File of each format that is damaged.
DAMAGED = {
    "tfrecord": "train-00000-of-00002.tfrecord",
    "recordio": "train.rec",
    "ofrecord_images": "train/part-00001",
}
ODD = {"grey": (64, 48, "L"), "cmyk": (64, 48, "CMYK"), "dot": (1, 1, "RGB")}
#: Contents by names that a file system accepts.
STRANGE = {
    **{os.fsencode(name): content for name, content in made.STRANGE.items()},
    b"o\xff d\n": made.jpeg(14, 64, 48),
}
#: Largest difference of decoded CMYK levels from Pillow's; all other images are equal.
LEVELS = {"tensorflow": 1, "tensorflow1": 1, "mxnet": 2}
#: Difference of values from Pillow's, in levels of 0 to 255: mean and maximum.
APART = {
    "mxnet": (3.0, 60.0),
    "oneflow": (0.01, 1.01),  # another version of Pillow
    "tensorflow": (0.3, 2.01),
    "tensorflow1": (0.3, 2.01),
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return data sets by name; one of records has a third image that differs from its record."""
    base = tmp_path_factory.mktemp("data")
    actual = {
        "folder": made.folder(base / "folder", train=5, val=5),
        "tokens": token_folder.tokens(base / "tokens"),
        "wide": token_folder.tokens(base / "wide", dtype="uint32"),
    }
    for name, form in (("bert", "bert"), ("ofrecord", "ofrecord"), ("bert-damaged", "bert")):
        actual[name] = base / name
        sequences.make(actual[name], 5000, SEED, form)
    spoiled = actual["bert-damaged"] / "train-00000-of-00001.tfrecord"
    content = bytearray(spoiled.read_bytes())
    content[len(content) // 2] ^= 255
    spoiled.write_bytes(content)
    for name, (width, height, mode) in ODD.items():
        path = actual["folder"] / "train" / "c0" / f"{name}.JPEG"
        path.write_bytes(made.jpeg(8, width, height, mode))
    for name, content in STRANGE.items():
        (actual["folder"] / "train" / "c0" / os.fsdecode(name + b".JPEG")).write_bytes(content)
    (actual["folder"] / "train" / "c1" / "link.JPEG").symlink_to("i01.JPEG")
    with record_files.writing("ofrecord_images", base / "odd" / "train" / "part-00000") as add:
        for name in ODD:
            add(0, (actual["folder"] / "train" / "c0" / f"{name}.JPEG").read_bytes())
    actual["odd"] = base / "odd"
    with record_files.writing("ofrecord_images", base / "tail" / "train" / "part-00000") as add:
        for number in range(BATCH + 1):
            add(0, made.jpeg(number))
        add(0, made.jpeg(8, mode="CMYK"))
    actual["tail"] = base / "tail"
    for form in record_files.FORMATS:
        actual[form] = record_folder.records(base / form, form)
        damaged = actual[f"{form}-damaged"] = record_folder.records(base / f"{form}-damaged", form)
        file = damaged / DAMAGED[form]
        content = bytearray(file.read_bytes())
        if form == "tfrecord":
            content[len(content) // 2] ^= 255  # as a disk error
        else:
            content = content[:-400]  # truncate the last one
        file.write_bytes(content)
    content = made.jpeg(5, 200, 150)
    bad = {"truncated": content[: len(content) // 2], "text": b"no image", "empty": b""}
    for name in (*bad, "bad"):
        actual[name] = made.folder(base / name, train=3, val=0)
        for text in bad if name == "bad" else (name,):
            (actual[name] / "train" / "c1" / f"{text}.JPEG").write_bytes(bad[text])
    (actual["bad"] / "train" / "c0" / "large.JPEG").write_bytes(made.jpeg(6, 6000, 5000))
    actual["unreadable"] = made.folder(base / "unreadable", train=3, val=0)
    for name, place in (("bad", "c0"), ("unreadable", "c1")):
        (actual[name] / "train" / place / "unreadable.JPEG").symlink_to(base / "nowhere")
    return {name: str(root) for name, root in actual.items()}


def order_of(root: str, split: str) -> int:
    """Return the checksum of the order, as in a record."""
    names = (os.path.relpath(path, root) for path in asked_of(root, split).paths)
    return zlib.crc32(b"".join(os.fsencode(f"{name}\0") for name in names))


def test_samples_are_those_that_were_asked_for(run: ForkServer, roots: dict[str, str]) -> None:
    (actual,) = run(
        "loaders.load",
        **{"roots": roots, "size": SIZE, "batch": BATCH, "seed": SEED, "several": 1},
        odd=list(ODD),
        forms=list(record_files.FORMATS),
        names=[f"train/c0/{name}.JPEG" for name in (*ODD, *map(os.fsdecode, STRANGE))],
        reads=READS.get(run.framework, ""),
    )
    mean, most = APART.get(run.framework, (1e-3, 1e-3))
    for split in ("train", "val"):
        difference = apart(np.load(run.folder / f"{split}.npy"), expected(roots["folder"], split))
        assert difference[0] <= mean, f"{split}: {difference}"
        assert difference[1] <= most, f"{split}: {difference}"
    assert actual["again"] == actual["train"], "with a worker and without"
    assert actual["train"]["images"] == 13
    for split in ("train", "val"):
        assert actual[split]["order_crc32"] == order_of(roots["folder"], split)
    for entry in actual["decoded"]:
        far = np.abs(np.array(entry["levels"]) - levels_of(roots["folder"], entry["path"])).max()
        assert far <= LEVELS.get(run.framework, 0) * ("cmyk" in entry["path"]), entry["path"]
    if run.framework == "oneflow":
        check_odd_records(actual, roots)
    for form in record_files.FORMATS:
        reason, damaged = actual[form]["reason"], actual[form]["damaged"]
        if READS.get(run.framework) != form:
            assert reason.startswith("Unsupported: ")
            assert reason.endswith(f"not {CALLED[form]}")
            continue
        assert reason is None
        assert "BadData: " in damaged
        assert ("wrong checksum" if form == "tfrecord" else "truncated") in damaged
        plain = PillowRecords(roots[form])
        difference = apart(np.load(run.folder / f"{form}.npy"), plain.images)
        assert difference[0] <= mean, f"{form}: {difference}"
        assert actual["part"] == 3
        assert actual["by"] == BY.get(run.framework, actual["by"])
    fed_of = {name: actual[name] for name in ("tokens", "wide")}
    for name, fed in fed_of.items():
        data = tokens.scan(roots[name], "train", "refuse", ".")
        loads = tokens.loads(data, "train", 0, SEED, 0, 1, 16, BATCH, 0)
        assert fed["sequences"] == len(loads.starts) == 62
    assert fed_of["tokens"] == fed_of["wide"] == actual["tokens-again"]
    (bert,) = actual["bert"]["fed"]
    data = tokens.scan(roots["bert"], "train", "refuse", ".")
    loads = tokens.loads(data, "train", 0, SEED, 0, 1, 128, BATCH, 0)
    assert bert == tokens.checked(NumpyTokenLoader(), loads)  # type: ignore[arg-type]
    assert bert["sequences"] == 33
    assert "BadData: train-00000-of-00001.tfrecord/" in actual["bert-damaged"]["reason"]
    assert "its content has a wrong checksum" in actual["bert-damaged"]["reason"]
    if run.framework in READS_TFRECORD_ALONE:
        assert actual["ofrecord"]["reason"].endswith("reads records of TFRecord here, not OFRecord")
    else:
        (other,) = actual["ofrecord"]["fed"]
        assert other["tokens_crc32"] == bert["tokens_crc32"]
    check_faults(actual, run.framework)
    check_bad(actual)


def check_odd_records(found: dict[str, Any], roots: dict[str, str]) -> None:
    """Check OneFlow's decoder: Pillow's levels, and no images that would corrupt its memory."""
    reasons = {entry["path"]: entry["reason"] for entry in found["odd"]["skipped_first"]}
    text = "the JPEG file has {} components; OneFlow's decoder reads three"
    assert reasons == {f"train/part-00000/{n}": text.format((1, 4)[n]) for n in range(2)}
    (whole,) = found["whole"]
    content = content_of(f"{roots['ofrecord_images']}/{whole['path']}")
    copy = Path(roots["ofrecord_images"], "one.jpg")
    copy.write_bytes(content)
    assert np.array_equal(whole["levels"], levels_of(roots["ofrecord_images"], copy.name))
    dot = levels_of(roots["folder"], "train/c0/dot.JPEG")
    assert np.array_equal(found["dot"][0]["levels"], dot)
    # the filler of the last batch would be the image of CMYK
    assert found["tail"] == {"fed": BATCH + 1, "decoded": BATCH + 1, "skipped": 1}


def check_bad(found: dict[str, Any]) -> None:
    """Check the messages of the framework's loader about each bad image, and about missing data."""
    for name in ("truncated", "text", "empty", "unreadable"):
        text = f"BadData: train/c1/{name}.JPEG: "
        assert found[name].startswith(text), found[name]
        assert found[name].endswith("; bad_images: skip leaves it out and counts it")
    left_out = {entry["path"] for entry in found["skipped"]}
    bad = {"c0/unreadable", "c1/text", "c1/truncated", "c1/empty"}
    assert left_out == {f"train/{name}.JPEG" for name in bad}
    assert all(entry["reason"] for entry in found["skipped"])
    assert found["kept"] == 4, "with one of 30 million pixels"
    for name, reason in found["gone"].items():
        assert reason is not None, name
        assert reason.startswith("BadData: "), (name, reason)
        assert "is not there any more" in reason, (name, reason)


def check_faults(found: dict[str, Any], framework: str) -> None:
    """Check the messages about a vanished folder and a killed worker, which come within seconds."""
    vanished = (
        r"BadData: train/c./.*\.JPEG is not there any more; the loader broke behind \d+ images: "
    )
    assert re.match(vanished, found["vanished"])
    if framework == "mxnet":
        assert found["ended"] == [0], "one that is killed may keep a lock that MXNet waits for"
    if READS.get(framework) == "tfrecord":
        assert found["loaded"] == 40 * 13 - 1, "its workers are threads"
    else:
        assert re.match(r"Mismatch: the loader broke behind \d+ images: ", found["killed"])
        assert re.search(r"worker.*(killed by SIGKILL|signal: Killed)", found["killed"])
    assert max(found["seconds"]) < 120, found


class PillowRecords:
    """Images of records, decoded by Pillow."""

    def __init__(self, root: str) -> None:
        images = folder.scan(root, "train", "refuse")
        places = order.epoch(images, "train", 0, SEED, 0, 1)
        loads = order.loads(images, places, "train", 0, SEED, BATCH, SIZE, 0)
        paths = []
        for number, path in enumerate(loads.paths):
            copy = Path(root) / f"copy{number}.jpg"
            copy.write_bytes(content_of(path))
            paths.append(str(copy))
        plain = PillowImages(loads._replace(paths=paths))
        self.images = np.stack([plain[number][0] for number in range(len(paths))])


def test_a_loader_of_records_is_timed_alone(tmp_path: Path) -> None:
    model_config = model_config_of("bert_base")
    small = {"vocabulary": 12000, "hidden": 32, "layers": 1, "heads": 4, "intermediate": 64}
    model_config["hyperparameters"].update(small)
    model_config["trainable_parameters"] = trained_parameters(model_config)
    model = tmp_path / "bert_base.json"
    model.write_text(json.dumps(model_config))
    root = tmp_path / "data"
    sequences.make(root, 9000, 5, "bert")
    bench = Bench(tmp_path, build_environment("pytorch"))
    case = {"model": model, "batch_per_device": 4, "sequence_length": 128, "kind": "input"}
    framework = ROOT / "scripts/frameworks/pytorch"
    options = {"precision": None, "compiler": None, "parameters": {"workers": 1, "images": 50}}
    record = bench.run("", **case, **options, framework=framework, data=root, time_limit=600).record
    assert record is not None
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    assert rank["data_set"]["format"] == "tfrecord"
    assert rank["loaded"]["sequences"] == rank["loader_output"]["sequences"] == 50
    rates = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert rates["token_throughput"] == pytest.approx(128 * rates["throughput"])
    assert record["metrics"]["throughput"]["unit"] == "sequences/s"
