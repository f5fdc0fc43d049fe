"""TF32 switches of frameworks, without a GPU: they are set, and being set proves nothing."""

from __future__ import annotations

from .fork_server import ForkServer, served

run = served("pytorch", "jax", "tensorflow", "paddle")


def test_what_is_set_is_observed_not_believed(run: ForkServer) -> None:
    (actual,) = run("tf32.observe")
    assert actual["older"].endswith("the device is a GPU, compute capability 7.5")
    for precision in ("fp32", "tf32"):
        switches, products, reason = actual[precision]
        assert set(switches) == {precision == "tf32"}
        assert list(products) == ["float32"], "a processor rounds nothing to TF32"
        assert (reason is None) == (precision == "fp32")
        assert not reason or reason.startswith(f"tf32, but {products['float32']} of ")


def test_a_processor_has_none(run: ForkServer) -> None:
    (actual,) = run("common.refuse", precision="tf32")
    assert actual["reason"].endswith("the device is a CPU")
