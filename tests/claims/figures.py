"""Claims about figures: statistics, flags, ratios and verification."""

from __future__ import annotations

from .claim import claim, violation

_DRIVER = "workflow/framebench"
_INTERVALS = f"{_DRIVER}/statistics/intervals.py"
_STEADY = f"{_DRIVER}/statistics/steady.py"
_DESCRIPTIVE = f"{_DRIVER}/statistics/descriptive.py"
_STEP_TIME = f"{_DRIVER}/tables/declared/inference_step_time.py"
_GROUPING = f"{_DRIVER}/tables/grouping.py"
_RATIOS = f"{_DRIVER}/tables/ratios.py"
_FLAGS = f"{_DRIVER}/records/fields/flags.py"
_DISTURBANCE = f"{_DRIVER}/records/fields/disturbance.py"
_VERIFIED = f"{_DRIVER}/records/verified.py"

_TESTS = "tests/framebench"
_OF_INTERVALS = f"{_TESTS}/statistics/test_intervals.py"
_OF_STEADY = f"{_TESTS}/statistics/test_steady.py"
_OF_STATISTICS = f"{_TESTS}/statistics/test_statistics.py"
_OF_TABLES = f"{_TESTS}/tables/test_tables.py"
_OF_DISTURBANCE = f"{_TESTS}/records/test_disturbance.py"
_OF_RECORDS = f"{_TESTS}/records/test_records.py"
_OF_PROOFS = f"{_TESTS}/records/test_verified.py"
_OF_BASELINES = f"{_TESTS}/records/test_verified_in_fp32.py"
_OF_LINT = f"{_TESTS}/features/audit/test_lint.py"
_OF_ERRORS = "tests/harness/kinds/test_errors.py"
_OF_VERIFICATION = "tests/frameworks/test_verification.py"

