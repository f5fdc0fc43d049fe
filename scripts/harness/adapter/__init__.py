"""Interface of frameworks: one subclass of :class:`Adapter` in a framework's ``adapter.py``.

An adapter contains only what differs between frameworks. The loop, the clock, statistics, the
record, launching and error handling are the harness's.

:class:`Adapter` is the core: it builds a model and runs steps of a case. Further abilities are
capabilities that an adapter derives from, here and in :mod:`harness.capabilities`; docs/adding.md
lists them. A case that needs a missing one is `unsupported`.

The harness calls, in this order and in every rank of a run::

    start() -> prepare_all_reduce(array) on several ranks -> build(batch) -> matmul_dtypes()
    -> step() * warm-up -> compiled()
    -> synchronize(), step(), mark(..), wait(..) * timed steps, synchronize()
    -> read(..), weights_checksum(), .. -> step(), synchronize() * steps, if not blocking()
    -> gradient_messages(), gradient_all_reduce(..) in training on several ranks
    -> stop(), unless something failed before

For peak FLOPS it calls ``start() -> primitives()`` and nothing else; to generate text
``start() -> build(batch) -> matmul_dtypes() -> make_cache(count) -> prefill(), decode() ..``.

Standard library and numpy; Python 3.7 to 3.13. Frameworks are imported in :meth:`Adapter.start`.
"""

from __future__ import annotations

from harness.adapter.base import (
    Adapter,
    Capability,
    Case,
    Definition,
    Mismatch,
    RankContext,
    Unsupported,
    require,
)
from harness.adapter.computation import (
    Accumulation,
    EagerTraining,
    Generation,
    MatmulTrace,
    MicroBatch,
    Numerics,
    Rounding,
    micro_batches,
)
from harness.adapter.devices import (
    AllReduce,
    Collectives,
    driver_reason,
    is_mixed,
    matmul_dtype,
    mixed_dtype,
    no_device,
    require_tf32,
    takes_gpu,
    zeros,
)
from harness.adapter.layout import (
    CONVOLUTION_OHWI,
    CONVOLUTION_OIHW,
    DENSE_CHWO,
    DENSE_OI,
    SAME,
    Variable,
    in_shared_layout,
    state_of_modules,
    variable_of,
)
from harness.adapter.own_models import FLOAT64, OwnDefinition, OwnModels
