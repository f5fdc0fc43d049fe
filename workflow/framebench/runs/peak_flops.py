"""Peak-FLOPS benchmarks that a suite needs, and the command of each."""

from __future__ import annotations

from core.case import Case

from ..plan.case_settings import request
from ..plan.plan import Plan
from ..records.device_peaks import KIND
from .commands import harness_options
from .verify import digest, free_name


def wanted(plan: Plan) -> list[Case]:
    """Return a benchmark for each framework, precision and number of devices of a node: large
    matmuls on all of these devices at once.

    The model is any that the framework runs in the suite; the harness needs one. With a time
    budget, CPUs have no such benchmarks."""
    if plan.settings.budget and plan.capacity.accelerator == "cpu":
        return []
    found: dict[tuple[str, str, int], Case] = {}
    for case in filter(lambda case: case.is_step, plan.computed):
        what = (case.framework, case.precision, case.devices_per_node)
        if what not in found:
            found[what] = Case(
                case.framework, case.model, KIND, 1, case.devices_per_node, 0,
                case.precision, "", case.sequence_length,
            )  # fmt: skip
    return list(found.values())


def names(plan: Plan) -> dict[str, Case]:
    """Return benchmarks by name, which is their record's path in ``results/peak_flops`` without
    ``.json``.

    The name ends in a digest of accelerator, cores and environment, which decide the result."""
    results = {}
    for case in wanted(plan):
        asked = request(case.framework, case.devices, plan.settings, plan.capacity, plan.software)
        about = [asked["accelerator"], asked["cores_per_device"], asked["environment"]]
        together = f"-{case.devices}d" if case.devices > 1 else ""
        name = f"{case.framework}/{case.precision}{together}-{digest(about)}"
        results[free_name(plan, "peak_flops", name, KIND)] = case
    return results


def arguments(plan: Plan, case: Case) -> list[str]:
    """Return the arguments of the harness for a benchmark."""
    return harness_options(plan, case, {}, {"kinds": None, "nodes": None}, ())
