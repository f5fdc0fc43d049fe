"""What a step should take by what the micro-benchmarks measured on the same machine."""
