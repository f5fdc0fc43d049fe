"""NVIDIA's printed tables in their layout: complete, errors flagged, ours next to them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench import cli
from framebench.cases.conditions import OURS
from framebench.features.audit import lint
from framebench.features.audit.published import read_cells
from framebench.records.run import MetricValue, Run
from framebench.report import html_tables
from framebench.tables import frames, registry, view
from framebench.tables.grouping import group
from framebench.tables.table import Inputs, Printed, PublishedLayout

from ....conftest import ROOT
from ...browser import Browser
from ...made_up_runs import repeats
from ...made_up_trainings import trained

PUBLISHED = ROOT / "results" / "published"
MXNET, ELECTRA = PUBLISHED / "nvidia-mxnet-resnet50", PUBLISHED / "nvidia-tensorflow2-electra"
NAMES = ("nvidia_training", "nvidia_inference", "nvidia_accuracy", "nvidia_seeds")
GPU: dict[str, Any] = {"accelerator": "cuda"}


def tables_of(inputs: Inputs) -> dict[str, list[dict[str, Any]]]:
    tables = registry.known()
    made = {name: frames.frame(tables[name], tables[name].rows(inputs)) for name in NAMES}
    return {name: [dict(row) for row in view.records(frame)] for name, frame in made.items()}


@pytest.fixture(scope="module")
def printed() -> list[Printed]:
    return [one for folder in (MXNET, ELECTRA) for one in lint.marked(folder)]


@pytest.fixture(scope="module")
def made(printed: list[Printed]) -> dict[str, list[dict[str, Any]]]:
    return tables_of(Inputs({}, of_features={"printed": lambda: printed}))


def rows_of(made: Mapping[str, list[dict[str, Any]]], **wanted: Any) -> Iterator[dict[str, Any]]:
    for rows in made.values():
        yield from (row for row in rows if all(row[key] == value for key, value in wanted.items()))


def layouts_of(inputs: Inputs) -> list[PublishedLayout]:
    known = registry.known()
    tables = (known[name] for name in NAMES)
    shown = [view.view_table(table, frames.frame(table, table.rows(inputs))) for table in tables]
    return [layout for table_view in shown for layout in table_view.layouts]


@pytest.mark.parametrize(("folder", "count"), [(MXNET, 481), (ELECTRA, 299)])
def test_every_printed_cell_stands_in_its_row(
    made: dict[str, list[dict[str, Any]]], folder: Path, count: int
) -> None:
    cells = read_cells(folder / "published.csv")
    assert len(cells) == count
    for cell in cells:
        actual = list(
            rows_of(
                made,
                source=cell["source"],
                printed_in=cell["table"],
                line=cell["place"],
                model=cell["model"],
            )
        )
        assert actual, cell
        texts = {
            text
            for row in actual
            for value in row.values()
            for text in (str(value), *_split(value))
        }
        assert cell["printed"] in texts, cell


def _split(value: Any) -> list[str]:
    return [text for some in str(value).split(" / ") for text in some.split(", ")]


def test_each_printed_table_stands_by_itself_in_the_order_of_its_source(
    printed: list[Printed],
) -> None:
    """Fail if printed tables are merged, or out of the order in published.csv."""
    lines: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in printed:
        cell = one.cell
        title = f"{cell['table']}, as printed ({cell['source']})"
        line = lines.setdefault((title, cell["model"]), {}).setdefault(cell["place"], [])
        line += _atoms(cell["printed"])
    made = layouts_of(Inputs({}, of_features={"printed": lambda: printed}))
    by_title = {(layout.title, layout.rows[0][0]["model"]): layout for layout in made}
    assert {*by_title} == {*lines}
    for key, rows in lines.items():
        layout = by_title[key]
        assert [row["line"] for row, _ in layout.rows] == list(rows), "rows in another order"
        for (row, cells), wanted in zip(layout.rows, rows.values(), strict=True):
            shown = iter([atom for cell in cells.values() for atom in _atoms(cell.text)])
            missing = [atom for atom in wanted if atom not in shown]
            assert not missing, f"{key}, {row['line']}: {missing} not there, or in another order"
        assert layout.header == list(layout.rows[0][1])
        assert len(layout.header) <= 13


def _atoms(text: str) -> list[str]:
    return re.split(r" and | / | : ", text)


def test_every_printed_table_is_laid_out_word_for_word(printed: list[Printed]) -> None:
    """Fail if a heading or row differs from its source."""
    made = {
        layout.title.partition(", as printed (")[0]: [
            layout.header,
            *([cells[title].text for title in layout.header] for _, cells in layout.rows),
        ]
        for layout in layouts_of(Inputs({}, of_features={"printed": lambda: printed}))
    }
    text = (ROOT / "tests" / "data" / "nvidia_as_printed.txt").read_text(encoding="utf-8")
    wanted = {}
    for part in text.split("\n== ")[1:]:
        name, *lines = part.strip().splitlines()
        wanted[name] = [line.split(" | ") for line in lines]
    assert made.keys() == wanted.keys()
    for name, table in wanted.items():
        assert made[name] == table, name


def test_figures_stand_under_what_they_are(made: dict[str, list[dict[str, Any]]]) -> None:
    (row,) = rows_of(made, printed_in="training/DGX A100", line="GPUs 4")
    assert [row[name] for name in ("throughput_amp", "throughput_full", "amp_speedup")] == [
        "13442.66", "4182.30", "3.24",
    ]  # fmt: skip
    assert (row["weak_amp"], row["weak_full"], row["full_precision"]) == ("3.97", "3.96", "tf32")
    (row,) = rows_of(made, printed_in="fine-tuning/DGX A100, BASE++", line="GPUs 8")
    assert (row["score_full"], row["score_amp"]) == ("86.84 / 92.57", "86.83 / 92.56")
    assert (row["score"], row["time_full"], row["time_amp"]) == ("exact_match / f1", "263", "201")
    assert (row["time_speedup"], row["time_unit"]) == ("1.30", "s")
    (row,) = rows_of(made, printed_in="stability", line="epochs 90", precision="fp32")
    assert [row[f"seeds_{name}"] for name in ("mean", "deviation", "minimum", "maximum")] == [
        "77.313", "0.00085", "77.228", "77.474",
    ]  # fmt: skip
    (row,) = rows_of(made, printed_in="stability/SQuAD v1.1, BASE++", line="f1 %")
    assert row["each_seed"] == "92.7, 92.66, 92.65, 92.61, 92.97"
    (row,) = rows_of(made, printed_in="inference/DGX A100", line="batch size 4")
    assert (row["latency_p99"], row["latency_p99_amp_speedup"]) == ("6.03", "0.45")


def test_what_lint_finds_is_marked_where_it_stands(
    made: dict[str, list[dict[str, Any]]], printed: list[Printed]
) -> None:
    faulty = {
        (one.cell["source"], one.cell["table"], one.cell["place"], one.cell["column"])
        for one in printed
        if one.findings
    }
    marked = sum(len(row["contradicted"].split()) for rows in made.values() for row in rows)
    assert marked == len(faulty) > 30
    (row,) = rows_of(made, printed_in="training/DGX A100", line="GPUs 1")
    assert row["contradicted"] == "amp_speedup"
    assert "2.18: ratio: 3.230 (3410.52 / 1055.78)" in row["reason"]
    table = registry.known()["nvidia_training"]
    shown = view.view_table(
        table, frames.frame(table, table.rows(Inputs({}, of_features={"printed": lambda: printed})))
    )
    at = [row["line"] for row in shown.rows if row["printed_in"] == "training/DGX A100"].index(
        "GPUs 1"
    )
    flags = {field.column.name: field.cells[at].flags for field in shown.fields}
    assert {name for name, mark in flags.items() if mark} == {"amp_speedup"}
    assert flags["amp_speedup"] == "lint"


def test_a_planted_error_is_marked_and_no_other_of_its_row(tmp_path: Path) -> None:
    with (MXNET / "published.csv").open() as file:
        cells = list(csv.DictReader(file))
    one = next(
        cell
        for cell in cells
        if (cell["table"], cell["place"], cell["column"])
        == ("training/DGX A100", "GPUs 8", "Weak scaling - TF32")
    )
    one["printed"] = "7.18"
    with (tmp_path / "published.csv").open("w") as file:
        writer = csv.DictWriter(file, list(cells[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)
    planted = tables_of(Inputs({}, of_features={"printed": lambda: lint.marked(tmp_path)}))
    (row,) = rows_of(planted, printed_in="training/DGX A100", line="GPUs 8")
    assert (row["contradicted"], row["weak_full"]) == ("weak_full", "7.18")


def test_ours_stand_in_the_same_layout_with_the_printed_behind(printed: list[Printed]) -> None:
    of = {"model": "resnet50_v1.5", "batch_per_device": 512, **GPU}
    runs = [
        *repeats(3000.0, 3000.0, precision="amp", **of),
        *repeats(1000.0, 1000.0, precision="tf32", **of),
        *repeats(9000.0, 9000.0, precision="amp", devices_per_node=4, **of),
        *repeats(50.0, 50.0, precision="amp", mode="inference", **of),
        *repeats(25.0, 25.0, precision="fp32", mode="inference", **of),
    ]
    actual = tables_of(Inputs(group(runs, None), of_features={"printed": lambda: printed}))
    one, four, *others = actual["nvidia_training"]
    assert (one["throughput_amp"], one["throughput_full"]) == ("3000.00", "1000.00")
    assert (one["amp_speedup"], one["weak_amp"], one["weak_full"]) == ("3.00", "1.00", "1.00")
    assert (four["weak_amp"], four["throughput_full"], four["amp_speedup"]) == ("3.00", "", "")
    assert {row["model"] for row in others} == {"resnet50_v1.5"}
    assert len(others) == 12, "those that are printed of this model"
    amp, full, *_ = actual["nvidia_inference"]
    assert (amp["precision"], amp["inference_throughput"], amp["amp_speedup"]) == (
        "amp",
        "50.00",
        "2.00",
    )
    assert (full["precision"], full["amp_speedup"]) == ("fp32", "")
    assert actual["nvidia_accuracy"] == actual["nvidia_seeds"] == []


def test_updates_of_as_many_samples_are_compared_whatever_their_batches() -> None:
    of = {"model": "electra_base", "sequence_length": 128, **GPU}
    runs = [
        *repeats(900.0, 900.0, precision="amp", compiler="xla", batch_per_device=176,
                 accumulation=4, **of),
        *repeats(500.0, 500.0, precision="tf32", batch_per_device=88, accumulation=8, **of),
        *repeats(7200.0, 7200.0, precision="amp", compiler="xla", batch_per_device=176,
                 accumulation=1, devices_per_node=8, **of),
        *repeats(4000.0, 4000.0, precision="tf32", batch_per_device=88, accumulation=1,
                 devices_per_node=8, **of),
    ]  # fmt: skip
    rows = tables_of(Inputs(group(runs, None)))["nvidia_training"]
    one, eight = sorted(rows, key=lambda row: row["devices_per_node"])
    assert (one["amp_speedup"], one["compiler_amp"], one["compiler_full"]) == (
        "1.80",
        "xla",
        "none",
    )
    assert (eight["weak_amp"], eight["amp_speedup"]) == ("8.00", ""), "half as many samples"


def test_trainings_of_ours_have_scores_and_seeds() -> None:
    runs = [trained(0.5, 0.9, seed=n, precision=p) for n in (0, 1) for p in ("amp", "fp32")]
    actual = tables_of(Inputs({}, others=group(runs, None)))
    (row,) = actual["nvidia_accuracy"]
    assert (row["score_amp"], row["score_full"], row["score"]) == ("90.000", "90.000", "accuracy")
    first, _ = actual["nvidia_seeds"]
    assert (first["seeds_deviation"], first["each_seed"]) == ("0.000", "90.000, 90.000")


def test_ours_are_laid_out_as_the_model_is_printed_and_stand_first(
    printed: list[Printed],
) -> None:
    of = {"batch_per_device": 64, **GPU}
    runs = [
        run
        for model in ("resnet50_v1.5", "electra_base")
        for precision, rate in (("amp", 3000.0), ("tf32", 1000.0))
        for run in repeats(rate, rate, model=model, precision=precision, **of)
    ]
    made = layouts_of(Inputs(group(runs, None), of_features={"printed": lambda: printed}))
    heads = {}
    for published_layout in made:
        if "as printed" not in published_layout.title:
            cells_of = published_layout.rows[0][1]
            heads[str(published_layout.rows[0][0]["model"])] = (
                published_layout.header,
                [cells_of[title].text for title in published_layout.header],
            )
    header, cells = heads["resnet50_v1.5"]
    assert (header[:2], cells[0]) == (["Framework", "GPUs"], "pytorch 2.8.0")
    assert header[2:5] == [
        "Throughput - mixed precision", "Throughput - TF32",
        "Throughput speedup (TF32 - mixed precision)",
    ]  # fmt: skip
    assert cells[2:5] == ["3000.00", "1000.00", "3.00"]
    header, cells = heads["electra_base"]
    at = header.index("Throughput - TF32 (sequences/sec)")
    assert cells[at : at + 3] == ["1000.00", "3000.00", "3.00"]
    first = {layout.rows[0][0]["model"]: layout.title for layout in reversed(made)}
    assert not any("as printed" in title for title in first.values()), "ours are not first"


def test_seeds_of_both_precisions_stand_in_one_row_as_mxnet_prints_them() -> None:
    runs = [trained(0.5, 0.9, seed=n, precision=p) for n in (1, 2) for p in ("amp", "fp32")]
    made = layouts_of(Inputs({}, others=group(runs, None)))
    (seeds,) = (layout for layout in made if "# of epochs" in layout.header)
    ((_, cells),) = seeds.rows
    texts = {title: cell.text for title, cell in cells.items()}
    assert texts["mixed precision avg accuracy"] == texts["FP32 avg accuracy"] == "90.000"


def test_trainings_by_two_recipes_are_distinguished() -> None:
    runs = [
        trained(0.5, 0.9, seed=n, precision=p, target=target)
        for n in (1, 2)
        for p in ("amp", "fp32")
        for target in (None, 0.8)
    ]
    actual = tables_of(Inputs({}, others=group(runs, None)))
    assert {row["details"] for row in actual["nvidia_accuracy"]} == {"cpu", "cpu, target 0.8"}
    assert len({(row["precision"], row["details"]) for row in actual["nvidia_seeds"]}) == 4


def test_what_is_printed_of_electra_stands_behind_its_fine_tuning(printed: list[Printed]) -> None:
    runs = [
        trained(0.5, 0.9, seed=n, precision=p, model="electra_base_squad")
        for n in (1, 2)
        for p in ("amp", "tf32")
    ]
    actual = tables_of(
        Inputs({}, others=group(runs, None), of_features={"printed": lambda: printed})
    )["nvidia_accuracy"]
    assert {row["model"] for row in actual} == {"electra_base_squad", "electra_base"}


def test_without_mixed_precision_there_is_no_such_table() -> None:
    runs = repeats(1.0, 2.0, model="resnet50_v1.5", **GPU)
    assert not any(tables_of(Inputs(group(runs, None))).values())


def test_a_report_is_made_of_a_published_set_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--records", str(ELECTRA), "--results", str(tmp_path)]
    assert cli.main(["report", *arguments]) == 0, capsys.readouterr().err
    text = (tmp_path / "tables" / "nvidia_inference.md").read_text()
    assert "| 276.26 *lint* |" in text
    assert "*lint*: " in text
    page = (tmp_path / "report.html").read_text()
    assert "In the layout of NVIDIA" in page
    assert cli.main(["lint", "--sources", str(ELECTRA), "--results", str(tmp_path)]) == 0


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_printed_table_is_wider_than_the_window(
    browser: Browser, report_of_mxnet: Path, width: int
) -> None:
    browser.open(report_of_mxnet, width)
    assert browser.evaluate("document.querySelectorAll('.layout table').length") == 9
    wide = browser.evaluate(
        "[...document.querySelectorAll('.layout table')]"
        ".filter(one => one.getBoundingClientRect().right > innerWidth)"
        ".map(one => one.previousElementSibling.textContent)"
    )
    assert not wide, f"at {width} pixels"
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def report_of_mxnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mxnet")
    assert cli.main(["report", "--records", str(MXNET), "--results", str(folder)]) == 0
    return folder / "report.html"


def phase(loss: float, hours: float, seed: int, precision: str, first: bool, **case: Any) -> Run:
    """Return a run of a pre-training phase; the second starts from the first's weights."""
    length, batch, steps = (128, 176, 48) if first else (512, 24, 144)
    folders = {"weights": "/p1", "start": "none"} if first else {"weights": "none", "start": "/p1"}
    made = trained(0.4, 0.5, seed=seed, precision=precision, model="electra_base",
                   batch_per_device=batch, devices_per_node=8, recipe=folders, **case)  # fmt: skip
    known = (
        MetricValue("final_loss", loss, "nats", "lower"),
        MetricValue("time_to_train", 3600 * hours, "s", "lower"),
    )
    case = made.case._replace(sequence_length=length, accumulation=steps)
    return replace(made, case=case, metrics=(*made.metrics, *known))