STATISTICS = (
    claim(
        "Intervals cover the median as often as they say, and need six repeats",
        violation(
            "the probability of one side only",
            _INTERVALS,
            "1 - Fraction(2 * outside, 2**count)",
            "1 - Fraction(outside, 2**count)",
            f"{_OF_INTERVALS}::test_the_interval_of_a_median_covers_it_as_often_as_it_says",
            f"{_OF_INTERVALS}::test_too_few_repeats_have_no_interval",
        ),
        violation(
            "ends are the next ranks inwards",
            _INTERVALS,
            "_coverage(count, rank + 1) >= _exact(confidence)",
            "_coverage(count, rank) >= _exact(confidence)",
            f"{_OF_INTERVALS}::test_the_interval_of_a_median_covers_it_as_often_as_it_says",
        ),
    ),
    claim(
        "Intervals of ratios cover the factor as often as they say",
        violation(
            "only the wider of both sides counts",
            _INTERVALS,
            "math.hypot(",
            "max(",
            f"{_OF_INTERVALS}::test_the_interval_of_a_ratio_covers_it_as_often_as_it_says",
        ),
    ),
    claim(
        "Verdicts are adjusted for all ratios of a table",
        violation(
            "p-values are taken as they are",
            _RATIOS,
            "dict(zip(tested, intervals.adjusted([p for _, p in tested.values()]), strict=True))",
            "dict(zip(tested, [p for _, p in tested.values()], strict=True))",
            f"{_OF_TABLES}::test_verdicts_are_adjusted_for_all_ratios_of_the_table",
        ),
        violation(
            "the factor of the adjustment is turned round",
            _INTERVALS,
            "np.arange(len(values), 0, -1)\n    results = np.empty_like(values)\n"
            "    results[falling]",
            "np.arange(1, len(values) + 1)\n    results = np.empty_like(values)\n"
            "    results[falling]",
            f"{_OF_INTERVALS}::test_adjusted_p_values_are_those_of_scipy",
        ),
    ),
    claim(
        "A lead chosen from several cases of a framework is adjusted for the choice",
        violation(
            "the number of choices is left out",
            _RATIOS,
            "min(1.0, both.choices * intervals.rank_test(both.base, both.values))",
            "intervals.rank_test(both.base, both.values)",
            f"{_TESTS}/tables/test_answers.py"
            "::test_a_lead_that_was_chosen_from_many_is_not_called_by_chance",
        ),
    ),
    claim(
        "A ratio inherits the flags of both sides, and has no value without its baseline",
        violation(
            "flags of the candidate only",
            _RATIOS,
            "flags=[flags_of(*both) for both in sides]",
            "flags=[flags_of(case) for case, _ in sides]",
            f"{_OF_TABLES}::test_a_narrow_interval_has_no_mark_and_a_ratio_the_marks_of_both_sides",
        ),
        violation(
            "without a baseline the case is its own",
            _RATIOS,
            'ratio.where(pairs["reason"] == "")',
            'ratio.where(pairs["reason"] == "", 1.0)',
            f"{_OF_TABLES}::test_without_1n1g_there_is_no_speedup_and_not_1",
        ),
    ),
    claim(
        "Percentiles use the nearest rank and need enough steps in every repeat",
        violation(
            "the rank is rounded down",
            _DESCRIPTIVE,
            "math.ceil(_exact(fraction) * len(values))",
            "math.floor(_exact(fraction) * len(values))",
            f"{_OF_STATISTICS}::test_a_percentile_is_the_smallest_value_with_its_part_at_or_below",
        ),
        violation(
            "one step above is enough",
            _DESCRIPTIVE,
            "(1 - above) ** (count - 1) * (1 - above + count * above) > 1",
            "(1 - above) ** count > 1",
            f"{_OF_STATISTICS}::test_a_percentile_that_is_printed_has_steps_above_it",
        ),
        violation(
            "steps of all repeats are pooled",
            _STEP_TIME,
            "[descriptive.percentile(steps, part) for steps in repeats]",
            "[descriptive.percentile([s for steps in repeats for s in steps], part)]",
            f"{_OF_TABLES}::test_steps_of_other_repeats_are_no_samples_of_a_percentile",
        ),
    ),
    claim(
        "MFU counts two operations per multiply-add and three forward passes in training",
        violation(
            "a multiply-add is one operation",
            f"{_DRIVER}/tables/declared/efficiency.py",
            "2.0 * passes * forward_multiply_adds",
            "1.0 * passes * forward_multiply_adds",
            f"{_TESTS}/tables/test_efficiency.py"
            "::test_utilisation_is_model_operations_over_the_measured_peak",
        ),
        violation(
            "training counts two passes",
            f"{_DRIVER}/tables/declared/efficiency.py",
            "passes = 3 if",
            "passes = 2 if",
            f"{_TESTS}/tables/test_efficiency.py"
            "::test_utilisation_is_model_operations_over_the_measured_peak",
        ),
        violation(
            "the fastest of several devices gives their peak",
            "scripts/harness/kinds/peak_flops.py",
            'Metric("TFLOP/s", "higher", "min", _tflops)',
            'Metric("TFLOP/s", "higher", "max", _tflops)',
            "tests/harness/test_runs.py::test_of_several_devices_the_slowest_tells_the_peak",
        ),
    ),
    claim(
        "The three losses of scaling add up to 1 minus the efficiency",
        violation(
            "the rest does not subtract communication",
            f"{_DRIVER}/tables/losses.py",
            "None if communication is None else together - communication",
            "None if communication is None else together",
            f"{_TESTS}/tables/test_losses.py::test_the_loss_is_split_by_the_control",
        ),
    ),
)

