"""The same records give the same figures as before the code was rearranged: every cell of every
table, of a real run of the suite ``quick``, of a made-up set that has rows for every table, and of
the published sets (see tests/data/figures/README.md)."""

from __future__ import annotations

import csv
import math
import re
import tarfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest
from framebench import cli

from ..conftest import ROOT

DATA = ROOT / "tests" / "data" / "figures"
PUBLISHED = ROOT / "results" / "published"

Row = Mapping[str, str]


def _variant_of_runs(row: Row) -> str:
    """All conditions as tokens of one text."""
    limit = f"..{row['warmup_limit']}" if row.get("warmup_limit") else ""
    steps = f"{row['warmup_steps']}{limit}+{row['timed_steps']}" if row.get("timed_steps") else ""
    tokens = [
        row["accelerator"],
        row["cores_per_device"] and f"cores={row['cores_per_device']}",
        "side_by_side" if row["side_by_side"] == "True" else "",
        row["sequence_length"] and f"seq={row['sequence_length']}",
        steps and f"steps={steps}",
        row["arm"] and f"variant={row['arm']}",
        row.get("input", "").removeprefix("native"),
        row.get("source_variant", ""),
        row.get("machine", "") and f"hw={row['machine']}",
        row.get("environment", "") and f"env={row['environment']}",
    ]
    return ";".join(filter(None, tokens))


def _variant_of_certificates(row: Row) -> str:
    tokens = [
        row["sequence_length"] and f"seq={row['sequence_length']}",
        row["arm"] and f"variant={row['arm']}",
        *row["variables"].split(),
    ]
    return ";".join(filter(None, tokens))


def _variant_of_published(row: Row) -> str:
    return ";".join(filter(None, (row["input_pipeline"].removeprefix("native"), row["variant"])))


#: What the column ``variant`` held before it was split, by table; else that of a table of runs.
VARIANT: dict[str, Callable[[Row], str]] = {
    "parity.csv": _variant_of_certificates,
    "published.csv": _variant_of_published,
}
#: What it was split into.
SPLIT = {
    "accelerator", "cores_per_device", "side_by_side", "sequence_length", "warmup_steps",
    "warmup_limit", "timed_steps", "arm", "input", "source_variant", "machine", "environment",
    "variables", "input_pipeline", "preload", "huge_pages", "model_source", "accumulation",
    "parallelism", "node",
}  # fmt: skip

PERCENTILES = ("p50", "p90", "p95", "p99")
COMMUNICATION_ALONE = {
    *(f"communication_alone{end}" for end in ("", "_ci_low", "_ci_high")),
    "gradient_messages",
}
#: What there was not.
NEW_TABLES = {
    "run_phases.csv", "suite_phases.csv", "fastest.csv", "gains.csv", "failures.csv",
    "overview.csv", "input_pipeline.csv", "nvidia_training.csv", "nvidia_inference.csv",
}  # fmt: skip
NEW_COLUMNS = {
    "compare.csv": {"parameters", "metric"},
    "compiler_speedup.csv": {"baseline_runs", "steps_to_pay", "verdict"},
    "amp_speedup.csv": {"verdict"},
    "weak_scaling.csv": {
        "all_reduce_bus_gbytes_per_second",
        "verdict",
        "control_marks",
        *(f"shared_hardware_loss{end}" for end in ("", "_ci_low", "_ci_high")),
        *(f"exchange_loss{end}" for end in ("", "_ci_low", "_ci_high")),
        *(f"communication_loss{end}" for end in ("", "_ci_low", "_ci_high")),
        "rest_loss",
        *COMMUNICATION_ALONE,
    },
    "summary.csv": {"tokens_per_second", "peak_device_memory_bytes", "peak_host_memory_bytes"},
    "efficiency.csv": {"energy_sources"},
    "parity.csv": {"scale"},
    "split.csv": {"forward_ends"},
    "strong_scaling.csv": {"all_reduce_bus_gbytes_per_second", "verdict", *COMMUNICATION_ALONE},
    "latency.csv": {
        *(f"p99_9_ms{end}" for end in ("", "_ci_low", "_ci_high")),
        *(f"{name}_ms_ci_{end}" for name in PERCENTILES for end in ("low", "high")),
        "waited_in",
    },
}
#: A ratio that is no more: its baseline is what nobody runs.
REFUSED = "no ratio: "
RATIO = ("speedup", "speedup_ci_low", "speedup_ci_high", "reason")
#: What of a case the framework decided: in every table of cases.
DECIDED = {"product_dtypes", "uncompiled"}
#: What changed on purpose. A p50 is by nearest rank, as other percentiles are, and needs 11 steps
#: in each repeat; the note says of those that are missing what they need.
CHANGED_COLUMNS = {"latency.csv": {"p50_ms", "note"}}
#: Marks of their own, which had none before: the timed steps are too few to see a change in them; a
#: figure comes so close to its peak that the peak is doubted.
NEW_MARKS = ("untested", "peak")
#: What tables were called before.
FORMER_TABLES = {
    "precision_speedup.csv": "amp_speedup.csv",
    "inference_step_time.csv": "latency.csv",
}
#: What their columns were called before. That of a precision was its table's name.
FORMER_COLUMNS = {
    "amp_speedup.csv": {"throughput_baseline": "throughput_fp32", "throughput": "throughput_amp"},
    "compiler_speedup.csv": {
        "throughput_baseline": "throughput_none",
        "throughput": "throughput_compiled",
    },
}
FORMER_PRECISION = {"amp_speedup.csv": "amp"}

