"""Nodes judged by their figures: what is the same figure of several nodes, and which is worse."""
