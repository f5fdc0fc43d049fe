"""JUnit XML: one test case per case; cases without a figure are failed or skipped."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from ....config.statuses import FAILURES
from ....tables.results import CaseResult
from ..file_formats import ExportedFile, Format, Results, flags, notes

#: Element by status, for each that is not ok.
ELEMENTS = {name: failure.in_junit for name, failure in FAILURES.items()}


def write(results: Results) -> ExportedFile:
    suite = Xml.Element("testsuite", name="framebench")
    counted = dict.fromkeys(("failure", "error", "skipped"), 0)
    for case in results.cases:
        element = ELEMENTS.get(case.status, "")
        if element:
            counted[element] += 1
        suite.append(_case(results.name(case), case, element))
    suite.set("tests", str(len(results.cases)))
    for element, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(counted[element]))
    whole = Xml.Element("testsuites")
    whole.append(suite)
    Xml.indent(whole)
    return ExportedFile(Xml.tostring(whole, encoding="utf-8", xml_declaration=True) + b"\n")


def _case(name: str, case: CaseResult, element: str) -> Xml.Element:
    test = Xml.Element("testcase", classname=case.case.mode, name=f"{name} {case.key.metric}")
    took = [run.wall_seconds for run in case.runs if run.wall_seconds is not None]
    if took:
        test.set("time", f"{sum(took):.3f}")
    properties = Xml.SubElement(test, "properties")
    for key, value in _properties(case).items():
        Xml.SubElement(properties, "property", name=key, value=value)
    if element:
        Xml.SubElement(test, element, message=case.reason, type=case.status)
    out = Xml.SubElement(test, "system-out")
    out.text = _figure(case)
    return test


def _properties(case: CaseResult) -> dict[str, str]:
    low, high = case.interval or (None, None)
    figures = {"median": case.throughput, "ci_low": low, "ci_high": high}
    return {
        "status": case.status,
        "unit": case.unit,
        "better": case.better,
        "repeats": str(len(case.values)),
        **{name: repr(value) for name, value in figures.items() if value is not None},
        **({"flags": flags(case)} if case.flags else {}),
    }


def _figure(case: CaseResult) -> str:
    if case.throughput is None:
        return f"{case.status}: {case.reason}"
    summary = f"{case.throughput:.6g} {case.unit}, median of {len(case.values)}"
    return "; ".join(filter(None, (summary, notes(case))))


FORMATS = [Format("junit", ".xml", write)]
