"""The parts of a training step, as functions that can be timed one by one."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence


class StepPart(NamedTuple):
    """``run`` enqueues the part and, before it, those that it ``contains``, which their own times
    are taken from. ``name``: forward, backward, all_reduce or optimizer; several joined by ``+``
    where the framework has them in one. ``ends``: with what the forward pass ends, which differs
    between frameworks: the loss, or the logits that it is made of."""

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
    """Of a framework that runs operation by operation: ``forward`` gives the loss to ``backward``,
    which leaves this rank's gradients; ``averaged`` does both with the all-reduce that overlaps
    them, None for a single rank."""
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
    """Of a framework that runs a step as one program: ``programs`` of their own, in the order of
    the step, that each end with the part of that name (the forward pass with the logits), and the
    whole ``step``, which ends with the optimizer. Runs each program once, so that it is compiled
    when it is timed."""
    for program in programs.values():
        program()
    functions = {**programs, "optimizer": step}
    names = list(functions)
    return [
        StepPart(name, functions[name], names[:n], "logits" if name == "forward" else "")
        for n, name in enumerate(names)
    ]
