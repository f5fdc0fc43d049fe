"""Training until something is learned: learning rates, epochs, evaluation, learning curve."""
