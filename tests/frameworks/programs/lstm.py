"""Comparison of an LSTM in both modes."""

from harness.adapter import Unsupported
from harness.kinds.verification import ReferenceFolder, compare
from harness.measuring.checks import check_matmuls, compiler_evidence

from .comparing import started
from .prelude import load_model_config


def compare_modes(folder, precision, compiler):
    """Return the errors of both modes, or the reasons of refusals."""
    reference = ReferenceFolder(folder)
    errors, refused = {}, {}
    for mode in ("train", "inference"):
        try:
            adapter = started(load_model_config(folder), mode, precision, compiler=compiler)
            adapter.build(dict(reference.arrays("batch-0")))
            check_matmuls(precision, adapter.matmul_dtypes())
            errors[mode] = compare(adapter, reference, print)
            compiler_evidence(adapter)
            adapter.stop()
        except Unsupported as reason:
            refused[mode] = str(reason)
    return {"errors": errors, "refused": refused}
