"""Run on one node or several: each node's work, and their cooperation."""
