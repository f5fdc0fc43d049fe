"""Operations of the micro-benchmarks, and checks of their results."""
