"""Training that goes on until something is learned: rates, epochs, evaluation, curve."""
