"""A small Llama of transformers, which returns its own loss."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

FRAMEWORK = "pytorch"
WORDS, TOKENS = 2000, 64


def make(batch_size):
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=2,
        num_attention_heads=4,
        use_cache=False,
    )
    tokens = torch.randint(WORDS, (batch_size, TOKENS))
    inputs = {"input_ids": tokens, "labels": tokens}
    return LlamaForCausalLM(config), (inputs, ()), loss


def loss(outputs, _):
    return outputs.loss


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)
