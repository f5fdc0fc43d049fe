"""``config/config.yaml``, ``--config`` and the suite file -> one checked :class:`Settings`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import amounts, brought, paths, variants
from .batch_search import Bounds
from .brought import Image, Modules
from .catalog import Catalog
from .cluster import Cluster
from .repeats import AUTO, Repeats
from .validation import ConfigError, check, from_text, load_schema, show
from .variants import Variant
from .yaml_files import read_yaml

Axes = dict[str, Any]

#: What a suite need not say.
DEFAULT_AXES: Axes = {
    "framework": "all",
    "model": "all",
    "mode": ["train"],
    "nodes": [1],
    "devices_per_node": [1],
    "precision": ["fp32"],
    "compiler": ["none"],
    "sequence_length": [128],
}
DEFAULT_STEPS = {"warmup": 20, "timed": 100}
DEFAULT_BOUNDS = Bounds(multiple_of=8, at_most=4096)
#: Samples of one device, or of all devices together. The axes of a case have one of them.
BATCHES = ("batch_per_device", "batch_total")
AXES = (*DEFAULT_AXES, *BATCHES)
#: Where a configuration comes from, for messages.
SOURCE = "config (config/config.yaml or --config)"
CLUSTER_SOURCE = "config (profiles/slurm/cluster.yaml or another configfile)"
LISTS = ("frameworks", "models", "retry")
#: Of ``results``: what stands in it.
FOLDERS = ("runs", "logs", "tables", "parity", "probes", "reference", "largest_batch")


@dataclass(frozen=True)
class Suite:
    """A named matrix. ``warmup_limit``: warm-up goes on until the step time has settled or this
    many steps are done (None: ``warmup_steps`` and no more). ``variants``: every case is run in
    each of them, by name; {} for the usual alone. ``axes`` holds a list for each axis,
    of BATCHES for one (or a mapping from model to list); ``include`` blocks replace some of them;
    ``exclude`` patterns remove. ``largest_batch``: where the batch ``max`` is looked for."""

    name: str
    path: Path
    warmup_steps: int
    warmup_limit: int | None
    timed_steps: int
    repeats: Repeats
    variants: dict[str, Variant]
    largest_batch: Bounds
    axes: Axes
    include: list[Axes]
    exclude: list[Axes]


@dataclass(frozen=True)
class Source:
    """A set of records to compare: all, or one variant's."""

    path: Path
    variant: str

    @staticmethod
    def of(text: str) -> Source:
        """``PATH`` or ``PATH@VARIANT``."""
        path, separator, variant = text.rpartition("@")
        if not separator or os.path.exists(text):
            return Source(Path(text), "")
        return Source(Path(path), variant)

    def __str__(self) -> str:
        return f"{self.path}@{self.variant}" if self.variant else str(self.path)


@dataclass(frozen=True)
class Settings:
    """The checked configuration. ``accelerator`` and ``cores_per_device`` may still be ``auto``;
    ``time_limit`` is in seconds per run, ``memory_limit`` as the harness takes it, None for its
    own default. ``fail_on`` is a part (0.05 for 5 %). ``deployment``: what ``--sdm`` asks for, ""
    where it is not given; without it what it needs (``images``, ``modules``) is empty, and
    ``entries`` says of which of them the configuration has some.
    ``environments``: where environments are built, with ``node_local`` on each node."""

    suite: Suite
    results: Path
    records: Path | None
    base: Source | None
    candidate: Source | None
    fail_on: float | None
    frameworks: list[str]
    models: list[str]
    retry: frozenset[str]
    rerun_disturbed: int
    side_by_side: bool
    accelerator: str
    cores_per_device: int | str
    time_limit: float
    memory_limit: str | None
    seed: int
    interpreters: dict[str, str]
    cluster: Cluster | None
    images: dict[str, Image]
    modules: dict[str, Modules]
    environments: Path
    node_local: bool
    deployment: str
    entries: frozenset[str]


