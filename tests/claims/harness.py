"""Claims about the harness: clocks, order of steps, cores, and checks in every run."""

from __future__ import annotations

from .claim import claim, violation

_HARNESS = "scripts/harness"
_WINDOW = f"{_HARNESS}/measuring/window.py"
_STEPS = f"{_HARNESS}/measuring/steps.py"
_CHECKS = f"{_HARNESS}/measuring/checks.py"
_LAUNCHER = f"{_HARNESS}/launcher.py"
_VARIABLES = f"{_HARNESS}/variables.py"

_RUNS = "tests/harness/test_runs.py"
_GOOD_RUN = f"{_RUNS}::test_a_good_run_leaves_a_complete_record"
_TIMING = "tests/harness/adapter/test_step_timing.py"
_IN_ORDER = f"{_TIMING}::test_so_many_steps_run_ahead_and_nothing_else_happens"
_WARM_UP = "tests/harness/processes/test_warm_up.py"
_CORES = "tests/harness/machine/test_cores.py"
_ENVIRONMENT = "tests/harness/machine/test_environment.py"
_ALLOCATOR = "tests/harness/machine/test_allocator.py"


def _wrong_run(parameters: str) -> str:
    return f"{_RUNS}::test_what_goes_wrong_is_said[{parameters}]"


