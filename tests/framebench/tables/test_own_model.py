"""Table and sentences about a user's own model: its combinations, and the best of them."""

from __future__ import annotations

from typing import Any

import pytest
from framebench.records.fields import SampleWork
from framebench.records.run import Flag, Run
from framebench.tables import frames
from framebench.tables.declared.efficiency import traffic_of_step
from framebench.tables.declared.summary import OWN_MODEL, own_model_sentences

from ..made_up_runs import inputs_of, repeats, run
from ..table_rows import row

WORK = SampleWork(multiply_adds=1e9, tokens=128, parameters=1000, read_parameters=600)


def own(*throughputs: float | None, flags: tuple[str, ...] = (), **changes: Any) -> list[Run]:
    flags = tuple(Flag(name, "") for name in ("own", *flags))
    options = {"model": "net@01234567", "unit": "samples/s", "sample_work": WORK, **changes}
    return repeats(*throughputs, flags=flags, **options)


def built(*runs: list[Run]) -> dict[Any, Any]:
    return frames.build(inputs_of([one for some in runs for one in some]))


COMBINATIONS = (
    own(100.0, batch_per_device=4, waited_apart=(0.04,) * 20),
    own(200.0, batch_per_device=8),
    own(250.0, batch_per_device=8, compiler="inductor"),
    own(900.0, batch_per_device=8, precision="bf16", flags=("incorrect",)),
)


def test_the_best_combination_is_one_that_computes_the_model() -> None:
    first, *_ = own_model_sentences(built(*COMBINATIONS))
    assert first.startswith("train: best of 3 combinations: batch 8 inductor: 250")
    assert "32000" in first.replace(",", ""), "128 tokens in each sample"
    assert "32.00 ms per step" in first, "8 samples at 250 samples/s"
    assert "(verified)" in first
    slower = own_model_sentences(built(*COMBINATIONS[:2]))
    assert "train: batch 8 over 4: 2.00x samples/s" in slower


def test_the_best_combination_has_its_flags() -> None:
    (first, *_) = own_model_sentences(built(own(1.0, flags=("recompiled", "unverified"))))
    assert first.endswith("(not verified) [recompiled]")


def test_no_frameworks_compete_for_it() -> None:
    roof = repeats(9.0, framework="", model="", mode="memory", unit="GB/s")
    under = built(*COMBINATIONS, roof)
    empty = {table.name: len(frame) for table, frame in under.items()}
    assert (empty["fastest"], empty.get("overview", 0)) == (0, 0)
    both = {table.name: len(frame) for table, frame in built(*COMBINATIONS, repeats(1.0)).items()}
    assert both["fastest"] == 1
    wrong, *_ = own_model_sentences(built(COMBINATIONS[-1]))
    assert "no combination that runs passes verification" in wrong


def test_each_combination_has_step_times_and_its_verification() -> None:
    frame = built(*COMBINATIONS, own(5.0, batch_per_device=2, flags=("unverified",)))
    table = next(rows for entry, rows in frame.items() if entry is OWN_MODEL)
    assert row(table, batch_per_device=4)["p50_ms"] == pytest.approx(40)
    assert row(table, precision="bf16")["verification"] == "failed"
    assert row(table, batch_per_device=2)["verification"] == "unverified"
    assert row(table, compiler="inductor")["verification"] == "passed"


def test_its_operations_are_those_that_the_run_counted() -> None:
    efficiency = next(
        rows for entry, rows in built(*COMBINATIONS).items() if entry.name == "efficiency"
    )
    actual = row(efficiency, compiler="inductor")
    assert actual["tflops_per_device"] == pytest.approx(250 * 3 * 2 * 1e9 / 1e12)
    (one,) = own(1.0)
    assert traffic_of_step(one, {}).moved == 2 * 4 * 1000
    inference = run(mode="inference", sample_work=WORK)
    assert traffic_of_step(inference, {}).moved == 4 * 600
