"""Rules name their files literally, so that a reader sees which rule makes a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from framebench.plan.job import FOLDERS, PATHS, log_of, record_of

RULES = Path(__file__).parents[3] / "workflow" / "rules"
RULE = re.compile(r"^(?:rule|checkpoint|use rule \w+ as) (\w+).*:\n((?:(?: {4}.*)?\n)+)", re.M)
SECTION = re.compile(r"^ {4}(output|log):\n((?: {8}.*\n)+)", re.M)
LITERAL = re.compile(r'"(<results>/[^"]+)"')
#: Flags of Snakemake and their arguments, and our function that gives a table its flags.
FLAGS = {"directory", "touch", "update", "report", "category", "labels", "caption", "table"}
#: What computes names of files, by rule: the tables of the core and of all features.
COMPUTED = {"tables": {"map", "expand", "name", "OTHERS"}}
#: Rule of each kind of job.
OF_KIND = {
    "environment": "environment",
    "reference": "reference",
    "run": "benchmark",
    "search": "search_batch",
    "verification": "verify",
    "peak_flops": "peak_flops",
}


def sections() -> dict[tuple[str, str], str]:
    """Return the text of each section ``output`` and ``log``, by rule and section."""
    texts = [path.read_text() for path in sorted(RULES.glob("*.smk"))]
    rules = [entry for text in texts for entry in RULE.findall(f"{text}\n")]
    return {
        (rule, section): text for rule, body in rules for section, text in SECTION.findall(body)
    }


def test_patterns_of_outputs_and_logs_are_literal() -> None:
    actual = sections()
    assert {"weak_scaling", *OF_KIND.values()} <= {rule for rule, _ in actual}, "rules are not read"
    for (rule, section), text in actual.items():
        assert LITERAL.search(text), f"{rule}: {section} has no literal file"
        names = re.findall(r"\w+", re.sub(r'"[^"]*"', "", text))
        computed = {*names} - FLAGS - COMPUTED.get(rule, set())
        assert not computed, f"{rule}: {section} is computed by {computed}"


@pytest.mark.parametrize("kind", OF_KIND)
def test_rules_and_jobs_name_the_same_files(kind: str) -> None:
    actual, path = sections(), PATHS[kind]
    output, log = (LITERAL.findall(actual[OF_KIND[kind], name]) for name in ("output", "log"))
    if kind in FOLDERS:
        assert output == [record_of("<results>", kind, path)]
        assert log == [log_of("<results>", kind, path)]
    else:
        assert output[0].endswith(f"/{path}")
        assert log[0].endswith(f"/{path}.log")