TIMING = (
    claim(
        "Throughput is samples of the window over its duration, for the slowest rank",
        violation(
            "a mean of per-step rates",
            _STEPS,
            'samples(workload, rank) / rank["window_seconds"]',
            "statistics.mean("
            'workload.case.samples_per_step / seconds for seconds in rank["step_seconds"])',
            f"{_GOOD_RUN}[1-train]",
        ),
        violation(
            "the fastest rank's time",
            _STEPS,
            'combine="min"',
            'combine="max"',
            f"{_GOOD_RUN}[2-train]",
        ),
        violation(
            "the shortest window in the record",
            f"{_HARNESS}/record/record.py",
            '"window_seconds": max(windows)',
            '"window_seconds": min(windows)',
            f"{_RUNS}::test_the_slowest_rank_counts",
        ),
    ),
    claim(
        "Device work is complete when the clock is read",
        violation(
            "the clock is read before the device is synchronized",
            _WINDOW,
            "        synchronize()\n        end = clock()",
            "        end = clock()\n        synchronize()",
            f"{_TIMING}::test_steps_that_were_not_waited_for_are_found",
        ),
        violation(
            "a step is not waited for before its time is read",
            _WINDOW,
            "                finish(marks[index - ahead])\n"
            "                moments[index - ahead + 1] = clock()\n",
            "                moments[index - ahead + 1] = clock()\n"
            "                finish(marks[index - ahead])\n",
            f"{_TIMING}::test_step_times_are_those_between_completions",
        ),
        violation(
            "work that is left at the end is accepted",
            _WINDOW,
            "    check_complete(adapter, handle, late, seconds, read_seconds)\n",
            "",
            _wrong_run(
                "exact,unsynchronised,sleep=0.06-options11-failed-before the work was complete"
            ),
            f"{_TIMING}::test_work_still_under_way_at_the_end_of_a_short_window_is_found",
        ),
        violation(
            "steps that nothing waited for are accepted",
            _WINDOW,
            "    check_waited(end - moments[-1], seconds)\n",
            "",
            _wrong_run(
                "exact,unbounded,sleep=0.06-options10-failed-wait() returned before the work was"
            ),
        ),
    ),
    claim(
        "A window begins with an idle device, in all ranks together",
        violation(
            "no barrier between ranks",
            _WINDOW,
            "            adapter.all_reduce(0.0)\n",
            "            pass\n",
            _IN_ORDER,
        ),
        violation(
            "the device is not synchronized before the first step",
            _WINDOW,
            "        adapter.synchronize()\n        adapter.reset_peak",
            "        adapter.reset_peak",
            _IN_ORDER,
        ),
        violation(
            "no barrier between independent ranks",
            _WINDOW,
            "        if barrier:\n            barrier()\n",
            "",
            "tests/harness/kinds/test_independent.py::test_its_windows_begin_together",
        ),
    ),
    claim(
        "Garbage is not collected in the window",
        violation("collection stays enabled", _WINDOW, "    gc.disable()\n", "", _IN_ORDER),
    ),
    claim(
        "Every framework runs ahead by one step, or not at all if steps return complete",
        violation(
            "two steps ahead", _WINDOW, "RUN_AHEAD = 1", "RUN_AHEAD = 2", f"{_GOOD_RUN}[1-train]"
        ),
        violation(
            "the step just enqueued is waited for",
            _WINDOW,
            "finish(marks[index - ahead])",
            "finish(marks[min(index, steps - 1)])",
            _IN_ORDER,
        ),
    ),
    claim(
        "The second window takes at most 15 % of the run",
        violation(
            "15 % of the time before it, not of all",
            f"{_HARNESS}/measuring/synchronous_steps.py",
            "SHARE / (1 - SHARE) * elapsed",
            "SHARE * elapsed",
            f"{_TIMING}::test_steps_that_are_waited_for_take_a_part_of_the_run",
        ),
        violation(
            "ranks differ in the number of its steps",
            f"{_HARNESS}/measuring/synchronous_steps.py",
            "max(1, int(adapter.all_reduce(float(count)) / ranks)) if ranks > 1 else count",
            "count",
            f"{_TIMING}::test_all_ranks_wait_for_as_many_steps",
        ),
    ),
    claim(
        "Warm-up continues until step times have settled in all ranks",
        violation(
            "each rank stops by itself",
            _STEPS,
            "    return adapter.all_reduce(float(settled)) == adapter.rank_context.world_size\n",
            "    return settled\n",
            f"{_WARM_UP}::test_ranks_warm_up_together",
        ),
        violation(
            "it stops after the least number of steps",
            _STEPS,
            "number >= steps and all_settled(adapter, seconds)",
            "number >= steps",
            f"{_WARM_UP}::test_a_run_warms_up_until_its_steps_have_settled",
        ),
    ),
    claim(
        "A device is one process on physical cores of its own, within a NUMA node if one has room",
        violation(
            "ranks are not pinned",
            f"{_HARNESS}/rank.py",
            "        os.sched_setaffinity(0, cores)\n",
            "        pass\n",
            f"{_RUNS}::test_ranks_train_together_on_cores_and_batches_of_their_own",
        ),
        violation(
            "a device gets both threads of a core",
            f"{_HARNESS}/machine/cores.py",
            "sorted((index, core) for",
            "sorted((core, core) for",
            f"{_CORES}::test_no_device_shares_a_physical_core_where_there_are_enough",
        ),
        violation(
            "NUMA nodes are not asked for",
            f"{_HARNESS}/machine/cores.py",
            "    groups = _by_node(physical(cores, siblings), nodes)\n",
            "    groups = _by_node(physical(cores, siblings), [])\n",
            f"{_CORES}::test_no_device_has_cores_of_two_numa_nodes_where_there_is_room_within",
        ),
        violation(
            "thread pools have their default size",
            f"{_HARNESS}/processes/launch.py",
            "    if cores_per_device is not None:\n        common.update",
            "    if cores_per_device is None:\n        common.update",
            f"{_RUNS}::test_ranks_train_together_on_cores_and_batches_of_their_own",
        ),
    ),
    claim(
        "The step breakdown is timed after the window, in at most a tenth of the run",
        violation(
            "its steps precede the window",
            _STEPS,
            '    ahead = fields["run_ahead"] = run_ahead(adapter)\n',
            '    ahead = fields["run_ahead"] = run_ahead(adapter)\n'
            '    for _ in range(workload.parameters.get("breakdown_steps", 0)):\n'
            "        adapter.step()\n",
            f"{_RUNS}::test_parts_of_a_step_are_timed_behind_everything_that_counts",
        ),
        violation(
            "a part is not waited for",
            f"{_HARNESS}/measuring/step_timing.py",
            "            part.run()\n            adapter.synchronize()\n",
            "            part.run()\n",
            f"{_RUNS}::test_parts_of_a_step_are_timed_behind_everything_that_counts[1]",
        ),
        violation(
            "all steps are run, however long they take",
            f"{_HARNESS}/measuring/step_timing.py",
            "        if adapter.all_reduce(float(over)) > 0:\n            break\n",
            "",
            f"{_RUNS}::test_parts_of_a_step_take_a_small_part_of_the_run",
        ),
    ),
    claim(
        "The all-reduce alone is timed with the sizes of the real messages",
        violation(
            "the round that connects is counted",
            f"{_HARNESS}/measuring/gradient_all_reduce.py",
            "        if number:",
            "        if True:",
            "tests/harness/adapter/test_gradient_all_reduce.py"
            "::test_rounds_send_every_message_and_end_with_their_share_of_the_run",
        ),
        violation(
            "one message of all gradients",
            f"{_HARNESS}/measuring/gradient_all_reduce.py",
            "run = adapter.gradient_all_reduce(messages)",
            "run = adapter.gradient_all_reduce([sum(messages)])",
            "tests/harness/adapter/test_gradient_all_reduce.py"
            "::test_rounds_send_every_message_and_end_with_their_share_of_the_run",
        ),
    ),
)

