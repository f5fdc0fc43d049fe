"""Text generation: the prompt in one pass, then token by token, with a key-value cache.

A request is a batch of prompts as long as the case's sequence length. Each is continued by
``new_tokens``, the likeliest one each time. Requests follow each other without a pause. Every token
is synchronized, as for an interactive reader. A verification compares generated text with the
reference's, token by token."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any, Dict, List, Mapping, Optional, Tuple

from core import precisions

from harness.adapter import Generation, Mismatch, Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring import model
from harness.measuring.checks import check_cores, compiler_evidence
from harness.measuring.errors import measured, relative, worst, worst_token
from harness.measuring.rounding import FLOAT32
from harness.measuring.steps import peak_host_memory
from harness.measuring.window import all_ready

#: Tokens that a percentile needs, so that two or more lie above it with 99 % probability; see
#: docs/measuring.md.
ENOUGH = {50: 11, 90: 64, 99: 662}
#: Threshold for errors of logits: float32 stays below, narrower matmuls exceed it.
WIDE = 2e-5
TOKENS = 32  # new tokens of each prompt in a comparison
FEWEST = 2  # least number of tokens of a request

#: Handles on the tokens generated for a batch of prompts, and the seconds that each token took.
Request = Tuple[List[Any], List[float]]
#: Seconds of a request. With several devices the slowest device counts.
_seconds = partial(Metric, "s", "lower", "max")


class Generate(Kind):
    """Text generation: time to the first token, time of each further one, tokens per second."""

    parameters = (
        Parameter("new_tokens", at_least(FEWEST), "tokens", "new tokens of each prompt", 32),
    )
    needs = Generation
    counts_steps = True  # a step is a request

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        count, requests = workload.parameters["new_tokens"], workload.timed_steps
        tokens = workload.case.batch_per_device * count * requests
        # over whole requests: the time includes prompts, the tokens do not
        rate = Metric("tokens/s", "higher", "sum", lambda rank: tokens / rank["window_seconds"])
        return {
            "throughput": rate,
            # median over requests, like the time per later token
            "time_to_first_token": _seconds(_first),
            "time_per_output_token": _seconds(_each),
            **{
                f"inter_token_p{percent}": _seconds(partial(_percentile, percent))
                for percent, needed in ENOUGH.items()
                if requests * (count - 1) >= needed
            },
        }

    def measure(self, context: Context) -> None:
        adapter, workload, fields = context.adapter, context.workload, context.fields
        count = workload.parameters["new_tokens"]
        check_generates(adapter, workload, count)
        model.build(context, model.batch_of_rank(context))
        context.phase("cache", lambda: adapter.make_cache(count))

        def requests(most: int) -> List[Request]:
            return [_request(adapter, count) for _ in range(most)]

        warmed = context.phase("warm-up", lambda: requests(max(1, workload.warmup_steps)), "warmup")
        fields["generated"] = _tokens(adapter, warmed[-1][0])
        fields["compiled"] = compiler_evidence(adapter)
        fields["cores"] = check_cores(context.cores)
        context.report.enter("timed window")
        with all_ready(adapter, context.barrier):
            start = time.perf_counter()
            timed = requests(workload.timed_steps)
            seconds = time.perf_counter() - start
        fields["phases"]["window_seconds"] = seconds
        fields["window_start"], fields["window_seconds"] = start, seconds
        fields["token_seconds"] = [seconds for _, seconds in timed]
        fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
        fields["peak_host_memory_bytes"] = peak_host_memory()
        for number, (handles, _) in enumerate(timed, 1):
            if _tokens(adapter, handles) != fields["generated"]:
                raise Mismatch(f"request {number} generated other tokens for the same prompts")
        context.report.enter("end")


def _request(adapter: Generation, count: int) -> Request:
    """Generate ``count`` tokens for a batch of prompts, and synchronize each."""
    handles: List[Any] = []
    seconds: List[float] = []
    before = time.perf_counter()
    for index in range(count):
        handles.append(adapter.decode() if index else adapter.prefill())
        adapter.synchronize()
        now = time.perf_counter()
        seconds.append(now - before)
        before = now
    return handles, seconds


def _tokens(adapter: Generation, handles: List[Any]) -> List[List[int]]:
    """Return the generated tokens of each sequence."""
    rows = [adapter.to_numpy(handle).tolist() for handle in handles]
    return [list(map(int, sequence)) for sequence in zip(*rows)]


def _first(rank: Mapping[str, Any]) -> float:
    return float(statistics.median(request[0] for request in rank["token_seconds"]))


def _each(rank: Mapping[str, Any]) -> float:
    further = [request[1:] for request in rank["token_seconds"]]
    return float(statistics.median(sum(each) / len(each) for each in further))


def _percentile(percent: int, rank: Mapping[str, Any]) -> float:
    """Return the nearest-rank percentile of token times, without the first token of a request."""
    every = sorted(second for request in rank["token_seconds"] for second in request[1:])
    return float(every[-(-percent * len(every) // 100) - 1])


def count_compared(model_config: Mapping[str, Any], length: Optional[int]) -> int:
    """Return how many new tokens are compared after prompts of ``length``: TOKENS, or fewer if the
    model has fewer positions left; 0 without a length."""
    return min(TOKENS, model_config["sequence_lengths"][1] - length) if length else 0


def check_generates(adapter: Generation, workload: Workload, count: int) -> None:
    """Raise Unsupported where the case cannot continue its prompts by ``count`` tokens."""
    case, model_config = workload.case, workload.model_config
    if case.compiler not in adapter.GENERATES_WITH:
        raise Unsupported(f"generation is not compiled by {case.compiler}")
    classes = model_config.get("hyperparameters", {}).get("classes")
    if classes is not None:
        raise Unsupported(f"{case.model} does not generate text: it has {classes} classes")
    if case.sequence_length is None:
        raise Unsupported(f"{case.model} has no sequences to continue")
    longest = model_config["sequence_lengths"][1]
    if case.sequence_length + count > longest:
        raise Unsupported(
            f"{case.model} has {longest} positions: fewer than {case.sequence_length} of the "
            f"prompt and {count} new ones"
        )


def generation_errors(adapter: Generation, expected: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Return the errors of the tokens that continue the prompts of the batch, and of their logits.

    The prompts are continued twice: freely, as when timed, and along the reference's tokens,
    because rounding may change a token. Free continuations are compared up to the first different
    token. A token is wrong where the reference prefers its own by more than the logits' errors
    explain. In a narrow precision, errors as small as those of float32 count as a fault, because
    the dtypes of matmuls are observed in another pass.

    Parameters
    ----------
    adapter : has its weights and a cache for the tokens
    expected : the reference's ``tokens`` (batch, count) and ``logits`` (batch, count, vocabulary)
    """
    import numpy as np

    right, exact = expected["tokens"], expected["logits"].astype(np.float64)
    free = _continued(adapter, right.shape[1], None)
    forced = _continued(adapter, right.shape[1], right)
    is_same = np.logical_and.accumulate(free[0] == right, axis=1)
    every = np.ones_like(is_same)
    after_same = np.concatenate([every[:, :1], is_same[:, :-1]], axis=1)
    totals, of_tokens, wrong = [], [], 0
    for (tokens, logits), compared in ((free, after_same), (forced, every)):
        totals.append(measured("outputs", relative(logits[compared], exact[compared])))
        of_tokens.append(worst_token(logits, exact, compared))
        chosen, best = (
            np.take_along_axis(exact, which[..., None], axis=2)[..., 0] for which in (tokens, right)
        )
        explained = best - chosen <= 2 * np.abs(logits - exact).max(axis=2)
        wrong += int((compared & ~explained).sum())
    outputs = worst(totals)
    same = f"{is_same.sum()} of {is_same.size} tokens are the reference's"
    is_wide = FLOAT32 in precisions.known()[adapter.case.precision].dtypes
    return [
        outputs,
        worst(of_tokens),
        measured("generated tokens", float(wrong), same),
        measured("generated in float32", float(outputs["error"] < WIDE and not is_wide)),
    ]


def _continued(adapter: Generation, count: int, tokens: Any) -> Tuple[Any, Any]:
    """Return the tokens (batch, count) that follow the prompts, and their logits. Each pass takes
    its token from ``tokens`` (batch, count) or, if this is None, from the previous pass."""
    import numpy as np

    handles, logits = [adapter.prefill()], [adapter.following_logits()]
    for number in range(count - 1):
        handles.append(adapter.decode(None if tokens is None else tokens[:, number]))
        logits.append(adapter.following_logits())
    adapter.synchronize()
    found = [np.stack([adapter.to_numpy(entry) for entry in many], 1) for many in (handles, logits)]
    return found[0].astype(np.int64), found[1].astype(np.float64)
