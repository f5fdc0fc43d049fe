"""ResNet-50 of Gluon's model zoo and GluonNLP's BERT."""

from __future__ import annotations

from typing import Any

import gluonnlp
import mxnet as mx
from mxnet import autograd, gluon, nd

from . import Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    model = gluon.model_zoo.vision.resnet50_v1()
    model.initialize(mx.init.Xavier())
    images = nd.array(work.images)
    labels = nd.array(work.batch["labels"])
    if work.compiler == "hybridize":
        model.hybridize(static_alloc=True, static_shape=True)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    rates = {"learning_rate": work.hyper["learning_rate"], "wd": work.hyper["weight_decay"]}
    trainer = gluon.Trainer(
        model.collect_params(), "sgd", {**rates, "momentum": work.hyper["momentum"]}, kvstore=None
    )

    def train() -> None:
        with autograd.record():
            loss = criterion(model(images), labels)
        loss.backward()
        trainer.step(len(labels))

    return loop(train if work.trains else lambda: model(images), nd.waitall)


def bert(work: Assignment) -> Run:
    units, vocabulary = work.hyper["hidden"], work.hyper["vocabulary"]
    encoder = gluonnlp.model.BERTEncoder(
        num_layers=work.hyper["layers"],
        units=units,
        hidden_size=work.hyper["intermediate"],
        max_length=work.hyper["positions"],
        num_heads=work.hyper["heads"],
        dropout=work.hyper["dropout"],
    )
    model = gluonnlp.model.BERTModel(
        encoder,
        vocab_size=vocabulary,
        token_type_vocab_size=work.hyper["segments"],
        units=units,
        embed_size=units,
    )
    model.initialize(mx.init.Normal(work.hyper["initializer_range"]))
    if work.compiler == "hybridize":
        model.hybridize(static_alloc=True, static_shape=True)
    tokens, segments, masked, masked_labels, following = (
        nd.array(work.batch[name], dtype="float32" if name == "segment_ids" else "int32")
        for name in (
            *("token_ids", "segment_ids", "masked_positions", "masked_labels"),
            "next_sentence_labels",
        )
    )
    lengths = nd.array(work.batch["attention_mask"].sum(axis=1))
    criterion = gluon.loss.SoftmaxCELoss()
    adam = {key: work.hyper[key] for key in ("learning_rate", "beta1", "beta2", "epsilon")}
    trainer = gluon.Trainer(
        model.collect_params(), "bertadam", {**adam, "wd": work.hyper["weight_decay"]}, kvstore=None
    )
    parameters = [p for p in model.collect_params().values() if p.grad_req != "null"]

    def forward() -> Any:
        return model(tokens, segments, lengths, masked)

    def train() -> None:
        with autograd.record():
            _, _, classified, decoded = forward()
            words = decoded.reshape((-1, vocabulary))
            loss = criterion(words, masked_labels.reshape((-1,))).mean()
            loss = loss + criterion(classified, following).mean()
        loss.backward()
        gluonnlp.utils.clip_grad_global_norm(parameters, work.hyper["clip_global_norm"])
        trainer.update(1)

    return loop(train if work.trains else forward, nd.waitall)
