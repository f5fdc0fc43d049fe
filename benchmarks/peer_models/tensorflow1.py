"""TensorFlow 1's own ResNet-50 by ``fit`` and ``predict``, and Google's BERT in a session."""

from __future__ import annotations

import tensorflow as tf
from bert import modeling, optimization, run_pretraining

from . import Assignment, Run, keras_loop, loop


def resnet50(work: Assignment) -> Run:
    graph = tf.Graph()
    with graph.as_default():
        tf.keras.backend.set_session(tf.Session())
        model = tf.keras.applications.ResNet50(
            weights=None, input_shape=work.batch["images"].shape[1:]
        )
        rate, momentum, decay = work.sgd
        optimizer = tf.contrib.opt.MomentumWOptimizer(decay, rate, momentum)
        model.compile(optimizer, "sparse_categorical_crossentropy")
        pairs = tf.data.Dataset.from_tensors((work.batch["images"], work.batch["labels"])).repeat()
        session = tf.keras.backend.get_session()
    inside = keras_loop(model, pairs, work.trains)

    def run(steps: int) -> None:
        with graph.as_default(), session.as_default():
            inside(steps)

    return run


def bert(work: Assignment) -> Run:
    graph = tf.Graph()
    with graph.as_default():
        arrays = {
            name: tf.Variable(array.astype("int32"), trainable=False)
            for name, array in work.batch.items()
        }
        config = modeling.BertConfig(vocab_size=work.hyper["vocabulary"])
        names = ("token_ids", "attention_mask", "segment_ids")
        model = modeling.BertModel(config, work.trains, *(arrays[name] for name in names))
        weights = tf.ones(work.batch["masked_positions"].shape)
        words_loss, _, words = run_pretraining.get_masked_lm_output(
            *(config, model.get_sequence_output(), model.get_embedding_table()),
            *(arrays["masked_positions"], arrays["masked_labels"], weights),
        )
        next_loss, _, following = run_pretraining.get_next_sentence_output(
            config, model.get_pooled_output(), arrays["next_sentence_labels"]
        )
        fetched = [words, following]  # no tf.group, which TensorFlow would optimize away
        if work.trains:
            optimizer = optimization.AdamWeightDecayOptimizer(*work.adamw)
            variables = tf.trainable_variables()
            gradients = tf.gradients(words_loss + next_loss, variables)
            gradients, _ = tf.clip_by_global_norm(gradients, work.hyper["clip_global_norm"])
            fetched = optimizer.apply_gradients(zip(gradients, variables))
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())

    return loop(lambda: session.run(fetched))
