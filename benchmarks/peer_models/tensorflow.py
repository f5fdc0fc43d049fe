"""ResNet-50 of keras.applications and KerasHub's BERT, by ``fit`` and ``predict``."""

from __future__ import annotations

from typing import Any

import keras
import keras_hub
import tensorflow as tf

from . import Assignment, Run


def resnet50(work: Assignment) -> Run:
    model = keras.applications.ResNet50(
        weights=None, input_shape=work.batch["images"].shape[1:], classifier_activation=None
    )
    optimizer = keras.optimizers.SGD(
        work.hyper["learning_rate"], work.hyper["momentum"], weight_decay=work.hyper["weight_decay"]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=work.compiler == "xla")
    return _running(model, work.batch["images"], work.batch["labels"], work.trains)


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
    optimizer = keras.optimizers.AdamW(
        work.hyper["learning_rate"],
        weight_decay=work.hyper["weight_decay"],
        beta_1=work.hyper["beta1"],
        beta_2=work.hyper["beta2"],
        epsilon=work.hyper["epsilon"],
        global_clipnorm=work.hyper["clip_global_norm"],
    )
    losses = [keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in range(2)]
    model.compile(optimizer, losses, jit_compile=work.compiler == "xla")
    inputs = {
        "token_ids": work.batch["token_ids"],
        "segment_ids": work.batch["segment_ids"],
        "padding_mask": work.batch["attention_mask"],
        "mask_positions": work.batch["masked_positions"],
    }
    labels = (work.batch["masked_labels"], work.batch["next_sentence_labels"])
    return _running(model, inputs, labels, work.trains)


def _running(model: Any, inputs: Any, labels: Any, trains: bool) -> Run:
    batches = tf.data.Dataset.from_tensors((inputs, labels)).repeat()

    def run(steps: int) -> None:
        if trains:
            model.fit(batches, steps_per_epoch=steps, verbose=0)
        else:
            model.predict(batches, steps=steps, verbose=0)

    return run
