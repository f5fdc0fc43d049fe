"""ResNet-50 of keras.applications and KerasHub's BERT, by ``fit`` and ``predict``."""

from __future__ import annotations

from typing import Any

import keras
import keras_hub
import tensorflow as tf

from . import Assignment, Run, keras_loop


def resnet50(work: Assignment) -> Run:
    model = keras.applications.ResNet50(
        weights=None, input_shape=work.batch["images"].shape[1:], classifier_activation=None
    )
    rate, momentum, decay = work.sgd
    optimizer = keras.optimizers.SGD(rate, momentum, weight_decay=decay)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return _running(model, optimizer, loss, (work.batch["images"], work.batch["labels"]), work)


def bert(work: Assignment) -> Run:
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=work.hyper["vocabulary"],
        num_layers=work.hyper["layers"],
        num_heads=work.hyper["heads"],
        hidden_dim=work.hyper["hidden"],
        intermediate_dim=work.hyper["intermediate"],
        dropout=work.hyper["dropout"],
        max_sequence_length=work.hyper["positions"],
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    outputs = backbone.output
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
    )
    words = head(outputs["sequence_output"], mask_positions=positions)
    following = keras.layers.Dense(2, name="following")(outputs["pooled_output"])
    model = keras.Model({**backbone.input, "mask_positions": positions}, [words, following])
    clip = work.hyper["clip_global_norm"]
    optimizer = keras.optimizers.AdamW(*work.adamw, global_clipnorm=clip)
    inputs = {
        "token_ids": work.batch["token_ids"],
        "segment_ids": work.batch["segment_ids"],
        "padding_mask": work.batch["attention_mask"],
        "mask_positions": work.batch["masked_positions"],
    }
    labels = (work.batch["masked_labels"], work.batch["next_sentence_labels"])
    losses = [keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in labels]
    return _running(model, optimizer, losses, (inputs, labels), work)


def _running(model: Any, optimizer: Any, losses: Any, batch: Any, work: Assignment) -> Run:
    model.compile(optimizer, losses, jit_compile=work.compiler == "xla")
    return keras_loop(model, tf.data.Dataset.from_tensors(batch).repeat(), work.trains)
