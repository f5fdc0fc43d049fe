"""Seeded bad inputs of every kind that the driver reads, and what must hold of each."""