def pretrained() -> list[Run]:
    return [
        phase(loss + (1.0 if first else 0.0), hours, seed, precision, first)
        for precision, hours in (("amp", 2.0), ("tf32", 3.0))
        for first in (True, False)
        for seed, loss in enumerate((8.6, 8.8))
    ]


def test_a_pre_training_has_one_row_for_both_phases(printed: list[Printed]) -> None:
    """Fail if a pre-training has separate rows, or not the final loss and the total hours."""
    actual = tables_of(
        Inputs({}, others=group(pretrained(), None), of_features={"printed": lambda: printed})
    )
    row, *behind = actual["nvidia_accuracy"]
    assert {entry["model"] for entry in behind} == {"electra_base"}
    assert all(entry["printed_in"] for entry in behind)
    assert (row["score"], row["score_amp"], row["score_full"]) == ("loss", "8.700", "8.700")
    assert (row["time_amp"], row["time_full"], row["time_unit"]) == ("4", "6", "h")
    assert row["time_speedup"] == "1.50"
    assert (row["batch_amp"], row["accumulation_amp"]) == ("176 and 24", "48 and 144")
    amp, full, *_ = actual["nvidia_seeds"]
    assert (amp["precision"], full["precision"]) == ("amp", "tf32")
    assert (amp["seeds_mean"], amp["seeds_minimum"], amp["each_seed"]) == (
        *("8.700", "8.600", "8.600, 8.800"),
    )


