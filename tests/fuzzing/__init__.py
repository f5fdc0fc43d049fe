"""Seeded bad inputs of every kind that the driver reads, and their invariants."""
