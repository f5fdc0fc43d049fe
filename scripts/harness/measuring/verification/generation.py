"""Compare generated text with the reference's, token by token. Standard library and numpy."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from core import precisions

from harness.adapter import Generation, Unsupported
from harness.kind import Workload
from harness.measuring.verification.errors import measured, relative, worst, worst_token
from harness.measuring.verification.rounding import FLOAT32

#: Threshold for errors of logits: float32 stays below, narrower matmuls exceed it.
WIDE = 2e-5
TOKENS = 32  # new tokens of each prompt in a comparison
FEWEST = 2  # least number of tokens of a request


def count_compared(model_config: Mapping[str, Any], length: Optional[int]) -> int:
    """Return how many new tokens are compared after prompts of ``length``: TOKENS, or as many as
    the model has positions for; 0 without a length."""
    return min(TOKENS, model_config["sequence_lengths"][1] - length) if length else 0


def check_supported(adapter: Generation, workload: Workload, count: int) -> None:
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


def compare(adapter: Generation, expected: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Return the errors of the tokens that continue the prompts of the batch, and of their logits.

    The prompts are continued twice: as it is timed, and by the reference's tokens, because rounding
    may change a token. In the first pass, the logits up to the first different token are compared.
    A token is wrong where the reference prefers its own by more than the logits' errors explain. In
    a narrow precision the errors must be as large as that precision's, because matmuls are counted
    in another pass.

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
    behind_same = np.concatenate([every[:, :1], is_same[:, :-1]], axis=1)
    totals, of_tokens, wrong = [], [], 0
    for (tokens, logits), compared in ((free, behind_same), (forced, every)):
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
    the last token, or the token of ``tokens`` (batch, count) in its place, unless None."""
    import numpy as np

    handles, logits = [adapter.prefill()], [adapter.following_logits()]
    for number in range(count - 1):
        handles.append(adapter.decode(None if tokens is None else tokens[:, number]))
        logits.append(adapter.following_logits())
    adapter.synchronize()
    found = [np.stack([adapter.to_numpy(entry) for entry in many], 1) for many in (handles, logits)]
    return found[0].astype(np.int64), found[1].astype(np.float64)
