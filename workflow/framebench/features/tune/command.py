"""``framebench tune``: measures a model of your own with growing batches, in each precision and
with each compiler of its framework, within a time budget, and says which combination is fastest."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ... import PROJECT
from ...config import catalog
from ...config.arguments import whole
from ...config.own_model import OwnModel
from ...config.validation import ConfigError, did_you_mean
from ...config.values import RecordSource
from ...files.whole_files import write_whole
from ...records.fields.flags import OWN
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...tables import formatting
from ...tables.judged import grouped
from ...tables.results import CaseResult
from .search import REPEATS, WRONG, Search, is_over, ranked

SUITE, NOTE = "tune.yaml", "tune.md"
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {
    "results": "--results", "model": "--model", "frameworks": "--model", "cases": "--batches",
    "suite": "--batches, --precisions, --compilers and --mode",
}  # fmt: skip
BATCHES = tuple(2**power for power in range(13))
FAULTY = 4
_GOES_ON = "the same command with a longer --budget goes on from here"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="framebench tune", description=__doc__)
    made.add_argument("--model", required=True, help="a file, LIBRARY:NAME, or a folder")
    made.add_argument("--budget", type=whole(1, 1440), default=30, metavar="MINUTES",
                      help="time for all of it, about (default: 30)")  # fmt: skip
    made.add_argument("--mode", choices=("train", "inference"), default="train")
    made.add_argument("--batches", metavar="B,B", help="per device (default: doubled from 1 on)")
    made.add_argument("--precisions", metavar="P,P", help="(default: all of the framework)")
    made.add_argument("--compilers", metavar="C,C", help="(default: without, and the framework's)")
    made.add_argument("--results", type=Path, default=Path("results", "tune"))
    made.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as Snakemake's")
    made.add_argument("words", nargs="*", metavar="-- WORD", help="for Snakemake")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the search and return the exit status: 0, or 4 without a combination that runs."""
    options = parser().parse_args(arguments)
    try:
        with snakemake_calls.without_traces():
            return _tune(options)
    except KeyboardInterrupt:
        print(f"framebench: {snakemake_calls.GOES_ON}", file=sys.stderr)
        return snakemake_calls.INTERRUPTED
    except (ConfigError, RecordsError, snakemake_calls.MeasuringFailed) as error:
        print(f"framebench: {error}", file=sys.stderr)
    except OSError as error:
        print(f"framebench: {error.filename}: {error.strerror or error}", file=sys.stderr)
    return FAULTY


def _tune(options: argparse.Namespace) -> int:
    known = catalog.load_catalog(PROJECT)
    snakemake_calls.settings_of(options.config, known, RESERVED)
    config = [*options.config, f"model={options.model}"]
    settings, _ = snakemake_calls.settings_of(config, known, {})
    own_model = settings.model
    assert own_model is not None, "the key is given"
    declaration = known.frameworks[own_model.framework]
    path = options.results / SUITE

    def results() -> list[CaseResult]:
        found = grouped(RecordSource(options.results / "runs", ""))
        wanted = own_model.name, options.mode
        return [
            result for key, result in found.items() if (key.case.model, key.case.mode) == wanted
        ]

    def begin(batch: int) -> None:
        suite = suite_of(options, declaration, [batch], 1)
        for axis in ("precision", "compiler"):
            del suite["axes"][axis][1:]
        write_whole(path, yaml.safe_dump(suite, sort_keys=False))
        write_whole(options.results / ".gitignore", "*\n")
        snakemake_calls.measure(path, options.results, config, options.words)

    def measure(
        batches: Sequence[int], cases: Sequence[str], repeats: int, seconds: float | None
    ) -> list[CaseResult]:
        suite = suite_of(options, declaration, batches, repeats)
        write_whole(path, yaml.safe_dump(suite, sort_keys=False))
        named = [f"cases={','.join(cases)}"] if cases else []
        if seconds is None or seconds > 0:
            snakemake_calls.measure(
                path, options.results, [*config, *named], options.words, seconds
            )
        return results()

    batches = _numbers(options.batches) if options.batches else BATCHES
    axes = suite_of(options, declaration, batches, 1)["axes"]
    try:
        found = Search(begin, measure, time.monotonic, 60.0 * options.budget).run(batches)
        status = 0
    except KeyboardInterrupt:
        found = ranked(results())
        status = snakemake_calls.INTERRUPTED
    if not found:
        return status or FAULTY
    tried = [
        batch for batch in batches if batch <= max(result.case.batch_per_device for result in found)
    ]
    write_whole(
        path, yaml.safe_dump(suite_of(options, declaration, tried, REPEATS), sort_keys=False)
    )
    again = snakemake_calls.command(path, [*config, f"cases={found[0].case}"], options.words)
    lines = report(found, own_model, declaration, again)
    lines += not_tried(found, batches, len(axes["precision"]) * len(axes["compiler"]))
    write_whole(options.results / NOTE, "\n".join(lines) + "\n")
    print("\n" + "\n".join(lines))
    return status or (0 if found[0].throughput and WRONG not in found[0].flags else FAULTY)