CHECKED = (
    claim(
        "A run with another number of parameters or a loss that is not finite fails",
        violation(
            "parameters are not compared",
            _CHECKS,
            "    if built != expected:",
            "    if built < 0:",
            _wrong_run("wrong_parameters-options4-failed-3 trainable parameters, not 2"),
        ),
        violation(
            "the last value is not checked",
            _STEPS,
            "    check_value(window.last_value, adapter.case.mode, step)\n",
            "",
            _wrong_run("nan_at=4-options6-failed-loss is nan at step 7"),
        ),
    ),
    claim(
        "A run whose matmuls have another dtype or keep other bits than its precision fails",
        violation(
            "amp counts without a matmul in half precision",
            _CHECKS,
            "    if total - wrong < requested.share * total:",
            "    if total < requested.share * total:",
            _wrong_run("fp32_amp-options8-failed-amp, but 161 of 161 matmuls ran in float32"),
        ),
        violation(
            "bits of float32 are not looked at",
            f"{_HARNESS}/measuring/verification/rounding.py",
            "    if bits >= _FLOAT32_BITS:",
            "    if bits:",
            "tests/harness/adapter/test_rounding.py::test_a_switch_without_effect_is_a_mismatch",
        ),
    ),
    claim(
        "A run whose compiler fell back fails",
        violation(
            "the compiler is not asked for evidence",
            _STEPS,
            'fields["compiled"] = compiler_evidence(adapter)',
            'fields["compiled"] = {}',
            _wrong_run("-options9-failed-the compiler fell back"),
        ),
    ),
    claim(
        "A run fails if its all-reduce misses a rank, ranks share a batch or weights differ",
        violation(
            "nobody counts the ranks that an all-reduce reaches",
            _CHECKS,
            "    if reached != world_size:",
            "    if reached > world_size:",
            _wrong_run("lonely-options14-failed-an all-reduce of 1 gives 1 over 2 ranks"),
        ),
        violation(
            "batches are not compared",
            _LAUNCHER,
            '    check_batches(task.case, ranks, _OWN_BATCHES if own else "")\n',
            "",
            f"{_RUNS}::test_ranks_with_one_batch_are_no_measurement",
        ),
        violation(
            "all ranks draw one batch",
            f"{_HARNESS}/measuring/synthetic.py",
            "(seed * 1000 + rank)",
            "(seed * 1000)",
            f"{_RUNS}::test_ranks_train_together_on_cores_and_batches_of_their_own",
        ),
        violation(
            "weights are not compared",
            f"{_HARNESS}/kinds/train.py",
            "        check_same_weights(ranks)\n",
            "",
            _wrong_run("no_all_reduce-options13-failed-different weights"),
        ),
    ),
    claim(
        "A run with other cores, environment, framework version or allocator fails",
        violation(
            "cores are recorded and not compared",
            _CHECKS,
            "    if pinned and not set(used) <= set(pinned):",
            "    if pinned and not used:",
            _wrong_run("repin-options12-failed-the framework moved to"),
        ),
        violation(
            "packages are not compared with those that were planned",
            _LAUNCHER,
            "    wrong = packages.wrong_environment("
            "task.request.prefix, task.request.pins, installed)\n",
            '    wrong = ""\n',
            f"{_ENVIRONMENT}::test_another_environment_is_not_ok",
        ),
        violation(
            "modules and images are not compared",
            _LAUNCHER,
            "    wrong = wrong or software.missing(task.request, setup.common)\n",
            "",
            f"{_ENVIRONMENT}::test_what_was_brought_without_effect_is_not_ok",
        ),
        violation(
            "the preloaded library is not looked for",
            f"{_HARNESS}/rank.py",
            'report.fields["preloaded"] = allocator.check_preloaded(spec["preload"])',
            'report.fields["preloaded"] = spec["preload"]',
            f"{_ALLOCATOR}::test_a_library_that_was_not_loaded_is_no_measurement",
        ),
        violation(
            "a process without huge pages is accepted",
            f"{_HARNESS}/machine/allocator.py",
            "    if not held:\n",
            "    if held is None:\n",
            f"{_ALLOCATOR}::test_huge_pages_without_effect_are_no_measurement",
        ),
    ),
    claim(
        "A run with another number of micro-steps or all-reduces than its case fails",
        violation(
            "one micro-step is enough",
            f"{_HARNESS}/measuring/verification/micro_steps.py",
            "(products, multiply_adds) != (requested * each, requested * each_multiply_adds)",
            "products < each",
            "tests/harness/adapter/test_accumulation.py::test_what_is_not_so_is_no_measurement"
            "[one_micro_step-1-2 micro-steps, but a step has 161 matmuls]",
        ),
        violation(
            "messages are recorded and not compared",
            f"{_HARNESS}/kinds/train.py",
            "micro_steps.check_all_reduces(context)",
            "pass",
            "tests/harness/adapter/test_accumulation.py::test_what_is_not_so_is_no_measurement"
            "[all_reduce_each-2-gradient messages, not the 1 of one all-reduce]",
        ),
    ),
    claim(
        "A status other than `ok` has a reason and no figure",
        violation(
            "samples and window of a failed run stay",
            f"{_HARNESS}/record/record.py",
            '    if measured.status != "ok" or not windows:',
            "    if not windows:",
            _wrong_run("no_all_reduce-options13-failed-different weights"),
        ),
        violation(
            "a record that claims a figure is believed",
            "workflow/framebench/records/record_files.py",
            '    if record["status"] != "ok":',
            '    if record["status"] == "":',
            "tests/framebench/records/test_records.py"
            "::test_a_failed_run_has_no_number_even_if_its_record_has",
        ),
    ),
    claim(
        "A run that holds more memory than its limit is killed and is `oom`",
        violation(
            "what is held is not compared with the limit",
            f"{_HARNESS}/processes/memory.py",
            "        if held > self.may.limit:\n            return",
            "        if held < 0:\n            return",
            "tests/harness/processes/test_memory.py::test_a_run_over_its_limit_is_out_of_memory",
        ),
    ),
    claim(
        "Variables that change threads or precision are dropped, refused or recorded",
        violation(
            "OMP_PLACES reaches the ranks",
            _VARIABLES,
            '"KMP_*_AFFINITY", "OMP_PLACES"',
            '"KMP_*_AFFINITY"',
            "tests/harness/test_variables.py::test_what_is_dropped_reaches_no_rank",
        ),
        violation(
            "a variable that changes the precision is passed on",
            _LAUNCHER,
            "        wrong = wrong or variables.refused(task.case.precision, setup.common)\n",
            "        pass\n",
            f"{_ENVIRONMENT}"
            "::test_a_variable_that_makes_something_else_of_the_precision_is_no_run_of_it",
        ),
        violation(
            "XLA_FLAGS is not recorded",
            _VARIABLES,
            '("TF", "XLA", "TORCH"',
            '("TF", "TORCH"',
            "tests/harness/test_variables.py::test_what_matters_is_passed_on_and_recorded",
        ),
    ),
    claim(
        "Variables that look like credentials are never recorded",
        violation(
            "only the rules for names are applied",
            f"{_HARNESS}/provenance/environment.py",
            "is_recorded(name) and not secret.is_secret(name, value)",
            "is_recorded(name)",
            "tests/harness/test_variables.py::test_no_credential_is_recorded",
        ),
    ),
)
