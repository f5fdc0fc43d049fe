"""Rules and baselines that judge nodes: ours, and SuperBench's."""
