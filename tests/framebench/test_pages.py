"""Every command on every page is accepted; what needs no framework, hardware or network runs."""

from __future__ import annotations

import argparse
import re
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import snakemake.cli
from framebench import cli
from framebench.config.settings import load_settings
from framebench.environments import building
from framebench.tables import frames

from .settings import CATALOG, CONFIG, ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "config" / "README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
#: Placeholders on pages, with the values that replace them here.
STAND_INS = {
    r"suite=(NAME|SUITE|mine)\b": "suite=quick",
    r"\bNAME\b": "pytorch",
    r"\b(DIR|PATH|A|B|kept|today)\b": "results",
    r"/tmp/quick/runs": "results/runs",
    r"(path/to/|\S*:)?my_model\.py": "my_model.py",
    r"path/to/own\.yaml": str(ROOT / "envs" / "pytorch.yaml"),
    r"results@\w+": "results",
    r"\S*results-summary\.jsonl": "results-summary.jsonl",
    r"\S*good\.json": "good.json",
    r"/opt/framebench/": f"{ROOT}/",
    r"framebench/workflow/Snakefile": str(ROOT / "workflow" / "Snakefile"),
    r"(?<= )(config|profiles|envs|benchmarks|docs)/": rf"{ROOT}/\1/",
    r"suite=benchmarks/": f"suite={ROOT}/benchmarks/",
}
#: Commands that run here; others measure, build environments or ask a cluster.
RUN = {"columns", "export", "layout"}
RULES = re.compile(r"^(?:rule|checkpoint) (\w+):", re.MULTILINE)
MODEL = """
from torch import nn

FRAMEWORK = "pytorch"


def make(batch_size):
    raise NotImplementedError
"""


def commands() -> Iterator[tuple[str, str]]:
    """Yield page and command of each line of code, and of each one within a sentence."""
    for page in PAGES:
        text = page.read_text()
        blocks = re.findall(r"^ {4,}((?:.*\\\n)*.*)$", text, re.MULTILINE)
        inline = re.findall(r"`((?:\S*/)?(?:snakemake|framebench) [^`\n]*--[^`\n]+)`", text)
        for found in [*blocks, *inline]:
            line = re.sub(r"\\\n\s*", " ", found)
            program = re.search(r"(?:^|&& |\")(?:\S*/)?((?:snakemake|framebench) .*)", line)
            if program:
                quoted = '"' if '"' in line[: program.start(1)] else "$"
                yield page.name, re.split(f" (?:>|#|&&) ?|{quoted}", program[1])[0].strip()


EVERY = sorted(set(commands()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    with tarfile.open(ROOT / "docs" / "sample.tar.xz") as sample:
        sample.extractall(made, filter="data")
    (made / "quick").rename(made / "results")
    (made / "results" / "published").symlink_to(ROOT / "results" / "published")
    (made / "my_model.py").write_text(MODEL)
    return made


@pytest.mark.parametrize(("page", "command"), EVERY, ids=[" ".join(pair) for pair in EVERY])
def test_a_command_of_a_page_is_accepted(
    page: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for stand_in, meant in STAND_INS.items():
        command = re.sub(stand_in, meant, command)
    program, *words = shlex.split(command)
    if program == "snakemake":
        accepted_by_snakemake(words)
    else:
        accepted_by_framebench(words, monkeypatch)


def accepted_by_snakemake(words: list[str]) -> None:
    """Fail if options, targets, suite or settings are refused."""
    _, options = snakemake.cli.parse_args(words)
    rules = {
        name
        for file in (ROOT / "workflow").rglob("*")
        if file.name == "Snakefile" or file.suffix == ".smk"
        for name in RULES.findall(file.read_text())
    }
    named = [*options.targets, *(options.until or ()), *(options.forcerun or ())]
    assert {*named} <= rules | {*frames.known_tables()}
    given = snakemake.cli.parse_config(options.config)
    methods = [str(method) for method in options.software_deployment_method or ()]
    if not options.configfile:
        load_settings({**CONFIG, **given}, CATALOG, methods)


def accepted_by_framebench(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a command fails, or if the arguments of one that cannot run here are refused."""
    if words[0] == "environment":
        monkeypatch.setattr(building, "ensure", lambda *given: None)
        assert building.main(words[1:]) == 0
        return
    if words[0] not in RUN:
        parse = argparse.ArgumentParser.parse_args

        def parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
            options = parse(parser, arguments)
            options.command = lambda options: None
            return options

        monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    assert cli.main(words) == 0


#: Folders that paths on the pages for developers are relative to, and names of which each stands
#: for any.
BASES = (ROOT, ROOT / "scripts", ROOT / "scripts" / "harness", ROOT / "workflow" / "framebench")
ANY = {"NAME": "*", "FRAMEWORK": "*"}
#: Most modules that a value passes from a suite to a cell of a table.
MOST_STEPS = 28


@pytest.mark.parametrize("page", ["architecture.md", "adding.md"])
def test_pages_for_developers_name_files_that_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    quoted = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|smk|json|yaml))`", text)
    assert quoted, "no path was found"
    missing = []
    for path in quoted:
        pattern = re.sub(r"NAME|FRAMEWORK", lambda match: ANY[match[0]], path)
        if not path.startswith("results/") and not any(any(base.glob(pattern)) for base in BASES):
            missing.append(path)
    assert not missing


def test_a_batch_size_passes_few_modules_to_its_cell() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## How a batch size becomes a table cell")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w./-]+\.py)`", section)
    assert 10 <= len(named) <= MOST_STEPS, named


def test_the_page_is_the_one_that_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["columns"]) == 0
    page = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, ".venv/bin/framebench columns > docs/columns.md"
