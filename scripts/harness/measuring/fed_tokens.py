"""Steps that are given sequences of tokens from a file: models of token_ids and labels, which are
the tokens that come next."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Generator, Iterator, Tuple

from harness.adapter import Mismatch
from harness.kind import Context
from harness.loader import LoadedTokens
from harness.samples import folder, tokens

Batch = Dict[str, Any]
#: A sequence is a slice of a file in memory: the one that asks takes it itself. Workers that are
#: forked so soon behind each other have been seen to hang in PaddlePaddle and MXNet.
_WORKERS = 0
#: What a loader says of itself that is no matter of images.
_SETTINGS = ("loader", "workers_are", "pin_memory")


def source(context: Context) -> Tuple[Batch, Callable[[], Generator[Batch, None, None]]]:
    """The first batch, and what begins anew with it. Raises what reading the data raises."""
    subject, place, fields = context.subject, context.place, context.fields
    adapter, case, root = context.adapter, subject.case, subject.data
    length = case.sequence_length
    assert root is not None, "the declaration has seen to it"
    assert length is not None, "the declaration has seen to it"
    split = folder.TRAIN if case.mode == "train" else folder.VALIDATION
    found = context.phase(
        "scan", lambda: tokens.scan(root, split, subject.bad_images, os.path.abspath("."))
    )
    _check_vocabulary(subject.facts, found.vocabulary)
    fields["data_set"] = tokens.report(found)
    said = adapter.loader_settings()
    fields["loader"] = {"workers": _WORKERS, **{k: said[k] for k in _SETTINGS if k in said}}
    rank, ranks = case.layout.replica(place.rank), case.layout.replicas
    samples = case.batch_per_device * case.accumulation

    def epochs() -> Iterator[Any]:
        number = 0
        while True:
            yield tokens.loads(
                found, split, number, place.seed, rank, ranks, length, samples, _WORKERS
            )
            number += 1

    def batches() -> Generator[Batch, None, None]:
        for loaded in tokens.forever(adapter, epochs()):
            yield _batch(loaded)

    begin = next(epochs())
    alone = begin._replace(starts=begin.starts[:samples])
    fields["fed"] = context.phase("check", lambda: tokens.checked(adapter, alone))
    (first,) = tokens.batches(adapter, alone)
    return _batch(first), batches


def _batch(loaded: LoadedTokens) -> Batch:
    import numpy as np

    inputs, following = loaded.tokens[:, :-1], loaded.tokens[:, 1:]
    return {"token_ids": np.ascontiguousarray(inputs), "labels": np.ascontiguousarray(following)}


def _check_vocabulary(facts: Dict[str, Any], vocabulary: int) -> None:
    known = facts["hyperparameters"]["vocabulary"]
    if vocabulary > known:
        raise Mismatch(f"the data have {vocabulary} tokens, {facts['name']} has {known}")
