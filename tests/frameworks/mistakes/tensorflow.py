"""Mistakes in TensorFlow 2's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake, other_operation

MISTAKES = [
    PlantedMistake(
        "attention scaled by the hidden size",
        "bert_base",
        Change(
            "models/bert.py",
            "self.query(x) * self.head_size**-0.5",
            "self.query(x) * x.shape[-1] ** -0.5",
        ),
    ),
    PlantedMistake(
        "heads split without a transpose",
        "bert_base",
        Change(
            "models/bert.py",
            "shape = (-1, tf.shape(x)[1], self.heads, self.head_size)\n"
            "        return tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3))",
            "return tf.reshape(x, (-1, self.heads, tf.shape(x)[1], self.head_size))",
        ),
    ),
    PlantedMistake(
        "the mask added without its large factor",
        "bert_base",
        Change("models/bert.py", "scores + ignored * MASKED_SCORE", "scores - ignored"),
    ),
    PlantedMistake(
        "Keras's default epsilon of the layer normalisation",
        "bert_base",
        Change("models/bert.py", 'epsilon=hyperparameters["layer_norm_epsilon"], ', ""),
    ),
    PlantedMistake(
        "Keras's default GELU of the feed-forward part",
        "bert_base",
        Change(
            "models/bert.py", "activations.gelu(x, approximate=False)", "activations.gelu(x, True)"
        ),
    ),
    PlantedMistake(
        "a pooler without tanh",
        "bert_base",
        Change("models/bert.py", '"pooler", "tanh")', '"pooler")'),
    ),
    PlantedMistake(
        "segments added behind the normalisation",
        "bert_base",
        Change(
            "models/bert.py",
            "x = self.token(token_ids) + self.segment(segment_ids)",
            "x = self.token(token_ids)",
        ),
        Change(
            "models/bert.py",
            "self.dropout(self.norm(x), ",
            "self.dropout(self.norm(x) + self.segment(segment_ids), ",
        ),
    ),
    PlantedMistake(
        "Keras's Adam, whose epsilon is not corrected",
        "bert_base",
        Change(
            "optimizers.py",
            "epsilon=self.epsilon * tf.sqrt(1.0 - beta2_power)",
            "epsilon=self.epsilon",
        ),
    ),
    PlantedMistake(
        "Keras's Adam without weight decay",
        "bert_base",
        Change(
            "optimizers.py",
            '        weight_decay=hyperparameters["weight_decay"],\n        beta_1',
            "        weight_decay=0.0,\n        beta_1",
        ),
    ),
    PlantedMistake(
        "betas swapped",
        "gpt2_small",
        Change(
            "optimizers.py", 'beta_1=hyperparameters["beta1"]', 'beta_1=hyperparameters["beta2"]'
        ),
        Change(
            "optimizers.py", 'beta_2=hyperparameters["beta2"]', 'beta_2=hyperparameters["beta1"]'
        ),
    ),
    PlantedMistake(
        "moments corrected by the steps before",
        "bert_base",
        Change(
            "optimizers.py",
            "beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step)",
            "beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step + 1)",
        ),
    ),
    PlantedMistake(
        "each variable's gradient clipped by its own norm",
        "bert_base",
        Change("optimizers.py", "global_clipnorm=hyperparameters", "clipnorm=hyperparameters"),
    ),
    PlantedMistake(
        "initial values that one initializer repeats",
        "bert_base",
        Change(
            "models/transformers.py",
            "from typing import",
            "from functools import lru_cache\nfrom typing import",
        ),
        Change("models/transformers.py", "def initializer(", "@lru_cache()\ndef initializer("),
    ),
    PlantedMistake(
        "initial values truncated",
        "bert_base",
        Change("models/transformers.py", "RandomNormal(", "TruncatedNormal("),
    ),
    PlantedMistake(
        "dropout in inference",
        "bert_base",
        Change(
            "models/bert.py",
            "self.dropout(self.norm(x), training=training)",
            "self.dropout(self.norm(x), training=True)",
        ),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "no dropout of the attention probabilities",
        "bert_base",
        Change(
            "models/bert.py", "        weights = self.dropout(weights, training=training)\n", ""
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout twice in a row",
        "bert_base",
        Change(
            "models/bert.py",
            "return self.output_dense(tf.reshape(tf.transpose(context, (0, 2, 1, 3)), "
            "tf.shape(x)))",
            "y = self.output_dense(tf.reshape(tf.transpose(context, (0, 2, 1, 3)), tf.shape(x)))\n"
            "        return self.dropout(y, training=training)",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "angles in bfloat16",
        "llama_8b, 256 tokens",
        Change(
            "models/decoder.py",
            "angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * frequencies",
            "angles = tf.cast(positions, self.compute_dtype)[:, tf.newaxis]\n"
            "        angles = tf.cast(angles * tf.cast(frequencies, angles.dtype), tf.float32)",
        ),
        precision="amp",
    ),
    PlantedMistake(
        "gradients of micro-steps summed",
        "embedding",
        Change("steps.py", "[gradient / count for gradient in total]", "total"),
        micro_steps=2,
    ),
    PlantedMistake(
        "the first micro-batch in every micro-step",
        "embedding",
        Change("steps.py", "name: array[number] for", "name: array[0] for"),
        micro_steps=2,
    ),
    PlantedMistake(
        "averaged twice",
        "basic residual, halving",
        Change(
            "steps.py",
            "optimizer.apply(gradients, variables)",
            "optimizer.apply([gradient / ranks for gradient in gradients], variables)",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "summed over the ranks",
        "basic residual, halving",
        Change("steps.py", "optimizer.scale_loss(loss / ranks)", "optimizer.scale_loss(loss)"),
        ranks=2,
    ),
    PlantedMistake(
        "each rank's part of the gradient clipped to its part of the bound",
        "embedding",
        Change(
            "steps.py",
            "context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)",
            "context.all_reduce(\n            tf.distribute.ReduceOp.SUM,\n"
            "            tf.clip_by_global_norm(gradients, optimizer.global_clipnorm / ranks)[0],\n"
            "        )",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "each rank's part of the gradient clipped to the whole bound",
        "embedding",
        Change(
            "steps.py",
            "context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)",
            "context.all_reduce(\n            tf.distribute.ReduceOp.SUM,\n"
            "            tf.clip_by_global_norm(gradients, optimizer.global_clipnorm)[0],\n"
            "        )",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "a last parameter that is not averaged",
        "embedding",
        Change(
            "steps.py",
            "return loss, context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)",
            "summed = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients[:-1])\n"
            "        return loss, [*summed, ranks * gradients[-1]]",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "Keras's padding SAME where a convolution strides",
        "basic residual, halving",
        Change(
            "models/cnn.py",
            'same = stride == 1 and attributes["padding"]',
            'same = attributes["padding"]',
        ),
    ),
    PlantedMistake(
        "Keras's default epsilon of the batch normalisation",
        "basic residual, halving",
        Change("models/cnn.py", '        epsilon=layer.attributes["epsilon"],\n', ""),
    ),
    PlantedMistake(
        "PyTorch's momentum of running statistics",
        "basic residual, halving",
        Change(
            "models/cnn.py",
            'momentum=1.0 - layer.attributes["momentum"]',
            'momentum=layer.attributes["momentum"]',
        ),
    ),
    PlantedMistake(
        "the batch's own statistics in inference",
        "basic residual, halving",
        Change(
            "models/cnn.py",
            "return holder(x, training=training)",
            "return holder(x, training=True)",
        ),
        mode="inference",
    ),
    PlantedMistake(
        "running statistics that normalise in training",
        "basic residual, halving",
        Change(
            "models/cnn.py",
            "return holder(x, training=training)",
            "return holder(x, training=False)",
        ),
    ),
    PlantedMistake(
        "flattened with the channels first",
        "basic residual, halving",
        other_operation(
            "flatten",
            "lambda layer, x: "
            "tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (-1, layer.shape.channels))",
        ),
    ),
    PlantedMistake(
        "weight decay that momentum does not see",
        "basic residual, halving",
        Change(
            "optimizers.py",
            "gradient += self.coupled_weight_decay * variable",
            "variable.assign_sub(learning_rate * self.coupled_weight_decay * variable)",
        ),
    ),
    PlantedMistake(
        "Nesterov's momentum",
        "basic residual, halving",
        Change(
            "optimizers.py",
            "            momentum=self.momentum,\n",
            "            momentum=self.momentum,\n            use_nesterov=True,\n",
        ),
    ),
    PlantedMistake(
        "no weight decay of biases and batch normalisations",
        "resnet50_v1.5",
        Change(
            "optimizers.py",
            "if self._use_weight_decay(self._trainable_variables[index]):",
            "if len(variable.shape) > 1:",
        ),
    ),
    PlantedMistake(
        "a mean without the padding",
        "all_blocks",
        other_operation(
            "average_pool",
            "lambda layer, x: tf.nn.avg_pool2d("
            'x, layer.attributes["kernel"], layer.attributes["stride"], "SAME")',
        ),
    ),
    PlantedMistake(
        "channels shuffled by the other number of groups",
        "all_blocks",
        other_operation(
            "shuffle",
            'lambda layer, x: RIGHT["shuffle"](layer._replace(attributes={'
            '"groups": layer.shape.channels // layer.attributes["groups"]}), x)',
        ),
    ),
    PlantedMistake(
        "auxiliary heads that weigh nothing",
        "all_blocks",
        Change("models/cnn.py", "return logits + sum(", "return logits + 0.0 * sum("),
    ),
    PlantedMistake(
        "labels of the next position shifted once more",
        "gpt2_small",
        Change(
            "models/decoder.py",
            'return tf.reduce_mean(entropy(batch["labels"], logits))',
            'return tf.reduce_mean(entropy(batch["labels"][:, 1:], logits[:, :-1]))',
        ),
    ),
    PlantedMistake(
        "each token attends to all that follow",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "context = attended(query, key, value, later, ",
            "context = attended(query, key, value, None, ",
        ),
    ),
    PlantedMistake(
        "the feed-forward part beside the attention",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "        x += self.attention_dropout(y, training=training)\n"
            "        y = self.feed_forward(self.feed_forward_norm(x))\n        return x +",
            "        z = x + self.attention_dropout(y, training=training)\n"
            "        y = self.feed_forward(self.feed_forward_norm(x))\n        return z +",
        ),
    ),
    PlantedMistake(
        "Keras's default epsilon of the root mean square",
        "llama_8b",
        Change(
            "models/decoder.py",
            'return kind(epsilon=hyper["norm_epsilon"], name=name)',
            "return kind(name=name)",
        ),
    ),
    PlantedMistake(
        "values rotated with queries and keys",
        "llama_8b",
        Change(
            "models/decoder.py",
            "rotate(query, *angles), rotate(key, *angles)",
            "rotate(query, *angles), rotate(key, *angles)\n"
            "            value = rotate(value, *angles)",
        ),
    ),
    PlantedMistake(
        "rotated by half of each angle",
        "llama_8b",
        Change("models/decoder.py", "-2.0 / self.size * halves", "-1.0 / self.size * halves"),
    ),
    PlantedMistake(
        "the loss of the first position",
        "superbench_gpt2_small",
        Change("models/decoder.py", "logits = logits[:, -1]", "logits = logits[:, 0]"),
    ),
    PlantedMistake(
        "padding of which the discriminator is asked",
        "electra_base",
        Change("models/electra.py", "entropies = real * ", "entropies = "),
        Change(
            "models/electra.py",
            "tf.reduce_sum(entropies) / tf.reduce_sum(real)",
            "tf.reduce_mean(entropies)",
        ),
    ),
    PlantedMistake(
        "Keras's decay, outside the ratio of norms",
        "electra_base",
        Change(
            "optimizers.py",
            "(root + self.epsilon) + self._decays[index] * variable",
            "(root + self.epsilon)",
        ),
        Change(
            "optimizers.py",
            "tf.cast(learning_rate, variable.dtype) * change)",
            "tf.cast(learning_rate, variable.dtype) * (change + self._decays[index] * variable))",
        ),
    ),
    PlantedMistake(
        "weight decay of biases and normalisations",
        "electra_base_squad",
        Change(
            "optimizers.py",
            "    optimizer.exclude_from_weight_decay(var_list=[named[name] for name in "
            "undecayed])\n",
            "",
        ),
    ),
    PlantedMistake(
        "weight decay at the rate of the last layer",
        "electra_base_squad",
        Change(
            "optimizers.py",
            "variable.assign_sub(rate * self.weight_decay * variable)",
            "variable.assign_sub(learning_rate * self.weight_decay * variable)",
        ),
    ),
    PlantedMistake(
        "the spans' ends alone",
        "bert_base_squad",
        Change(
            "models/bert.py",
            'entropy(batch["spans"], tf.transpose(outputs, (0, 2, 1)))',
            'entropy(batch["spans"], tf.transpose(outputs, (0, 2, 1)))[:, 1]',
        ),
    ),
    PlantedMistake(
        "no dropout in training steps",
        "embedding",
        Change("steps.py", "inputs(batch), training=True)", "inputs(batch), training=False)"),
        config_name=DROPOUT,
    ),
]
