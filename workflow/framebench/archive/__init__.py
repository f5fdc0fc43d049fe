"""A set of results as one file to hand on, with all that belongs to it, whole or without names."""
