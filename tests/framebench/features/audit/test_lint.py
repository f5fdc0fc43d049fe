"""Lint finds every error in the published tables and no other, and every error planted in
our own."""

from __future__ import annotations

import csv
import json
import random
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from framebench import cli
from framebench.features.audit import figures, lint, lint_results
from framebench.records import record_sets
from framebench.records.run import RecordsError

from ....csv_rows import read_rows
from ...chartless import without_charts
from ...made_up_records import write_records

PUBLISHED = Path(__file__).parents[4] / "results" / "published"
MXNET, ELECTRA = "nvidia-mxnet-resnet50", "nvidia-tensorflow2-electra"
DLPERF = "dlperf-v1.0"
Rows = list[dict[str, str]]


def write(path: Path, listed: Rows, columns: list[str] | None = None) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns or list(listed[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)


def found(folder: Path, *checks: str) -> set[tuple[str, str, str]]:
    """Return table, row and printed text of the findings of these checks."""
    listed = [finding for finding in lint.check_folder(folder).findings if finding.check in checks]
    assert len({(finding.check, finding.table, finding.row) for finding in listed}) == len(
        listed
    ), "said twice"
    return {(finding.table, finding.row, finding.printed) for finding in listed}


# ---- what ships ---------------------------------------------------------------------------------

SPEEDUP = "Throughput speedup ({} - mixed precision)"
CHECKS = {
    MXNET: {"ratio": 12, "baseline": 3, "percentiles": 1, "mean": 1, "batch / latency": 2,
            "deviation": 6},
    ELECTRA: {"unlike baseline": 11, "mean": 9, "batch / latency": 6},
    DLPERF: {"ratio": 1, "baseline": 1, "repeats": 8, "runs": 2},
}  # fmt: skip


@pytest.mark.parametrize("source", [MXNET, ELECTRA, DLPERF])
def test_so_much_is_found_and_no_more(source: str) -> None:
    counted: dict[str, int] = {}
    for finding in lint.check_folder(PUBLISHED / source).findings:
        assert finding.source == source
        assert finding.note
        counted[finding.check] = counted.get(finding.check, 0) + 1
    assert counted == CHECKS[source]


def test_the_ratios_of_mxnet() -> None:
    wrong = {
        ("training/DGX A100", f"GPUs 1: {SPEEDUP.format('TF32')}", "2.18"),  # is 3.23
        ("training/DGX A100", f"GPUs 4: {SPEEDUP.format('TF32')}", "3.24"),  # is 3.21
        ("training/DGX A100", "GPUs 4: Weak scaling - mixed precision", "3.97"),  # is 3.94
        ("training/DGX-2", "GPUs 4: Weak scaling - FP32", "3.92"),  # is 3.89
    }
    cut = {
        ("training/DGX-1", f"GPUs 8: {SPEEDUP.format('FP32')}", "3.56"),  # 10723 / 3005 = 3.568
        ("training/DGX-2", "GPUs 2: Weak scaling - mixed precision", "1.96"),  # 1.967
        ("training/DGX-2", "GPUs 2: Weak scaling - FP32", "1.96"),  # 1.969
        ("training/DGX-2", f"GPUs 4: {SPEEDUP.format('FP32')}", "3.52"),  # 3.528
        ("training/DGX-2", "GPUs 4: Weak scaling - mixed precision", "3.83"),  # 3.838
        ("training/DGX-2", f"GPUs 8: {SPEEDUP.format('FP32')}", "3.52"),  # 3.527
        ("training/DGX-2", "GPUs 8: Weak scaling - mixed precision", "7.61"),  # 7.619
        ("training/DGX-2", f"GPUs 16: {SPEEDUP.format('FP32')}", "3.38"),  # 3.390
    }
    assert found(PUBLISHED / MXNET, "ratio") == wrong | cut
    ratios = [f for f in lint.check_folder(PUBLISHED / MXNET).findings if f.check == "ratio"]
    assert {(f.table, f.row, f.printed) for f in ratios if "cut off" in f.note} == cut
    first = next(f for f in ratios if f.printed == "2.18")
    assert (first.recomputed, first.note) == ("3.230", "3410.52 / 1055.78")


def test_what_the_speedups_of_mxnet_imply_of_a_baseline_that_is_not_printed() -> None:
    assert found(PUBLISHED / MXNET, "baseline") == {
        ("inference/DGX A100", "batch size 1: Throughput - speedup", "1.9"),
        ("inference/DGX-1", "batch size 1: Throughput - speedup", "1.27"),
        ("inference/T4", "batch size 1: Throughput - speedup", "1.11"),
    }
    assert found(PUBLISHED / MXNET, "percentiles", "mean", "batch / latency") == {
        # 90 % and 95 % are printed as the same 92.26 ms with different speed-ups: 206.7, 200.2 ms
        ("inference/DGX-1", "batch size 256: 95% latency - speedup", "92.26 x 2.17"),
        # 45.2 ms against a 99 % latency of 44.8 ms
        ("inference/T4", "batch size 16: Avg latency - speedup", "12.62 x 3.58"),
        # 118.0 images/s against 1 image in 8.90 ms, 187.2 against 2 in 11.02 ms
        ("inference/T4", "batch size 1: Throughput - speedup", "131 / 1.11"),
        ("inference/T4", "batch size 2: Throughput - speedup", "277 / 1.48"),
    }


def test_deviations_of_mxnet_are_in_another_unit_than_their_values() -> None:
    deviations = found(PUBLISHED / MXNET, "deviation")
    assert {printed for _, _, printed in deviations} == {
        "0.00073", "0.00094", "0.00098", "0.00085", "0.00078", "0.00065",
    }  # fmt: skip
    for finding in lint.check_folder(PUBLISHED / MXNET).findings:
        assert finding.check != "deviation" or "a hundred times as much would fit" in finding.note


def test_the_latencies_of_electra() -> None:
    means = found(PUBLISHED / ELECTRA, "mean")
    in_tables = [r for r in read_rows(PUBLISHED / ELECTRA / "published.csv")
                 if r["quantity"] == "latency_mean"]  # fmt: skip
    assert {printed for _, _, printed in means} == {row["printed"] for row in in_tables}, (
        "in every row the mean lies above the 99 % latency"
    )
    column = "Throughput Avg (sequences/sec)"
    disagree = found(PUBLISHED / ELECTRA, "batch / latency")
    by_four_to_ten_percent = {
        ("inference/DGX A100, FP16", f"batch size 256: {column}", "886"),
        ("inference/DGX A100, FP16", f"batch size 512: {column}", "886"),
        ("inference/T4, FP16", f"batch size 256: {column}", "169"),
    }
    by_two_to_three_percent = {
        ("inference/DGX A100, TF32", f"batch size 256: {column}", "342"),  # 351.0
        ("inference/DGX A100, TF32", f"batch size 512: {column}", "350"),  # 358.2
        ("inference/T4, FP16", f"batch size 128: {column}", "185"),  # 189.0
    }
    assert disagree == by_four_to_ten_percent | by_two_to_three_percent


def test_the_speedups_of_electra_include_a_compiler() -> None:
    cells = read_rows(PUBLISHED / ELECTRA / "published.csv")
    tables = {cell["table"] for cell in cells if cell["quantity"].endswith("amp_speedup")}
    assert {table for table, _, _ in found(PUBLISHED / ELECTRA, "unlike baseline")} == tables


def test_dlperf() -> None:
    cell = "README.md, row NGC MXNet: FP32 speedup bsz=128"
    assert found(PUBLISHED / DLPERF, "ratio") == {("README/resnet50_v1.5", cell, "28.67")}
    assert found(PUBLISHED / DLPERF, "baseline") == {
        ("README/resnet50_v1.5", "README.md, row PaddlePaddle: AMP speedup bsz=256", "10.2")
    }
    repeats = [f for f in lint.check_folder(PUBLISHED / DLPERF).findings if f.check == "repeats"]
    stated = {(f.row.partition(": ")[2], f.printed, f.recomputed) for f in repeats}
    assert stated == {("PaddlePaddle", "7", "6"), ("NGC PyTorch", "7", "5")}
    causes = {tuple(row.values())[:3] for row in read_rows(PUBLISHED / DLPERF / "causes.csv")}
    assert {(t, *r.split(": ")) for t, r, _ in found(PUBLISHED / DLPERF, "runs")} == causes


# ---- errors planted in published tables ---------------------------------------------------------


def plant(tmp_path: Path, source: str, change: Callable[[Rows], Any]) -> list[Any]:
    """Return the findings that a change of a source's cells adds."""
    before = lint.check_folder(PUBLISHED / source).findings
    folder = shutil.copytree(PUBLISHED / source, tmp_path / source)
    cells = read_rows(folder / "published.csv")
    columns = list(cells[0])
    changed = change(cells)
    write(folder / "published.csv", cells if changed is None else changed, columns)
    after = lint.check_folder(folder).findings
    return [finding for finding in after if finding not in before]


@pytest.mark.parametrize(
    ("source", "table", "place", "quantity", "printed", "check"),
    [
        (MXNET, "training/DGX A100", "GPUs 8", "amp_speedup", "3.24", "ratio"),
        (MXNET, "accuracy/DGX-1", "GPUs 1", "time_to_train_amp_speedup", "3.51", "ratio"),
        (MXNET, "inference/DGX A100", "batch size 64", "latency_p90", "13.95", "percentiles"),
        (MXNET, "inference/T4", "batch size 64", "latency_mean", "44.98", "mean"),
        (MXNET, "inference/T4", "batch size 64", "throughput", "1661", "batch / latency"),
        (MXNET, "stability", "epochs 50", "top1_mean", "76.508", "mean"),
        (ELECTRA, "stability/SQuAD v2.0, BASE++", "f1 %", "f1_mean", "85.56", "mean"),
        (ELECTRA, "stability/SQuAD v2.0, BASE++", "f1 %", "f1_std", "0.17", "deviation"),
        (ELECTRA, "stability/SQuAD v1.1, BASE++", "f1 %", "f1", "93.97", "mean"),
        (DLPERF, "bert_base/fp32/bsz=32", "reports/dlperf_benchmark_test_report_v1.md:126",
         "speedup", "25.43", "ratio"),
    ],
)  # fmt: skip
def test_an_error_of_each_kind_is_found(
    tmp_path: Path, source: str, table: str, place: str, quantity: str, printed: str, check: str
) -> None:
    def change(cells: Rows) -> None:
        wanted = (table, place, quantity)
        cell = [c for c in cells if (c["table"], c["place"], c["quantity"]) == wanted][-1]
        if source == DLPERF:
            cell = next(c for c in cells if c["printed"] == "25.42" and c["table"] == table)
        cell["printed"] = printed

    added = plant(tmp_path, source, change)
    assert check in {entry.check for entry in added}
    assert {(entry.table, entry.row.partition(": ")[0]) for entry in added} == {(table, place)}


def test_a_missing_baseline_is_found(tmp_path: Path) -> None:
    def change(cells: Rows) -> Rows:
        return [c for c in cells if (c["table"], c["printed"]) != ("training/DGX-1", "1376")]

    (one,) = [f for f in plant(tmp_path, MXNET, change) if f.check == "baseline"]
    assert one.table == "training/DGX-1"
    assert one.note == (
        "the throughput of one device that it is relative to is printed nowhere; "
        "3 more of this table alike"
    )


def test_a_baseline_that_is_a_dash_is_missing(tmp_path: Path) -> None:
    def change(cells: Rows) -> None:
        for cell in cells:
            if cell["printed"] in ("5.58", "84.5"):
                cell["printed"] = "NaN" if cell["printed"] == "5.58" else "-"

    for source, printed in ((ELECTRA, "3.20"), (MXNET, "3.49")):
        (one,) = [f for f in plant(tmp_path, source, change) if f.check == "baseline"]
        assert (one.printed, one.recomputed) == (printed, "")
        assert one.note.startswith("the time_to_train of full precision")


def test_other_repeats_than_stated_are_found(tmp_path: Path) -> None:
    folder = shutil.copytree(PUBLISHED / DLPERF, tmp_path / DLPERF)
    runs = read_rows(folder / "runs.csv")
    write(folder / "runs.csv", runs[1:])
    added = found(folder, "repeats") - found(PUBLISHED / DLPERF, "repeats")
    assert {printed for _, _, printed in added} == {"7"}
    assert len(added) == 1


def test_wrong_cells_are_named(tmp_path: Path) -> None:
    folder = shutil.copytree(PUBLISHED / MXNET, tmp_path / MXNET)
    cells = read_rows(folder / "published.csv")
    write(folder / "published.csv", [{**cells[0], "quantity": "speed"}])
    with pytest.raises(RecordsError, match="found quantity 'speed'; allowed: throughput"):
        lint.check_folder(folder)


@pytest.mark.parametrize(
    ("quantity", "unit", "printed"),
    [("latency_mean", "ms", "0.0"), ("latency_mean", "s", "1e-30"), ("throughput", "", "1e30"),
     ("speedup", "", "0"), ("batch", "", "9" * 18)],
)  # fmt: skip
def test_figures_that_cannot_be_stop_no_check(
    tmp_path: Path, quantity: str, unit: str, printed: str
) -> None:
    folder = shutil.copytree(PUBLISHED / ELECTRA, tmp_path / ELECTRA)
    cells = read_rows(folder / "published.csv")
    latency = next(cell for cell in cells if cell["quantity"] == "latency_mean")
    for cell in cells:
        if cell["place"] == latency["place"] and cell["quantity"] == quantity:
            cell["printed"], cell["unit"] = printed, unit or cell["unit"]
        if quantity == "batch":
            cell["batch_per_device"] = printed
    write(folder / "published.csv", cells)
    findings = lint.check_folder(folder).findings
    if printed == "0.0":
        assert "nothing can be divided by 0" in {
            finding.note.partition(": ")[2] for finding in findings
        }


# ---- intervals ----------------------------------------------------------------------------------


def test_rounding_is_never_called_an_error() -> None:
    """Fail if the ratio of independently rounded figures is ever called wrong.
    Ties round to even or upwards."""
    rng = random.Random(3)
    for _ in range(20_000):
        one, other, digits = rng.uniform(1, 500), rng.uniform(1, 500), rng.randrange(3)
        printed = [f"{value:.{digits}f}" for value in (one, other)]
        ratio = figures.quotient(*map(figures.stands_for, printed))
        assert not figures.apart(figures.stands_for(f"{one / other:.2f}"), ratio)


def test_a_unit_more_is_an_error_where_the_figures_have_digits_enough() -> None:
    rng = random.Random(3)
    for _ in range(2_000):
        one, other = rng.uniform(100, 500), rng.uniform(100, 500)
        ratio = figures.quotient(*(figures.stands_for(f"{v:.3f}") for v in (one, other)))
        assert figures.apart(figures.stands_for(f"{one / other + 0.011:.2f}"), ratio)


def test_a_median_of_an_even_number_may_end_in_five() -> None:
    exact = (2.175, 2.175)
    assert not figures.apart(figures.stands_for("2.18"), exact)
    assert not figures.apart(figures.stands_for("2.17"), exact)
    assert figures.apart(figures.stands_for("2.19"), exact)


def test_deviations_are_enclosed() -> None:
    rng = random.Random(5)
    for _ in range(2_000):
        values = [rng.gauss(80, 0.2) for _ in range(rng.randrange(2, 9))]
        rounded = [figures.stands_for(f"{value:.2f}") for value in values]
        within = figures.deviation_within(min(rounded), max(rounded), len(values))
        for enclosed in (figures.deviation(rounded), within):
            for exact in (statistics.stdev(values), statistics.pstdev(values)):
                assert enclosed[0] - 1e-12 <= exact <= enclosed[1] + 1e-12


@pytest.mark.parametrize(
    ("printed", "value", "cut"),
    [("3.52", 3.528, True), ("3.53", 3.528, False), ("3", 3.9, True), ("2.18", 3.23, False)],
)
def test_cut_digits_are_distinguished_from_wrong_ones(
    printed: str, value: float, cut: bool
) -> None:
    assert figures.is_cut(printed, value) is cut


# ---- results of our own -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    runs = write_records(folder / "runs", frameworks=("pytorch",))
    for name in ("truncated.json", "foreign.json"):
        (runs / name).unlink()
    with without_charts():
        assert cli.main(["report", "--records", str(runs), "--results", str(folder)]) == 0
    return folder


@pytest.fixture
def results(measured: Path, tmp_path: Path) -> Path:
    return shutil.copytree(measured, tmp_path / "results")


def lint_of(results: Path) -> tuple[int, Rows]:
    runs, folder = results / "runs", results
    status = cli.main(["lint", "--sources", str(runs), "--results", str(folder)])
    return status, read_rows(results / "tables" / "lint.csv")


def test_our_own_results_are_clean(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert lint_of(results) == (0, [])
    assert "records and rows checked, 0 findings" in capsys.readouterr().out
    assert "Nothing was found." in (results / "tables" / "lint.md").read_text()


#: Table, column, planted text, and the check that finds it.
TABLE_ERRORS = [
    ("summary", "throughput_median", "9.99", "throughput"),
    ("summary", "repeats", "8", "repeats"),
    ("summary", "flags", "incorrect", "text"),
    ("weak_scaling", "speedup", "1.99", "ratio"),
    ("weak_scaling", "efficiency", "0.5", "ratio"),
    ("precision_speedup", "speedup", "2.18", "ratio"),
    ("precision_speedup", "speedup", "", "ratio"),
    ("compiler_speedup", "speedup_ci_low", "1.99", "ratio"),
    ("inference_step_time", "p50_ms", "0.00015", "percentiles"),
    ("inference_step_time", "mean_ms", "9999.0", "mean"),
    ("inference_step_time", "samples", "7", "repeats"),
    ("efficiency", "tflops_per_device", "9.0", "figure"),
    ("step_breakdown", "reason", "forgotten", "text"),
]


def test_errors_in_tables_of_ours_are_found(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fail if an error planted in any table of ours is missed; all are planted in one set."""
    expected = set()
    for table in {table for table, *_ in TABLE_ERRORS}:
        path = results / "tables" / f"{table}.csv"
        listed = read_rows(path)
        errors = [error[1:] for error in TABLE_ERRORS if error[0] == table]
        free = [*listed]
        for column, text, check in errors:
            row = next(r for r in free if r[column] and r.get("speedup") != "1.0")
            expected.add((table, column, check, text, row[column]))
            row[column] = text
            free.remove(row)
        write(path, listed)
    status, findings = lint_of(results)
    assert status == 1
    actual = [
        (f["table"], f["row"].rpartition(": ")[2], f["check"], f["printed"], f["recomputed"])
        for f in findings
    ]
    assert sorted(actual) == sorted(expected)
    assert f"{len(TABLE_ERRORS)} findings in results of our own" in capsys.readouterr().err


def test_a_figure_rounded_by_hand_is_no_error(results: Path) -> None:
    path = results / "tables" / "weak_scaling.csv"
    listed = read_rows(path)
    row = next(r for r in listed if r["speedup"] not in ("", "1.0"))
    row["speedup"] = f"{float(row['speedup']):.3f}"
    write(path, listed)
    assert lint_of(results) == (0, [])


def test_a_row_too_few_and_a_row_too_many_are_found(results: Path) -> None:
    path = results / "tables" / "summary.csv"
    listed = read_rows(path)
    write(path, [*listed[1:], {**listed[1], "batch_per_device": "999"}])
    status, actual = lint_of(results)
    assert status == 1
    assert [(f["check"], f["printed"], f["recomputed"]) for f in actual] == [
        ("rows", "0", "1"), ("rows", "1", "0"),
    ]  # fmt: skip


def one_record(results: Path, **wanted: Any) -> tuple[Path, dict[str, Any]]:
    for path in sorted((results / "runs").rglob("r1.json")):
        record = json.loads(path.read_text())
        case = {**record["case"], "status": record["status"], "mode": record["kind"]}
        if all(case[key] == value for key, value in wanted.items()):
            return path, record
    raise AssertionError(f"no record of {wanted}")


def test_a_ratio_whose_baseline_is_gone_is_found(results: Path) -> None:
    wanted = {"status": "ok", "devices_per_node": 1, "mode": "train"}
    path, _ = one_record(results, **wanted)
    shutil.rmtree(path.parent)
    status, actual = lint_of(results)
    assert status == 1
    checks = {(f["table"], f["check"]) for f in actual}
    assert ("weak_scaling", "baseline") in checks
    assert ("tables", "stale") in checks
    assert "no 1n1g run" in {f["note"] for f in actual if f["check"] == "baseline"}


def double(record: dict[str, Any]) -> None:
    """Double the samples in the same time, with a consistent throughput."""
    record["samples"] *= 2
    record["metrics"]["throughput"]["value"] *= 2


def halve(record: dict[str, Any]) -> None:
    """Halve the time for the same samples, in the record and its ranks."""
    record["metrics"]["throughput"]["value"] *= 2
    for part in (record, *record["ranks"]):
        part["window_seconds"] /= 2


def no_steps(record: dict[str, Any]) -> None:
    """Give a record its full number of steps, but almost no time in them."""
    for rank in record["ranks"]:
        rank["step_seconds"] = [0.0] * len(rank["step_seconds"])


def other_rank(record: dict[str, Any]) -> None:
    """Give a record the timed region of no rank."""
    record["metrics"]["throughput"]["value"] *= 2
    record["window_seconds"] /= 2


def fewer_steps(record: dict[str, Any]) -> None:
    record["ranks"][0]["step_seconds"].pop()


def more_ranks(record: dict[str, Any]) -> None:
    record["ranks"] *= 2


def wrong_throughput(record: dict[str, Any]) -> None:
    record["metrics"]["throughput"]["value"] *= 1.01


Change = Callable[[dict[str, Any]], None]
#: Change of a record, the check that finds it, and words of the finding.
ERRORS: list[tuple[Change, str, str]] = [
    (double, "throughput", "samples of 4 x 1 devices x 100 steps"),
    (halve, "batch / latency", "whose steps take longer together"),
    (no_steps, "batch / latency", "of which its steps fill so few"),
    (other_rank, "throughput", "that of the slowest rank"),
    (fewer_steps, "steps", "step times of rank 0"),
    (more_ranks, "devices", "ranks of so many devices"),
    (wrong_throughput, "record", "states a throughput of"),
]


@pytest.fixture(scope="module")
def found_in_records(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Return the findings of a set in which each repeat of a case has a different error."""
    results = shutil.copytree(measured, tmp_path_factory.mktemp("errors") / "results")
    first, _ = one_record(results, status="ok", devices_per_node=1)
    for repeat, (change, _, _) in enumerate(ERRORS, 1):
        path = first.with_name(f"r{repeat}.json")
        record = json.loads(path.read_text())
        change(record)
        path.write_text(json.dumps(record))
    with without_charts():
        assert cli.main(["report", "--records", f"{results}/runs", "--results", str(results)]) == 0
    status, actual = lint_of(results)
    assert status == 1
    return actual


@pytest.mark.parametrize(
    ("repeat", "check", "note"),
    [(repeat, check, note) for repeat, (_, check, note) in enumerate(ERRORS, 1)],
    ids=[change.__name__ for change, _, _ in ERRORS],
)
def test_an_error_in_a_record_is_found(
    found_in_records: Rows, repeat: int, check: str, note: str
) -> None:
    mine = [f for f in found_in_records if f["row"].endswith(f"/r{repeat}.json")]
    (finding,) = (f for f in mine if f["check"] == check)
    assert note in finding["note"]


def test_no_record_without_an_error_is_named(found_in_records: Rows) -> None:
    cases = {str(Path(f["row"]).parent) for f in found_in_records if f["row"].endswith(".json")}
    assert len(cases) == 1


def test_a_record_that_was_taken_away_is_found(results: Path) -> None:
    path, _ = one_record(results, status="ok")
    path.with_name("r3.json").unlink()
    with without_charts():
        assert cli.main(["report", "--records", f"{results}/runs", "--results", str(results)]) == 0
    status, (finding,) = lint_of(results)
    assert status == 1
    assert (finding["check"], finding["printed"], finding["recomputed"]) == ("repeats", "7", "6")
    assert finding["note"] == "no record of repeat 3"


def test_the_repeats_that_are_missing_are_named_and_not_counted_through(results: Path) -> None:
    path, record = one_record(results, status="ok")
    for repeat in (9, 12, 1_000_000):
        new = path.with_name(f"r{repeat}.json")
        new.write_text(json.dumps({**record, "repeat": repeat}))
    (finding,) = lint_results.repeats_complete(record_sets.load(path.parent).runs)
    assert finding[-1] == "no record of repeat 8, 10 to 11, 13 to 999999"
    new.write_text(json.dumps({**record, "repeat": 10**9}))
    assert "breaks the record schema" in record_sets.load(path.parent).problems[0].message


def test_tables_written_elsewhere_are_found_by_their_fingerprint(
    results: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    arguments = ["--results", str(other)]
    shutil.rmtree(results / "tables")
    with without_charts():
        assert cli.main(["report", "--records", str(results / "runs"), *arguments]) == 0
    path = other / "tables" / "summary.csv"
    listed = read_rows(path)
    next(row for row in listed if row["throughput_max"])["throughput_max"] = "1"
    write(path, listed)
    assert cli.main(["lint", "--sources", str(results / "runs"), *arguments]) == 1
    assert [row["check"] for row in read_rows(other / "tables" / "lint.csv")] == ["throughput"]


# ---- the command --------------------------------------------------------------------------------


def test_errors_of_others_are_reported_and_are_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lint", "--sources", str(PUBLISHED), "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "nvidia-mxnet-resnet50: 481 printed cells checked, 25 findings" in said
    table = read_rows(tmp_path / "tables" / "lint.csv")
    assert list(table[0]) == [
        "source", "table", "row", "check", "printed", "recomputed", "note",
    ]  # fmt: skip
    assert len(table) == sum(sum(checks.values()) for checks in CHECKS.values())
    assert sum(line.startswith("  ") for line in said.splitlines()) == len(table)


def test_one_source_and_its_csv_of_runs_are_the_same(tmp_path: Path) -> None:
    for number, source in enumerate((PUBLISHED / DLPERF, PUBLISHED / DLPERF / "runs.csv")):
        out = tmp_path / str(number)
        assert cli.main(["lint", "--sources", str(source), "--results", str(out)]) == 0
        assert len(read_rows(out / "tables" / "lint.csv")) == sum(CHECKS[DLPERF].values())


def test_published_tables_and_own_records_are_checked_by_default(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["lint", "--results", str(results)]) == 0
    said = capsys.readouterr().out
    assert "nvidia-mxnet-resnet50: 481 printed cells checked, 25 findings" in said
    assert f"{results / 'runs'}: " in said


def test_what_holds_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").mkdir()
    arguments = ["--sources", str(tmp_path / "none"), "--results", str(tmp_path / "out")]
    assert cli.main(["lint", *arguments]) == 1
    assert "holds no record of a run and no published table" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
