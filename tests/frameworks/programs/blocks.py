"""Compare the blocks of networks with the reference. Slow frameworks leave out the training steps,
which the two whole networks compare."""

import types

from harness.kinds import verification

from . import prelude
from .prelude import FRAMEWORK, module_of
from .small import SLOW


def leave_out_steps():
    """Let slow frameworks compare and compile no step of what is built from now on."""
    if FRAMEWORK in SLOW:
        verification.Comparison.training = lambda self: []
        verification.Comparison.dropout = lambda self: []
    start = prelude.started

    def started(*arguments, **options):
        adapter = start(*arguments, **options)
        if FRAMEWORK == "jax":
            ready = adapter._ready
            adapter._ready = lambda *arguments, donated=(), **more: (
                None if donated else ready(*arguments, **more)
            )
        elif FRAMEWORK == "tensorflow":
            training = module_of("steps").training

            def untraced(*arguments):
                none = types.SimpleNamespace(get_concrete_function=lambda batch: None)
                return training(*arguments)._replace(step=none)

            module_of("steps").training = untraced
        return adapter

    prelude.started = started
