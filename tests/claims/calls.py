"""Claims about a call: what it plans, and the order and processes of its runs."""

from __future__ import annotations

from .claim import claim, violation

_DRIVER = "workflow/framebench"
_MATRIX = f"{_DRIVER}/cases/matrix.py"
_NEVER_OVERLAP = (
    "tests/workflow/test_workflow.py::test_runs_never_overlap_and_repeats_are_interleaved"
)

CALLS = (
    claim(
        "Repeats are new processes, interleaved and shuffled, and never overlap",
        violation(
            "a repeat takes the record of the first",
            "scripts/harness/launcher.py",
            "    if os.path.lexists(request.output):\n",
            '    first = request.output.replace("r2.json", "r1.json")\n'
            "    if os.path.exists(first):\n"
            "        os.link(first, request.output)\n"
            "        return 0\n"
            "    if os.path.lexists(request.output):\n",
            _NEVER_OVERLAP,
        ),
        violation(
            "all repeats of a case follow each other",
            _MATRIX,
            "        for some in order:\n"
            "            shuffled.shuffle(some)\n"
            "            yield from (RunKey(case, repeat) for case in some)",
            "        for some in order:\n"
            "            shuffled.shuffle(some)\n"
            "            if repeat == 1:\n"
            "                yield from (\n"
            "                    RunKey(case, n) for case in some for n in range(1, repeats + 1)\n"
            "                )",
            "tests/framebench/plan/test_matrix.py"
            "::test_without_variants_each_round_is_shuffled_with_a_seed_of_its_own",
            _NEVER_OVERLAP,
        ),
        violation(
            "rounds are not shuffled",
            _MATRIX,
            "        shuffled.shuffle(order)\n",
            "",
            "tests/framebench/plan/test_matrix.py"
            "::test_without_variants_each_round_is_shuffled_with_a_seed_of_its_own",
        ),
        violation(
            "all rounds have one order",
            _MATRIX,
            'random.Random(f"{seed}/{repeat}")',
            'random.Random(f"{seed}")',
            "tests/framebench/plan/test_matrix.py"
            "::test_variants_of_a_case_follow_each_other_in_an_order_of_their_own",
        ),
        violation(
            "runs take one core each and go side by side",
            f"{_DRIVER}/driver/resources.py",
            "room is None:\n            return self.all_cores",
            "room is None:\n            return 1",
            _NEVER_OVERLAP,
        ),
    ),
    claim(
        "`repeats: auto` adds repeats until the interval is narrow",
        violation(
            "the fixed number is enough",
            f"{_DRIVER}/plan/repeats.py",
            "    while count < repeats.at_most and len(ordered) >= count:",
            "    while count < repeats.at_least and len(ordered) >= count:",
            "tests/framebench/config/test_repeats.py"
            "::test_narrow_intervals_are_enough_and_wide_ones_ask_for_twice_as_many",
        ),
    ),
    claim(
        "Verifications and peaks follow a case's first run in its process, at no cost to it",
        violation(
            "each has a process of its own",
            f"{_DRIVER}/driver/work.py",
            'return self._behind.get(job.path, []) if job.kind == "run" else []',
            "return []",
            "tests/workflow/test_workflow.py::test_the_peak_is_measured_in_the_process_of_a_run",
        ),
        violation(
            "their time counts as the run's",
            "scripts/harness/launcher.py",
            "replace(measured, ended=ran.saved, then=then)",
            "replace(measured, then=then)",
            "tests/harness/test_checks_behind.py::test_the_time_of_a_check_is_not_that_of_the_run",
        ),
    ),
    claim(
        "A time budget holds, and goes to one setting at a time until its order is settled",
        violation(
            "repeats go to all settings alike",
            f"{_DRIVER}/plan/budget.py",
            "for settled in (min(at_most, FIRST_LOOK), 0):",
            "for settled in (0,):",
            "tests/framebench/plan/test_budget.py"
            "::test_a_setting_is_settled_before_another_gets_the_time_for_it",
        ),
        violation(
            "repeats are planned without time for them",
            f"{_DRIVER}/plan/budget.py",
            "        if seconds > costs.left:\n            break\n",
            "",
            "tests/framebench/plan/test_budget.py"
            "::test_the_cheapest_cases_come_first_where_there_is_no_time_for_all",
        ),
        violation(
            "estimates are taken for exact",
            f"{_DRIVER}/plan/budget.py",
            "MARGIN = 2.0",
            "MARGIN = 0.0",
            "tests/framebench/plan/test_budget.py"
            "::test_a_call_ends_in_time_where_runs_take_longer_than_expected[60.0-2.0]",
        ),
        violation(
            "building environments is paid for",
            f"{_DRIVER}/driver/internals.py",
            'if self._is_apart(dict(said.get("wildcards") or {})):',
            "if False:",
            "tests/framebench/driver/test_internals.py"
            "::test_time_is_counted_without_that_of_jobs_apart",
        ),
    ),
    claim(
        "A GPU driver that fails refuses the plan, which never turns to the CPU by itself",
        violation(
            "only `accelerator: cuda` is refused",
            f"{_DRIVER}/cases/fitting.py",
            'if machine.fault and settings.accelerator != "cpu":',
            'if machine.fault and settings.accelerator == "cuda":',
            "tests/framebench/plan/test_broken_driver.py::test_a_broken_driver_asks_for_the_cpu",
        ),
    ),
)
