"""Parts of a training step, as functions that can be timed one by one."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence


class StepPart(NamedTuple):
    """Part of a training step.

    ``name``: forward, backward, all_reduce or optimizer; several joined by ``+`` where the
    framework has them in one. ``run``: enqueues the part and, before it, the parts it ``contains``,
    whose own times are subtracted. ``ends``: end of the forward pass, which differs between
    frameworks: the loss, or the logits it is made of."""

    name: str
    run: Callable[[], Any]
    contains: Sequence[str] = ()
    ends: str = ""


def eager_parts(
    forward: Callable[[], Any],
    backward: Callable[[Any], Any],
    averaged: Optional[Callable[[], Any]],
    update: Callable[[], Any],
) -> List[StepPart]:
    """Return the parts of a framework that runs operation by operation.

    ``forward`` returns the loss for ``backward``, which leaves this rank's gradients. ``averaged``
    runs both with the overlapping all-reduce, None for a single rank. ``update`` runs the
    optimizer."""
    loss: List[Any] = []
    parts = [
        StepPart("forward", lambda: loss.append(forward()), ends="loss"),
        StepPart("backward", lambda: backward(loss.pop())),
    ]
    if averaged is not None:
        parts.append(StepPart("all_reduce", averaged, ("forward", "backward")))
    return [*parts, StepPart("optimizer", update)]


def program_parts(
    programs: Dict[str, Callable[[], Any]], step: Callable[[], Any]
) -> List[StepPart]:
    """Return the parts of a framework that runs a step as one program.

    ``programs``: separate programs in the order of the step, each ending with the part of that name
    (the forward pass with the logits). ``step``: the whole step, which ends with the optimizer.
    Each program is run once, so that it is compiled before it is timed."""
    for program in programs.values():
        program()
    functions = {**programs, "optimizer": step}
    names = list(functions)
    return [
        StepPart(name, functions[name], names[:n], "logits" if name == "forward" else "")
        for n, name in enumerate(names)
    ]
