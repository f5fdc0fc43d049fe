"""ResNet-50 of Gluon's model zoo and GluonNLP's BERT."""

from __future__ import annotations

from typing import Any

import gluonnlp
import mxnet as mx
from mxnet import autograd, gluon, nd

from . import Assignment, Run, loop


def resnet50(work: Assignment) -> Run:
    model = gluon.model_zoo.vision.resnet50_v1()
    _initialize(model, mx.init.Xavier(), work)
    images = nd.array(work.images)
    labels = nd.array(work.batch["labels"])
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    rate, momentum, decay = work.sgd
    rates = {"learning_rate": rate, "momentum": momentum, "wd": decay}
    trainer = gluon.Trainer(model.collect_params(), "sgd", rates, kvstore=None)

    def train() -> None:
        with autograd.record():
            loss = criterion(model(images), labels)
        loss.backward()
        trainer.step(len(labels))

    return loop(train if work.trains else lambda: model(images), nd.waitall)


def bert(work: Assignment) -> Run:
    units, vocabulary = work.hyper["hidden"], work.hyper["vocabulary"]
    types = work.hyper["segments"]
    encoder = gluonnlp.model.BERTEncoder(
        num_layers=work.hyper["layers"],
        units=units,
        hidden_size=work.hyper["intermediate"],
        max_length=work.hyper["positions"],
        num_heads=work.hyper["heads"],
        dropout=work.hyper["dropout"],
    )
    model = gluonnlp.model.BERTModel(
        encoder, vocab_size=vocabulary, token_type_vocab_size=types, units=units, embed_size=units
    )
    _initialize(model, mx.init.Normal(work.hyper["initializer_range"]), work)
    arrays = {name: nd.array(array, dtype="int32") for name, array in work.batch.items()}
    inputs = (
        arrays["token_ids"],
        arrays["segment_ids"].astype("float32"),
        nd.array(work.batch["attention_mask"].sum(axis=1)),
        arrays["masked_positions"],
    )
    criterion = gluon.loss.SoftmaxCELoss()
    adam = {key: work.hyper[key] for key in ("learning_rate", "beta1", "beta2", "epsilon")}
    adam["wd"] = work.hyper["weight_decay"]
    trainer = gluon.Trainer(model.collect_params(), "bertadam", adam, kvstore=None)
    parameters = [p for p in model.collect_params().values() if p.grad_req != "null"]

    def train() -> None:
        with autograd.record():
            _, _, classified, decoded = model(*inputs)
            words = decoded.reshape((-1, vocabulary))
            loss = criterion(words, arrays["masked_labels"].reshape((-1,))).mean()
            loss = loss + criterion(classified, arrays["next_sentence_labels"]).mean()
        loss.backward()
        gluonnlp.utils.clip_grad_global_norm(parameters, work.hyper["clip_global_norm"])
        trainer.update(1)

    return loop(train if work.trains else lambda: model(*inputs), nd.waitall)


def _initialize(model: Any, initializer: Any, work: Assignment) -> None:
    model.initialize(initializer)
    if work.compiler == "hybridize":
        model.hybridize(static_alloc=True, static_shape=True)
