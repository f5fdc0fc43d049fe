"""What the micro-benchmarks compute, and how it is checked."""