def test_a_first_phase_alone_has_a_row_and_one_that_others_began_with_has_none() -> None:
    runs = pretrained()
    alone = [run for run in runs if run.case.accumulation == 48]
    (row,) = tables_of(Inputs({}, others=group(alone, None)))["nvidia_accuracy"]
    assert (row["batch_amp"], row["score_amp"], row["time_amp"]) == ("176", "9.700", "2")
    later = [run for run in runs if run.case.accumulation == 144]
    (row,) = tables_of(Inputs({}, others=group(later, None)))["nvidia_accuracy"]
    assert (row["batch_amp"], row["time_amp"]) == ("24", ""), "the first was not measured"


def test_the_page_has_the_first_lines_of_ours_and_all_that_was_printed(
    printed: list[Printed],
) -> None:
    """Fail if the page has all of our lines: 5,000 of them took 4 MB."""
    runs = [
        run
        for batch in range(1, 101)
        for precision in ("fp32", "amp")
        for run in repeats(1.0, 1.1, 1.2, batch_per_device=batch, precision=precision)
    ]
    inputs = Inputs(group(runs, None), of_features={"printed": lambda: printed})
    table = registry.known()["nvidia_training"]
    whole = view.view_table(table, frames.frame(table, table.rows(inputs)))
    page = html_tables.of_frame(table, frames.frame(table, table.rows(inputs)))

    def lines(layouts: Sequence[PublishedLayout]) -> dict[bool, int]:
        counted = Counter(row["source"] == OURS for layout in layouts for row, _ in layout.rows)
        return dict(counted)

    all_lines, shown = lines(whole.layouts), lines([layout for layout, _ in page.layouts])
    assert all_lines[True] >= 100
    assert shown == {True: html_tables.MAX_ROWS, False: all_lines[False]}
    missing, every = all_lines[True] - html_tables.MAX_ROWS, sum(all_lines.values())
    assert page.left_out == (
        f"Left out: {missing} of {every} rows; all are in tables/nvidia_training.csv."
    )