def load_settings(
    config: Mapping[str, Any], catalog: Catalog, methods: Collection[str] = ()
) -> Settings:
    """Check Snakemake's merged ``config`` and read the suite that it names. ``methods``: what was
    given with ``--sdm``.

    Raises :class:`ConfigError` naming the file, the key, what was found and what is allowed.
    """
    schema = load_schema("config.schema.yaml", _choices(catalog))
    values = from_text({key: _listing(key, value) for key, value in config.items()}, schema)
    described = {key: value for key, value in values.items() if key == "cluster"}
    only = {"properties": {"cluster": schema["properties"]["cluster"]}}
    check(described, only, CLUSTER_SOURCE)
    check(values, schema, SOURCE)
    deployment = _deployment(methods)
    if values["side_by_side"] and values.get("cluster"):
        raise ConfigError(
            f"{SOURCE}: side_by_side: found True beside cluster; allowed there: false, because the "
            "scheduler shares devices out"
        )
    return Settings(
        suite=load_suite(values["suite"], catalog),
        results=_results(values),
        records=_source(values, "records", values.get("records")),
        base=_side(values, "base"),
        candidate=_side(values, "candidate"),
        fail_on=(
            amounts.share(f"{SOURCE}: fail_on", values["fail_on"]) if "fail_on" in values else None
        ),
        frameworks=_all(values["frameworks"], catalog.frameworks),
        models=_all(values["models"], catalog.models),
        retry=frozenset(values["retry"]),
        rerun_disturbed=int(values["rerun_disturbed"]),
        side_by_side=values["side_by_side"],
        accelerator=values["accelerator"],
        cores_per_device=values["cores_per_device"],
        time_limit=float(values["time_limit"]),
        memory_limit=amounts.memory_limit(f"{SOURCE}: memory_limit", values["memory_limit"]),
        seed=int(values["seed"]),
        interpreters={
            name: brought.interpreter(f"{SOURCE}: interpreters.{name}", path)
            for name, path in values["interpreters"].items()
        },
        cluster=Cluster.of(values["cluster"], CLUSTER_SOURCE) if values.get("cluster") else None,
        images={
            name: brought.image(f"{SOURCE}: images.{name}", value)
            for name, value in values["images"].items()
            if deployment == "apptainer"
        },
        modules={
            name: brought.modules(value)
            for name, value in values["modules"].items()
            if deployment == "env-modules"
        },
        environments=_environments(values),
        node_local=values["node_local"],
        deployment=deployment,
        entries=frozenset(key for key in ("images", "modules") if values[key]),
    )


def _deployment(methods: Collection[str]) -> str:
    """The only one; "" for none."""
    if len(methods) > 1:
        raise ConfigError(
            f"--sdm: found {' '.join(sorted(methods))}; allowed: one of apptainer, conda, "
            "env-modules"
        )
    return "".join(methods)


def _folder(values: Mapping[str, Any], key: str) -> Path:
    folder = paths.given(f"{SOURCE}: {key}", values[key])
    if any(part.exists() and not part.is_dir() for part in (folder, *folder.parents)):
        raise ConfigError(f"{SOURCE}: {key}: found {show(str(folder))}; allowed: a folder")
    return folder


def _results(values: Mapping[str, Any]) -> Path:
    folder = _folder(values, "results")
    for name in FOLDERS:
        inner = paths.given(f"{SOURCE}: results", str(folder / name))
        if inner.exists() and not inner.is_dir():
            raise ConfigError(
                f"{SOURCE}: results: found {show(str(inner))}, which is a file; allowed: a folder, "
                "or nothing of that name"
            )
    return folder


def _environments(values: Mapping[str, Any]) -> Path:
    folder = _folder(values, "environments")
    if values["node_local"] and not folder.is_absolute():
        raise ConfigError(
            f"{SOURCE}: environments: found {show(str(folder))}; allowed with node_local: the "
            "absolute path of a folder on a disk that every node has"
        )
    return folder


def _side(values: Mapping[str, Any], key: str) -> Source | None:
    if key not in values:
        return None
    side = Source.of(values[key])
    path = _source(values, key, str(side.path))
    return Source(path, side.variant) if path else None


def _source(values: Mapping[str, Any], key: str, text: str | None) -> Path | None:
    """The path of a set of records, if it is given; of a results folder its runs."""
    if text is None:
        return None
    path = paths.given(f"{SOURCE}: {key}", text)
    if not path.exists():
        raise ConfigError(
            f"{SOURCE}: {key}: found {show(str(path))}, which does not exist; "
            "allowed: a folder of records or a CSV of runs"
        )
    return path / "runs" if (path / "runs").is_dir() else path