#: What tells the rows of a table apart, in any table. The order of the rows may change.
KEYS = (
    "table", "place", "column", "framework", "framework_version", "source", "model", "mode",
    "precision", "compiler", "variant", "nodes", "devices_per_node", "batch_per_device",
    "total_batch", "unit", "devices", "quantity", "attempt", "row", "check",
)  # fmt: skip
FRACTION = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
#: Sums may be taken in another order.
RELATIVE_ERROR = 1e-12

#: By set of tables, the commands that make them; all end with status 0 but those that find what
#: they look for.
COMMANDS: dict[str, list[tuple[int, list[str]]]] = {
    "quick": [(0, ["report", "--records", "quick/runs"]), (0, ["lint", "--sources", "quick/runs"])],
    "made_up": [
        (0, ["report", "--records", "made_up/runs"]),
        (1, ["lint", "--sources", "made_up/runs"]),
        (0, ["compare", "--base", "made_up/runs@old", "--candidate", "made_up/runs@new"]),
    ],
    "dlperf": [(0, ["report", "--records", str(PUBLISHED / "dlperf-v1.0")])],
    "published": [(0, ["lint", "--sources", str(PUBLISHED)])],
}


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("results", tmp_path_factory.mktemp("given"))


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("tables", tmp_path_factory.mktemp("former"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_before(table: str, row: Row, columns: Collection[str]) -> dict[str, str]:
    """A row of today with the columns of before."""
    former = FORMER_COLUMNS.get(table, {})
    named = {former.get(name, name): value for name, value in row.items()}
    if table in FORMER_PRECISION:
        assert named.pop("precision") == FORMER_PRECISION[table]
    gone = SPLIT | DECIDED | NEW_COLUMNS.get(table, set())
    kept = {name: value for name, value in named.items() if name in columns or name not in gone}
    if "marks" in kept:
        kept["marks"] = " ".join(mark for mark in kept["marks"].split() if mark not in NEW_MARKS)
    return kept | (
        {"variant": VARIANT.get(table, _variant_of_runs)(row)} if "variant" in columns else {}
    )


def by_key(row: Row) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in KEYS)


def agree(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (FRACTION.fullmatch(one) and FRACTION.fullmatch(other)) or one.isdigit():
        return False
    return math.isclose(float(one), float(other), rel_tol=RELATIVE_ERROR)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_cell_of_every_table_is_what_it_was(
    name: str, results: Path, former: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(results)
    for status, command in COMMANDS[name]:
        assert cli.main([*command, "--results", str(tmp_path)]) == status, command
    expected = {path.name: rows(path) for path in (former / name).iterdir()}
    found = {
        FORMER_TABLES.get(path.name, path.name): rows(path)
        for path in (tmp_path / "tables").glob("*.csv")
        if path.name not in NEW_TABLES
    }
    assert found.keys() == expected.keys()
    for table, were in expected.items():
        are = sorted((as_before(table, row, were[0]) for row in found[table]), key=by_key)
        were = sorted(were, key=by_key)
        assert [*map(by_key, are)] == [*map(by_key, were)], table
        for now, then in zip(are, were, strict=True):
            assert now.keys() == then.keys(), f"{table}: other columns"
            refused = RATIO if now.get("reason", "").startswith(REFUSED) else ()
            for column in then.keys() - {*refused} - CHANGED_COLUMNS.get(table, set()):
                assert agree(then[column], now[column]), f"{table}: {by_key(then)}: {column}"


def test_every_table_has_rows_to_compare(former: Path) -> None:
    filled = {path.name for path in former.rglob("*.csv") if rows(path)}
    assert filled == {path.name for path in former.rglob("*.csv")}
    assert {"parity.csv", "largest_batch_attempts.csv", "compare.csv", "published.csv"} <= filled
