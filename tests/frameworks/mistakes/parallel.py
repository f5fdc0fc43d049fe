"""Mistakes in what ranks of PyTorch exchange that share a model."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

MISTAKES = {
    "pytorch": [
        *(
            PlantedMistake(
                "clipped by the norm of the rank's own part",
                "bert_base",
                Change(
                    "parallel/sharded.py",
                    "get_total_norm([p.grad for p in group if p.grad is not None])",
                    "get_total_norm([local_part(p.grad) for p in group])",
                ),
                ranks=2,
                parallelism=parallelism,
            )
            for parallelism in ("fsdp", "tensor")
        ),
        PlantedMistake(
            "gradients summed over the ranks of FSDP",
            "embedding",
            Change(
                "parallel/sharded.py",
                "            value = differentiate()\n",
                "            value = differentiate()\n"
                "            for p in self._model.parameters():\n"
                "                p.grad.mul_(2.0)\n",
            ),
            ranks=2,
            parallelism="fsdp",
        ),
        PlantedMistake(
            "LAMB's norms of the rank's own part",
            "electra_base",
            Change(
                "lamb.py", "_of_all_parts(parameters, norms)\n    scalable", "norms\n    scalable"
            ),
            ranks=2,
            parallelism="fsdp",
        ),
        PlantedMistake(
            "other initial values in each rank of a tensor group",
            "embedding",
            Change(
                "adapter.py",
                "torch.manual_seed(self.rank_context.seed)  #",
                "torch.manual_seed(self.rank_context.seed + self.rank_context.rank)  #",
            ),
            ranks=2,
            parallelism="tensor",
        ),
        PlantedMistake(
            "the same dropout in all ranks of FSDP",
            "embedding",
            Change(
                "adapter.py", "self.rank_context.seed + 1 + group", "self.rank_context.seed + 1"
            ),
            ranks=2,
            config_name=DROPOUT,
            parallelism="fsdp",
        ),
        PlantedMistake(
            "the same dropout in all ranks of a tensor group",
            "bert_base",
            Change("parallel/sharded.py", "randomness.use_in(layer)", "pass"),
            ranks=2,
            config_name=DROPOUT,
            parallelism="tensor",
        ),
        PlantedMistake(
            "clipped by the norm of the stage",
            "bert_base",
            Change(
                "parallel/pipeline.py", "distributed.all_reduce(total, group=self._group)", "pass"
            ),
            ranks=2,
            parallelism="pipeline",
        ),
        PlantedMistake(
            "a tied parameter counted twice in the norm",
            "bert_base",
            Change(
                "parallel/pipeline.py",
                "counted = {name for name, rank in self._owners.items() if rank == self._place}",
                "counted = self._kept",
            ),
            ranks=2,
            parallelism="pipeline",
        ),
        PlantedMistake(
            "losses of micro-steps summed",
            "bert_base",
            Change(
                "parallel/pipeline.py",
                "self._loss(computed, batch) / len(self._batches)",
                "self._loss(computed, batch)",
            ),
            ranks=2,
            micro_steps=2,
            parallelism="pipeline",
        ),
    ],
}