def suite_of(
    options: argparse.Namespace,
    declaration: Mapping[str, Any],
    batches: Sequence[int],
    repeats: int,
) -> dict[str, Any]:
    """Return the suite of all combinations with ``batches``."""
    first = ["fp32"] if "fp32" in declaration["precisions"] else []
    precisions = [*first, *(name for name in declaration["precisions"] if name not in first)]
    compilers = list(dict.fromkeys(["default", declaration["native_compiler"] or "none"]))
    if declaration["trained_with"] in compilers:
        compilers = [declaration["trained_with"]]
    return {
        "description": f"Combinations of {options.model} that framebench tune tried.",
        "repeats": repeats,
        "steps": {"warmup": 3, "timed": {"at_least": 5, "seconds": 3}},
        "axes": {
            "mode": [options.mode],
            "nodes": [1],
            "devices_per_node": [1],
            "batch_per_device": [*batches],
            "precision": _chosen("--precisions", options.precisions, precisions) or precisions,
            "compiler": _chosen("--compilers", options.compilers, declaration["compilers"])
            or compilers,
        },
    }


def _chosen(option: str, text: str | None, known: Sequence[str]) -> list[str]:
    """Return the names in an option; [] without it. Raises :class:`ConfigError` for one that the
    framework does not have."""
    names = text.split(",") if text else []
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError(f"{option}: found {name!r}{hint}; allowed: {', '.join(known)}")
    return names


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and 0 < int(word) < 10**6 for word in words):
        raise ConfigError(f"--batches: found {text!r}; allowed: whole numbers above 0, with commas")
    return sorted({int(word) for word in words})


def report(
    results: Sequence[CaseResult],
    own_model: OwnModel,
    declaration: Mapping[str, Any],
    again: Sequence[str],
) -> list[str]:
    """Return the combinations, best first, and how to use the best one; ``again``: the command that
    measures it."""
    base = min(
        (result for result in results if result.throughput),
        key=lambda result: (result.case.precision != "fp32", result.case.compiler != "none",
                            result.case.batch_per_device),
        default=None,
    )  # fmt: skip
    lines = [
        f"# {own_model.name}",
        "",
        "| batch | precision | compiler | samples/s | 95 % interval | times the first | "
        "memory GiB | verified | flags | status |",
        "|--:|---|---|--:|---|--:|--:|---|---|---|",
        *(_row(case_result, base) for case_result in results),
    ]
    best = results[0]
    if not best.throughput or WRONG in best.flags:
        return [*lines, "", "No combination runs and computes the model."]
    case = best.case
    lines_of = declaration["script_lines"]
    used = [lines_of[name] for name in (case.precision, case.compiler) if name in lines_of]
    used.sort(key=lambda line: line.startswith("with "))  # a step comes behind what prepares it
    chance = "" if best.interval else " It has too few repeats to exclude that this is chance."
    return [
        *lines, "",
        f"Best: batch {case.batch_per_device}, {case.precision}, {case.compiler}.{chance}", "",
        "Measure it again:", "", f"    {shlex.join(again)}",
        "", "In a training script:", "",
        f"    batch_size = {case.batch_per_device}", *(f"    {line}" for line in used),
    ]  # fmt: skip


def not_tried(
    results: Sequence[CaseResult], batches: Sequence[int], combinations: int
) -> list[str]:
    """Return lines that name batches, and how many of the ``combinations`` of precision and
    compiler, were not tried, and why; [] if all were."""
    tried = sorted({case_result.case.batch_per_device for case_result in results})
    first = sum(case_result.case.batch_per_device == tried[0] for case_result in results)
    if first < combinations:
        return [
            "",
            f"Not tried: {combinations - first} of {combinations} combinations of precision and "
            f"compiler with batch {tried[0]}, and larger batches: {_GOES_ON}.",
        ]
    left = [batch for batch in batches if batch > tried[-1]]
    if not left:
        return []
    why = "throughput no longer grows, or nothing fits" if is_over(results, tried) else _GOES_ON
    return ["", f"Not tried: batch {left[0]}{' and more' * (len(left) > 1)}: {why}."]


def _row(result: CaseResult, base: CaseResult | None) -> str:
    case = result.case
    start = f"| {case.batch_per_device} | {case.precision} | {case.compiler} |"
    if not result.throughput:
        return f"{start} | | | | | | {result.status}: {formatting.escape(result.reason)} |"
    ends = (
        f"{result.interval[0]:.4g} {formatting.DASH} {result.interval[1]:.4g}"
        if result.interval
        else ""
    )
    ratio = f"{result.throughput / base.throughput:.2f}" if base and base.throughput else ""
    memory = max(run.peak_device_memory or run.peak_host_memory or 0 for run in result.ok)
    gibibytes = f"{memory / 2**30:.2f}" if memory else ""
    flags = " ".join(sorted({*result.flags} - {OWN}))
    verified = "no: it computes something else" if WRONG in result.flags else (
        "not verified" if "unverified" in result.flags else "yes"
    )  # fmt: skip
    figure = formatting.rounded(result.throughput, "#.4g")
    return f"{start} {figure} | {ends} | {ratio} | {gibibytes} | {verified} | {flags} | ok |"