FLAGS = (
    claim(
        "`unsteady` finds changes as often as documented, and rarely false ones",
        violation(
            "correlation of steps is ignored",
            _STEADY,
            "together = np.clip(products / np.maximum(inner, least), 0, TOGETHER)",
            "together = np.zeros(len(series))",
            f"{_OF_STEADY}::test_a_steady_window_is_rarely_called_unsteady",
        ),
        violation(
            "a drift is taken for correlation",
            _STEADY,
            "TOGETHER = 0.65",
            "TOGETHER = 0.999",
            f"{_OF_STEADY}::test_as_much_is_seen_as_the_documents_say",
        ),
        violation(
            "only a step is looked for",
            _STEADY,
            "np.array([*steps, position, *fades, *parts])",
            "np.array([*steps, *steps[:1] * (1 + len(fades + parts))])",
            f"{_OF_STEADY}::test_as_much_is_seen_as_the_documents_say",
        ),
        violation(
            "a stalled step is not looked for",
            _STEADY,
            "    if (long := stall(seconds)) is not None:",
            "    if (long := None) is not None:",
            f"{_OF_STEADY}::test_a_step_that_takes_a_part_of_the_window_for_itself_is_found",
        ),
    ),
    claim(
        "`untested` and `vanished` appear when they should",
        violation(
            "the flag of few steps is left out",
            _GROUPING,
            '            found.add("untested")\n',
            "            pass\n",
            f"{_OF_TABLES}::test_a_window_of_few_steps_is_untested",
        ),
        violation(
            "a loss of 0 only is called vanished",
            _FLAGS,
            "abs(last) <= RESOLVED * abs(first)",
            "abs(last) <= 0",
            f"{_TESTS}/records/test_vanished.py::test_a_loss_that_has_vanished_is_flagged",
        ),
    ),
    claim(
        "`noisy` appears for wide intervals and two modes, and never by chance",
        violation(
            "the range counts where there is no interval",
            _GROUPING,
            '    if interval is None:\n        return {"few"}\n    low, high = interval\n',
            "    low, high = interval or (min(values), max(values))\n",
            f"{_OF_TABLES}::test_noisy_is_not_a_matter_of_chance",
        ),
        violation(
            "the half width is compared",
            _GROUPING,
            "high - low > NOISY * abs(middle)",
            "(high - low) / 2 > NOISY * abs(middle)",
            f"{_OF_TABLES}::test_noisy_begins_at_five_percent_from_end_to_end",
        ),
        violation(
            "two modes are not looked for",
            _GROUPING,
            " or shape.modes(values) else",
            " else",
            f"{_TESTS}/records/test_peers.py::test_two_modes_within_a_narrow_interval_are_noisy",
        ),
    ),
    claim(
        "`disturbed` appears for foreign load, stolen time, throttling, memory and GPUs",
        violation(
            "the run's own load counts as foreign",
            "scripts/harness/telemetry/watch_summary.py",
            "return sample[busy] - sample[own] if present else None",
            "return sample[busy] if present else None",
            "tests/harness/machine/test_watcher.py"
            "::test_foreign_load_is_what_the_run_did_not_do_itself",
        ),
        violation(
            "load is compared with one core, not with those of the run",
            _DISTURBANCE,
            'load["mean"] > (limit + rounding) * cores',
            'load["mean"] > 1 + rounding',
            f"{_OF_DISTURBANCE}::test_what_disturbs_is_said",
        ),
        violation(
            "a normal power cap counts",
            _DISTURBANCE,
            'THROTTLED = (\n    "hw_slowdown",',
            'THROTTLED = (\n    "sw_power_cap",\n    "hw_slowdown",',
            f"{_OF_DISTURBANCE}::test_a_calm_run_is_not_disturbed",
        ),
        violation(
            "records are not looked at",
            _FLAGS,
            "        *_disturbed(record),\n",
            "",
            f"{_OF_DISTURBANCE}::test_a_disturbed_record_is_marked_with_its_reason",
        ),
    ),
    claim(
        "Records of several machines share no case, ratio or peak",
        violation(
            "host names are not compared",
            f"{_DRIVER}/machine/identities.py",
            'host = "" if environment.get("scheduler") else system.get("host")',
            'host = ""',
            f"{_OF_RECORDS}::test_machines_with_processors_of_the_same_name_are_distinguished",
        ),
        violation(
            "the name of a node counts though a scheduler chose it",
            f"{_DRIVER}/machine/identities.py",
            'host = "" if environment.get("scheduler") else system.get("host")',
            'host = system.get("host")',
            f"{_OF_RECORDS}"
            "::test_nodes_that_a_scheduler_chose_are_one_machine_where_their_hardware_is",
        ),
    ),
)

