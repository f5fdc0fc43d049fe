"""What a framework brings: one subclass of :class:`Adapter` in its folder's ``adapter.py``.

An adapter says what differs between frameworks and nothing else. The loop, the clock, the
statistics, the record, the launching and the error handling live in the harness.

:class:`Adapter` is the core (``base``): it builds a model (``layout``: whose arrays lie as all
frameworks share them) and runs steps of a case in a place (``case``). What more a framework can do,
its adapter says by the capabilities that it derives from. Without one, what needs it is
`unsupported`:

- :class:`MatmulTrace`: which products run, in which dtype; every figure of a step needs the proof;
- :class:`Rounding`: whether products of float32 run in TF32 (both in ``proof``);
- :class:`Numerics`: outputs and gradients from given weights, to compare with the reference;
- :class:`Collectives`: several devices (``devices``);
- :class:`PeakMatmul`: the peak of the device (``peak``);
- :class:`StepBreakdown`: where the time of a training step goes;
- :class:`Accumulation`: several micro-steps before each update (both in ``training``);
- :class:`Generation`: text, token by token;
- :class:`OwnModels`: models that users bring;
- :class:`harness.operations.SingleOperations`: single operations, without a model;
- :class:`harness.common_capabilities.CommonCapabilities`: what nearly every framework has, in one;
- :class:`harness.sharded.Sharded`: several devices that each hold a part of the model;
- :mod:`harness.batch_input`: a new batch and a new learning rate for each step, and checkpoints.

The harness calls, in this order and in every rank of a run::

    start() -> prepare_all_reduce(array) on several ranks -> build(batch) -> matmul_dtypes()
    -> step() * warm-up -> compiled()
    -> synchronize(), step(), mark(..), wait(..) * window, synchronize()
    -> read(..), weights_checksum(), .. -> step(), synchronize() * waited window, if not blocking()
    -> step_parts() in training, where they are wanted
    -> gradient_messages(), gradient_all_reduce(..) in training on several ranks
    -> stop(), unless something failed before

or, to find the peak of the device, ``start() -> matmul(..)`` and nothing else; to generate text,
``start() -> build(batch) -> matmul_dtypes() -> make_cache(count) -> prefill(), decode() ..``.

Standard library and numpy; Python 3.7 to 3.13. Frameworks are imported in :meth:`Adapter.start`.
"""

from __future__ import annotations

from harness.adapter.base import Adapter, Capability, require
from harness.adapter.case import Case, Mismatch, RankContext, Unsupported
from harness.adapter.devices import AllReduce, Collectives, require_tf32, require_visible, zeros
from harness.adapter.generation import Generation
from harness.adapter.layout import (
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    DENSE_OI,
    SAME,
    Axes,
    Variable,
    in_shared_layout,
    state_of_modules,
)
from harness.adapter.matmul_dtypes import ExecutedMatmul, MatmulTrace, Rounding
from harness.adapter.numerics import Numerics
from harness.adapter.own_models import (
    FLOAT64,
    OwnModels,
    own_model_optimizer,
    own_model_parts,
    own_module,
)
from harness.adapter.peak import ChainedMatmul, PeakMatmul
from harness.adapter.training import Accumulation, MicroBatch, StepBreakdown, micro_batches

__all__ = [
    "CONVOLUTION_OIHW",
    "DENSE_CHWO",
    "DENSE_OI",
    "FLOAT64",
    "SAME",
    "Accumulation",
    "Adapter",
    "AllReduce",
    "Axes",
    "Capability",
    "Case",
    "ChainedMatmul",
    "Collectives",
    "ExecutedMatmul",
    "Generation",
    "MatmulTrace",
    "MicroBatch",
    "Mismatch",
    "Numerics",
    "OwnModels",
    "PeakMatmul",
    "RankContext",
    "Rounding",
    "StepBreakdown",
    "Unsupported",
    "Variable",
    "in_shared_layout",
    "micro_batches",
    "own_model_optimizer",
    "own_model_parts",
    "own_module",
    "require",
    "require_tf32",
    "require_visible",
    "state_of_modules",
    "zeros",
]
