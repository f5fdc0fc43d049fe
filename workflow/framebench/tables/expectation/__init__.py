"""Expected times of a step, from micro-benchmarks on the same machine."""