VERIFICATION = (
    claim(
        "`unverified` appears unless code, environment, variables and hardware were verified",
        violation(
            "the code is not compared",
            _VERIFIED,
            '        "other code": result.computation != run.computation,\n',
            "",
            f"{_OF_PROOFS}::test_a_verification_of_something_else_verifies_nothing"
            "[other0-the verification is of other code]",
        ),
        violation(
            "variables are not compared",
            _VERIFIED,
            '        "other variables": result.variables != variables,\n',
            "",
            f"{_OF_PROOFS}::test_a_verification_of_something_else_verifies_nothing"
            "[other3-the verification is of other variables]",
        ),
        violation(
            "one device is enough for several",
            _VERIFIED,
            "            *several,\n",
            "",
            f"{_OF_PROOFS}::test_training_takes_dropout_and_on_several_devices_two",
        ),
        violation(
            "mixed precision needs no verification in fp32",
            _VERIFIED,
            "for kind in found if baseline)",
            "for kind in ())",
            f"{_OF_BASELINES}::test_figures_in_another_precision_need_a_verification_in_fp32",
            f"{_OF_BASELINES}::test_each_verification_of_training_is_needed_in_fp32_too",
        ),
        violation(
            "mixed precision is verified by itself alone",
            f"{_DRIVER}/runs/verify.py",
            "for each in (verification, *_in_baseline(verification, catalog)):",
            "for each in (verification,):",
            f"{_OF_BASELINES}::test_what_another_precision_is_verified_in_is_verified_in_fp32_too",
        ),
    ),
    claim(
        "`incorrect` appears if one error of a verification exceeds its bound",
        violation(
            "one error within its bound is enough",
            f"{_DRIVER}/records/verifications.py",
            'self.status == "ok" and bool(within) and all(within)',
            'self.status == "ok" and any(within)',
            f"{_OF_VERIFICATION}::test_a_failed_certificate_marks_what_was_timed",
        ),
    ),
    claim(
        "Verification finds mistakes in adapters",
        violation(
            "an error that is not a number is none",
            "scripts/harness/measuring/verification/errors.py",
            "key=lambda pair: (pair[0] != pair[0], pair)",
            "key=lambda pair: pair",
            f"{_OF_ERRORS}::test_an_error_that_is_no_number_is_the_largest",
        ),
        violation(
            "arrays are compared with themselves",
            "scripts/harness/measuring/verification/errors.py",
            "        error = relative(array, expected[name], share)\n",
            "        error = relative(array, array, share)\n",
            f"{_OF_ERRORS}::test_the_worst_array_and_all_together_are_told",
        ),
    ),
    claim(
        "`lint` finds errors and accepts correct tables",
        violation(
            "rounding is an error",
            f"{_DRIVER}/features/audit/lint.py",
            "    if not figures.apart(printed.interval, found):\n",
            "    if printed.value == above.value / (under.value or 1):\n",
            f"{_OF_LINT}::test_so_much_is_found_and_no_more[nvidia-mxnet-resnet50]",
        ),
        violation(
            "falling percentiles are accepted",
            f"{_DRIVER}/features/audit/lint.py",
            "        *(finding for case in cases for finding in percentiles_rise(case)),\n",
            "",
            f"{_OF_LINT}::test_an_error_of_each_kind_is_found",
        ),
    ),
)