def load_suite(name: str, catalog: Catalog) -> Suite:
    """Read and check a suite: a name in ``config/suites/``, or the path of a YAML file."""
    folder = catalog.root / "config" / "suites"
    by_path = name.endswith((".yaml", ".yml"))
    path = paths.given(f"{SOURCE}: suite", name if by_path else str(folder / f"{name}.yaml"))
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
        raise ConfigError(
            f"{SOURCE}: suite: found {show(name)}; allowed: {known}, or the path of a YAML file"
        )
    data = _listed(read_yaml(path))
    shown = str(path.relative_to(catalog.root) if path.is_relative_to(catalog.root) else path)
    check(data, load_schema("suite.schema.yaml", _choices(catalog)), shown)
    _check_batches(data, shown)
    steps = data.get("steps", DEFAULT_STEPS)
    warmup_steps, warmup_limit = _bounds(steps["warmup"], f"{shown}: steps.warmup")
    axes = {**DEFAULT_AXES, **data["axes"]}
    return Suite(
        name=path.stem,
        path=Path(shown),
        warmup_steps=warmup_steps,
        warmup_limit=warmup_limit,
        timed_steps=int(steps["timed"]),
        repeats=_repeats(data.get("repeats", AUTO.at_least), f"{shown}: repeats"),
        variants={
            name: variants.variant(value or {}, f"{shown}: variants.{name}")
            for name, value in data.get("variants", {}).items()
        },
        largest_batch=_largest_batch(data.get("largest_batch", {}), f"{shown}: largest_batch"),
        axes=axes,
        include=data.get("include", []),
        exclude=data.get("exclude", []),
    )


def _check_batches(data: Mapping[str, Any], shown: str) -> None:
    """The axes have one of BATCHES; an include block may have one, which takes its place."""
    included = enumerate(data.get("include", []))
    blocks = {"axes": data["axes"], **{f"include[{n}]": block for n, block in included}}
    for place, block in blocks.items():
        if all(batch in block for batch in BATCHES):
            raise ConfigError(
                f"{shown}: {place}: found batch_per_device and batch_total; allowed: one of them "
                "(the other in an include block of its own)"
            )
    if not any(batch in data["axes"] for batch in BATCHES):
        raise ConfigError(
            f"{shown}: key axes.batch_per_device is missing; allowed: this, or axes.batch_total"
        )


def _bounds(value: Any, place: str) -> tuple[int, int | None]:
    """A number as it stands, and no limit; ``{at_least, at_most}`` as both."""
    if isinstance(value, int):
        return value, None
    at_least, at_most = int(value["at_least"]), int(value["at_most"])
    if at_most < at_least:
        raise ConfigError(
            f"{place}.at_most: found {at_most}; allowed: at_least, which is {at_least}, or more"
        )
    return at_least, at_most


def _repeats(value: Any, place: str) -> Repeats:
    """A number, ``auto``, or ``{at_least, at_most, width}``."""
    if value == "auto":
        return AUTO
    at_least, at_most = _bounds(value, place)
    if at_most is None:
        return Repeats(at_least, at_least, None)
    width = amounts.share(f"{place}.width", value.get("width", AUTO.width))
    return Repeats(at_least, at_most, width)


def _largest_batch(value: dict[str, int], place: str) -> Bounds:
    bounds = DEFAULT_BOUNDS._replace(**value)
    if not bounds.largest:
        raise ConfigError(
            f"{place}.at_most: found {bounds.at_most}; allowed: multiple_of, which is "
            f"{bounds.multiple_of}, or more"
        )
    return bounds


def _choices(catalog: Catalog) -> dict[str, list[str]]:
    return {
        "framework": list(catalog.frameworks),
        "model": list(catalog.models),
        "compiler": catalog.compilers,
    }


def _listing(key: str, value: Any) -> Any:
    """From the command line ``a,b`` is the list [a, b]."""
    if key in LISTS and isinstance(value, str) and (value != "all" or key == "retry"):
        return [part.strip() for part in value.split(",")]
    return value


def _all(value: Any, known: Mapping[str, Any]) -> list[str]:
    return list(known) if value == "all" else list(value)


def _listed(data: Any) -> Any:
    """A single value of an axis is the list with it (``mode: train``)."""
    if not isinstance(data, dict):
        return data

    def block(axes: Any) -> Any:
        if not isinstance(axes, dict):
            return axes
        return {axis: _listed_axis(axis, value) for axis, value in axes.items()}

    listed = dict(data)
    if "axes" in data:
        listed["axes"] = block(data["axes"])
    for key in ("include", "exclude"):
        if isinstance(data.get(key), list):
            listed[key] = [block(axes) for axes in data[key]]
    return listed


def _listed_axis(axis: str, value: Any) -> Any:
    if axis in BATCHES and isinstance(value, dict):
        return {model: _listed_axis("", counts) for model, counts in value.items()}
    if isinstance(value, (str, int, float)) and value != "all":
        return [value]
    return value
