"""Model of the reference, which is written for Autograd anyway."""

from reference.bert import forward, initial, loss, parameters  # noqa: F401
