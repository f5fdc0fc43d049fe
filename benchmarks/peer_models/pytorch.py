"""ResNet-50 of torchvision and timm, BERT of transformers."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from . import Assignment, Run, loop

# Stub for the operators of torchvision's extension, which PyTorch for CPUs does not load.
sys.modules["torchvision._meta_registrations"] = ModuleType("_meta_registrations")


def torchvision_resnet50(work: Assignment) -> Run:
    from torchvision.models import resnet50

    return image_loop(resnet50(weights=None), work)


def timm_resnet50(work: Assignment) -> Run:
    import timm

    return image_loop(timm.create_model("resnet50"), work)


def image_loop(
    model: nn.Module, work: Assignment, logits: Callable[[Any], Any] = lambda outputs: outputs
) -> Run:
    """Return a loop of an image model. ``logits``: selects the logits among the model's outputs."""
    model = model.to(memory_format=torch.channels_last)
    images = torch.from_numpy(work.batch["images"]).permute(0, 3, 1, 2)  # channels last in memory
    labels = torch.from_numpy(work.batch["labels"])
    losses = partial(F.cross_entropy, target=labels)
    return _running(model, (images,), lambda outputs: losses(logits(outputs)), work)


class Pretraining(nn.Module):
    """BERT with the token head only at the masked positions, as in our model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Any, segments: Any, mask: Any, masked: Any) -> Any:
        x, pooled = self.model.bert(tokens, mask, segments, return_dict=False)
        chosen = x.gather(1, masked[:, :, None].expand(-1, -1, x.shape[2]))
        return self.model.cls(chosen, pooled)


def bert(work: Assignment) -> Run:
    from transformers import BertConfig, BertForPreTraining

    model = Pretraining(BertForPreTraining(BertConfig()))
    tensors = {name: torch.from_numpy(array) for name, array in work.batch.items()}
    names = ("token_ids", "segment_ids", "attention_mask", "masked_positions")

    def losses(outputs: Any) -> Any:
        words, following = outputs
        loss = F.cross_entropy(words.flatten(0, 1), tensors["masked_labels"].flatten())
        return loss + F.cross_entropy(following, tensors["next_sentence_labels"])

    return _running(model, [tensors[name] for name in names], losses, work)


def _running(model: nn.Module, inputs: Any, losses: Callable[[Any], Any], work: Assignment) -> Run:
    model.train(work.trains)
    network = model if work.compiler == "none" else torch.compile(model)
    optimizer: Any
    if work.hyper["optimizer"] == "adamw":
        rate, decay, *betas, epsilon = work.adamw
        optimizer = torch.optim.AdamW(
            model.parameters(), rate, betas, epsilon, weight_decay=decay, fused=True
        )
    else:
        rate, momentum, decay = work.sgd
        optimizer = torch.optim.SGD(
            model.parameters(), rate, momentum, weight_decay=decay, fused=True
        )

    def infer() -> None:
        with torch.inference_mode():
            network(*inputs)

    def train() -> None:
        optimizer.zero_grad(set_to_none=True)
        losses(network(*inputs)).backward()
        if "clip_global_norm" in work.hyper:
            nn.utils.clip_grad_norm_(model.parameters(), work.hyper["clip_global_norm"])
        optimizer.step()

    return loop(train if work.trains else infer)
