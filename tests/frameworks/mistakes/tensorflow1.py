"""Mistakes in TensorFlow 1's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake, other_operation

MISTAKES = [
    PlantedMistake(
        "pooled from the first rows of the batch",
        "bert_base",
        Change("models/bert.py", "tf.gather(x, first)", "x[:rows]"),
    ),
    PlantedMistake(
        "masked positions of the first sequence alone",
        "bert_base",
        Change(
            "models/bert.py",
            'batch["masked_positions"] + first[:, None]',
            'batch["masked_positions"]',
        ),
    ),
    PlantedMistake(
        "the mask ignored",
        "bert_base",
        Change("models/bert.py", "transpose_b=True) + ignored)", "transpose_b=True))"),
    ),
    PlantedMistake(
        "attention scaled twice",
        "bert_base",
        Change(
            "models/bert.py",
            'key, value = split(dense(x, f"{name}.key")), ',
            'key, value = split(dense(x, f"{name}.key") * (hidden // heads) ** -0.5), ',
        ),
    ),
    PlantedMistake(
        "heads joined without a transpose",
        "bert_base",
        Change(
            "models/bert.py",
            "tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (-1, hidden))",
            "tf.reshape(context, (-1, hidden))",
        ),
    ),
    PlantedMistake(
        "a normalisation before each layer",
        "bert_base",
        Change(
            "models/bert.py",
            'attended = dropout(attention(x, f"{layer}.attention"))\n'
            '            x = norm(x + attended, f"{layer}.attention_norm")',
            'y = norm(x, f"{layer}.attention_norm")\n'
            '            x += dropout(attention(y, f"{layer}.attention"))',
        ),
    ),
    PlantedMistake(
        "GELU approximated",
        "bert_base",
        Change(
            "models/bert.py",
            "(1.0 + tf.math.erf(x * math.sqrt(0.5)))",
            "(1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))",
        ),
    ),
    PlantedMistake(
        "epsilon of TensorFlow's contrib.layers",
        "bert_base",
        Change("models/layers.py", "offset, scale, epsilon)", "offset, scale, 1e-12)"),
    ),
    PlantedMistake(
        "TensorFlow's Adam, whose epsilon is not corrected",
        "bert_base",
        Change(
            "optimizers.py",
            "epsilon=self._epsilon * tf.sqrt(1.0 - beta2_power)",
            "epsilon=self._epsilon_t",
        ),
    ),
    PlantedMistake(
        "weight decay that does not follow the learning rate",
        "bert_base",
        Change("optimizers.py", "1.0 - rate * hyper", "1.0 - hyper"),
    ),
    PlantedMistake(
        "the learning rate as it is timed",
        "bert_base",
        Change(
            "adapter.py", 'rate = model_config["hyperparameters"]["learning_rate"]', "rate = 1e-4"
        ),
    ),
    PlantedMistake(
        "moments that are not corrected",
        "bert_base",
        Change(
            "optimizers.py",
            "beta1_power=beta1_power,\n                beta2_power=beta2_power,",
            "beta1_power=tf.constant(0.0),\n                beta2_power=tf.constant(0.0),",
        ),
    ),
    PlantedMistake(
        "each tensor clipped by its own norm",
        "bert_base",
        Change(
            "steps.py",
            "tf.clip_by_global_norm(gradients, limit)[0]",
            "[tf.clip_by_norm(gradient, limit) for gradient in gradients]",
        ),
    ),
    PlantedMistake(
        "no gradient clipping",
        "bert_base",
        Change(
            "steps.py", "return gradients if limit is None else", "return gradients if True else"
        ),
    ),
    PlantedMistake(
        "no gradient of the tied decoder",
        "bert_base",
        Change(
            "models/bert.py",
            "tf.matmul(masked, tokens, transpose_b=True)",
            "tf.matmul(masked, tf.stop_gradient(tokens), transpose_b=True)",
        ),
    ),
    PlantedMistake(
        "weights that are decayed before the forward pass reads them",
        "bert_base",
        Change("optimizers.py", "before = [grad]\n", "before = []\n"),
    ),
    PlantedMistake(
        "the part to keep for the part to leave out",
        "bert_base",
        Change("models/layers.py", "tf.nn.dropout(x, rate=rate)", "tf.nn.dropout(x, rate)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout of the attention probabilities",
        "bert_base",
        Change("models/bert.py", "tf.matmul(dropout(weights), value)", "tf.matmul(weights, value)"),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "no dropout behind the feed-forward part",
        "bert_base",
        Change(
            "models/bert.py",
            'norm(x + dropout(dense(inner, f"{layer}.output")), ',
            'norm(x + dense(inner, f"{layer}.output"), ',
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout of whole tokens",
        "bert_base",
        Change(
            "models/layers.py",
            "tf.nn.dropout(x, rate=rate)",
            "tf.nn.dropout(x, rate=rate, noise_shape=[*x.shape[:-1], 1])",
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the same dropout masks in each layer",
        "bert_base",
        Change(
            "models/layers.py", "tf.nn.dropout(x, rate=rate)", "tf.nn.dropout(x, rate=rate, seed=1)"
        ),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "dropout in inference",
        "bert_base",
        Change(
            "models/layers.py",
            "tf.nn.dropout(x, rate=rate) if training else x",
            "tf.nn.dropout(x, rate=rate)",
        ),
        config_name=DROPOUT,
        mode="inference",
    ),
    PlantedMistake(
        "initial values of one seed for all variables",
        "bert_base",
        Change(
            "variables.py",
            "tf.random.normal(shape, stddev=deviation)",
            "tf.random.normal(shape, stddev=deviation, seed=1)",
        ),
    ),
    PlantedMistake(
        "the loss of the next sentence summed",
        "bert_base",
        Change(
            "models/bert.py",
            '+ tf.reduce_mean(\n        entropy(labels=batch["next_sentence_labels"]',
            '+ tf.reduce_sum(\n        entropy(labels=batch["next_sentence_labels"]',
        ),
    ),
    PlantedMistake(
        "clipped before the all-reduce",
        "embedding",
        Change(
            "steps.py",
            '_clipped(gradients, model_config["hyperparameters"].get("clip_global_norm"))',
            'average(_clipped(local, model_config["hyperparameters"].get("clip_global_norm")))',
        ),
        ranks=2,
    ),
    PlantedMistake(
        "gradients summed over the ranks",
        "basic residual, halving",
        Change("devices.py", "instance, mean=True)", "instance, mean=False)"),
        ranks=2,
    ),
    PlantedMistake(
        "a last parameter that is not averaged",
        "basic residual, halving",
        Change(
            "devices.py",
            "for instance, tensor in enumerate(tensors, 2)\n    ]",
            "for instance, tensor in enumerate(tensors[:-1], 2)\n    ] + tensors[-1:]",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "running statistics that no step updates",
        "basic residual, halving",
        Change("steps.py", "tf.group(*updates))", "tf.group(updates[0]))"),
    ),
    PlantedMistake(
        "the share of the old running statistics for that of the new",
        "basic residual, halving",
        Change("steps.py", "(share * (old - pairs), ", "((1.0 - share) * (old - pairs), "),
    ),
    PlantedMistake(
        "convolutions with the padding SAME",
        "basic residual, halving",
        Change("models/cnn.py", "padding=padding)", 'padding="SAME")'),
    ),
    PlantedMistake(
        "the batch's own statistics in inference",
        "basic residual, halving",
        Change(
            "models/cnn.py",
            'layer.attributes["epsilon"], training\n',
            'layer.attributes["epsilon"], True\n',
        ),
        mode="inference",
    ),
    PlantedMistake(
        "Nesterov's momentum",
        "basic residual, halving",
        Change(
            "optimizers.py",
            'super().__init__(rate, hyper["momentum"])',
            'super().__init__(rate, hyper["momentum"], use_nesterov=True)',
        ),
    ),
    PlantedMistake(
        "weight decay that momentum does not see",
        "basic residual, halving",
        Change(
            "optimizers.py",
            "return super()._resource_apply_dense(grad + self._weight_decay * var, var)",
            "with tf.control_dependencies([super()._resource_apply_dense(grad, var)]):\n"
            "            return var.assign_sub(self._learning_rate * self._weight_decay * var)",
        ),
    ),
    PlantedMistake(
        "epsilon of TensorFlow's batch normalisation",
        "basic residual, halving",
        Change("models/layers.py", "        epsilon=epsilon,\n", "        epsilon=0.001,\n"),
    ),
    PlantedMistake(
        "an activation in front of the residual",
        "resnet50_v1.5",
        other_operation("add", "lambda layer, x, y: tf.nn.relu(x) + y"),
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
        "groups of the input taken in turn",
        "all_blocks",
        Change(
            "models/cnn.py",
            "zip(tf.split(x, groups, -1), ",
            "zip([x[..., group::groups] for group in range(groups)], ",
        ),
    ),
    PlantedMistake(
        "ReLU6 without its upper end",
        "all_blocks",
        other_operation("relu6", "lambda layer, x: tf.nn.relu(x)"),
    ),
    PlantedMistake(
        "auxiliary heads subtracted",
        "all_blocks",
        Change(
            "models/cnn.py",
            'logits += model_config["hyperparameters"]["auxiliary_weight"] * head',
            'logits = (1.0 - model_config["hyperparameters"]["auxiliary_weight"]) * logits + head',
        ),
    ),
    PlantedMistake(
        "a token that does not see itself",
        "gpt2_small",
        Change(
            "models/decoder.py", "positions[:, None] < positions", "positions[:, None] <= positions"
        ),
    ),
    PlantedMistake(
        "the exact GELU for the approximation",
        "gpt2_small",
        Change(
            "models/decoder.py",
            "(1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))",
            "(1.0 + tf.math.erf(x * math.sqrt(0.5)))",
        ),
    ),
    PlantedMistake(
        "the second part of each layer on what the first has normalised",
        "gpt2_small",
        Change(
            "models/decoder.py",
            'y = norm(x, f"{layer}.feed_forward_norm")\n',
            'y = norm(norm(x, f"{layer}.attention_norm"), f"{layer}.feed_forward_norm")\n',
        ),
    ),
    PlantedMistake(
        "rotated the other way",
        "llama_8b",
        Change(
            "models/decoder.py",
            "[first * cosine - second * sine, second * cosine + first * sine]",
            "[first * cosine + second * sine, second * cosine - first * sine]",
        ),
    ),
    PlantedMistake(
        "keys and values swapped",
        "llama_8b",
        Change("models/decoder.py", "query, key, value = tf.split", "query, value, key = tf.split"),
    ),
]
