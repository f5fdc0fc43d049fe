"""Readers of features' inputs, with a valid sample and the allowed errors."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from framebench.config.yaml_files import read_mapping
from framebench.features.datasets import folders
from framebench.features.formats import transfer
from framebench.features.history import index, sources
from framebench.features.node_health import kept_rules as node_health
from framebench.features.node_health.rules import health
from framebench.records.run import RecordsError

from ...fuzzing.targets import Said, Target
from ..saved_records import record, save
from .formats import samples


def _rules(folder: Path) -> Said:
    health.health_of(health.read_rules(folder / "rules.yaml"), None)
    return ()


def _kept_health(folder: Path) -> Said:
    return [f"{problem.origin}: {problem.message}" for problem in node_health.load(folder)[1]]


def _baseline(folder: Path) -> Said:
    health.read_baseline(folder / "baseline.json")
    return ()


def _import(name: str) -> Callable[[Path], Said]:
    def read(folder: Path) -> Said:
        transfer.import_files(name, folder / "given", {}, folder / "out")
        return ()

    return read


def _history(folder: Path) -> Said:
    actual = sources.find([folder / "sets"])
    measured, problems = index.load(actual, folder / ".history.sqlite")
    assert {point.source.name for point in measured} >= {"good"}, "the good set is lost"
    return [f"{problem.origin}: {problem.message}" for problem in problems]


def _manifest(folder: Path) -> Said:
    with folders.claimed(folder / "data", {"images": 1}, ["x"]):
        pass
    return ()


def _with_good_set(folder: Path) -> None:
    save(folder / "sets" / "good", "runs/a/b/case/r1.json", record())


def _archive(suffix: str) -> bytes:
    target = io.BytesIO()
    texts = {f"runs/a/b/case/r{n}.json": json.dumps(record(repeat=n)).encode() for n in (1, 2)}
    if suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, text in texts.items():
                zipped.writestr(name, text)
        return target.getvalue()
    with tarfile.open(fileobj=target, mode="w" if suffix == ".tar" else "w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return target.getvalue()


HEALTH = json.dumps(
    {
        "rules": {"source": "x", "content": read_mapping(health.SHIPPED)},
        "baseline": None,
    }
).encode()
#: File that history keeps, and target of a link in its place.
KEPT = (".history.sqlite", "nothing-there")
TARGETS: tuple[Target, ...] = (
    Target("node rules", "rules.yaml", health.SHIPPED.read_bytes(), _rules,
           structured="yaml", weight=2),
    Target("node baseline", "baseline.json", b'{"figures of nodes": 1.5, "another": 2}', _baseline,
           structured="json"),
    *(
        Target(f"import of {name}", "given", sample().encode(), _import(name), (RecordsError,),
               "lines" if name in ("superbench", "milabench") else
               "json" if sample().lstrip().startswith("{") else "", weight=2)
        for name, sample in samples.ALL.items()
    ),
    *(
        Target(f"archive {suffix}", f"sets/bad{suffix}", _archive(suffix), _history,
               (RecordsError,), "", _with_good_set, written=KEPT, words=("bad",))
        for suffix in (".zip", ".tar", ".tar.gz")
    ),
    Target("index of history", ".history.sqlite", b"SQLite format 3\0" + bytes(4000), _history,
           (), "", _with_good_set, written=KEPT),
    Target("kept health", node_health.FILE, HEALTH, _kept_health, (), "json"),
    Target("manifest", f"data/{folders.MANIFEST}",
           b'{"format": "framebench-data-1", "asked": {"images": 1}, "made": null}', _manifest,
           (folders.DataSetError, OSError), "json", words=("data",)),
)  # fmt: skip
