"""Rules and baselines by which nodes are judged: ours, and SuperBench's."""
